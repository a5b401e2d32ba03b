"""Gradients of several processes in a graph: small ones that come one after the other are joined, so that one node sums them
all, and each large one has a node of its own.

A sum over ranks waits for the others, whatever its size; to copy what is small takes less. Nodes are made in the same order
in all ranks, however gradients come there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from genesis.arrays.protocol import device_of
from genesis.base.late import Late
from genesis.core.graph.tensor import Tensor

_join = Late("genesis.ops.shapes.join")
_ALONE = 2**18  # bytes of a gradient that is not joined
_CAP = 2**20  # bytes about which are joined: the more, the later their sum begins


class GraphBuckets:
    """The gradients of one backward in a trace.

    Args:
        order: the numbers of the parameters, about as their gradients come
        sums: of a gradient, its sum over ranks; shares: of such a sum, or a part of it, what a gradient becomes
    """

    def __init__(
        self,
        order: Sequence[int],
        parameters: Sequence[Tensor],
        sums: Callable[[Any], Any],
        shares: Callable[[Any], Any],
    ) -> None:
        self._parameters, self._sums, self._shares = parameters, sums, shares
        self._waiting = neighbours(order, parameters)
        self._gradients: dict[int, Any] = {}

    def add(self, number: int, g: Any) -> None:
        """A gradient is there: begin with those that are complete and whose turn it is."""
        self._gradients[number] = g
        while self._waiting and self._gradients.keys() >= set(self._waiting[0]):
            self._combine(self._waiting.pop(0))

    def _combine(self, numbers: Sequence[int]) -> None:
        gradients = [self._gradients.pop(n) for n in numbers]
        if len(numbers) == 1:
            self._parameters[numbers[0]].grad = self._shares(self._sums(gradients[0]))
            return
        total, begin = self._sums(_join.cat([g.reshape(-1) for g in gradients])), 0
        for n, g in zip(numbers, gradients, strict=True):
            end = begin + g.numel()
            self._parameters[n].grad = self._shares(total[begin:end].reshape(g.shape))
            begin = end


def neighbours(order: Sequence[int], parameters: Sequence[Tensor]) -> list[list[int]]:
    """Which are joined, for each dtype and device its own, in the order of their last.

    >>> import genesis
    >>> neighbours([3, 2, 1, 0], [genesis.ones(n) for n in (4, 8, 100_000, 2)])  # 400 KB are not copied
    [[2], [3, 1, 0]]
    """
    done: list[list[int]] = []
    begun: dict[Any, list[int]] = {}
    sizes: dict[Any, int] = {}
    for number in order:
        array = parameters[number]._array
        kind = array.dtype, device_of(array)
        if array.nbytes >= _ALONE:
            done.append([number])
            continue
        begun.setdefault(kind, []).append(number)
        sizes[kind] = sizes.get(kind, 0) + array.nbytes
        if sizes[kind] >= _CAP:
            done.append(begun.pop(kind))
            del sizes[kind]
    return [*done, *begun.values()]
