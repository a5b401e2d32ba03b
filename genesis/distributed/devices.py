"""Collectives of tensors on devices, without a way over the host, where the device's memory has something that moves it
between processes (`genesis.arrays.memory.Memory.between_ranks`): NCCL for GPUs. Where it is missing the host's engine does
that, with copies that nobody waits for (`by_host`).

That is asked for what it does as every engine does: numbers combined with the same meaning, or moved. Everything else,
and every device without, goes by way of the host (`genesis.distributed.memory`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray, memory_of
from genesis.arrays.spec import contiguous_strides
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.writes import bump
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor, wrap
from genesis.distributed.by_host import ByHost
from genesis.distributed.groups import ProcessGroup
from genesis.distributed.memory import check_memory

BYTES = np.dtype(np.uint8)


def engine_of(members: ProcessGroup, *tensors: Any, op: str = "") -> Any:
    """What moves the memory of some tensors between the ranks of a group, if it can do that; all ranks agree about it."""
    for t in tensors:
        if not (isinstance(t, Tensor) and isinstance(t._array, DeviceArray) and t._array.size):
            return None
    arrays = [t._array for t in tensors]
    first = arrays[0]
    if any([a.device != first.device or a.dtype != first.dtype for a in arrays]):
        return None
    if op == "mean" and first.dtype.kind in "iub":  # which is refused
        return None
    if first.device not in members.devices:
        members.devices[first.device] = _begun(members, first)
    engine = members.devices[first.device]
    fits = engine is None or not op or engine.combines(first.dtype, "sum" if op == "mean" else op)
    return engine if fits else None


def _begun(members: ProcessGroup, array: Any) -> Any:
    way, engine = memory_of(array).between_ranks, members.engine
    able = np.array([way is not None and way.available()], np.int32)
    _waited(members, "all_reduce", able, lambda: engine.all_reduce(able, "min"))
    if not able[0]:
        return None if way is None else ByHost(way.crossing(array), engine)

    def unique(own: bytes | None) -> bytes:
        held = np.frombuffer(bytearray(own or bytes(way.UNIQUE)), BYTES)
        _waited(members, "broadcast", held, lambda: engine.broadcast(held, 0))
        return held.tobytes()

    return way.communicator(array, engine.rank, engine.size, unique)


def _waited(members: ProcessGroup, name: str, held: Any, start: Callable[[], Any]) -> None:
    call, agreement = members.calls.begin(name, (held.shape, held.dtype, "to begin with a device"))
    members.calls.meet(call, agreement)
    members.calls.wait(call, start())


class Told:
    """A call that is told to a stream when all ranks have made it, and what comes behind it."""

    def __init__(self, start: Callable[[], Any], finish: Callable[[], None]) -> None:
        self._start, self._finish = start, finish
        self._request: Any = None

    def start(self) -> Any:
        self._request = self._start()
        return self._request

    def finish(self) -> None:
        self._request.join()
        with no_grad():
            self._finish()


def combined(
    name: str,
    engine: Any,
    out: Tensor,
    source: Tensor,
    op: str,
    start: Callable[[Any, Any, str], Any],
    here: bool = True,
) -> Told:
    """``source`` of all ranks combined into ``out``, as `wire` says: 16-bit floats in float32, a mean as a quotient.

    Args:
        start: called with the array of the result, what is sent, and the op of the engine
        here: whether this rank gets it
    """
    check_memory(name, source, writes=False)
    check_memory(name, out, writes=here)
    array, memory = out._array, memory_of(out._array)
    wide = F32 if array.dtype in HALVES else array.dtype
    sent = together(source._array, wide)
    into = sent if out is source else together(array, wide)

    def finish() -> None:
        if here:
            value = (wrap(into) / engine.size)._array if op == "mean" else into
            if value is not array:
                memory.assign(array, value)
            bump(out, name)

    return Told(lambda: start(into, sent, "sum" if op == "mean" else op), finish)


def moved(name: str, out: Tensor, source: Tensor, start: Callable[[Any, Any], Any], here: bool = True) -> Told:
    """``source`` of some ranks moved into ``out``; ``start`` is called with the arrays of both."""
    check_memory(name, source, writes=False)
    check_memory(name, out, writes=here)
    array, memory = out._array, memory_of(out._array)
    sent = together(source._array, array.dtype)
    into = sent if out is source else together(array, array.dtype)

    def finish() -> None:
        if here:
            if into is not array:
                memory.assign(array, into)
            bump(out, name)

    return Told(lambda: start(into, sent), finish)


def together(array: Any, dtype: Any) -> Any:
    """An array without gaps and of a dtype: itself, or a copy."""
    memory = memory_of(array)
    if array.dtype == dtype and tuple(memory.strides(array)) == contiguous_strides(array.shape):
        return array
    out = memory.empty(array.shape, dtype, array.device)
    memory.assign(out, array)
    return out
