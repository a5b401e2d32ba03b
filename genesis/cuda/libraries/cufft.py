"""Fourier transforms by cuFFT, through the bindings of ``nvmath-python``. How operands lie is what a plan is made for (which
takes milliseconds); it is kept, and called with addresses.

cuFFT takes transforms that are one distance apart from each other: the dimensions that are not transformed have to be as one.
Where they are not, as of a dimension in the middle, it reads or writes a copy in which those that are transformed come last.
"""

from __future__ import annotations

import itertools
import math
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from genesis.arrays.spec import contiguous_strides
from genesis.cuda.arrays import MEMORY, CudaArray, empty, used
from genesis.cuda.libraries.loading import library, of_device
from genesis.cuda.runtime.devices import Device

NAME = "cufft"
TYPES = {"FF": 41, "fF": 42, "Ff": 44, "dD": 106, "Dd": 108, "DD": 105}  # cufftType, by dtypes
NAMES = {"FF": "c2c", "fF": "r2c", "Ff": "c2r", "dD": "d2z", "Dd": "z2d", "DD": "z2z"}
FORWARD, INVERSE = -1, 1
MOST = 3  # dimensions of one transform
BYTE = np.dtype(np.uint8)
refused: dict[str, str] = {}  # what cuFFT would not transform in this process, and why


@dataclass(frozen=True, slots=True)
class Lying:
    """How elements lie, as cuFFT says it: the sizes of what the transformed dimensions are a part of, the step of the last
    of them, and that from one transform to the next.
    """

    embed: tuple[int, ...]
    step: int
    distance: int


def lying(array: CudaArray, dims: tuple[int, ...]) -> Lying | None:
    """None if cuFFT has no words for it."""
    rest = [(n, s) for d, (n, s) in enumerate(zip(array.shape, array.strides, strict=True)) if d not in dims and n > 1]
    if any([s != t * m for (_, s), (m, t) in itertools.pairwise(rest)]):
        return None
    steps = [array.strides[d] for d in dims]
    embed = [array.shape[dims[0]]]
    for d, outer, inner in zip(dims[1:], steps, steps[1:], strict=False):
        if inner <= 0 or outer % inner or outer // inner < array.shape[d]:
            return None
        embed.append(outer // inner)
    distance = rest[-1][1] if rest else math.prod(array.shape)
    return Lying(tuple(embed), steps[-1], distance) if steps[-1] > 0 and distance > 0 else None


def with_last(array: CudaArray, dims: tuple[int, ...]) -> CudaArray:
    """Room for as many elements, of which the transformed dimensions come last."""
    order = [d for d in range(array.ndim) if d not in dims] + list(dims)
    steps = contiguous_strides(tuple([array.shape[d] for d in order]))
    return empty(array.on, array.shape, array.dtype, tuple([steps[order.index(d)] for d in range(array.ndim)]))


def transformed(x: CudaArray, out: CudaArray, dims: tuple[int, ...], forward: bool) -> bool:
    """``out`` from ``x``, without a factor; whether cuFFT does it. What real numbers come from is overwritten.

    Args:
        dims: which are transformed, ascending, three at most; of real numbers the last has half a spectrum
    """
    made = transforms(x.on)
    if made is None:
        return False
    source, target = _placed(x, dims), out if lying(out, dims) is not None else with_last(out, dims)
    if not made.run(source, target, dims, forward):
        return False
    if target is not out:
        MEMORY.assign(out, target)
    return True


def _placed(x: CudaArray, dims: tuple[int, ...]) -> CudaArray:
    """An operand that cuFFT can read: real numbers, too, begin where complex ones may."""
    number = x.dtype.itemsize if x.dtype.kind == "c" else 2 * x.dtype.itemsize
    if lying(x, dims) is not None and x.address % number == 0:
        return x
    copy = with_last(x, dims)
    MEMORY.assign(copy, x)
    return copy


def transforms(on: Device) -> Transforms | None:
    """cuFFT on a device, if it is there."""
    return of_device(on, Transforms, NAME)


class Transforms:
    """cuFFT on one device."""

    def __init__(self, on: Device) -> None:
        on.enter()
        self.on, self.cufft = on, library(NAME)
        self.cufft.get_version()
        self.plans: dict[Any, tuple[int, int] | None] = {}  # with the bytes of its workspace; None: refused
        self._lock = threading.Lock()  # a plan has one stream, and one workspace, at a time

    def run(self, x: CudaArray, out: CudaArray, dims: tuple[int, ...], forward: bool) -> bool:
        whole = out if x.dtype.kind == "c" else x  # whose sizes are those of the transform
        sizes = tuple([whole.shape[d] for d in dims])
        count = math.prod([n for d, n in enumerate(x.shape) if d not in dims])
        key = sizes, lying(x, dims), lying(out, dims), count, x.dtype.char + out.dtype.char
        if key not in self.plans:
            self.plans[key] = self._planned(*key)
        plan = self.plans[key]
        if plan is None:
            return False
        number, wanted = plan
        space = empty(self.on, (max(wanted, 1),), BYTE)
        stream = used(x, out, space)
        if self.on.enter().notes is not None:
            return True
        with self._lock:
            self.cufft.set_stream(number, stream.handle)
            self.cufft.set_work_area(number, space.address)
            direction = [FORWARD if forward else INVERSE] if x.dtype == out.dtype else []
            getattr(self.cufft, f"exec_{NAMES[key[-1]]}")(number, x.address, out.address, *direction)
        return True

    def _planned(
        self, sizes: tuple[int, ...], x: Lying | None, out: Lying | None, count: int, kinds: str
    ) -> tuple[int, int] | None:
        assert x is not None and out is not None, "cuFFT has words for how operands lie"
        self.on.enter()
        plan = self.cufft.create()
        try:
            self.cufft.set_auto_allocation(plan, 0)
            bytes_wanted = self.cufft.make_plan_many64(
                plan, len(sizes), list(sizes), list(x.embed), x.step, x.distance, list(out.embed), out.step, out.distance,
                TYPES[kinds], count,
            )  # fmt: skip
        except self.cufft.cuFFTError as error:
            refused[kinds] = f"{error}, of {sizes}".replace("\n", " ")
            self.cufft.destroy(plan)
            return None
        return int(plan), int(bytes_wanted)
