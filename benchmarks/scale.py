"""Scale on paper: what training in many ranks would cost, from constants that are measured here.

Jobs of 1, 2 and 4 ranks measure the step of a network alone, calls of collectives, how much of a transfer passes while
a rank computes, and how much ranks differ. A small simulation makes of them the step of DistributedDataParallel, of
ZeRO-1 and of `fully_shard`; it is compared with steps that were measured in the same jobs, and then taken to 4,096 ranks
and to networks that are not here, of which a latency and a bandwidth are assumed.

python benchmarks/scale.py [--write]        the table, with --write the page and its picture, too
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

WIDTHS = (784, 1024, 1024, 10)
BATCH, ROUNDS, STEPS = 64, 16, 1
LARGE = 2**21  # elements of the collectives that are timed
RANKS = (1, 2, 4)
APPROACHES = ("DDP", "ZeRO-1", "fully sharded")
FAIR = 0.15  # how far the simulation may be from what is measured
GUIDE = Path(__file__).parents[1] / "docs" / "guide"


# ---- what is simulated


class Collective(NamedTuple):
    """Seconds of a call among two ranks: one for the call, and for each byte."""

    call: float
    byte: float

    def among(self, ranks: int, size: float) -> float:
        """Of ``size`` bytes among so many ranks: messages in a tree, and of all bytes each rank moves (n - 1) / n twice."""
        return 0.0 if ranks == 1 else self.call * math.log2(ranks) + self.byte * size * 2 * (ranks - 1) / ranks


class Network(NamedTuple):
    """How ranks are connected."""

    name: str
    kinds: dict[str, Collective]
    overlap: float  # the part of a transfer that passes while the rank computes, of what could


class Layer(NamedTuple):
    """Seconds that it takes in a rank, and bytes of its parameters."""

    forward: float
    backward: float
    size: float


class Rank(NamedTuple):
    """What one rank computes in a step."""

    layers: Sequence[Layer]
    update: float  # seconds for a byte of parameters

    @property
    def size(self) -> float:
        return sum([layer.size for layer in self.layers])

    @property
    def alone(self) -> float:
        """Seconds of a step in which nothing is sent."""
        return sum([layer.forward + layer.backward for layer in self.layers]) + self.update * self.size


class Clock:
    """The computing of one rank, and transfers that go on beside it, one after the other."""

    def __init__(self, overlap: float) -> None:
        self.now, self.overlap = 0.0, overlap
        self.waiting: list[float] = []  # seconds that transfers still take

    def compute(self, seconds: float) -> None:
        """Compute; of the transfers that wait a part passes meanwhile, the rest of the processor's time is theirs."""
        self.now += seconds
        free = seconds * self.overlap
        while self.waiting and free > 0:
            passed = min(self.waiting[0], free)
            free -= passed
            self.waiting[0] -= passed
            if self.waiting[0] <= 0:
                self.waiting.pop(0)

    def send(self, seconds: float) -> None:
        """Start a transfer."""
        self.waiting.append(seconds)

    def wait(self) -> None:
        """Until all transfers have ended."""
        self.now += sum(self.waiting)
        self.waiting.clear()


def step_of(approach: str, rank: Rank, network: Network, ranks: int, cap: float = 25 * 2**20) -> float:
    """Seconds of a training step of one rank among so many that are equally fast."""
    clock, kinds = Clock(network.overlap), network.kinds
    if approach == "fully sharded":
        for layer in rank.layers:
            clock.send(kinds["all_gather"].among(ranks, layer.size))
            clock.wait()
            clock.compute(layer.forward)
        ahead = 0.0
        for at, layer in enumerate(reversed(rank.layers)):
            if at == 0:
                clock.send(kinds["all_gather"].among(ranks, layer.size))
            clock.wait()  # for its parameters, and for the gradients of the layer before
            if at + 1 < len(rank.layers):
                ahead = rank.layers[-at - 2].size
                clock.send(kinds["all_gather"].among(ranks, ahead))
            clock.compute(layer.backward)
            clock.send(kinds["reduce_scatter"].among(ranks, layer.size))
        clock.wait()
        clock.compute(rank.update * rank.size / ranks)
        return clock.now
    for layer in rank.layers:
        clock.compute(layer.forward)
    bucket, limit = 0.0, min(2**20, cap)  # the first bucket is small
    for layer in reversed(rank.layers):
        clock.compute(layer.backward)
        bucket += layer.size
        if bucket >= limit:
            clock.send(kinds["all_reduce"].among(ranks, bucket))
            bucket, limit = 0.0, cap
    clock.send(kinds["all_reduce"].among(ranks, bucket))
    clock.wait()
    if approach == "DDP":
        clock.compute(rank.update * rank.size)
        return clock.now
    clock.compute(rank.update * rank.size / ranks)
    clock.send(kinds["broadcast"].among(ranks, rank.size) if ranks > 1 else 0.0)
    clock.wait()
    return clock.now


