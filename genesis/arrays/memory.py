"""Memory: what a device has to be able to do with its arrays, and what it gets for that.

A device is a class of arrays (`DeviceArray`) and a `Memory` that is registered for its type. Eight methods are
*required*; creation, ``.to``,
printing, saving, views, writes in place and the accumulation of gradients are what *you get*. What ops compute is said
by kernels, attached to each op
for the class of arrays (`core/call/kernels.py`). ``docs/guide/devices.md`` builds a device;
`genesis.testing.check_memory` checks one.

`HOST` is the memory of the CPU, whose arrays are NumPy's. It is also how the other memories are filled and read: by
copies from and to the host.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from genesis.arrays.protocol import Dispatched, bottom, device_of
from genesis.base.device import CPU, MEMORIES, device
from genesis.base.errors import DeviceError, UnsupportedError, message
from genesis.base.narrow import converted

Host = np.ndarray[Any, Any]

# What stands between an array and memory that is used again (`kernels/cpu/memory.py`): the base of the array.
LENT: set[type] = set()


def owner_of(array: Host) -> Host:
    """The array whose memory an array shares: of memory that is used again the one that has it now."""
    while isinstance(array.base, np.ndarray) and array.base.__class__ not in LENT:
        array = array.base
    return array


class DeviceArray(Dispatched):
    """An array in the memory of a device: a class of its own for each type of device.

    Required: the attributes ``shape``, ``dtype`` (NumPy's), ``device`` (with its index), and ``base``, the array whose
        memory this is a view of, or None.
    """

    __slots__ = ("__weakref__",)

    base: Any

    def copy(self) -> Any:
        return memory_of(self).copy(self)

    def refuse(self, what: str, site: Any = None) -> Exception:
        lines: list[tuple[str, Any]] = [("asked for at", site)] if site else []
        return DeviceError(
            message(
                what,
                f"NumPy cannot read the memory of {self.device}",
                operands=lines,
                hint=f"x.cpu().{what}()" if what == "numpy" else "x.cpu()",
            )
        )


class Memory(ABC):
    """The memory of all devices of a type. An array is always one of this class, a device one with an index."""

    type: str  # of the devices: what stands before the colon in "cuda:0"
    arrays: Any  # the class of their arrays
    between_ranks: Any = None  # what moves arrays between processes, see `genesis.distributed.devices`

    # ---- required

    @abstractmethod
    def count(self) -> int:
        """How many devices of this type there are."""

    @abstractmethod
    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: device) -> Any:
        """A contiguous array of whatever its memory holds."""

    def empty_in_order(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], device: device, strides: tuple[int, ...]
    ) -> Any:
        """The same with strides that leave no gaps, where memory has any order but one."""
        return self.empty(shape, dtype, device)

    @abstractmethod
    def from_host(self, array: Host, device: device) -> Any:
        """A contiguous array on a device, with the elements of a NumPy array."""

    @abstractmethod
    def to_host(self, array: Any) -> Host:
        """A NumPy array, of memory of its own, with the elements of an array."""

    @abstractmethod
    def copy(self, array: Any) -> Any:
        """A contiguous array with the same elements, on the same device."""

    @abstractmethod
    def assign(self, target: Any, source: Any) -> None:
        """Write the elements of ``source``, broadcast and converted, into the memory of ``target``; the two may
        overlap.
        """

    @abstractmethod
    def strides(self, array: Any) -> tuple[int, ...]:
        """Steps between neighbours along each dimension, in elements."""

    @abstractmethod
    def owner(self, array: Any) -> Any:
        """What all arrays that are views of one piece of memory have in common: an object, compared by identity."""

    # ---- you get; override what the device can do better

    def seen(self, array: Any, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any], strides: Any = None) -> Any:
        """The memory of an array from so many bytes on, of a device that has addresses; ``strides`` in elements."""
        raise UnsupportedError(message("seen", f"memory of {self.type} has no addresses"))

    def address(self, array: Any) -> int:
        """The address of the first element, of a device that has addresses."""
        raise UnsupportedError(message("data_ptr", f"memory of {self.type} has no addresses"))

    def pin(self, array: Host) -> Host:
        """The elements in memory of the host that copies to and from such a device need not wait for."""
        return array

    def is_pinned(self, array: Host) -> bool:
        """Whether an array of the host lies in such memory."""
        return False

    def used_on(self, array: Any, stream: Any) -> None:  # noqa: B027, most devices have one stream
        """Keep the memory of an array until a stream of the device has done what it was told until then."""

    def drawn(
        self, stream: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], device: device, *options: Any
    ) -> Any:
        """The random numbers that the CPU would draw from a stream, made on a device; None: the CPU is to draw them."""
        return None

    def dlpack(self, array: Any, stream: Any) -> Any:
        """An array as a DLPack capsule, for a taker that will use it on a stream."""
        raise array.refuse("__dlpack__")

    def dlpack_device(self, array: Any) -> tuple[int, int]:
        """The type and the index of an array's device, as DLPack numbers them."""
        raise array.refuse("__dlpack_device__")

    def from_dlpack(self, given: Any) -> Any:
        """The array on the memory of an object with ``__dlpack__`` that is on such a device."""
        raise NotImplementedError

    def why_none(self) -> str:
        """Why there are no devices of this type, where `count` is 0."""
        return "there are no devices of this type"

    def kernel(self, op: Any) -> Callable[..., Any] | None:
        """What computes an op that nobody attached a kernel to; None: nothing does. It is asked for once, if there is one."""
        return None

    def update(self, op: Any, target: Any, other: Any) -> bool:
        """Write an elementwise op of an array, and of another one or a number, into the array itself; whether that is done.
        False: it is computed, and then written.
        """
        return False

    def step(self, program: Any, device: device) -> Any:
        """A program of the compiler as one call, see `genesis.jit.lowering.step.Step`; None: there is none on this device."""
        return None

    def reports_indices(self, array: Any) -> bool:
        """Whether it is said where `gather` reads from an array at an index that is none, so that nobody has to look before."""
        return False

    def laid_out(self, array: Any, spec: Any) -> Any:
        """An array with the strides of a spec: itself, if it has them."""
        raise NotImplementedError

    def shares(self, a: Any, b: Any) -> bool:
        """Whether an array is a view of another, or of what that is a view of."""
        return self.owner(a) is self.owner(b)

    def writable(self, array: Any) -> bool:
        """Whether every element has memory of its own: an expanded array has not."""
        return all(n <= 1 or step for n, step in zip(array.shape, self.strides(array), strict=True)) or 0 in array.shape

    def current(self) -> int:
        """The index of the device that is meant where none is given."""
        return 0

    def resolved(self, given: device) -> device:
        """The device that a name without an index stands for."""
        return given if given.index is not None else device(given.type, self.current())

    def full(self, shape: tuple[int, ...], dtype: np.dtype[Any], value: Any, device: device) -> Any:
        """A new array of one value."""
        array = self.empty(shape, dtype, device)
        self.assign(array, self.from_host(np.asarray(value, dtype), device))
        return array

    def fill(self, array: Any, value: float) -> bool:
        """Write one number to all elements; False where there is nothing for it that is better than a copy."""
        return False

    def zeros(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: device) -> Any:
        """A new array of zeros."""
        return self.full(shape, dtype, 0, device)

    def ones(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: device) -> Any:
        """A new array of ones."""
        return self.full(shape, dtype, 1, device)

    def one(self, dtype: np.dtype[Any], device: device) -> Any:
        """An array of one 1, of no dimensions, that nobody writes to."""
        return self.ones((), dtype, device)


class HostMemory(Memory):
    """The memory of the CPU."""

    type, arrays = "cpu", np.ndarray

    def count(self) -> int:
        return 1

    def resolved(self, given: device) -> device:
        return CPU

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: device = CPU) -> Host:
        return np.empty(shape, dtype)

    def zeros(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: device = CPU) -> Host:
        return np.zeros(shape, dtype)

    def ones(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: device = CPU) -> Host:
        return np.ones(shape, dtype)

    def full(self, shape: tuple[int, ...], dtype: np.dtype[Any], value: Any, device: device = CPU) -> Host:
        return np.full(shape, value, dtype)

    def from_host(self, array: Host, device: device = CPU) -> Host:
        return array.copy()

    def to_host(self, array: Host) -> Host:
        return array.copy()

    def copy(self, array: Host) -> Host:
        return array.copy()

    def assign(self, target: Host, source: Host) -> None:
        target[...] = source if target.dtype is source.dtype else converted(source, target.dtype)

    def strides(self, array: Host) -> tuple[int, ...]:
        return tuple([step // array.itemsize for step in array.strides])

    def owner(self, array: Host) -> Any:
        array = owner_of(array)
        return array if array.base is None else array.base

    def shares(self, a: Host, b: Host) -> bool:
        owner = a.base
        if owner is None or owner is b or owner is b.base:
            return owner is not None
        return getattr(owner, "base", None) is b  # windows

    def writable(self, array: Host) -> bool:
        return array.flags.writeable


HOST = HostMemory()


# whether a copy between the host and a device may still be under way when the call that makes it returns
non_blocking: ContextVar[bool] = ContextVar("genesis_non_blocking", default=False)


def register(memory: Memory) -> None:
    """Make the devices of a type known by the name ``memory.type``: from then on tensors can be made there."""
    known = MEMORIES.get(memory.type)
    if known is not None:
        raise DeviceError(message("device", f"{memory.type!r} has a memory already, a {type(known).__name__}"))
    MEMORIES[memory.type] = _BY_CLASS[memory.arrays] = memory


_BY_CLASS: dict[type, Memory] = {}


def memory_of(array: Any) -> Memory:
    """The memory that an array lies in; of an array with layers the one inside, of a traced one where it will lie."""
    memory = _BY_CLASS.get(array.__class__)
    if memory is None:
        inside = bottom(array)
        memory = _BY_CLASS.get(inside.__class__)
    return memory if memory is not None else MEMORIES[device_of(inside).type]


def placed(array: Host, device: device) -> Any:
    """A NumPy array that nobody else holds, on a device: itself if that is the CPU."""
    memory = MEMORIES[device.type]
    return array if memory is HOST else memory.from_host(array, device)


def on_the_host(array: Any) -> Host:
    """The elements of an array with data, as a NumPy array: itself, or a copy."""
    return array if isinstance(array, np.ndarray) else memory_of(array).to_host(array)


def number_in(array: Any) -> Any:
    """The number that an array of one element holds."""
    return on_the_host(array).item()


def strides_of(array: Any) -> Any:
    """The strides of an array in memory, to compare them with those of another; None of what is no memory."""
    return (
        array.strides
        if array.__class__ is np.ndarray
        else memory_of(array).strides(array)
        if isinstance(array, DeviceArray)
        else None
    )


# while a trace is made: what memory of the outside holds at this point of the traced function
snapshot: ContextVar[Callable[[Any], Any] | None] = ContextVar("genesis_snapshot", default=None)


def copied(array: Any) -> Any:
    """A copy with memory of its own. In a trace the bytes of an array are not what it holds: nobody else may copy them."""
    if isinstance(array, np.ndarray | DeviceArray):
        traced = snapshot.get()
        if traced is not None:
            return traced(array)
        if array.__class__ is np.ndarray:
            return apart(array)
    return array.copy()


def apart(array: Any, dtype: Any = None) -> Any:
    """A copy with memory of its own, of this dtype if one is given, in the order that the array has in memory."""
    plain = array.__class__ is np.ndarray
    if dtype is None:
        if (plain and array.flags.c_contiguous) or not (plain or isinstance(array, DeviceArray)):
            return array.copy()
        dtype = array.dtype
    if plain and array.flags.forc:
        return np.array(array, dtype, order="C" if array.flags.c_contiguous else "F", copy=True)
    memory, shape = memory_of(array), tuple(array.shape)
    own = tuple(memory.strides(array))
    strides = strides_of_copy(shape, own)
    if not plain:
        where = array.device
        out = (
            memory.empty(shape, dtype, where)
            if strides is None
            else memory.empty_in_order(shape, dtype, where, strides)
        )
        memory.assign(out, array)
        return out
    if strides is None or (strides == own and 1 not in shape):
        return np.array(array, dtype, order="C" if strides is None else "K", copy=True)
    out = laid_out_as(np.empty, shape, dtype, strides)
    out[...] = array
    return out


def laid_out_as(
    make: Callable[..., Host], shape: Sequence[int], dtype: np.dtype[Any], strides: tuple[int, ...]
) -> Host:
    """A NumPy array of what ``make`` gives, which is the same everywhere, with strides that leave no gaps."""
    order, back = orders(strides)
    return make(tuple([shape[d] for d in order]), dtype).transpose(back)


@functools.lru_cache(maxsize=4096)
def orders(strides: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The dimensions in the order of memory, the slowest first, and the permutation that takes that back."""
    order = sorted(range(len(strides)), key=lambda d: -strides[d])
    return tuple(order), tuple([order.index(d) for d in range(len(order))])


@functools.lru_cache(maxsize=4096)
def strides_of_copy(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...] | None:
    """The strides, in elements, of a copy in the order that an array has in memory; None for row-major ones. They are the
    array's own where its elements lie one behind the other, else their order without gaps. A dimension along which
    elements are one in memory stays where it is among the others. That is PyTorch's ``preserve_format``.

    >>> strides_of_copy((2, 3), (1, 2)), strides_of_copy((2, 3), (1, 4)), strides_of_copy((2, 3), (6, 2))
    ((1, 2), (1, 2), None)
    """
    if 0 in shape or in_order(shape, strides):
        return None
    if in_order(*_descending(shape, strides)):
        return tuple(strides)
    order = list(range(len(shape)))[::-1]  # the dimension of the smallest steps first
    for i in range(1, len(order)):
        at = i
        for before in range(i - 1, -1, -1):
            d, e = order[before], order[at]
            steps, other = abs(strides[d]), abs(strides[e])
            if not steps or not other or (steps == other and shape[d] <= shape[e]):
                continue  # nothing says which one comes first
            if steps < other:
                break
            order[before], order[at], at = e, d, before
    kept, step = [0] * len(shape), 1
    for d in order:
        kept[d] = step
        step *= shape[d]
    return None if in_order(shape, kept) else tuple(kept)


def in_order(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements lie one behind the other, the last dimension first."""
    expected = 1
    for n, step in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1 and step != expected:
            return 0 in shape
        expected *= n
    return True


def _descending(shape: Sequence[int], strides: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    order = sorted([d for d, n in enumerate(shape) if n != 1], key=lambda d: -strides[d])
    return tuple([shape[d] for d in order]), tuple([strides[d] for d in order])


register(HOST)
