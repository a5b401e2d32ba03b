"""Dual arrays: a value and its tangent, $x + \\dot x \\varepsilon$ with $\\varepsilon^2 = 0$; what forward mode computes with.

A tangent of zero is None. How ops act on dual arrays is said in `core/forward.py`.
"""

from __future__ import annotations

from typing import Any

from genesis.arrays.protocol import Layer, NeedsValues
from genesis.base.errors import message


class Dual(Layer):
    """A value and a tangent of its shape and dtype."""

    __slots__ = ("primal", "tangent")

    def __init__(self, primal: Any, tangent: Any, level: int, co: bool = False) -> None:
        self.primal, self.tangent, self.level, self.co = primal, tangent, level, co

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

    def copy(self) -> Dual:
        return Dual(self.primal.copy(), None if self.tangent is None else self.tangent.copy(), self.level, self.co)

    def refuse(self, what: str) -> Exception:
        return NeedsValues(
            message(what, "a tensor with a tangent is no plain array, its tangent would be lost",
                    hint="compute with Genesis operations; or put the NumPy code into a Function, its tangent then comes from backward or jvp")
        )  # fmt: skip