def memory_of(approach: str, size: float, largest: float, ranks: int) -> float:
    """Bytes of parameters, gradients and Adam's two averages in a rank, with the layers that are whole."""
    if approach == "DDP":
        return 4 * size
    return 2 * size + 2 * size / ranks if approach == "ZeRO-1" else 4 * size / ranks + 2 * largest


# ---- what is measured, in a job of several ranks


def job() -> None:
    """Constants and steps of so many ranks, in turn; rank 0 prints the smallest times, and the median of imbalance."""
    import genesis
    import genesis.distributed as dist
    from genesis import nn, optim
    from genesis.distributed.fsdp import fully_shard
    from genesis.distributed.optim import ZeroRedundancyOptimizer
    from genesis.nn.functional import cross_entropy
    from genesis.nn.parallel import DistributedDataParallel

    dist.init_process_group()
    ranks = dist.get_world_size()
    x, y = genesis.randn(BATCH, WIDTHS[0]), genesis.randint(0, WIDTHS[-1], (BATCH,))

    def network() -> Any:
        layers = [nn.Linear(*WIDTHS[:2]), nn.ReLU(), nn.Linear(*WIDTHS[1:3]), nn.ReLU(), nn.Linear(*WIDTHS[2:])]
        return nn.Sequential(*layers)

    times: dict[str, list[float]] = {}

    def timed(name: str, call: Callable[[], Any], count: int = 1) -> Any:
        begin = time.perf_counter()
        for _ in range(count):
            result = call()
        times.setdefault(name, []).append((time.perf_counter() - begin) / count)
        return result

    def trained(model: Any, optimizer: Any) -> Callable[[], None]:
        def step() -> None:
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            optimizer.step()

        return step

    plain, parallel, halved, sharded = (network() for _ in range(4))
    for layer in sharded:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    fully_shard(sharded)
    parallel, halved = DistributedDataParallel(parallel), DistributedDataParallel(halved)
    alone = optim.Adam(plain.parameters())
    steps = {
        "DDP": trained(parallel, optim.Adam(parallel.parameters())),
        "ZeRO-1": trained(halved, ZeroRedundancyOptimizer(halved.parameters(), optim.Adam)),
        "fully sharded": trained(sharded, optim.Adam(sharded.parameters())),
    }
    whole, part = genesis.zeros(LARGE), genesis.zeros(LARGE // ranks)
    calls = {
        "all_reduce": lambda x, part: dist.all_reduce(x),
        "all_gather": lambda x, part: dist.all_gather_into_tensor(x, part),
        "reduce_scatter": lambda x, part: dist.reduce_scatter_tensor(part, x),
        "broadcast": lambda x, part: dist.broadcast(x, 0),
    }
    few, one = genesis.zeros(ranks), genesis.zeros(1)
    for _ in range(ROUNDS):
        dist.barrier()
        for _ in range(STEPS):
            alone.zero_grad()
            loss = timed("forward", lambda: cross_entropy(plain(x), y))
            timed("backward", loss.backward)
            timed("update", alone.step)
        for name, step in steps.items():
            dist.barrier()
            timed(name, step, STEPS)
        if ranks > 1:
            for name, call in calls.items():
                dist.barrier()
                timed(f"call {name}", lambda call=call: call(few, one), 20)
                timed(f"large {name}", lambda call=call: call(whole, part), 2)
            dist.barrier()
            timed("beside", lambda: _beside(dist, whole, lambda: plain(x)))
    computing = genesis.tensor([times["forward"], times["backward"]]).double().sum(0)[2 * STEPS :]
    slowest, mean = computing.clone(), computing.clone()
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    if dist.get_rank() == 0:
        found = {name: min(each[len(each) // ROUNDS * 2 :]) for name, each in times.items()}
        found["imbalance"] = statistics.median((slowest / mean).tolist()) - 1
        print(json.dumps(found))
    dist.destroy_process_group()


_FORWARDS = 4  # beside a transfer


def _beside(dist: Any, whole: Any, forward: Callable[[], Any]) -> None:
    """A transfer, and computing in its meantime; which looks after it as often as gradients come."""
    work = dist.all_reduce(whole, async_op=True)
    for _ in range(_FORWARDS):
        forward()
        work.is_completed()
    work.wait()


def measured(ranks: int) -> dict[str, float]:
    """What a job of so many ranks found."""
    start = [sys.executable, "-m", "genesis", "run", "-n", str(ranks)] if ranks > 1 else [sys.executable]
    out = subprocess.run([*start, __file__, "job"], capture_output=True, text=True, check=True).stdout
    return dict(json.loads(out[out.index("{") : out.rindex("}") + 1]))


# ---- from what was measured to what is simulated


def rank_of(found: dict[str, float]) -> Rank:
    """The network of the jobs; seconds are divided among its layers as their multiplications are."""
    sizes = [4.0 * (a * b + b) for a, b in pairwise(WIDTHS)]
    back = [size if at == 0 else 2 * size for at, size in enumerate(sizes)]  # nobody asks for a gradient of the input
    layers = [
        Layer(found["forward"] * size / sum(sizes), found["backward"] * both / sum(back), size)
        for size, both in zip(sizes, back, strict=True)
    ]
    return Rank(layers, found["update"] / sum(sizes))


def network_of(pair: dict[str, float], crowding: float = 1.0) -> Network:
    """The network between ranks of this machine; ``crowding``: how much slower all is where processors are shared."""
    kinds = {}
    for name in ("all_reduce", "all_gather", "reduce_scatter", "broadcast"):
        call = pair[f"call {name}"]
        kinds[name] = Collective(call * crowding, max(pair[f"large {name}"] - call, 0.0) / (4 * LARGE) * crowding)
    transfer, computing = pair["large all_reduce"], _FORWARDS * pair["forward"]
    saved = (transfer + computing - pair["beside"]) / min(transfer, computing)
    return Network("the memory of this machine", kinds, min(max(saved, 0.0), 1.0))


def slowest(pair: dict[str, float], ranks: int) -> float:
    """How much longer than the mean the slowest of so many ranks computes, if their times are normal."""
    deviation = pair["imbalance"] * math.sqrt(math.pi)  # the larger of two is this much above the mean
    return 1 + (deviation * math.sqrt(2 * math.log(ranks)) if ranks > 2 else pair["imbalance"] if ranks == 2 else 0)


def compare(jobs: dict[int, dict[str, float]]) -> list[tuple[int, str, float, float]]:
    """Ranks, approach, seconds of a simulated step and of a measured one."""
    rows = []
    for ranks, found in jobs.items():
        crowding = _computing(found) / _computing(jobs[2]) if ranks > 2 else 1.0  # more ranks than processors
        for approach in APPROACHES:
            network = network_of(jobs[2], max(crowding, 1.0))
            rows.append((ranks, approach, step_of(approach, rank_of(found), network, ranks), found[approach]))
    return rows


def _computing(found: dict[str, float]) -> float:
    return found["forward"] + found["backward"]


def late(rank: Rank, factor: float) -> Rank:
    """A rank that computes so many times as long."""
    layers = [Layer(each.forward * factor, each.backward * factor, each.size) for each in rank.layers]
    return rank._replace(layers=layers)


# ---- on paper

# a call between two ranks, bytes in a second: figures of the kind that data sheets give, nothing of them is measured here
ASSUMED = {
    "10 Gb/s Ethernet": (50e-6, 1.1e9),
    "100 Gb/s Ethernet with RDMA": (8e-6, 11e9),
    "400 Gb/s InfiniBand": (3e-6, 45e9),
}
PAPER = tuple(2**i for i in range(13))
HALF = 0.5  # of the time of all ranks; where less is used, more ranks do not pay


class Workload(NamedTuple):
    """A network, and the batch that all ranks share."""

    name: str
    sizes: Sequence[float]  # parameters of its layers
    rows: int
    unit: int  # rows that a rank has at least
    work: float  # multiplications and additions of a row, for each parameter


WORKLOADS = (
    Workload("the network of the jobs, 4096 rows", [a * b + b for a, b in pairwise(WIDTHS)], 4096, 1, 6),
    Workload("a GPT of 124 million parameters, 2^19 tokens", [*[7.1e6] * 12, 38.6e6], 2**19, 128, 6),
)


def on_paper(work: Workload, ranks: int, pair: dict[str, float]) -> Rank:
    """One of so many ranks, as fast as one here is."""
    speed = 6.0 * BATCH * sum([a * b for a, b in pairwise(WIDTHS)]) / _computing(pair)
    seconds = [work.work * size * work.rows / ranks / speed for size in work.sizes]
    layers = [Layer(each / 3, each * 2 / 3, 4 * size) for each, size in zip(seconds, work.sizes, strict=True)]
    return late(Rank(layers, rank_of(pair).update), slowest(pair, ranks))


def assumed(name: str, pair: dict[str, float]) -> Network:
    """A network of which a latency and a bandwidth are assumed; the calls, additions and overlap are those here."""
    latency, bandwidth = ASSUMED[name]
    here = network_of(pair)
    kinds = {kind: Collective(each.call + latency, each.byte + 1 / bandwidth) for kind, each in here.kinds.items()}
    return Network(name, kinds, here.overlap)


def efficiencies(work: Workload, approach: str, name: str, pair: dict[str, float]) -> dict[int, float]:
    """By ranks, the part of their time that is used: that of a rank with the whole batch, over theirs together."""
    network = assumed(name, pair)
    whole = on_paper(work, 1, pair).alone
    counts = [n for n in PAPER if work.rows // n >= work.unit]
    return {n: whole / n / step_of(approach, on_paper(work, n, pair), network, n) for n in counts}


def last_that_pays(found: dict[int, float]) -> int:
    """The largest number of ranks of whose time at least half is used, and of all fewer."""
    last = 1
    for ranks, used in found.items():
        if used < HALF:
            break
        last = ranks
    return last


# ---- what is written


def report(jobs: dict[int, dict[str, float]]) -> str:
    """The page: constants, how far the simulation is from what was measured, and where each approach stops paying."""
    pair = jobs[2]
    here = network_of(pair)
    lines = [HEAD, "## Constants", "", "| what | here |", "| --- | ---: |"]
    for name, value in (("forward", pair["forward"]), ("backward", pair["backward"]), ("Adam", pair["update"])):
        lines.append(f"| {name} of the network, {BATCH} rows | {value * 1e3:.1f} ms |")
    for kind, each in here.kinds.items():
        lines.append(
            f"| `{kind}`: a call, and the bytes of a second | {each.call * 1e6:.0f} us, {1e-9 / each.byte:.2f} GB |"
        )
    lines.append(f"| of a transfer, what passes while a rank computes | {here.overlap:.0%} |")
    lines.append(f"| the slower of two ranks, above their mean | {pair['imbalance']:.1%} |")
    lines += [
        "",
        "## Simulated and measured",
        "",
        "| ranks | | simulated | measured | ratio |",
        "| ---: | --- | ---: | ---: | ---: |",
    ]
    rows = compare(jobs)
    for ranks, approach, guess, real in rows:
        lines.append(f"| {ranks} | {approach} | {guess * 1e3:.1f} ms | {real * 1e3:.1f} ms | {guess / real:.2f} |")
    far = [f"{approach} on {ranks}" for ranks, approach, guess, real in rows if abs(guess / real - 1) > FAIR]
    lines += ["", f"Within {FAIR:.0%}: " + (f"all but {', '.join(far)}." if far else "all of them."), ""]
    lines += [BETWEEN, *_last(pair), "", MEMORY, *_memory(), ""]
    return "\n".join(lines)


def _last(pair: dict[str, float]) -> list[str]:
    lines = ["| network | | DDP | ZeRO-1 | fully sharded |", "| --- | --- | ---: | ---: | ---: |"]
    for work in WORKLOADS:
        for name in ASSUMED:
            found = [last_that_pays(efficiencies(work, approach, name, pair)) for approach in APPROACHES]
            lines.append(f"| {work.name} | {name} | {' | '.join(map(str, found))} |")
    return lines


def _memory() -> list[str]:
    lines = ["| ranks | DDP | ZeRO-1 | fully sharded |", "| ---: | ---: | ---: | ---: |"]
    sizes = [4 * size for size in WORKLOADS[1].sizes]
    for ranks in (1, 2, 8, 64, 512, 4096):
        used = [memory_of(approach, sum(sizes), max(sizes), ranks) for approach in APPROACHES]
        lines.append(f"| {ranks} | {' | '.join([f'{each / 1e6:,.0f} MB' for each in used])} |")
    return lines


def picture(pair: dict[str, float]) -> str:
    """What part of the ranks' time is used, as lines over their number."""
    from genesis.cli.svg import Series, line_chart, standalone

    work, lines = WORKLOADS[1], []
    for name, approach in (("10 Gb/s Ethernet", "DDP"), ("10 Gb/s Ethernet", "fully sharded"),
                           ("400 Gb/s InfiniBand", "DDP"), ("400 Gb/s InfiniBand", "fully sharded")):  # fmt: skip
        found = efficiencies(work, approach, name, pair)
        lines.append(
            Series(f"{approach}, {name.partition(' Gb')[0]} Gb/s", [math.log2(n) for n in found], list(found.values()))
        )
    return standalone(line_chart(lines, work.name, "ranks, as powers of two", "used part of their time", HALF))


def main(write: bool) -> None:
    """Measure, simulate, and print the page or write it."""
    jobs = {ranks: measured(ranks) for ranks in RANKS}
    text = report(jobs)
    print(text)
    if write:
        (GUIDE / "scale.md").write_text(text)
        (GUIDE / "pictures" / "scale.svg").write_text(picture(jobs[2]) + "\n")


HEAD = f"""# How many ranks pay

Written by `python benchmarks/scale.py --write`: constants measured here, a simulation that is compared with steps measured here, and the same simulation for more ranks than there are.
A network of {", ".join(map(str, WIDTHS))} with Adam, one thread in each rank; times are the smallest of 16, as the machine does other work, too; how much ranks differ is a median. Ranks of one machine send through its memory.
"""
BETWEEN = """Four ranks may have fewer processors than they are; then all they do is slower by as much as their computing is.

## Where each approach stops paying

The largest number of ranks (up to 4,096) of whose time at least half is used, when they share a batch that stays the same. Each computes as fast as a rank here; the networks are assumed, with the cost of
a call, of adding, and the overlap that were measured here. A rank that computes faster is limited by its network earlier.

![What part of the ranks' time is used](pictures/scale.svg)
"""
MEMORY = """DDP pays longest where a rank's memory holds everything: it sends gradients once. ZeRO-1 sends as much again, after the step of the optimizer, when nothing is left to hide it behind. `fully_shard` sends parameters twice and gradients
once, in pieces that wait for each other; it is for what does not fit. Bytes of parameters, gradients and Adam's state in a rank, for the GPT:
"""

if __name__ == "__main__":
    if sys.argv[1:2] == ["job"]:
        job()
    else:
        main("--write" in sys.argv)
