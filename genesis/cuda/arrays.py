"""Arrays in the memory of a GPU, and that memory as `genesis.arrays.memory` asks for it.

An array is an address, a shape, strides, and the storage that it keeps alive; views share it. Everything is told to the
current stream of the array's device, and nothing waits but what gives the program numbers: `to_host`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray, Host, Memory, non_blocking
from genesis.arrays.spec import contiguous_strides, strides_of
from genesis.base.device import device as DeviceName  # noqa: N812
from genesis.base.narrow import converted, restrided
from genesis.cuda.layouts import ALIGNED, Layout, layout
from genesis.cuda.memory.allocator import allocator
from genesis.cuda.memory.blocks import Block
from genesis.cuda.memory.pinned import block_of, pinned
from genesis.cuda.memory.sequence import crosses, here, taken_elsewhere
from genesis.cuda.runtime import connection
from genesis.cuda.runtime.devices import Device, current_index, device_at
from genesis.cuda.runtime.reports import checked
from genesis.cuda.runtime.streams import Stream, current

_new = object.__new__


class Storage:
    """A block of memory, given back when nobody has it any more; `laid_so` makes it.

    Attributes:
        allocator: where the block is from
        stream: on which it is used without being told of
    """

    __slots__ = ("__weakref__", "allocator", "block", "on", "stream")

    allocator: Any
    block: Block
    on: Device
    stream: Stream | None

    def used_on(self, stream: Stream) -> None:
        """A stream uses it: it is not handed out again before that is done."""
        assert self.stream is not None
        if self.stream.handle != stream.handle:
            self.block.foreign.add(stream)

    def __del__(self) -> None:
        try:
            block = self.block
        except AttributeError:  # there was no memory for it
            return
        self.allocator.give_back(block)


class CudaArray(DeviceArray):
    """Elements of a dtype at an address of a device."""

    __slots__ = ("_layout", "address", "base", "device", "dtype", "shape", "storage", "strides")

    def __init__(
        self,
        storage: Storage,
        address: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        strides: tuple[int, ...] | None = None,
        base: CudaArray | None = None,
    ) -> None:
        self.storage, self.address = storage, address
        self.shape, self.dtype = shape, dtype
        self.strides = contiguous_strides(shape) if strides is None else strides  # in elements
        self.device = storage.on.name
        self.base = base
        self._layout: Layout | None = None  # when somebody asked for it; from then on an array lies as it does

    @property
    def layout(self) -> Layout:
        """How it lies; an object that is compared by identity."""
        known = self._layout
        if known is None:
            on, aligned = self.storage.on, not self.address % ALIGNED
            known = self._layout = layout(on, self.shape, self.dtype, self.strides, aligned)
        return known

    @property
    def on(self) -> Device:
        return self.storage.on

    @property
    def is_contiguous(self) -> bool:
        expected = 1
        for n, step in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n != 1 and step != expected:
                return 0 in self.shape
            expected *= n
        return True

    def seen(self, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any = None) -> CudaArray:
        """A view: ``offset`` bytes from here on."""
        base = self if self.base is None else self.base
        kind = self.dtype if dtype is None else dtype
        return CudaArray(self.storage, self.address + offset, shape, kind, strides, base)

    def extent(self) -> tuple[int, int]:
        """Where its elements begin and end, in bytes from its address."""
        if 0 in self.shape:
            return 0, 0
        steps = [(n - 1) * s * self.dtype.itemsize for n, s in zip(self.shape, self.strides, strict=True)]
        return sum([s for s in steps if s < 0]), sum([s for s in steps if s > 0]) + self.dtype.itemsize


class CudaMemory(Memory):
    """The memory of all GPUs."""

    type, arrays = "cuda", CudaArray

    # set by `genesis.cuda`: what computes an op, what writes one array into another or over itself, and what draws numbers, where kernels can
    choose: Callable[[Any], Any] | None = None
    write: Callable[[CudaArray, CudaArray], bool] | None = None
    updated: Callable[[Any, CudaArray, Any], bool] | None = None
    draw: Callable[..., Any] | None = None
    reports: Callable[[CudaArray], bool] | None = None  # whether a kernel that reads says which index is none
    steps: Callable[..., Any] | None = None  # programs of the compiler as one call
    exchange: Any = None  # how arrays come from and to other libraries

    def count(self) -> int:
        return connection.driver().count() if connection.available() else 0

    def why_none(self) -> str:
        return connection.unavailable()

    def current(self) -> int:
        return current_index()

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: DeviceName) -> CudaArray:
        return empty(device_at(device.index), tuple(shape), dtype)

    def empty_in_order(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], device: DeviceName, strides: tuple[int, ...]
    ) -> CudaArray:
        return empty(device_at(device.index), tuple(shape), dtype, strides)

    def from_host(self, array: Host, device: DeviceName) -> CudaArray:
        out = self.empty(array.shape, array.dtype, device)
        copy_in(out, array)
        return out

    def to_host(self, array: CudaArray) -> Host:
        if array.is_contiguous:
            out = np.empty(array.shape, array.dtype)
            copy_out(out, array.storage, array.address)
            return out
        return span(array).copy()

    def copy(self, array: CudaArray) -> CudaArray:
        out = self.empty(array.shape, array.dtype, array.device)
        self.assign(out, array)
        return out

    def assign(self, target: CudaArray, source: CudaArray) -> None:
        if _copied_whole(target, source):
            return
        if self.write is None or not self.write(target, source):
            assign_on_host(target, source)

    def kernel(self, op: Any) -> Any:
        return None if self.choose is None else self.choose(op)

    def drawn(
        self, stream: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], device: DeviceName, *options: Any
    ) -> Any:
        return None if self.draw is None else self.draw(stream, name, shape, dtype, device, *options)

    def update(self, op: Any, target: CudaArray, other: Any) -> bool:
        return self.updated is not None and self.updated(op, target, other)

    def step(self, program: Any, device: DeviceName) -> Any:
        return None if self.steps is None else self.steps(program, device)

    def reports_indices(self, array: CudaArray) -> bool:
        return self.reports is not None and self.reports(array)

    def laid_out(self, array: CudaArray, spec: Any) -> CudaArray:
        if array.strides == strides_of(spec):
            return array
        low = (
            sum([(n - 1) * s for n, s in zip(spec.shape, strides_of(spec), strict=True)]) if 0 not in spec.shape else 0
        )
        out = self.empty((low + 1,), spec.dtype, array.device).seen(0, tuple(spec.shape), strides_of(spec))
        if array.size:
            self.assign(out, array)
        return out

    def dlpack(self, array: CudaArray, stream: Any) -> Any:
        return self.exchange.capsule(array, stream)

    def dlpack_device(self, array: CudaArray) -> tuple[int, int]:
        return self.exchange.CUDA, array.on.index

    def from_dlpack(self, given: Any) -> Any:
        return self.exchange.taken(given)

    def pin(self, array: Host) -> Host:
        if self.is_pinned(array):
            return array
        out = pinned(array.shape, array.dtype)
        out[...] = array
        return out

    def is_pinned(self, array: Host) -> bool:
        return connection.available() and block_of(array, connection.driver()) is not None

    def used_on(self, array: CudaArray, stream: Stream) -> None:
        array.storage.used_on(stream)

    def address(self, array: CudaArray) -> int:
        return array.address

    def seen(
        self, array: CudaArray, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any], strides: Any = None
    ) -> CudaArray:
        return array.seen(offset, shape, contiguous_strides(shape) if strides is None else strides, dtype)

    def strides(self, array: CudaArray) -> tuple[int, ...]:
        return array.strides

    def owner(self, array: CudaArray) -> CudaArray:
        return array if array.base is None else array.base

    def zeros(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: DeviceName) -> CudaArray:
        out = self.empty(shape, dtype, device)
        self.fill(out, 0)
        return out

    def full(self, shape: tuple[int, ...], dtype: np.dtype[Any], value: Any, device: DeviceName) -> CudaArray:
        out, one = self.empty(shape, dtype, device), converted(np.asarray(value), dtype)
        if not _filled(out, one):
            self.assign(out, self.from_host(one, device))
        return out

    def fill(self, array: CudaArray, value: Any) -> bool:
        return _filled(array, converted(np.asarray(value), array.dtype))

    def ones(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: DeviceName) -> CudaArray:
        return self.full(shape, dtype, 1, device)

    def one(self, dtype: np.dtype[Any], device: DeviceName) -> CudaArray:
        on = device_at(device.index)
        known: dict[Any, CudaArray] = on.kept.get("ones") or on.keep("ones", lambda on: {})
        made = known.get(dtype)
        if made is None:
            if taken_elsewhere(on):  # memory of a graph is the graph's
                return self.ones((), dtype, device)
            made = known[dtype] = self.from_host(converted(np.ones(()), dtype), device)
            current(on).synchronize()  # whoever reads it finds it there
        return made


def empty(
    on: Device, shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...] | None = None
) -> CudaArray:
    """New memory, laid out without gaps."""
    return laid_so(layout(on, shape, dtype, strides), current(on))


def laid_so(layout: Layout, stream: Stream) -> CudaArray:
    """New memory for an array that lies in a known way, on the current stream."""
    out: CudaArray = _new(CudaArray)
    out.storage = storage = _new(Storage)
    storage.on = on = layout.on
    storage.allocator = source = here.source or on.kept.get("allocator") or allocator(on)
    storage.block = block = source.take(layout.count, stream)
    storage.stream = block.stream
    out.address, out.shape, out.dtype, out.strides = block.address, layout.shape, layout.dtype, layout.strides
    out.device, out.base, out._layout = on.name, None, layout
    return out


# ---- fills and copies


def _filled(array: CudaArray, one: Host) -> bool:
    """Fill with one element: the driver repeats 1, 2 or 4 bytes, in memory without gaps; whether it did."""
    bits = one.tobytes()
    if not any(bits):
        bits = bits[:1]
    width = len(bits)
    if not array.is_contiguous or width not in (1, 2, 4):
        return False
    if array.size:
        number = int.from_bytes(bits, sys.byteorder)
        array.on.enter().fill(array.address, number, width, array.nbytes // width, used(array).handle)
    return True


def _copied_whole(target: CudaArray, source: CudaArray) -> bool:
    """Copy as the bytes lie there, if they lie in the same way."""
    on = target.storage.on
    same = target.shape == source.shape and target.dtype == source.dtype and on is source.storage.on
    if not (same and target.is_contiguous and source.is_contiguous):
        return False
    count = target.nbytes
    if count and target.address != source.address:
        on.enter().copy(target.address, source.address, count, used(target, source).handle)
    return True


def used(*arrays: CudaArray) -> Stream:
    """The current stream of the device of some arrays, which uses their memory from now on."""
    stream = current(arrays[0].storage.on)
    for array in arrays:
        storage = array.storage
        if storage.stream is not stream:
            storage.used_on(stream)
    return stream


def copy_in(target: CudaArray, array: Host) -> None:
    """From the host's memory to a contiguous array; from pinned memory while the program goes on, if it asked for that."""
    if not array.size:
        return
    crosses("a copy to the device")
    held = np.ascontiguousarray(array)
    stream, driver = used(target), target.on.enter()
    driver.copy_in(target.address, held.ctypes.data, held.nbytes, stream.handle)
    block = block_of(held, target.on.driver)
    if block is not None:
        block.used_on(stream)
        if not non_blocking.get():
            stream.synchronize()


