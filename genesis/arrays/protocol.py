"""The protocol of arrays: everything a `Tensor` may hold has a shape, a NumPy dtype and a device.

`numpy.ndarray` is the array of the CPU. It obeys the protocol but for ``device``, which is why the
device of an array is asked for through `device_of`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np

from genesis.base.device import CPU, device
from genesis.base.errors import GraphError


class Array(Protocol):
    """Anything a tensor can hold; the annotation ``Array`` in an op's signature marks a tensor parameter."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def ndim(self) -> int: ...


class Dispatched:
    """An array that is not NumPy's: what an op does with it is looked up by its class (`core/call/computing.py`)."""

    __slots__ = ()
    __array_ufunc__: ClassVar[None] = None  # NumPy must refuse it, not wrap it in an object array

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    device: device

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def described(self) -> str:
        """What printing says of it in place of its numbers."""
        return f"device='{self.device}'"

    def refuse(self, what: str, site: Any = None) -> Exception:
        """The error for a use that needs numbers in the memory of the CPU, at a line of the user's program."""
        raise NotImplementedError


class Virtual(Dispatched):
    """An array that is no memory: ops on it are interpreted, not computed by a kernel."""

    __slots__ = ()
    is_view: ClassVar[bool] = False  # of traced arrays: whether it is seen through another


class NeedsValues(GraphError):
    """Values were asked of an array that has none of its own."""


def asked_for_at(site: Any) -> list[tuple[str, Any]]:
    """The line of an error's operands that says where in the user's program, if that is known."""
    return [("asked for at", site)] if site else []


class Layer(Virtual):
    """A virtual array around another array, put there by a transform of this ``level``; outer layers have higher
    levels.

    A gradient that comes from outside of the transform has the mark ``from_outside``: at the boundary back to the
    outside it is taken apart (summed over a batch, its tangent part taken), while a gradient that was asked for inside
    stays as it is.

    Nothing in the core asks which class a layer has. A transform of its own is such a class, with everything below
    that raises NotImplementedError, and an entry for it in three tables: how ops act on it (`INTERPRETERS` in
    `core/call/computing.py`), how a tensor with history joins it (`JOINS` in `core/graph/boundary.py`), and how
    Functions act on it (`RULES` in `core/layers/function_rules.py`).
    """

    __slots__ = ("from_outside", "level")

    expanded: ClassVar[Callable[[Any, tuple[int, ...]], Any]]  # an array of any class in a larger shape, by the op
    varying: ClassVar[str]  # what a value that needs this layer is said to do
    computed: ClassVar[bool] = False  # whether each part is to lie, and be computed, as it does by itself

    level: int
    from_outside: bool

    @property
    def inner(self) -> Any:
        """The array inside (of a dual array, the value)."""
        raise NotImplementedError

    @property
    def has_value(self) -> bool:
        """Whether the array inside is the value, for whoever wants one number."""
        raise NotImplementedError

    @property
    def varies(self) -> bool:
        """Whether it holds more than the array inside."""
        raise NotImplementedError

    @property
    def parts(self) -> tuple[Any, ...]:
        """All arrays inside, the value first."""
        raise NotImplementedError

    @property
    def base(self) -> Any:
        return self.inner  # never None: as for NumPy, "somebody else's memory"

    @property
    def device(self) -> device:  # type: ignore[override]
        return device_of(self.inner)

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self.inner.dtype  # type: ignore[no-any-return]

    def without_tangents(self) -> Any:
        """The same memory, constant for forward mode."""
        raise NotImplementedError

    def copy(self) -> Layer:
        """The same with memory of its own."""
        raise NotImplementedError

    def mapped(self, f: Callable[[Any, int | None], Any], dim: int | None = None) -> Layer:
        """``f(part, dim)`` of every part, in a layer like this one. ``dim`` moves past a hidden dimension."""
        raise NotImplementedError

    def zipped(self, f: Callable[[Any, Any], Any], a: Any, b: Any) -> Layer:
        """``f`` of the parts of two arrays, at least one of which has a layer of this level; ``b`` may be None."""
        raise NotImplementedError

    def unzipped(self, f: Callable[[Any], tuple[Any, Any]]) -> tuple[Any, Any]:
        """Two layers like this one, of the pairs that ``f`` makes of the parts; None for a second one of zeros."""
        raise NotImplementedError

    def fits(self, source: Any) -> bool:
        """Whether this memory can hold what the layer of this level in ``source`` (or an array without) says."""
        raise NotImplementedError

    def assign(self, source: Any, assign: Callable[[Any, Any], None]) -> None:
        """Write an array with or without this layer into this memory, by ``assign(part, source)``."""
        raise NotImplementedError

    def grown(self, array: Any, like: Any, grow: Callable[[Any, Any], Any]) -> Layer:
        """``array`` with a layer of this level that can hold what ``like`` says, of parts ``grow(part, like)``."""
        raise NotImplementedError


def same_level(array: Any, layer: Layer) -> bool:
    """Whether the outermost layer of an array belongs to the transform of this one."""
    return isinstance(array, Layer) and array.level == layer.level


def fits(target: Any, source: Any) -> bool:
    """Whether memory has every layer of what is written to it."""
    if level_of(source) > level_of(target):
        return not (source.varies or source.from_outside) and fits(target, source.inner)
    if not isinstance(target, Layer):
        return True
    if same_level(source, target) and source.from_outside and not target.from_outside:
        return False
    return target.fits(source)


def device_of(array: Any) -> device:
    """The device an array lives on."""
    return CPU if isinstance(array, np.ndarray) else array.device


def level_of(array: Any) -> int:
    """The level of the outermost layer; 0 for arrays that are no layers."""
    return array.level if isinstance(array, Layer) else 0


def value_of(array: Any) -> Any:
    """The array without the layers that do not change its value: tangents, and batches that it is the same for."""
    while isinstance(array, Layer) and array.has_value:
        array = array.inner
    return array


def bottom(array: Any) -> Any:
    """What is inside all layers."""
    while isinstance(array, Layer):
        array = array.inner
    return array
