"""What nodes save of whole parameters: where in their memory it is, so that the memory can go and come back.

While a sharded module computes, a saved tensor that lies in the memory of a gathered parameter is replaced by a `Handle`.
Backward asks it, and it asks for the memory. All else that the node saved is as it was, or goes to the hooks that the
program opened, as those of a checkpoint.
"""

from __future__ import annotations

from operator import is_not
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.arrays.memory import DeviceArray, memory_of, strides_of
from genesis.base.errors import InplaceError, message
from genesis.core.graph.saved import Packed, packing, saved_tensors_hooks
from genesis.core.graph.tensor import Tensor, wrap

if TYPE_CHECKING:
    from genesis.core.graph.node import Node
    from genesis.distributed.fsdp.group import ShardedGroup
    from genesis.distributed.fsdp.units import Unit

MEMORIES: dict[int, tuple[ShardedGroup, Unit]] = {}  # of gathered parameters, by their ids


class Handle(Packed):
    """A tensor in the memory of gathered parameters."""

    __slots__ = ("begin", "dtype", "edge", "group", "shape", "strides", "unit", "versions")

    def __init__(self, group: ShardedGroup, unit: Unit, t: Tensor) -> None:
        array = t._array
        self.group, self.unit, self.edge = group, unit, t._node
        self.shape, self.strides, self.dtype = array.shape, strides_of(array), array.dtype
        self.begin = _address(array) - _address(unit.memory)
        self.versions = [part.version for part in unit.parts]

    def unpack(self, name: str) -> Tensor:
        if [part.shard._version for part in self.unit.parts] != self.versions:
            names = ", ".join([part.name for part in self.unit.parts])
            text = f"{names} was written to since the forward, and {name} needs it as it was"
            raise InplaceError(message("fully_shard", text, hint="backward() before the step of the optimizer"))
        self.group.unshard_for_backward()
        memory = self.unit.memory
        if isinstance(memory, DeviceArray):
            array = memory_of(memory).seen(memory, self.begin, self.shape, self.dtype, self.strides)
        else:
            array = np.ndarray(self.shape, self.dtype, memory, self.begin, self.strides)
        return wrap(array)._alias(self.edge)


class Unchanged(Packed):
    """A tensor that a node saved next to one with a handle: as it is, if nobody wrote to it."""

    __slots__ = ("tensor", "version")

    def __init__(self, t: Tensor) -> None:
        self.tensor = t
        self.version = t._version

    def unpack(self, name: str) -> Tensor:
        if self.tensor._version != self.version:
            text = f"a {self.tensor._spec()} that {name} saved for backward was written to since"
            raise InplaceError(message("backward", text, hint="clone() it before the write"))
        return self.tensor


class Handles(saved_tensors_hooks):
    """Opened while a sharded module computes, with parameters that are whole in it."""

    def __init__(self, group: ShardedGroup | None) -> None:
        super().__init__(_not_called, _not_called)
        self._group = group
        self._other: saved_tensors_hooks | None = None

    def __enter__(self) -> Handles:
        self._other = next((pair for pair in reversed(packing.get()) if not isinstance(pair, Handles)), None)
        super().__enter__()
        return self

    def before_run_again(self) -> None:
        if self._group is not None:  # a checkpoint inside of the module computes with its parameters
            self._group.unshard_for_backward()

    def packed(self, node: Node) -> tuple[Any, ...]:
        own = tuple([_handled(value) for value in node._saved])
        if not any(map(is_not, own, node._saved)):
            return node._saved if self._other is None else self._other.packed(node)
        if self._other is None:
            return tuple([_kept(value) for value in own])
        before = node._saved
        try:  # the others pack what has no handle
            node._saved = tuple([None if each is not value else value for each, value in zip(own, before, strict=True)])
            rest = self._other.packed(node)
        finally:
            node._saved = before
        return tuple(
            [each if each is not value else other for each, value, other in zip(own, before, rest, strict=True)]
        )


def _handled(value: Any) -> Any:
    """A handle in place of a tensor in the memory of gathered parameters."""
    if not isinstance(value, Tensor):
        return value
    array = value._array
    if array.__class__ is not np.ndarray and not isinstance(array, DeviceArray):
        return value
    known = MEMORIES.get(id(array if array.base is None else array.base))
    return value if known is None else Handle(*known, value)


def _kept(value: Any) -> Any:
    return Unchanged(value) if isinstance(value, Tensor) else value


def _not_called(value: Any) -> Any:
    raise AssertionError("nodes are packed as a whole")


def _address(array: Any) -> int:
    if isinstance(array, DeviceArray):
        return memory_of(array).address(array)
    return int(array.__array_interface__["data"][0])
