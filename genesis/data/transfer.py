"""Batches from one process to another: arrays through memory that both map, the rest as a pickle.

A worker writes the arrays of a batch into a *segment*, anonymous shared memory. The receiver's arrays lie in it:
nothing is copied. When the last of them is gone the worker is told, and uses the segment again. Segments have no names
(the descriptor is sent through a socket), so there is nothing to unlink, and nothing left when a process is killed.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import sys
import tempfile
from collections import deque
from collections.abc import Callable
from functools import partial
from multiprocessing import reduction
from typing import Any

import numpy as np

_SMALL = 4096  # bytes; less than this is pickled with the rest
_ALIGN = 64
LEASED = 32  # segments of one loader that may be in use before batches are copied out: descriptors are scarce


def _anonymous(size: int) -> tuple[int, mmap.mmap]:
    """A descriptor of new shared memory, and the memory."""
    if sys.platform == "linux":
        descriptor = os.memfd_create("genesis", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    try:
        os.ftruncate(descriptor, size)
        return descriptor, mmap.mmap(descriptor, size)
    except BaseException:
        os.close(descriptor)
        raise


class Sender:
    """A worker's end."""

    def __init__(self, connection: Any, receiver: int) -> None:
        self.connection, self.receiver = connection, receiver
        self.segments: list[mmap.mmap] = []
        self.free: set[int] = set()

    def send(self, head: Any, value: Any) -> None:
        """Send a small head, and a value with arrays.

        Raises:
            PicklingError: the value cannot be sent
        """
        raws: list[memoryview] = []

        def apart(buffer: pickle.PickleBuffer) -> bool:
            with contextlib.suppress(BufferError):
                raw = buffer.raw()
                if raw.nbytes >= _SMALL:
                    raws.append(raw)
                    return False
            return True

        data = pickle.dumps(value, protocol=5, buffer_callback=apart)
        if len(data) > _SMALL:
            raws.append(memoryview(data))
            data = b""
        ends = np.cumsum([0, *(-(-raw.nbytes // _ALIGN) * _ALIGN for raw in raws)]).tolist()
        number, new = self._segment(ends[-1]) if raws else (-1, None)
        for raw, begin in zip(raws, ends, strict=False):
            self.segments[number][begin : begin + raw.nbytes] = raw
        spans = [(begin, raw.nbytes) for begin, raw in zip(ends, raws, strict=False)]
        self.connection.send((head, data, number, spans, None if new is None else len(self.segments[number])))
        if new is not None:
            try:
                reduction.send_handle(self.connection, new, self.receiver)
            finally:
                os.close(new)

    def _segment(self, size: int) -> tuple[int, int | None]:
        """The number of a free segment, and if it had to be made its descriptor."""
        fitting = [n for n in self.free if size <= len(self.segments[n])]
        if fitting:
            number = min(fitting, key=lambda n: len(self.segments[n]))
            self.free.remove(number)
            return number, None
        descriptor, memory = _anonymous(-(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
        if self.free:  # too small for what comes now: its place is taken
            number = self.free.pop()
            self.segments[number].close()
            self.segments[number] = memory
        else:
            number = len(self.segments)
            self.segments.append(memory)
        return number, descriptor


class _Lease:
    """Part of a segment that is in use. NumPy's arrays keep it alive, views of views as well."""

    __slots__ = ("__array_interface__", "__weakref__", "memory", "number", "receiver")

    def __init__(self, receiver: Receiver, number: int) -> None:
        self.receiver, self.number, self.memory = receiver, number, receiver.segments[number]
        self.__array_interface__ = self.memory.__array_interface__
        receiver.leased.add(number)

    def __del__(self) -> None:  # in any thread: each step is atomic
        self.receiver.leased.discard(self.number)
        self.receiver.free.append(self.number)


class Receiver:
    """The other end of one worker."""

    def __init__(self, connection: Any, most: int) -> None:
        self.connection, self.most = connection, most
        self.leased: set[int] = set()  # numbers of segments that are in use
        self.segments: dict[int, np.ndarray[Any, Any]] = {}
        self.free = deque[int]()  # what the worker may use again, to be sent along with its next task

    def receive(self) -> tuple[Any, Callable[[], Any]]:
        """A head, and how to unpickle the value, which runs code of its classes.

        Raises:
            EOFError, OSError: the worker is gone
        """
        head, data, number, spans, size = self.connection.recv()
        if size is not None:
            descriptor = reduction.recv_handle(self.connection)
            try:
                self.segments[number] = np.frombuffer(mmap.mmap(descriptor, size), np.uint8)
            finally:
                os.close(descriptor)
        if number < 0:
            return head, partial(pickle.loads, data)
        whole = np.asarray(_Lease(self, number))
        parts = [whole[begin : begin + count] for begin, count in spans]
        if len(self.leased) > self.most:
            parts = [part.copy() for part in parts]
        if not data:
            data = parts.pop().tobytes()
        return head, partial(pickle.loads, data, buffers=parts)

    def freed(self) -> list[int]:
        return [self.free.popleft() for _ in range(len(self.free))]
