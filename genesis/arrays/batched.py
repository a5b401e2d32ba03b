"""Batched arrays: an array with a hidden first dimension, one entry for each sample; what `vmap` computes with.

How ops act on batched arrays is said in `core/layers/batches.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.arrays.memory import copied
from genesis.arrays.protocol import Layer, NeedsValues, asked_for_at, fits, level_of, same_level
from genesis.base.errors import message


class Batched(Layer):
    """``size`` arrays of one shape, along the first dimension of another; or one array for all of them (``batched`` is
    False).

    ``dim`` is where the samples were when the array came into `vmap`: what a user's rule for batches is told.
    """

    __slots__ = ("array", "batched", "dim", "size_hidden")
    varying = "differs from sample to sample"

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
    def varies(self) -> bool:
        return self.batched

    @property
    def parts(self) -> tuple[Any, ...]:
        return (self.array,)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(self.array.shape[1:] if self.batched else self.array.shape)

    def described(self) -> str:
        return f"for each of {self.size_hidden} samples"

    def around(self, array: Any) -> Batched:
        """The same of another array."""
        return Batched(array, self.batched, self.size_hidden, self.level, self.from_outside)

    def without_tangents(self) -> Any:
        return self.around(self.array.without_tangents() if isinstance(self.array, Layer) else self.array)

    def copy(self) -> Batched:
        return self.around(copied(self.array))

    def mapped(self, f: Callable[[Any, int | None], Any], dim: int | None = None) -> Batched:
        return self.around(f(self.array, dim if dim is None or not self.batched else dim + 1))

    def zipped(self, f: Callable[[Any, Any], Any], a: Any, b: Any) -> Batched:
        parts, flags = zip(self._taken_from(a), self._taken_from(b), strict=True)
        if b is not None and flags[0] != flags[1]:
            parts = tuple([p if flag else self._spread(p) for p, flag in zip(parts, flags, strict=True)])
        return Batched(f(*parts), any(flags), self.size_hidden, self.level, self.from_outside)

    def unzipped(self, f: Callable[[Any], tuple[Any, Any]]) -> tuple[Any, Any]:
        first, second = f(self.array)
        return self.around(first), None if second is None else self.around(second)

    def fits(self, source: Any) -> bool:
        inner, batched = self._taken_from(source)
        return (self.batched or not batched) and fits(self.array, inner)

    def assign(self, source: Any, assign: Callable[[Any, Any], None]) -> None:
        inner, batched = self._taken_from(source)
        if self.batched and not batched and level_of(source):
            inner = Layer.expanded(inner, tuple(self.array.shape))
        assign(self.array, inner)

    def grown(self, array: Any, like: Any, grow: Callable[[Any, Any], Any]) -> Batched:
        (inner, batched), (wanted, varies) = self._taken_from(array), self._taken_from(like)
        if varies and not batched:
            inner, batched = self._spread(inner), True
        from_outside = any([same_level(a, self) and a.from_outside for a in (array, like)])
        return Batched(grow(inner, wanted), batched, self.size_hidden, self.level, from_outside)

    def _taken_from(self, array: Any) -> tuple[Any, bool]:
        """What is inside the layer of this level, if an array has one, and whether it has the hidden dimension."""
        return (array.array, array.batched) if same_level(array, self) else (array, False)

    def _spread(self, array: Any) -> Any:
        return Layer.expanded(array, (self.size_hidden, *array.shape))

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