def copy_out(out: Host, storage: Storage, address: int) -> None:
    """To the host's memory; the elements are there when this returns.

    Raises:
        IndexError: a kernel met an index that is none
    """
    if out.nbytes:
        crosses("a copy to the host")
        stream = current(storage.on)
        storage.used_on(stream)
        storage.on.enter().copy_out(out.ctypes.data, address, out.nbytes, stream.handle)
        if block_of(out, storage.on.driver) is not None:
            stream.synchronize()
        checked(storage.on)


def span(array: CudaArray) -> Host:
    """The elements on the host, laid out as they lie on the device, with what is between them."""
    low, high = array.extent()
    memory = np.empty(high - low, np.uint8)
    copy_out(memory, array.storage, array.address + low)
    return laid(memory, array, low)


def laid(memory: Host, array: CudaArray, low: int) -> Host:
    if not array.size:
        return np.empty(array.shape, array.dtype)
    first = memory[-low : -low + array.dtype.itemsize].view(array.dtype)
    return restrided(first, array.shape, [s * array.dtype.itemsize for s in array.strides])


def assign_on_host(target: CudaArray, source: CudaArray) -> None:
    """Write the elements of one into another by way of the host, whatever lies between them."""
    if not target.size:
        return
    low, high = target.extent()
    memory = np.empty(high - low, np.uint8)
    copy_out(memory, target.storage, target.address + low)
    host = MEMORY.to_host(source)
    view = laid(memory, target, low)
    view[...] = host if host.dtype == view.dtype else converted(host, view.dtype)
    whole = CudaArray(target.storage, target.address + low, memory.shape, memory.dtype)
    copy_in(whole, memory)


MEMORY = CudaMemory()
