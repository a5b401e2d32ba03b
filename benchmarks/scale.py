"""Scale on paper: what training in many ranks would cost, from constants that are measured here.

Jobs of 1, 2 and 4 ranks measure constants and steps (`scale_measured`). A small simulation (`scale_simulated`) makes of
the constants the step of DistributedDataParallel, of ZeRO-1 and of `fully_shard`; it is compared with the steps that were
measured in the same jobs, and then taken to 4,096 ranks and to networks that are not here, of which a latency and a
bandwidth are assumed.

python benchmarks/scale.py [--write]        the table, with --write the page and its picture, too
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from scale_measured import BATCH, JOBS, KINDS, LARGE, ROUNDS, WARM, WIDTHS, all_jobs
from scale_simulated import APPROACHES, Collective, Layer, Network, Rank, memory_of, step_of

RANKS = (1, 2, 4)
FAIR = 0.15  # how far the simulation may be from what is measured
DOCS = Path(__file__).parents[1] / "docs"
ALONE = 2**17  # bytes of a layer whose weight travels by itself, and its bias, too
Numbers = Mapping[str, float]


# ---- from what was measured to what is simulated


def rank_of(ranks: int, numbers: Numbers, approach: str) -> Rank:
    """One of so many ranks, beside the others: a step takes as long as the slowest of them, as all wait for that one.
    Seconds are divided among the layers as multiplications are.
    """
    sizes = [4.0 * (a * b + b) for a, b in pairwise(WIDTHS)]
    back = [size if at == 0 else 2 * size for at, size in enumerate(sizes)]  # nobody asks for a gradient of the input
    layers = [
        Layer(numbers["forward"] * size / sum(sizes), numbers["backward"] * both / sum(back), size, 1 + (size > ALONE))
        for size, both in zip(sizes, back, strict=True)
    ]
    plain = Rank(layers, numbers["update"] / sum(sizes))
    return plain.slower(1 + imbalance(numbers)).slower(besides(ranks, numbers, approach))


def besides(ranks: int, numbers: Numbers, approach: str) -> float:
    """How many times as much as a plain step a rank computes: with hooks, copies, and memory that others wrote."""
    plain = numbers["forward"] + numbers["backward"] + numbers["update"] / (1 if approach == "DDP" else ranks)
    return numbers[f"computing {approach}"] / plain


def imbalance(numbers: Numbers) -> float:
    """How much longer than the mean the slowest rank computes."""
    own = numbers["forward"] + numbers["backward"]
    return max((numbers["together"] - numbers.get("call all_reduce", 0.0)) / own - 1, 0.0)


def network_of(ranks: int, numbers: Numbers) -> Network:
    """The network between so many ranks of this machine."""
    if ranks == 1:
        return Network("none", dict.fromkeys(KINDS, Collective(0.0, 0.0)), 0.0, 0.0)
    kinds = {
        kind: Collective.from_times(ranks, numbers[f"call {kind}"], numbers[f"large {kind}"], 4 * LARGE)
        for kind in KINDS
    }
    transfer, computing = numbers["transfer"], numbers["computing"]
    saved = (transfer + computing - numbers["beside"]) / min(transfer, computing)
    meeting = numbers["met"] - numbers["together"] - numbers["call all_reduce"]
    return Network("the memory of this machine", kinds, min(max(saved, 0.0), 1.0), max(meeting, 0.0))


class Row(NamedTuple):
    """A step as the simulation has it, and as it was measured."""

    ranks: int
    approach: str
    simulated: float
    measured: float

    @property
    def ratio(self) -> float:
        return self.simulated / self.measured


def compare(jobs: Mapping[int, Numbers]) -> list[Row]:
    """The simulation beside what was measured."""
    return [
        Row(ranks, each, step_of(each, rank_of(ranks, numbers, each), network_of(ranks, numbers), ranks), numbers[each])
        for ranks, numbers in jobs.items()
        for each in APPROACHES
    ]


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


def on_paper(work: Workload, ranks: int, pair: Numbers, approach: str = "") -> Rank:
    """One of so many ranks, as fast as one here is; the slowest of them is further from the mean where they are more."""
    computing = pair["forward"] + pair["backward"]
    speed = 6.0 * BATCH * sum([a * b for a, b in pairwise(WIDTHS)]) / computing
    seconds = [work.work * size * work.rows / ranks / speed for size in work.sizes]
    layers = [Layer(each / 3, each * 2 / 3, 4 * size, 2) for each, size in zip(seconds, work.sizes, strict=True)]
    rank = Rank(layers, pair["update"] / (4 * LARGE)).slower(late(ranks, pair))
    return rank.slower(besides(2, pair, approach)) if approach else rank


def late(ranks: int, pair: Numbers) -> float:
    """The slowest of so many ranks against the mean, if their times are normal: of two it is 1 / sqrt(pi) of a deviation
    above.
    """
    return 1 + imbalance(pair) * (0 if ranks == 1 else max(math.sqrt(math.pi * 2 * math.log(ranks)), 1.0))


def assumed(name: str, pair: Numbers, overlap: float | None = None) -> Network:
    """A network of which a latency and a bandwidth are assumed; what calls and additions cost is what they cost here."""
    latency, bandwidth = ASSUMED[name]
    here = network_of(2, pair)
    kinds = {
        kind: Collective(each.call + latency, each.byte + (1.0 if kind == "all_reduce" else 0.5) / bandwidth)
        for kind, each in here.kinds.items()
    }  # only of a sum each byte is sent twice, there and back
    return Network(name, kinds, here.overlap if overlap is None else overlap, here.meeting)


def efficiencies(work: Workload, approach: str, network: Network, pair: Numbers) -> dict[int, float]:
    """By ranks, the part of their time that is used: that of a rank with the whole batch, over theirs together."""
    whole = on_paper(work, 1, pair).alone()
    counts = [n for n in PAPER if work.rows // n >= work.unit]
    return {n: whole / n / step_of(approach, on_paper(work, n, pair, approach), network, n) for n in counts}


def last_that_pays(parts: Mapping[int, float]) -> int:
    """The largest number of ranks of whose time at least half is used, and of all fewer."""
    last = 1
    for ranks, used in parts.items():
        if used < HALF:
            break
        last = ranks
    return last


# ---- what is written


def report(jobs: Mapping[int, Numbers], elsewhere: float) -> str:
    """The page: constants, how far the simulation is from what was measured, and where each approach stops paying."""
    rows = compare(jobs)
    far = [f"{each.approach} on {each.ranks}" for each in rows if abs(each.ratio - 1) > FAIR]
    lines = [
        HEAD.format(elsewhere=elsewhere),
        *_constants(jobs),
        COMPARED,
        *[
            f"| {each.ranks} | {each.approach} | {each.simulated * 1e3:.1f} ms | {each.measured * 1e3:.1f} ms | {each.ratio:.2f} |"
            for each in rows
        ],
        "",
        f"Within {FAIR:.0%}: " + (f"all but {', '.join(far)}." if far else "all of them."),
        "",
        WHERE,
        *_last(jobs[2]),
        "",
        MEMORY,
        *_memory(),
        "",
    ]
    return "\n".join(lines)


def _constants(jobs: Mapping[int, Numbers]) -> list[str]:
    """A column for each number of ranks."""
    networks = {n: network_of(n, each) for n, each in jobs.items()}
    lines = [f"| what | {' | '.join([f'{n} rank' + 's' * (n > 1) for n in jobs])} |", "| --- |" + " ---: |" * len(jobs)]

    def line(what: str, cells: Sequence[str]) -> None:
        lines.append(f"| {what} | {' | '.join(cells)} |")

    for name, what in (("forward", "forward"), ("backward", "backward"), ("update", "the step of Adam")):
        line(f"{what}, ms", [f"{each[name] * 1e3:.2f}" for each in jobs.values()])
    line("the slowest rank, above their mean", [f"{imbalance(each):.1%}" for each in jobs.values()])
    line(
        "where they wait once more, us", ["" if n == 1 else f"{each.meeting * 1e6:.0f}" for n, each in networks.items()]
    )
    for kind in KINDS:
        line(
            f"`{kind}`: a small call, and GB of the tensor in a second",
            ["" if n == 1 else _speed(numbers, kind) for n, numbers in jobs.items()],
        )
    for approach in APPROACHES:
        what = f"{approach}: what a rank computes, against a plain step"
        line(what, [f"{besides(n, each, approach):.2f}" for n, each in jobs.items()])
    line(
        "of a transfer, what passes while a rank computes",
        ["" if n == 1 else f"{each.overlap:.0%}" for n, each in networks.items()],
    )
    return lines


def _speed(numbers: Numbers, kind: str) -> str:
    call = numbers[f"call {kind}"]
    return f"{call * 1e6:.0f} us, {4e-9 * LARGE / max(numbers[f'large {kind}'] - call, 1e-9):.2f} GB"


def _last(pair: Numbers) -> list[str]:
    lines = ["| network | | DDP | ZeRO-1 | fully sharded |", "| --- | --- | ---: | ---: | ---: |"]
    for work in WORKLOADS:
        for name in ASSUMED:
            cells = []
            for approach in APPROACHES:
                here, beside = [
                    last_that_pays(efficiencies(work, approach, assumed(name, pair, overlap), pair))
                    for overlap in (None, 1.0)
                ]
                cells.append(f"{here} ({beside})")
            lines.append(f"| {work.name} | {name} | {' | '.join(cells)} |")
    return lines


def _memory() -> list[str]:
    lines = ["| ranks | DDP | ZeRO-1 | fully sharded |", "| ---: | ---: | ---: | ---: |"]
    sizes = [4 * size for size in WORKLOADS[1].sizes]
    for ranks in (1, 2, 8, 64, 512, 4096):
        used = [memory_of(approach, sum(sizes), max(sizes), ranks) for approach in APPROACHES]
        lines.append(f"| {ranks} | {' | '.join([f'{each / 1e6:,.0f} MB' for each in used])} |")
    return lines


def picture(pair: Numbers) -> str:
    """What part of the ranks' time is used, as lines over their number."""
    from genesis.cli.svg import Series, line_chart, standalone

    work, lines = WORKLOADS[1], []
    for name in ("10 Gb/s Ethernet", "400 Gb/s InfiniBand"):
        for approach in ("DDP", "fully sharded"):
            parts = efficiencies(work, approach, assumed(name, pair), pair)
            label = f"{approach}, {name.partition(' Gb')[0]} Gb/s"
            lines.append(Series(label, [math.log2(n) for n in parts], list(parts.values())))
    return standalone(line_chart(lines, work.name, "ranks, as powers of two", "used part of their time", HALF))


