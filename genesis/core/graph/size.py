"""Shapes as PyTorch gives them: tuples that know their number of elements."""

from __future__ import annotations

from typing import Any

from genesis.base.errors import message
from genesis.base.library import of_library


class Size(tuple[int, ...]):
    """A shape; a tuple that also knows its number of elements.

    >>> import genesis
    >>> genesis.zeros(2, 3).shape
    genesis.Size([2, 3])
    """

    __slots__ = ()

    def numel(self) -> int:
        count = 1
        for n in self:
            count *= n
        return count

    def __repr__(self) -> str:
        return of_library(f"Size({list(self)})")

    def __getitem__(self, index: Any) -> Any:
        got = tuple.__getitem__(self, index)
        return Size(got) if isinstance(index, slice) else got

    def __add__(self, other: Any) -> Any:
        joined = tuple.__add__(self, other) if isinstance(other, tuple) else NotImplemented
        return Size(joined) if isinstance(joined, tuple) else joined

    def __radd__(self, other: Any) -> Any:
        return Size((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: Any) -> Size:
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__


class Count(int):
    """``x.size`` is the number of elements; ``x.size()`` the shape and ``x.size(dim)`` one length of it."""

    _shape: tuple[int, ...]

    def __call__(self, dim: int | None = None) -> Any:
        if dim is None:
            return Size(self._shape)
        if not -len(self._shape) <= dim < len(self._shape):
            raise IndexError(message("size", f"dim {dim} is out of range for {len(self._shape)} dimensions"))
        return self._shape[dim]
