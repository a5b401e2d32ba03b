"""What several ranks cost: collectives against mpi4py's own, and a training step against PyTorch over gloo.

Two ranks with one thread each, of this machine. Both sides are measured in turn, in the same ranks where that is possible and
else in jobs that alternate; times are the smallest and the median of a rank's calls.

python benchmarks/distributed.py
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np

JOBS = 3  # of each kind, in turn
STEPS = 60
BATCH = 64
WIDTHS = (784, 1024, 1024, 10)


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


def torch_step(batch: int) -> None:
    """The same by PyTorch over gloo."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    _steps(torch, dist, torch.nn.parallel.DistributedDataParallel, batch, "torch")
    dist.destroy_process_group()


def _steps(lib, dist, parallel, batch: int, who: str) -> None:
    nn, size = lib.nn, dist.get_world_size()
    layers = [layer for a, b in pairwise(WIDTHS) for layer in (nn.Linear(a, b), nn.ReLU())]
    model = nn.Sequential(*layers[:-1])
    model = parallel(model) if size > 1 else model
    optimizer = lib.optim.SGD(model.parameters(), lr=0.01)
    x, y = lib.randn(batch, WIDTHS[0]), lib.randint(0, WIDTHS[-1], (batch,))

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    taken(step, 5)
    times = taken(step, STEPS)
    if dist.get_rank() == 0:
        said(f"{who}, {size} ranks of {batch}", least=min(times), median=statistics.median(times))


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


def main() -> None:
    """Run all jobs in turn, and print the table."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(JOBS):
        results = with_mpi(2, "collectives")
        results += with_mpi(2, "genesis_step", str(BATCH)) + with_gloo(2, "torch_step", str(BATCH))
        results += with_mpi(1, "genesis_step", str(2 * BATCH))
        for result in results:
            kind = result.pop("kind")
            known = best.setdefault(kind, result)
            best[kind] = {name: min(known[name], result[name]) for name in result}
    print(f"{'':32}{'least':>12}{'median':>12}")
    for kind, times in best.items():
        print(f"{kind:32}{times['least'] * 1e6:>9.1f} us{times['median'] * 1e6:>9.1f} us")
    least = {kind: times["least"] for kind, times in best.items()}
    four, large = "genesis, 4 bytes", "genesis, 25 MB"
    pair, gloo = f"genesis, 2 ranks of {BATCH}", f"torch, 2 ranks of {BATCH}"
    print(f"4 bytes: {(least[four] - least['mpi4py, 4 bytes']) * 1e6:.1f} us on top of mpi4py (at most 15)")
    print(f"25 MB: {least[large] / least['mpi4py, 25 MB']:.2f} of mpi4py's time (at most 1.1)")
    print(f"step: {least[pair] / least[gloo]:.2f} of PyTorch's time over gloo (at most 1.0)")
    print(
        f"efficiency: {least[f'genesis, 1 ranks of {2 * BATCH}'] / least[pair]:.2f} of one rank with twice the work (at least 0.85)"
    )


if __name__ == "__main__":
    if sys.argv[1:]:
        globals()[sys.argv[1]](*map(int, sys.argv[2:]))
    else:
        main()
