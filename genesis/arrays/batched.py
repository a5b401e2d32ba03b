"""Batched arrays: an array with a hidden first dimension, one entry for each sample; what `vmap` computes with.

How ops act on batched arrays is said in `core/layers/batches.py`.
"""

from __future__ import annotations

from typing import Any

from genesis.arrays.memory import copied
from genesis.arrays.protocol import Layer, NeedsValues, asked_for_at
from genesis.base.errors import message


class Batched(Layer):
    """``size`` arrays of one shape, along the first dimension of another; or one array for all of them (``batched`` is
    False).

    ``dim`` is where the samples were when the array came into `vmap`: what a user's rule for batches is told.
    """

    __slots__ = ("array", "batched", "dim", "size_hidden")

    def __init__(
        self, array: Any, batched: bool, size_hidden: int, level: int, from_outside: bool = False, dim: int = 0
    ) -> None:
        self.array, self.batched, self.size_hidden, self.level, self.from_outside, self.dim = (
            array,
            batched,
            size_hidden,
            level,
            from_outside,
            dim,
        )

    @property
    def inner(self) -> Any:
        return self.array

    @property
    def has_value(self) -> bool:
        return not self.batched

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(self.array.shape[1:] if self.batched else self.array.shape)

    def described(self) -> str:
        return f"for each of {self.size_hidden} samples"

    def without_tangents(self) -> Any:
        inner = self.array.without_tangents() if isinstance(self.array, Layer) else self.array
        return Batched(inner, self.batched, self.size_hidden, self.level, self.from_outside)

    def copy(self) -> Batched:
        return Batched(copied(self.array), self.batched, self.size_hidden, self.level, self.from_outside)

    def refuse(self, what: str, site: Any = None) -> Exception:
        return NeedsValues(
            message(
                what,
                f"under vmap this tensor stands for {self.size_hidden} different samples, it has no single value",
                operands=[*asked_for_at(site), ("each sample", f"shape {list(self.shape)}")],
                hint="replace `if x > 0` by genesis.where(x > 0, ...), and NumPy functions by Genesis ones; or loop "
                "over the samples",
            )
        )
