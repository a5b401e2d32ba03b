"""Dual arrays: a value and its tangent, $x + \\dot x \\varepsilon$ with $\\varepsilon^2 = 0$; what forward mode
computes with.

A tangent of zero is None. How ops act on dual arrays is said in `core/layers/duals.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.batched import Batched
from genesis.arrays.memory import copied, snapshot
from genesis.arrays.protocol import Layer, NeedsValues, asked_for_at, bottom
from genesis.arrays.spec import memory_order
from genesis.base.errors import message


class Dual(Layer):
    """A value and a tangent of its shape and dtype.

    The tangent's memory is ``shared`` where it may be somebody else's, or is laid out in another way than the value's.
    Before it is written to, or seen through a view, it gets memory of its own in the value's layout: then a view of the
    one is a view of the other.
    """

    __slots__ = ("primal", "shared", "tangent")

    def __init__(self, primal: Any, tangent: Any, level: int, from_outside: bool = False, shared: bool = True) -> None:
        self.primal, self.tangent, self.level, self.from_outside, self.shared = (
            primal,
            tangent,
            level,
            from_outside,
            shared,
        )

    def own_tangent(self) -> None:
        """Give the tangent memory of its own, if it may be somebody else's."""
        if not self.shared or self.tangent is None:
            return
        self.shared = False
        if snapshot.get() is not None:
            self.tangent = copied(self.tangent)
        elif isinstance(self.tangent, np.ndarray) and isinstance(self.primal, np.ndarray):
            tangent = np.empty_like(self.primal)
            tangent[...] = self.tangent
            self.tangent = tangent
        else:
            memory = bottom(self.primal)
            plain = not isinstance(memory, np.ndarray) or memory.flags.c_contiguous
            self.tangent = (
                self.tangent.copy()
                if plain
                else _copied(self.tangent, memory.strides[memory.ndim - self.primal.ndim :])
            )

    @property
    def inner(self) -> Any:
        return self.primal

    @property
    def has_value(self) -> bool:
        return True

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.primal.shape  # type: ignore[no-any-return]

    def described(self) -> str:
        return "with a tangent"

    def without_tangents(self) -> Any:
        return self.primal.without_tangents() if isinstance(self.primal, Layer) else self.primal

    def copy(self) -> Dual:
        return Dual(
            copied(self.primal),
            None if self.tangent is None else copied(self.tangent),
            self.level,
            self.from_outside,
            shared=False,
        )

    def refuse(self, what: str, site: Any = None) -> Exception:
        return NeedsValues(
            message(
                what,
                "a tensor with a tangent is no plain array, its tangent would be lost",
                operands=asked_for_at(site),
                hint="compute with Genesis operations; or put the NumPy code into a Function, its tangent then comes "
                "from backward or jvp",
            )
        )


def _copied(array: Any, strides: tuple[int, ...]) -> Any:
    """A copy whose dimensions lie in memory in the order of these strides, behind hidden ones."""
    if isinstance(array, Batched):
        return Batched(_copied(array.array, strides), array.batched, array.size_hidden, array.level, array.from_outside)
    if isinstance(array, Dual):
        return Dual(
            _copied(array.primal, strides),
            None if array.tangent is None else _copied(array.tangent, strides),
            array.level,
            array.from_outside,
            shared=False,
        )
    if not isinstance(array, np.ndarray):
        return array.copy()
    hidden = array.ndim - len(strides)
    order = [*range(hidden), *[hidden + d for d in memory_order(strides)]]
    return array.transpose(order).copy().transpose(np.argsort(order))
