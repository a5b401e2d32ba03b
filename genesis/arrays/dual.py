"""Dual arrays: a value and its tangent, $x + \\dot x \\varepsilon$ with $\\varepsilon^2 = 0$; what forward mode
computes with.

A tangent of zero is None. How ops act on dual arrays is said in `core/layers/duals.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.arrays.memory import copied, memory_of, snapshot
from genesis.arrays.protocol import Layer, NeedsValues, asked_for_at, bottom, device_of, fits, same_level
from genesis.arrays.spec import memory_order
from genesis.base.errors import message


class Dual(Layer):
    """A value and a tangent of its shape and dtype.

    The tangent's memory is ``shared`` where it may be somebody else's, or is laid out in another way than the value's.
    Before it is written to, or seen through a view, it gets memory of its own in the value's layout: then a view of the
    one is a view of the other. ``given`` is the tensor that the tangent was given as, where a program may ask for it.
    """

    __slots__ = ("given", "primal", "shared", "tangent")
    varying = "has a tangent"

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
            self.tangent = (
                _copied(self.tangent, memory.strides[memory.ndim - self.primal.ndim :])
                if isinstance(memory, np.ndarray)
                else self.tangent.copy()
            )

    @property
    def inner(self) -> Any:
        return self.primal

    @property
    def has_value(self) -> bool:
        return True

    @property
    def varies(self) -> bool:
        return self.tangent is not None

    @property
    def parts(self) -> tuple[Any, ...]:
        return (self.primal,) if self.tangent is None else (self.primal, self.tangent)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.primal.shape  # type: ignore[no-any-return]

    def described(self) -> str:
        return "with a tangent"

    def without_tangents(self) -> Any:
        return self.primal.without_tangents() if isinstance(self.primal, Layer) else self.primal

    def copy(self) -> Dual:
        out = Dual(copied(self.primal), self.tangent, self.level, self.from_outside)
        out.own_tangent()
        return out

    def mapped(self, f: Callable[[Any, int | None], Any], dim: int | None = None) -> Dual:
        tangent = None if self.tangent is None else f(self.tangent, dim)
        return Dual(f(self.primal, dim), tangent, self.level, self.from_outside)

    def zipped(self, f: Callable[[Any, Any], Any], a: Any, b: Any) -> Dual:
        (p, dp), (q, dq) = self._taken_from(a), self._taken_from(b)
        tangent = None if dp is None and dq is None else f(_zeros(p) if dp is None else dp, dq)
        return Dual(f(p, q), tangent, self.level, self.from_outside)

    def unzipped(self, f: Callable[[Any], tuple[Any, Any]]) -> tuple[Any, Any]:
        (first, second), (d_first, d_second) = f(self.primal), (None, None) if self.tangent is None else f(self.tangent)
        if second is None and d_second is not None:
            second = _zeros(d_second)
        pairs = ((first, d_first), (second, d_second))
        one, other = [None if x is None else Dual(x, dx, self.level, self.from_outside) for x, dx in pairs]
        return one, other

    def fits(self, source: Any) -> bool:
        value, tangent = self._taken_from(source)
        return (tangent is None or (self.tangent is not None and fits(self.tangent, tangent))) and fits(
            self.primal, value
        )

    def assign(self, source: Any, assign: Callable[[Any, Any], None]) -> None:
        value, tangent = self._taken_from(source)
        if self.tangent is not None:
            self.own_tangent()
            assign(self.tangent, _zeros(self, ()) if tangent is None else tangent)
        assign(self.primal, value)

    def grown(self, array: Any, like: Any, grow: Callable[[Any, Any], Any]) -> Dual:
        (primal, tangent), (wanted, varies) = self._taken_from(array), self._taken_from(like)
        if varies is None:
            varies = wanted
        from_outside = any([same_level(a, self) and a.from_outside for a in (array, like)])
        tangent = grow(_zeros(primal) if tangent is None else tangent, varies)
        return Dual(grow(primal, wanted), tangent, self.level, from_outside, shared=False)

    def _taken_from(self, array: Any) -> tuple[Any, Any]:
        """Value and tangent of an array, if it has a layer of this level."""
        return (array.primal, array.tangent) if same_level(array, self) else (array, None)

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


def _zeros(like: Any, shape: tuple[int, ...] | None = None) -> Any:
    return memory_of(like).zeros(tuple(like.shape) if shape is None else shape, like.dtype, device_of(like))


def _copied(array: Any, strides: tuple[int, ...]) -> Any:
    """A copy whose dimensions lie in memory in the order of these strides, behind hidden ones."""
    if isinstance(array, Layer):
        return array.mapped(lambda part, _: _copied(part, strides))
    if not isinstance(array, np.ndarray):
        return array.copy()
    hidden = array.ndim - len(strides)
    order = [*range(hidden), *[hidden + d for d in memory_order(strides)]]
    return array.transpose(order).copy().transpose(np.argsort(order))
