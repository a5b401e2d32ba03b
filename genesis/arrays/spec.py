"""Spec arrays: shape, dtype and device, no data. What `infer` takes and returns, and what meta tensors hold."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from genesis.arrays.memory import Memory, register
from genesis.arrays.protocol import Virtual, device_of
from genesis.base.device import CPU, META, device
from genesis.base.dtypes import from_numpy
from genesis.base.errors import DeviceError, message


@dataclass(frozen=True, slots=True)
class Spec(Virtual):
    """The description of an array, printed ``f32[3, 4]`` and, off the CPU, ``f32[3, 4]@meta``."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    device: device = CPU
    strides: tuple[int, ...] | None = field(default=None, compare=False)  # in elements; None: contiguous

    base: ClassVar[None] = None  # it is never a view of another array

    def copy(self) -> Spec:
        return self

    def refuse(self, what: str, site: Any = None) -> Exception:
        return DeviceError(message(what, "a meta tensor has no data", operands=[("tensor", self)]))

    def __str__(self) -> str:
        at = "" if self.device == CPU else f"@{self.device}"
        return f"{from_numpy(self.dtype).short}[{', '.join(map(str, self.shape))}]{at}"


def strides_of(spec: Spec) -> tuple[int, ...]:
    """Strides in elements of memory."""
    return contiguous_strides(spec.shape) if spec.strides is None else spec.strides


def memory_order(strides: Sequence[int]) -> list[int]:
    """The dimensions in the order of memory, the slowest first."""
    return sorted(range(len(strides)), key=lambda d: -abs(strides[d]))


@functools.lru_cache(maxsize=4096)
def order_of_rows(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...] | None:
    """The dimensions of a result without gaps in the order of memory, whose batches, heads and rows lie as those of an array
    with these strides: heads of a projection lie beside each other, and so do those of what is computed of them. None is
    row-major order, which is also that of arrays of other than four dimensions, and of expanded ones.

    >>> order_of_rows((2, 4, 16, 8), (512, 8, 32, 1))
    (0, 2, 1, 3)
    """
    if len(shape) != 4 or any([n > 1 and not step for n, step in zip(shape, strides, strict=True)]):
        return None
    order = sorted(range(3), key=lambda d: (shape[d] != 1, -abs(strides[d])))
    return None if order == [0, 1, 2] else (*order, 3)


def strides_in_order(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """The strides in elements of an array without gaps, whose dimensions are in this order of memory.

    >>> strides_in_order((2, 4, 16, 8), (0, 2, 1, 3))
    (512, 8, 32, 1)
    """
    along = dict(zip(order, contiguous_strides(tuple([shape[d] for d in order])), strict=True))
    return tuple([along[d] for d in range(len(shape))])


def laid_as(other: Any, shape: Sequence[int]) -> tuple[int, ...] | None:
    """The strides in elements of a result whose batches, heads and rows lie as another array's; None is row-major order."""
    order = order_of_rows(other.shape, strides_of(other))
    return None if order is None else strides_in_order(shape, order)


@functools.lru_cache(maxsize=4096)
def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of memory in row-major order."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def spec_of(array: Any) -> Spec:
    """The spec of any array."""
    if isinstance(array, Spec):
        return array
    return Spec(tuple(array.shape), array.dtype, device_of(array))


def meta(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Spec:
    """A meta array: a spec on the meta device."""
    return Spec(shape, dtype, META)


class MetaMemory(Memory):
    """The memory of the meta device: there is none."""

    type, arrays = "meta", Spec

    def count(self) -> int:
        return 1

    def resolved(self, given: device) -> device:
        return META

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: device = META) -> Spec:
        return meta(shape, dtype)

    def from_host(self, array: np.ndarray[Any, Any], device: device = META) -> Spec:
        return meta(tuple(array.shape), array.dtype)

    def to_host(self, array: Spec) -> np.ndarray[Any, Any]:
        raise DeviceError(
            message(
                "to",
                "a meta tensor has no data to move",
                operands=[("tensor", array)],
                hint="genesis.empty_like(x, device='cpu')",
            )
        )

    def copy(self, array: Spec) -> Spec:
        return array

    def assign(self, target: Spec, source: Any) -> None:
        pass

    def strides(self, array: Spec) -> tuple[int, ...]:
        return strides_of(array)

    def owner(self, array: Spec) -> Any:
        return array

    def writable(self, array: Spec) -> bool:
        return True


register(MetaMemory())
