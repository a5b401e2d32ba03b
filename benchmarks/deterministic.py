"""What a fixed number of shards costs: a step of DistributedDataParallel with shards=4 against the plain one.

A network of 784, 1024, 1024 and 10 with SGD and one thread in each rank, in 1, 2 and 4 ranks that share batches of 128, 512
and 2048 rows, step by step and as one compiled step. Blocks of steps of both kinds take turns; times are medians of
blocks, of the time that passes and of the processor time of the rank.

python benchmarks/deterministic.py [--write]

With --write the table is put in benchmarks/README.md, in place of an older one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

from page import beside, write_section

BLOCKS, ROWS = 12, 1024  # of a block: rows, in steps; at least one
BATCHES = (128, 512, 2048)  # of all ranks
WIDTHS = (784, 1024, 1024, 10)
KINDS = (None, 4)  # shards


def rank(batch: int, compiled: bool) -> None:
    """Blocks of steps of each kind, in turn."""
    import genesis
    import genesis.distributed as dist
    from genesis import nn, optim
    from genesis.nn.functional import cross_entropy

    dist.init_process_group()
    rows, count = batch // dist.get_world_size(), max(ROWS // batch, 1)
    x, y = genesis.randn(rows, WIDTHS[0]), genesis.randint(0, WIDTHS[-1], (rows,))

    def training(shards: int | None):
        genesis.manual_seed(0)
        layers = [nn.Linear(*WIDTHS[:2]), nn.ReLU(), nn.Linear(*WIDTHS[1:3]), nn.ReLU(), nn.Linear(*WIDTHS[2:])]
        model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers), shards=shards)
        optimizer = optim.SGD(model.parameters(), 0.01)

        def step(x, y):
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            optimizer.step()

        return genesis.compile(step) if compiled else step

    steps = {kind: training(kind) for kind in KINDS}
    times = {kind: [] for kind in KINDS}
    own = {kind: [] for kind in KINDS}
    for _ in range(BLOCKS):
        for kind, step in steps.items():
            dist.barrier()
            begin, begun = time.perf_counter(), time.process_time()
            for _ in range(count):
                step(x, y)
            times[kind].append((time.perf_counter() - begin) / count)
            own[kind].append((time.process_time() - begun) / count)
    if dist.get_rank() == 0:
        print(json.dumps([[statistics.median(of[kind][2:]) for of in (times, own)] for kind in KINDS]))
    dist.destroy_process_group()


def table() -> str:
    """A row for each batch, number of ranks, and way to compute."""
    lines = ["| rows | ranks | step | plain | 4 shards | ratio | processor time: plain | 4 shards | ratio | at most |"]
    lines += ["| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for batch in BATCHES:
        for ranks in (1, 2, 4):
            for how in ("eager", "compiled"):
                start = [sys.executable, "-m", "genesis", "run", "-n", str(ranks)] if ranks > 1 else [sys.executable]
                command = [*start, __file__, str(batch), how]
                out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                plain, shards = json.loads(out[out.index("[[") : out.index("]]") + 2])
                cells = [
                    f"{a * 1e3:.1f} ms | {b * 1e3:.1f} ms | {b / a:.2f}" for a, b in zip(plain, shards, strict=True)
                ]
                lines.append(f"| {batch} | {ranks} | {how} | {' | '.join(cells)} | 1.25 |")
                print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    busy = beside()
    text = table()
    if write:
        head = (
            "`python benchmarks/deterministic.py --write`: a step of `DistributedDataParallel` with `shards=4` against the plain "
            f"one, a `Sequential` of {', '.join(map(str, WIDTHS))} with SGD, rows of all ranks together, one thread in each "
            f"rank; {busy}; medians of blocks that take turns."
        )
        write_section("The same bits on any number of ranks", head + "\n\n" + text)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        rank(int(sys.argv[1]), sys.argv[2] == "compiled")
    else:
        main()
