"""What a fixed number of shards costs: a step of DistributedDataParallel with shards=4 against the plain one.

A network of 784, 1024, 1024 and 10 with SGD, 64 rows and one thread in each rank, step by step in one rank and in two (and as one
compiled step). Blocks of steps of both kinds take turns; times are medians of blocks, of the time that passes and of the
processor time of the rank.

python benchmarks/deterministic.py
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

STEPS, BLOCKS, BATCH = 6, 16, 64
WIDTHS = (784, 1024, 1024, 10)
KINDS = (None, 2, 4)  # shards


def rank(compiled: bool) -> None:
    """Blocks of steps of each kind, in turn."""
    import genesis
    import genesis.distributed as dist
    from genesis import nn, optim
    from genesis.nn.functional import cross_entropy

    dist.init_process_group()
    x, y = genesis.randn(BATCH, WIDTHS[0]), genesis.randint(0, WIDTHS[-1], (BATCH,))

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
            for _ in range(STEPS):
                step(x, y)
            times[kind].append((time.perf_counter() - begin) / STEPS)
            own[kind].append((time.process_time() - begun) / STEPS)
    if dist.get_rank() == 0:
        print(json.dumps([[statistics.median(of[kind][2:]) for of in (times, own)] for kind in KINDS]))
    dist.destroy_process_group()


def main() -> None:
    """The table."""
    print("| ranks | step | shards | time | ratio | processor time | ratio | at most |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for ranks in (1, 2):
        for how in ("eager", "compiled"):
            start = [sys.executable, "-m", "genesis", "run", "-n", str(ranks)] if ranks > 1 else [sys.executable]
            out = subprocess.run([*start, __file__, how], capture_output=True, text=True, check=True).stdout
            rows = json.loads(out[out.index("[[") :])
            for kind, (passed, own) in zip(KINDS, rows, strict=True):
                ratios = [
                    f"{value / base:.2f}" if kind else "" for value, base in zip((passed, own), rows[0], strict=True)
                ]
                print(f"| {ranks} | {how} | {kind or 'none'} | {passed * 1e3:.1f} ms | {ratios[0]} | {own * 1e3:.1f} ms "
                      f"| {ratios[1]} | {'1.25' if kind else ''} |")  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2]:
        rank(sys.argv[1] == "compiled")
    else:
        main()
