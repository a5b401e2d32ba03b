"""The memory of tensors, as engines take it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray, memory_of
from genesis.arrays.protocol import bottom
from genesis.arrays.stored import Stored
from genesis.base.errors import ArgumentError, DeviceError, GraphError, UnsupportedError, message
from genesis.core.call.writes import bump
from genesis.core.graph.boundary import LeafArgument
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.site import site_here
from genesis.core.graph.switches import ACTIVE
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import tracer
from genesis.core.graph.version import SHARED

_FUNCTIONAL = "genesis.distributed.nn.functional has collectives that are recorded"


class Memory:
    """The contiguous memory of a tensor, or a contiguous copy of it on the host.

    Args:
        name: of the collective, for errors
        writes: whether it is written to, by who calls this

    Raises:
        RuntimeError: it has a history and is written to, is no memory of this machine, or cannot be written to
        NotImplementedError: inside of a transform or a trace
    """

    __slots__ = ("copied", "host", "name", "site", "tensor")

    def __init__(self, name: str, tensor: Any, writes: bool = False) -> None:
        if not isinstance(tensor, Tensor):
            raise ArgumentError(message(name, f"expected a tensor, got {type(tensor).__name__}"))
        check_memory(name, tensor, writes)
        array = tensor._array
        self.name, self.tensor, self.site = name, tensor, site_here() if writes else None
        if isinstance(array, DeviceArray):
            self.copied, self.host = True, memory_of(array).to_host(array)
            return
        self.copied = not array.flags.c_contiguous
        self.host = np.ascontiguousarray(array).reshape(array.shape) if self.copied else array

    def write(self, values: Any) -> None:
        """Put these elements into the tensor, unless they are its memory, and count the write."""
        if values is not self.tensor._array:
            _put(self.tensor._array, values)
        bump(self.tensor, self.name, self.site)


def apart(out: Memory, sent: Any) -> Any:
    """The memory of ``out``, if elements can come there while others are sent; else other memory of that shape."""
    fits = not out.copied and out.host.dtype == sent.dtype and not np.may_share_memory(out.host, sent)
    return out.host if fits else np.empty(out.host.shape, sent.dtype)


def spread(flat: Any, tensors: Sequence[Tensor], name: str = "broadcast") -> None:
    """Put the elements that lie one behind the other, on the host or the device of the tensors, into these, and count the
    writes.
    """
    begin = 0
    for each in tensors:
        count = each.numel()
        if isinstance(flat, DeviceArray):
            there, step = memory_of(flat), begin * flat.dtype.itemsize
            there.assign(each._array, there.seen(flat, step, tuple(each._array.shape), flat.dtype))
        else:
            _put(each._array, flat[begin : begin + count])
        bump(each, name)
        begin += count


def _put(target: Any, values: Any) -> None:
    """Write elements of the host into an array, which may be on a device."""
    if isinstance(target, DeviceArray):
        memory = memory_of(target)
        memory.assign(target, memory.from_host(values.reshape(target.shape), target.device))
    else:
        np.copyto(target, values.reshape(target.shape))


def check_memory(name: str, tensor: Tensor, writes: bool) -> None:
    """Refuse a tensor that is no memory of this machine, or that cannot be written to."""
    usual = tensor._array.__class__ in (np.ndarray, Stored) or isinstance(tensor._array, DeviceArray)
    if not usual or (ACTIVE and tracer.get() is not None):
        raise _no_memory(name, tensor)
    if writes:
        _check_written(name, tensor)


def _check_written(name: str, tensor: Tensor) -> None:
    node = tensor._node
    if node is not None and (not node.is_leaf or node.__class__ is LeafArgument) and grad_mode.get():
        text = "the tensor has a history, which would not know of the write"
        raise GraphError(message(name, text, [("tensor", tensor._spec())], _FUNCTIONAL))
    if tensor._counter is SHARED:
        tensor._own_memory()
    if isinstance(tensor._array, np.ndarray) and not tensor._array.flags.writeable:
        text = "the memory cannot be written to: it is read-only, or an expanded tensor"
        raise GraphError(message(name, text, [("tensor", tensor._spec())], "clone() it first"))


def _no_memory(name: str, tensor: Tensor) -> Exception:
    lines: list[tuple[str, object]] = [("tensor", tensor._spec())]
    if ACTIVE and tracer.get() is not None:
        return UnsupportedError(message(name, "writes to memory, which a trace would not see", lines, _FUNCTIONAL))
    if tensor._array is not bottom(tensor._array):
        text = "writes to memory, and inside of vmap or jvp a tensor is more than that"
        return UnsupportedError(message(name, text, lines, "call it outside of the transform"))
    return DeviceError(message(name, "a tensor on the meta device has no elements", lines, "device='cpu'"))
