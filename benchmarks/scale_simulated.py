"""A step of training in many ranks, simulated: what a rank computes, what it sends, and which of it waits for what."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

APPROACHES = ("DDP", "ZeRO-1", "fully sharded")
CAP, FIRST = 25 * 2**20, 2**20  # bytes of a bucket of gradients, and of the first


class Collective(NamedTuple):
    """Seconds of a call among two ranks: one for the call, and for each byte."""

    call: float
    byte: float

    def among(self, ranks: int, size: float, calls: int) -> float:
        """Of ``size`` bytes in so many calls, among so many ranks: messages go in a tree, and of the bytes each rank moves
        (n - 1) / n, which is half of them among two.
        """
        return calls * self.call * math.log2(ranks) + self.byte * size * 2 * (ranks - 1) / ranks

    @staticmethod
    def from_times(ranks: int, call: float, large: float, size: float) -> Collective:
        """What a call of no bytes and one of ``size`` took among so many ranks."""
        return Collective(call / math.log2(ranks), max(large - call, 0.0) / size * ranks / (2 * (ranks - 1)))


class Network(NamedTuple):
    """How ranks are connected."""

    name: str
    kinds: Mapping[str, Collective]
    overlap: float  # the part of a transfer that passes while the rank computes, of what could
    meeting: float  # seconds that ranks lose where they wait for each other once more in a step


class Layer(NamedTuple):
    """Seconds that it takes in a rank, bytes of its parameters, and how many of these travel by themselves."""

    forward: float
    backward: float
    size: float
    calls: int


class Rank(NamedTuple):
    """What one rank computes in a step."""

    layers: Sequence[Layer]
    update: float  # seconds for a byte of parameters, by the optimizer

    @property
    def size(self) -> float:
        return sum([layer.size for layer in self.layers])

    def alone(self, ranks: int = 1) -> float:
        """Seconds of a step in which nothing is sent, and so many ranks share the work of the optimizer."""
        return sum([layer.forward + layer.backward for layer in self.layers]) + self.update * self.size / ranks

    def slower(self, factor: float) -> Rank:
        """A rank that computes so many times as long."""
        layers = [each._replace(forward=each.forward * factor, backward=each.backward * factor) for each in self.layers]
        return Rank(layers, self.update * factor)


class Clock:
    """The computing of one rank, and transfers that go on beside it, one after the other."""

    def __init__(self, network: Network, ranks: int) -> None:
        self.now, self.network, self.ranks = 0.0, network, ranks
        self.waiting: list[float] = []  # seconds that transfers still take
        self.met = False  # what ranks lose where they first wait for each other is in what they compute

    def compute(self, seconds: float) -> None:
        """Compute; of the transfers that wait a part passes meanwhile."""
        self.now += seconds
        free = seconds * self.network.overlap
        while self.waiting and free > 0:
            passed = min(self.waiting[0], free)
            free -= passed
            self.waiting[0] -= passed
            if self.waiting[0] <= 0:
                self.waiting.pop(0)

    def send(self, kind: str, size: float, calls: int = 1) -> None:
        """Start a transfer."""
        if self.ranks > 1:
            self.waiting.append(self.network.kinds[kind].among(self.ranks, size, calls))

    def wait(self) -> None:
        """Until all transfers have ended."""
        if self.ranks > 1:
            self.now += sum(self.waiting) + self.met * self.network.meeting
            self.waiting.clear()
            self.met = True


def step_of(approach: str, rank: Rank, network: Network, ranks: int) -> float:
    """Seconds of a training step of one rank among so many that are equally fast."""
    clock = Clock(network, ranks)
    if approach == "fully sharded":
        _sharded(clock, rank)
        return clock.now
    _data_parallel(clock, rank)
    if approach == "DDP":
        clock.compute(rank.update * rank.size)
        return clock.now
    clock.compute(rank.update * rank.size / ranks)
    clock.send("broadcast", rank.size, sum([layer.calls for layer in rank.layers]))
    clock.wait()
    return clock.now


def _data_parallel(clock: Clock, rank: Rank) -> None:
    """Forward, and backward with buckets that are on their way as soon as they are full."""
    for layer in rank.layers:
        clock.compute(layer.forward)
    bucket, limit = 0.0, FIRST
    for layer in reversed(rank.layers):
        clock.compute(layer.backward)
        bucket += layer.size
        if bucket >= limit:
            clock.send("all_reduce", bucket)
            bucket, limit = 0.0, CAP
    if bucket:
        clock.send("all_reduce", bucket)
    clock.wait()


def _sharded(clock: Clock, rank: Rank) -> None:
    """Each layer is gathered before its forward, and before its backward while the one behind it computes."""
    for layer in rank.layers:
        clock.send("all_gather", layer.size, layer.calls)
        clock.wait()
        clock.compute(layer.forward)
    clock.send("all_gather", rank.layers[-1].size, rank.layers[-1].calls)
    for layer, before in pairwise([*reversed(rank.layers), None]):
        assert layer is not None, "the last has none before it"
        clock.wait()  # for its parameters, and for the gradients of the layer behind it
        if before is not None:
            clock.send("all_gather", before.size, before.calls)
        clock.compute(layer.backward)
        clock.send("reduce_scatter", layer.size, layer.calls)
    clock.wait()
    clock.compute(rank.update * rank.size / clock.ranks)


def memory_of(approach: str, size: float, largest: float, ranks: int) -> float:
    """Bytes of parameters, gradients and Adam's two averages in a rank, with the layers that are whole."""
    if approach == "DDP":
        return 4 * size
    return 2 * size + 2 * size / ranks if approach == "ZeRO-1" else 4 * size / ranks + 2 * largest