def main(write: bool) -> None:
    """Measure, simulate, and print the page or write it."""
    jobs, elsewhere = all_jobs(RANKS)
    text = report(jobs, elsewhere)
    print(text)
    if write:
        (DOCS / "scale.md").write_text(text)
        (DOCS / "scale.svg").write_text(picture(jobs[2]) + "\n")


HEAD = f"""# How many ranks pay

Written by `python benchmarks/scale.py --write`: constants measured here, a simulation that is compared with steps measured here, and the same simulation for more ranks than there are.
The network is one of {", ".join(map(str, WIDTHS))} with Adam, {BATCH} rows and one thread in each rank. Numbers are medians of {ROUNDS - WARM} rounds in each of {JOBS} jobs; other programs used at most {{elsewhere:.0%}} of the processors
meanwhile. Ranks of one machine send through its memory, which their processors do themselves.

## Constants

Each is measured while all ranks do the same: the parts of a step by hand, one of them a collective of all gradients. So with more ranks than processors (this machine has 2) all that 4 ranks do takes as long as it does there, and the caches
are as a training leaves them. What a rank computes in each approach, that is outside of calls of MPI, is a constant, too: copies into buckets, hooks, and reading what another processor wrote.
"""
COMPARED = """
## Simulated and measured

What is foretold is how computing and transfers make up a step: what is sent, in how many calls, and what waits for it. On one rank nothing is sent, so there the two agree by the way constants are measured.

| ranks | | simulated | measured | ratio |
| ---: | --- | ---: | ---: | ---: |"""
WHERE = """## Where each approach stops paying

The largest number of ranks (up to 4,096) of whose time at least half is used, when they share a batch that stays the same. Each computes as fast as one of two ranks here; the networks are assumed, with the cost of
a call, of adding, and the differences between ranks that were measured here. Of a transfer as much passes beside computing as here; in brackets, all that can, as where a network adapter does it. A rank that computes faster is limited by its network earlier.

![What part of the ranks' time is used](scale.svg)
"""
MEMORY = """DDP pays longest where a rank's memory holds everything: it sends gradients once. ZeRO-1 also sends parameters, after the step of the optimizer, when nothing is left to hide it behind. `fully_shard` sends parameters twice and gradients
once, in pieces that wait for each other; it is for what does not fit. Bytes of parameters, gradients and Adam's state in a rank, for the GPT:
"""

if __name__ == "__main__":
    main("--write" in sys.argv)
