"""What a job of several ranks measures for `scale.py`: constants, and steps that a simulation has to foretell.

All ranks do the same at the same time, so each constant is that of a rank whose neighbours are busy as in a training.
What is timed are the parts of a step by hand: forward, backward, a collective of gradients that lie in one piece of
memory, and the optimizer's step from there. So caches are as such a step leaves them, and where there are more ranks
than processors, all of them are slower by what that costs. Of the steps that are foretold the time outside of the engine
is taken, too: what a rank computes there, with the copies and hooks of the approach.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

WIDTHS = (784, 1024, 1024, 10)
BATCH, ROUNDS, WARM = 64, 16, 3
STEPS, CALLS = 4, 10  # in a block, of a small collective
LARGE = -(-sum([a * b + b for a, b in pairwise(WIDTHS)]) // 4) * 4  # elements of the collectives: all gradients
KINDS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast")
JOBS, TRIES = 3, 2
QUIET = 0.08  # of the processors: where others use more, a job is started again


class Times:
    """Seconds of what a rank does, by name."""

    def __init__(self) -> None:
        self.of: dict[str, list[float]] = {}

    @contextlib.contextmanager
    def __call__(self, name: str, count: int = 1) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self.of.setdefault(name, []).append((time.perf_counter() - begin) / count)


class Job:
    """The networks of one rank, and what is timed of them."""

    def __init__(self) -> None:
        import genesis.distributed as dist

        self.dist, self.ranks, self.times = dist, dist.get_world_size(), Times()
        self.lib, self.x, self.y = _data()
        self.plain = _network()
        self.plain_optimizer = self.lib.optim.Adam(self.plain.parameters())
        self.steps = self._approaches()
        self.inside = _seconds_inside(dist.group.WORLD)
        zeros, ranks = self.lib.zeros, self.ranks
        self.large = zeros(LARGE), zeros(LARGE // ranks)
        self.small = zeros(ranks), zeros(1)

    def _approaches(self) -> dict[str, Callable[[], None]]:
        from genesis import nn, optim
        from genesis.distributed.fsdp import fully_shard
        from genesis.distributed.optim import ZeroRedundancyOptimizer

        parallel, halved = [nn.parallel.DistributedDataParallel(_network()) for _ in range(2)]
        sharded = _network()
        for layer in sharded:
            if isinstance(layer, nn.Linear):
                fully_shard(layer)
        fully_shard(sharded)
        return {
            "DDP": self._step(parallel, optim.Adam(parallel.parameters())),
            "ZeRO-1": self._step(halved, ZeroRedundancyOptimizer(halved.parameters(), optim.Adam)),
            "fully sharded": self._step(sharded, optim.Adam(sharded.parameters())),
        }

    def _step(self, model: Any, optimizer: Any) -> Callable[[], None]:
        def step() -> None:
            optimizer.zero_grad()
            self._loss(model).backward()
            optimizer.step()

        return step

    def _loss(self, model: Any) -> Any:
        return self.lib.nn.functional.cross_entropy(model(self.x), self.y)

    # ---- one round

    def round(self) -> None:
        """All that is timed, in turn."""
        for kind in KINDS:
            self._step_by_hand(kind)
            if self.ranks > 1:
                self._small(kind)
        if self.ranks > 1:
            self._beside()
            self._meetings()
        for name, step in self.steps.items():
            self.dist.barrier()
            inside = self.inside[0]
            with self.times(name, STEPS):
                for _ in range(STEPS):
                    step()
            outside = self.times.of[name][-1] - (self.inside[0] - inside) / STEPS
            self.times.of.setdefault(f"computing {name}", []).append(outside)

    def _step_by_hand(self, kind: str) -> None:
        """A step, whose parts end when all ranks have ended them; ``together`` is what the slowest computes."""
        self.plain_optimizer.zero_grad()
        self.dist.barrier()
        with self.times("together"):
            with self.times("forward"):
                loss = self._loss(self.plain)
            with self.times("backward"):
                loss.backward()
            self.dist.barrier()
        if self.ranks > 1:
            self._into_one_piece()
            self.dist.barrier()
            with self.times(f"large {kind}"):
                self._call(kind, *self.large).wait()
        with self.times("update"):
            self.plain_optimizer.step()

    def _into_one_piece(self) -> None:
        """Gradients with their share of the mean; they are views of that memory from then on."""
        whole, begin = self.large[0]._array, 0
        for p in self.plain.parameters():
            view = whole[begin : begin + p.numel()].reshape(p.shape)
            np.multiply(p.grad._array, np.float32(1 / self.ranks), out=view)
            p.grad = self.lib.from_numpy(view)
            begin += p.numel()

    def _meetings(self) -> None:
        """Forward and backward, with one more point at which all wait for each other."""
        self.plain_optimizer.zero_grad()
        self.dist.barrier()
        with self.times("met"):
            loss = self._loss(self.plain)
            self.dist.barrier()
            loss.backward()
            self.dist.barrier()

    def _small(self, kind: str) -> None:
        with self.times(f"call {kind}", CALLS):
            for _ in range(CALLS):
                self._call(kind, *self.small).wait()

    def _call(self, kind: str, whole: Any, part: Any) -> Any:
        if kind == "all_reduce":
            return self.dist.all_reduce(whole, async_op=True)
        if kind == "broadcast":
            return self.dist.broadcast(whole, 0, async_op=True)
        if kind == "all_gather":
            return self.dist.all_gather_into_tensor(whole, part, async_op=True)
        return self.dist.reduce_scatter_tensor(part, whole, async_op=True)

    def _beside(self) -> None:
        """A transfer, and computing in its meantime, which looks after it as often as gradients come."""
        self.dist.barrier()
        with self.times("transfer"):
            self._call("all_reduce", *self.large).wait()
        self.dist.barrier()
        with self.times("computing"):
            self._layers(None)
        self.dist.barrier()
        with self.times("beside"):
            work = self._call("all_reduce", *self.large)
            self._layers(work)
            work.wait()

    def _layers(self, work: Any) -> None:
        x = self.x
        for layer in self.plain:
            x = layer(x)
            if work is not None:
                work.is_completed()

    # ---- what comes out

    def result(self) -> dict[str, float]:
        """Medians over the rounds, of the mean rank."""
        own = {name: statistics.median(each[len(each) * WARM // ROUNDS :]) for name, each in self.times.of.items()}
        values = self.lib.tensor(list(own.values())).double()
        self.dist.all_reduce(values, self.dist.ReduceOp.AVG)
        return dict(zip(own, values.tolist(), strict=True))


def _seconds_inside(world: Any) -> list[float]:
    """Seconds of this rank in calls of the engine, and waiting for it, from now on."""
    from genesis.distributed.calls import Work

    seconds, depth = [0.0], [0]

    def timed(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **named: Any) -> Any:
            if depth[0]:  # it is within another
                return call(*args, **named)
            depth[0], begin = 1, time.perf_counter()
            try:
                return call(*args, **named)
            finally:
                depth[0] = 0
                seconds[0] += time.perf_counter() - begin

        return run

    for kind in (*KINDS, "agree"):
        setattr(world.engine, kind, timed(getattr(world.engine, kind)))
    world.calls.wait = timed(world.calls.wait)
    for name in ("wait", "is_completed"):
        setattr(Work, name, timed(getattr(Work, name)))
    return seconds


def _data() -> tuple[Any, Any, Any]:
    import genesis

    return genesis, genesis.randn(BATCH, WIDTHS[0]), genesis.randint(0, WIDTHS[-1], (BATCH,))


def _network() -> Any:
    from genesis import nn

    layers = [layer for a, b in pairwise(WIDTHS) for layer in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


def job() -> None:
    """What every rank runs; rank 0 prints what came out."""
    import genesis.distributed as dist

    dist.init_process_group()
    ranks = Job()
    for _ in range(ROUNDS):
        ranks.round()
    result = ranks.result()
    if dist.get_rank() == 0:
        print(json.dumps(result))
    dist.destroy_process_group()


# ---- jobs


def measured(ranks: int) -> tuple[dict[str, float], float]:
    """What a job of so many ranks says, and the part of the processors that others used meanwhile; the quietest of some."""
    best = None
    for _ in range(TRIES):
        before, begin = _used(), time.perf_counter()
        start = [sys.executable, "-m", "genesis", "run", "-n", str(ranks)] if ranks > 1 else [sys.executable]
        out = subprocess.run([*start, __file__], capture_output=True, text=True, check=True).stdout
        elsewhere = (_used() - before) / (time.perf_counter() - begin) / (os.cpu_count() or 1)
        numbers = json.loads(out[out.index("{") : out.rindex("}") + 1])
        best = min(best or (numbers, elsewhere), (numbers, elsewhere), key=lambda each: each[1])
        if elsewhere < QUIET:
            break
    assert best is not None, "jobs were started"
    return best


def _used() -> float:
    """Seconds of the processors that were not those of processes of ours; 0 where the system does not say."""
    try:
        numbers = Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
    except OSError:
        return 0.0
    user, nice, system, _, _, irq, softirq, steal = map(int, numbers)
    ours = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq + steal) / ticks - ours.ru_utime - ours.ru_stime


def all_jobs(counts: tuple[int, ...]) -> tuple[dict[int, dict[str, float]], float]:
    """Medians of several jobs of each number of ranks, in turn, and the part of the processors that others used at most."""
    jobs: dict[int, list[dict[str, float]]] = {ranks: [] for ranks in counts}
    most = 0.0
    for _ in range(JOBS):
        for ranks in counts:
            numbers, elsewhere = measured(ranks)
            jobs[ranks].append(numbers)
            most = max(most, elsewhere)
    return {
        ranks: {name: statistics.median([each[name] for each in some]) for name in some[0]}
        for ranks, some in jobs.items()
    }, most


if __name__ == "__main__":
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    job()
