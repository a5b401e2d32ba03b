"""What several ranks cost: collectives against mpi4py's own, and a training step against PyTorch over gloo.

Two ranks with one thread each, of this machine. Both sides are measured in turn, in the same ranks where that is possible and
else in jobs that alternate; times are the smallest and the median of a rank's calls. Memory is what a rank has allocated
between steps of Adam (`tracemalloc`), against what parameters, gradients and two averages are, divided as they should be.

python benchmarks/distributed.py [--write]

With --write the table is put in benchmarks/README.md, in place of an older one, and a picture of one step beside it.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import socket
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np
from page import beside, write_section

JOBS = 3  # of each kind, in turn
STEPS = 60
BATCH = 64
WIDTHS = (784, 1024, 1024, 10)
PICTURE = Path(__file__).with_name("step_of_two_ranks.svg")


def taken(call: Callable[[], object], count: int) -> list[float]:
    """Seconds of each of so many calls."""
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return times


def said(kind: str, **numbers: float) -> None:
    """One line of results, by one rank."""
    print(json.dumps({"kind": kind, **numbers}), flush=True)


# ---- what ranks do


def collectives() -> None:
    """`all_reduce` in turn with mpi4py's ``Allreduce`` in place, of 4 bytes and of 25 MB."""
    import genesis
    import genesis.distributed as dist

    dist.init_process_group()
    from mpi4py import MPI

    world = MPI.COMM_WORLD.Dup()
    for kind, elements, count, rounds in (("4 bytes", 1, 100, 6), ("25 MB", 25 * 2**20 // 4, 3, 4)):
        x, y = genesis.zeros(elements), np.zeros(elements, np.float32)
        ours, theirs = [], []
        for _ in range(rounds):
            ours += taken(lambda x=x: dist.all_reduce(x), count)
            theirs += taken(lambda y=y: world.Allreduce(MPI.IN_PLACE, y), count)
        if dist.get_rank() == 0:
            for who, times in (("genesis", ours), ("mpi4py", theirs)):
                said(f"{who}, {kind}", least=min(times), median=statistics.median(times))
    dist.destroy_process_group()


def genesis_step(batch: int) -> None:
    """Steps of a network with DistributedDataParallel, or of one rank alone."""
    import genesis
    import genesis.distributed as dist

    dist.init_process_group()
    _steps(genesis, dist, genesis.nn.parallel.DistributedDataParallel, batch, "genesis")
    dist.destroy_process_group()


def picture(batch: int) -> None:
    """Draw one step with DistributedDataParallel."""
    import genesis
    import genesis.distributed as dist
    from genesis.profiler import export_ranks, profile

    dist.init_process_group()
    step = _training(genesis, genesis.nn.parallel.DistributedDataParallel, batch)
    taken(step, 20)
    dist.barrier()  # all begin at once
    with profile() as done:
        step()
    export_ranks(done, PICTURE)
    dist.destroy_process_group()


def torch_step(batch: int) -> None:
    """The same by PyTorch over gloo."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    _steps(torch, dist, torch.nn.parallel.DistributedDataParallel, batch, "torch")
    dist.destroy_process_group()


def _steps(lib, dist, parallel, batch: int, who: str) -> None:
    size = dist.get_world_size()
    step = _training(lib, parallel if size > 1 else lambda model: model, batch)
    taken(step, 5)
    times = taken(step, STEPS)
    if dist.get_rank() == 0:
        said(f"{who}, {size} ranks of {batch}", least=min(times), median=statistics.median(times))


def _training(lib, parallel, batch: int) -> Callable[[], None]:
    """A step of SGD."""
    nn = lib.nn
    layers = [layer for a, b in pairwise(WIDTHS) for layer in (nn.Linear(a, b), nn.ReLU())]
    model = parallel(nn.Sequential(*layers[:-1]))
    optimizer = lib.optim.SGD(model.parameters(), lr=0.01)
    x, y = lib.randn(batch, WIDTHS[0]), lib.randint(0, WIDTHS[-1], (batch,))

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def in_parts(batch: int) -> None:
    """Steps of Adam with DistributedDataParallel, with ZeroRedundancyOptimizer and with fully_shard, in turn, and memory."""
    import genesis
    import genesis.distributed as dist
    from genesis.distributed.fsdp import fully_shard
    from genesis.distributed.optim import ZeroRedundancyOptimizer
    from genesis.kernels.cpu import memory

    dist.init_process_group()
    nn, size = genesis.nn, dist.get_world_size()
    x, y = genesis.randn(batch, WIDTHS[0]), genesis.randint(0, WIDTHS[-1], (batch,))
    numbers = sum((a + 1) * b for a, b in pairwise(WIDTHS)) * 4  # bytes of the parameters

    def training(kind: str) -> Callable[[], None]:
        layers = [nn.Linear(a, b) for a, b in pairwise(WIDTHS)]
        if kind == "fully_shard":
            layers = [fully_shard(layer) for layer in layers]
        model = nn.Sequential(*[part for layer in layers for part in (layer, nn.ReLU())][:-1])
        model = fully_shard(model) if kind == "fully_shard" else nn.parallel.DistributedDataParallel(model)
        if kind == "ZeRO-1":
            optimizer = ZeroRedundancyOptimizer(model.parameters(), genesis.optim.Adam)
        else:
            optimizer = genesis.optim.Adam(model.parameters())

        def step() -> None:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()

        return step

    shares = {"DDP": 4 * numbers, "ZeRO-1": (2 + 2 / size) * numbers, "fully_shard": 4 / size * numbers}
    steps, held = {}, {}
    for kind in shares:
        taken(training(kind), 2)  # what is loaded and kept once for all
        gc.collect()
        memory.release()
        tracemalloc.start()
        steps[kind] = training(kind)
        taken(steps[kind], 3)
        gc.collect()
        memory.release()  # what was given back, and is kept for the next arrays of that size
        held[kind] = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    times: dict[str, list[float]] = {kind: [] for kind in shares}
    for _ in range(6):
        for kind, step in steps.items():
            times[kind] += taken(step, STEPS // 6)
    if dist.get_rank() == 0:
        for kind, each in times.items():
            said(kind, least=min(each), median=statistics.median(each), held=held[kind], share=shares[kind])
    dist.destroy_process_group()


# ---- jobs


def with_mpi(ranks: int, *arguments: str) -> list[dict]:
    """The results of a job of this file, started by mpiexec."""
    from genesis.distributed import installed

    command = [installed.launcher(), "-n", str(ranks), sys.executable, __file__, *arguments]
    return _results(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def with_gloo(ranks: int, *arguments: str) -> list[dict]:
    """The same, started as torchrun does."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(ranks)}
    processes = [
        subprocess.Popen([sys.executable, __file__, *arguments], env={**shared, "RANK": str(rank)}, stdout=subprocess.PIPE, text=True)
        for rank in range(ranks)
    ]  # fmt: skip
    return [result for process in processes for result in _results(process.communicate()[0])]


def _results(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def measured() -> dict[str, dict[str, float]]:
    """The results of all jobs, which take turns: the smallest of each."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(JOBS):
        results = with_mpi(2, "collectives")
        results += with_mpi(2, "genesis_step", str(BATCH)) + with_gloo(2, "torch_step", str(BATCH))
        results += with_mpi(1, "genesis_step", str(2 * BATCH)) + with_mpi(2, "in_parts", str(BATCH))
        for result in results:
            kind = result.pop("kind")
            known = best.setdefault(kind, result)
            best[kind] = {name: min(known[name], result[name]) for name in result}
    return best


def table(best: dict[str, dict[str, float]]) -> str:
    """One row for each question."""
    rows = []

    def row(what: str, mine: str, theirs: str, times: Callable[[float, float], tuple[str, str]]) -> None:
        pairs = [[best[kind][name] for kind in (mine, theirs)] for name in ("least", "median")]
        cells = [f"{a * 1e3:.3f} ms | {b * 1e3:.3f} ms" for a, b in pairs]
        rows.append(f"| {what} | {' | '.join([*cells, *times(*pairs[0])])} |")

    ratio = lambda bar: lambda a, b: (f"{a / b:.2f}", bar)  # noqa: E731
    row("`all_reduce` of 4 bytes, mpi4py's `Allreduce`", "genesis, 4 bytes", "mpi4py, 4 bytes",
        lambda a, b: (f"{(a - b) * 1e6:.1f} us more", "at most 15 us more"))  # fmt: skip
    row("`all_reduce` of 25 MB, mpi4py's `Allreduce`", "genesis, 25 MB", "mpi4py, 25 MB", ratio("at most 1.1"))
    pair, gloo, alone = f"genesis, 2 ranks of {BATCH}", f"torch, 2 ranks of {BATCH}", f"genesis, 1 ranks of {2 * BATCH}"
    row("a step with SGD, PyTorch's DDP over gloo", pair, gloo, ratio("at most 1.0"))
    row("one rank with twice the rows, the step in two ranks", alone, pair, ratio("at least 0.85"))
    for kind in ("ZeRO-1", "fully_shard"):
        row(f"a step with Adam in parts ({kind}), DDP", kind, "DDP", ratio(""))
    lines = ["| what, and what beside | least | beside | median | beside | ratio of the least | bar |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: | --- |", *rows, ""]
    lines += ["| bytes that a rank holds | held | share | ratio | bar |", "| --- | ---: | ---: | ---: | --- |"]
    for kind in ("DDP", "ZeRO-1", "fully_shard"):
        held, share = best[kind]["held"], best[kind]["share"]
        lines.append(f"| {kind} | {held / 1e6:.1f} MB | {share / 1e6:.1f} MB | {held / share:.2f} | at most 1.1 |")
    return "\n".join(lines)


def main() -> None:
    """Run all jobs in turn, and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    busy = beside()
    text = table(measured())
    print(text)
    if write:
        widths = ", ".join(map(str, WIDTHS))
        head = (
            f"`python benchmarks/distributed.py --write`: two ranks with one thread each, a network of {widths}, {BATCH} rows in "
            f"each rank; {busy}; the smallest of {JOBS} jobs each."
        )
        with_mpi(2, "picture", str(BATCH))
        shown = f"![One step of two ranks: what each computed, and what was on its way]({PICTURE.name})"
        write_section("Several ranks", f"{head}\n\n{text}\n\nOne step of two ranks:\n\n{shown}")


if __name__ == "__main__":
    if sys.argv[1:] and not sys.argv[1].startswith("-"):
        globals()[sys.argv[1]](*map(int, sys.argv[2:]))
    else:
        main()
