"""What snapshots cost a training: one every ten steps, written meanwhile, against none. (``Snapshots(folder, 20)``, which
has one halfway between.)

A network of 784, 1024, 1024 and 10 with Adam, batch 64, one thread, in one rank and in two. Blocks of twenty steps with and
without snapshots take turns; the ratios are those of the medians, of the time that passes and of the processor time of
the thread that trains. Where as many ranks compute as there are processors, and where others use the machine, the
thread that writes takes its time from them: the first ratio has it, the second has not.

python benchmarks/snapshots.py [--write] [folder]

With --write the table is put in benchmarks/README.md, in place of an older one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

from page import beside, write_section

EVERY, STEPS, BLOCKS = 10, 20, 40
BATCH = 64
WIDTHS = (784, 1024, 1024, 10)


def rank(folder: str) -> None:
    """Blocks of steps with and without snapshots, in turn."""
    import genesis
    import genesis.distributed as dist
    from genesis import nn, optim
    from genesis.distributed.checkpoint import Snapshots
    from genesis.nn.functional import cross_entropy

    dist.init_process_group()
    genesis.manual_seed(0)
    layers = [nn.Linear(WIDTHS[0], WIDTHS[1]), nn.ReLU(), nn.Linear(*WIDTHS[1:3]), nn.ReLU(), nn.Linear(*WIDTHS[2:])]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers))
    optimizer = optim.Adam(model.parameters())
    x, y = genesis.randn(BATCH, WIDTHS[0]), genesis.randint(0, WIDTHS[-1], (BATCH,))
    snapshots, state = Snapshots(folder, 2 * EVERY), {"model": model, "optimizer": optimizer}
    step, times, own, calls = 0, {True: [], False: []}, {True: [], False: []}, []
    for block in range(2 * BLOCKS + 2):
        saves = block % 2 == 1
        dist.barrier()
        begin, begun = time.perf_counter(), time.thread_time()
        for _ in range(STEPS):
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            optimizer.step()
            step += 1
            if saves:
                called = time.perf_counter()
                if snapshots.save(step, state) is not None:
                    calls.append(time.perf_counter() - called)
        times[saves].append((time.perf_counter() - begin) / STEPS)
        own[saves].append((time.thread_time() - begun) / STEPS)
        snapshots.wait()  # what is still to be written is not the next block's
    if dist.get_rank() == 0:
        found = {"call": statistics.median(calls)}
        for name, each in (("time", times), ("own", own)):
            found[name] = [statistics.median(each[saves][1:]) for saves in (False, True)]
        print(json.dumps(found))
    dist.destroy_process_group()


def table(folder: str) -> str:
    """A row for each number of ranks."""
    lines = [
        "| ranks | step without | with a snapshot every 10 | ratio | of the training thread's processor time | a call of save | at most |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for ranks in (1, 2):
        start = [sys.executable, "-m", "genesis", "run", "-n", str(ranks)] if ranks > 1 else [sys.executable]
        with tempfile.TemporaryDirectory(dir=folder) as inner:
            out = subprocess.run([*start, __file__, "rank", inner], capture_output=True, text=True, check=True).stdout
        found = json.loads(out[out.index("{") :])
        (without, having), own = found["time"], found["own"]
        lines.append(
            f"| {ranks} | {without * 1e3:.2f} ms | {having * 1e3:.2f} ms | {having / without:.3f} "
            f"| {own[1] / own[0]:.3f} | {found['call'] * 1e3:.2f} ms | 1.05 |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", default=tempfile.gettempdir())
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    busy = beside()
    text = table(given.folder)
    print(text)
    if given.write:
        head = (
            f"`python benchmarks/snapshots.py --write`: a network of {', '.join(map(str, WIDTHS))} with Adam, {BATCH} rows and one "
            f"thread in each rank; {busy}; medians of blocks of {STEPS} steps that take turns."
        )
        write_section("Snapshots", head + "\n\n" + text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        rank(sys.argv[2])
    else:
        main()
