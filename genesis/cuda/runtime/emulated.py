"""A device for machines without one: the driver's interface over NumPy's memory.

What a GPU would do later is done later here: streams are queues, and a queue runs when somebody waits for it, or when
enough has come together. Memory begins as garbage. Every use of memory goes through `Clocks`, so what is right here
only because of the order in which queues happen to run is an error. Kernels are functions of Python (`Image`).

Addresses are none of the host's: taking one for another is an error.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from genesis.cuda.runtime.clocks import HOST
from genesis.cuda.runtime.driver import Driver
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Queues, Span, Work
from genesis.cuda.runtime.errors import StickyError, error
from genesis.cuda.runtime.parameters import Parameters

ATTRIBUTES = {
    "COMPUTE_CAPABILITY_MAJOR": 9, "COMPUTE_CAPABILITY_MINOR": 0, "MULTIPROCESSOR_COUNT": 132, "WARP_SIZE": 32,
    "MAX_THREADS_PER_BLOCK": 1024, "MAX_THREADS_PER_MULTIPROCESSOR": 2048, "L2_CACHE_SIZE": 60 << 20,
    "MAX_SHARED_MEMORY_PER_BLOCK": 48 << 10, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 227 << 10,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 228 << 10, "MAX_REGISTERS_PER_MULTIPROCESSOR": 65536, "INTEGRATED": 0,
    "MULTI_GPU_BOARD": 0, "VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED": 1, "PCI_BUS_ID": 0, "PCI_DEVICE_ID": 0, "PCI_DOMAIN_ID": 0,
    "CLOCK_RATE": 1980000, "MEMORY_CLOCK_RATE": 3201000, "GLOBAL_MEMORY_BUS_WIDTH": 6144,
}  # fmt: skip
TEXTS = {
    "CUDA_ERROR_OUT_OF_MEMORY": "out of memory",
    "CUDA_ERROR_INVALID_VALUE": "invalid argument",
    "CUDA_ERROR_INVALID_HANDLE": "invalid resource handle",
    "CUDA_ERROR_ILLEGAL_ADDRESS": "an illegal memory access was encountered",
    "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": "operation not permitted when stream is capturing",
    "CUDA_ERROR_STREAM_CAPTURE_UNJOINED": "capturing stream has unjoined work",
    "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED": "operation failed due to a previous error during capture",
    "CUDA_ERROR_LAUNCH_FAILED": "unspecified launch failure",
}


@dataclass(frozen=True, slots=True)
class Image:
    """A kernel in the place of a cubin.

    Args:
        run: called with the memory (`Spaces`), the grid and the values of the parameters
        spans: from the grid and the values, which bytes it reads and writes
    """

    run: Callable[[Spaces, tuple[int, int, int], tuple[Any, ...]], None]
    spans: Callable[[tuple[int, int, int], tuple[Any, ...]], Sequence[Span]]


class Emulated(Driver):
    """So many devices, with so many bytes of memory each."""

    emulated = True

    def __init__(self, devices: int = 1, memory: int = 1 << 30, pieces: bool = True) -> None:
        self.devices, self.pieces = devices, pieces
        self.spaces = Spaces(devices, memory)
        self.queues = Queues(self._fail)
        self.clocks = self.queues.clocks
        self.calls: dict[str, int] = {}  # how often each was made: what tests count
        self._modules: dict[int, Any] = {}
        self._graphs: dict[int, list[Work]] = {}
        self._current = threading.local()
        self._lock = threading.RLock()
        self._broken: StickyError | None = None

    # ---- inside

    def _fail(self, name: str, call: str) -> Exception:
        problem = error(name, TEXTS[name], call)
        if isinstance(problem, StickyError):
            self._broken = problem
        return problem

    def _enter(self, call: str, captures: bool = True) -> None:
        """Begin a call: one after a kernel that went wrong fails, and so do those that no graph can hold."""
        self.calls[call] = self.calls.get(call, 0) + 1
        if self._broken is not None:
            raise self._broken
        if not captures and self.queues.capturing:
            raise self._fail("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", call)

    def _device(self) -> int:
        return getattr(self._current, "device", 0)

    # ---- devices and contexts

    def version(self) -> int:
        return 13000

    def count(self) -> int:
        return self.devices

    def device_name(self, index: int) -> str:
        return "emulated device"

    def attribute(self, index: int, name: str) -> int:
        return ATTRIBUTES[name] if self.pieces or not name.startswith("VIRTUAL") else 0

    def total_memory(self, index: int) -> int:
        return self.spaces.total

    def retain(self, index: int) -> int:
        return index + 1

    def make_current(self, context: int) -> None:
        self._current.device = context - 1

    def synchronize(self) -> None:
        with self._lock:
            self._enter("synchronize", captures=False)
            self.queues.drain_all()

    def can_access_peer(self, index: int, other: int) -> bool:
        return index != other

    # ---- memory

    def memory_info(self) -> tuple[int, int]:
        return self.spaces.free(self._device()), self.spaces.total

    def allocate(self, count: int) -> int:
        with self._lock:
            self._enter("allocate", captures=self._is_relaxed())
            address = self.spaces.allocate(self._device(), count)
            if not address:
                raise self._fail("CUDA_ERROR_OUT_OF_MEMORY", "allocate")
            return address

    def free(self, address: int) -> None:
        with self._lock:
            self.synchronize()
            if address not in self.spaces.sizes:
                raise self._fail("CUDA_ERROR_INVALID_VALUE", "free")
            self.clocks.forgotten(address, self.spaces.sizes[address])
            self.spaces.give_back(address)

    def host_allocate(self, count: int) -> int:
        with self._lock:
            self._enter("host_allocate", captures=False)
            return self.spaces.pin(count)

    def host_free(self, address: int) -> None:
        with self._lock:
            self.synchronize()
            self.clocks.forgotten(address, len(self.spaces.pinned[address]))
            del self.spaces.pinned[address]

    def _of_host(self, call: str, address: int, count: int, writes: bool, stream: int) -> tuple[Span, ...]:
        """The use of the host's memory by a copy; of memory that is not pinned none is known, and no graph holds it."""
        if self.spaces.is_pinned(address):
            return ((address, count, writes),)
        if self.queues.at(stream, call).graph is not None:
            raise self._fail("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", call)
        return ()

    def copy_in(self, target: int, host: int, count: int, stream: int) -> None:
        with self._lock:
            self._enter("copy_in")
            spans = self._of_host("copy_in", host, count, False, stream)
            if not spans:  # pageable memory is read before the call returns
                held = ctypes.string_at(host, count)
                run = lambda: self.spaces.write(target, np.frombuffer(held, np.uint8))
            else:
                run = lambda: self.spaces.write(target, _at(host, count))
            self.queues.submit(stream, Work("copy_in", run, ((target, count, True), *spans)))

    def copy_out(self, host: int, source: int, count: int, stream: int) -> None:
        with self._lock:
            self._enter("copy_out")
            spans = self._of_host("copy_out", host, count, True, stream)

            def run() -> None:
                _at(host, count)[...] = self.spaces.bytes(source, count)

            self.queues.submit(stream, Work("copy_out", run, ((source, count, False), *spans)))
            if not spans:  # pageable memory is written before the call returns
                self.stream_synchronize(stream)

    def copy(self, target: int, source: int, count: int, stream: int) -> None:
        with self._lock:
            self._enter("copy")
            run = lambda: self.spaces.write(target, self.spaces.bytes(source, count).copy())
            self.queues.submit(stream, Work("copy", run, ((source, count, False), (target, count, True))))

    def copy_peer(self, target: int, to: int, source: int, origin: int, count: int, stream: int) -> None:
        self.copy(target, source, count, stream)

    def fill(self, target: int, value: int, width: int, count: int, stream: int) -> None:
        with self._lock:
            self._enter("fill")
            self.queues.submit(stream, self._fill(target, value, width, count))

    def _fill(self, target: int, value: int, width: int, count: int) -> Work:
        pattern = np.frombuffer(value.to_bytes(width, "little") * count, np.uint8)
        run = lambda: self.spaces.write(target, pattern)
        return Work("fill", run, ((target, width * count, True),), zeros=not value)

    # ---- pieces of an address range

    def granularity(self, index: int) -> int:
        return 2 << 20 if self.pieces else 0

    def reserve(self, count: int) -> int:
        with self._lock:
            self._enter("reserve")
            return self.spaces.reserve(count)

    def release(self, address: int, count: int) -> None:
        with self._lock:
            self.spaces.release(address)

    def back(self, address: int, count: int, index: int) -> int:
        with self._lock:
            self._enter("back", captures=self._is_relaxed())
            if not self.spaces.back(address, count, index):
                raise self._fail("CUDA_ERROR_OUT_OF_MEMORY", "back")
            return next(self.queues.handles)

    def unback(self, address: int, count: int, handle: int) -> None:
        with self._lock:
            self._enter("unback", captures=False)
            self.clocks.forgotten(address, count)
            self.spaces.unback(address, count)

    # ---- streams and events

    def stream(self, priority: int = 0) -> int:
        with self._lock:
            self._enter("stream")
            return self.queues.new(self._device())

    def stream_destroy(self, stream: int) -> None:
        with self._lock:
            self.queues.destroy(stream)

    def stream_query(self, stream: int) -> bool:
        with self._lock:
            self._enter("stream_query", captures=False)
            self.queues.at(stream, "stream_query")
            if not self.queues.is_empty(stream):
                return False
            self.clocks.host_waited(stream)
            return True

    def stream_synchronize(self, stream: int) -> None:
        with self._lock:
            self._enter("stream_synchronize", captures=False)
            self.queues.at(stream, "stream_synchronize")
            self.queues.drain(stream)
            self.clocks.host_waited(stream)

    def stream_wait(self, stream: int, event: int) -> None:
        with self._lock:
            self._enter("stream_wait")
            self.queues.wait(stream, event)

    def event(self, timing: bool = False) -> int:
        with self._lock:
            return self.queues.new_event(timing)

    def event_destroy(self, event: int) -> None:
        with self._lock:
            self.queues.finish(event)
            del self.queues.events[event]

    def event_record(self, event: int, stream: int) -> None:
        with self._lock:
            self._enter("event_record")
            self.queues.record(event, stream)

    def event_query(self, event: int) -> bool:
        with self._lock:
            self._enter("event_query", captures=False)
            done = self.queues.is_done(event)
            if done:
                self.clocks.host_waited_for_event(event)
            return done

    def event_synchronize(self, event: int) -> None:
        with self._lock:
            self._enter("event_synchronize", captures=False)
            self.queues.finish(event)
            self.clocks.host_waited_for_event(event)

    def elapsed(self, start: int, end: int) -> float:
        with self._lock:
            first, last = self.queues.events[start], self.queues.events[end]
            if not (first.timing and last.timing and first.done and last.done):
                raise self._fail("CUDA_ERROR_INVALID_HANDLE", "elapsed")
            return last.at - first.at

    # ---- kernels

    def load(self, image: Any) -> int:
        with self._lock:
            self._enter("load", captures=False)
            made = next(self.queues.handles)
            self._modules[made] = image
            return made

    def unload(self, module: int) -> None:
        del self._modules[module]

    def function(self, module: int, name: str) -> int:
        return module

    def allow_shared(self, function: int, count: int) -> None:
        if count > ATTRIBUTES["MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"]:
            raise self._fail("CUDA_ERROR_INVALID_VALUE", "allow_shared")

    def launch(
        self,
        function: int,
        grid: tuple[int, int, int],
        block: int,
        shared: int,
        stream: int,
        parameters: Parameters,
        values: tuple[Any, ...],
    ) -> None:
        with self._lock:
            self._enter("launch")
            image = self._modules[function]
            most = ATTRIBUTES["MAX_THREADS_PER_BLOCK"]
            if not (0 < block <= most and all([n > 0 for n in grid])) or len(values) != len(parameters.letters):
                raise self._fail("CUDA_ERROR_INVALID_VALUE", "launch")
            parameters.packed.pack(*values)  # what does not fit its letter is an error, as it is for the driver
            run = lambda: self._compute(image, grid, values)
            self.queues.submit(
                stream, Work(f"kernel {getattr(image, 'name', '')}".strip(), run, image.spans(grid, values))
            )

    def _compute(self, image: Image, grid: tuple[int, int, int], values: tuple[Any, ...]) -> None:
        """A device has no warnings."""
        with np.errstate(all="ignore"):
            image.run(self.spaces, grid, values)

    # ---- graphs

    def begin_capture(self, stream: int) -> None:
        with self._lock:
            self._enter("begin_capture", captures=False)
            self.queues.begin(stream)

    def end_capture(self, stream: int) -> int:
        with self._lock:
            self._enter("end_capture")
            made = next(self.queues.handles)
            self._graphs[made] = self.queues.end(stream)
            return made

    def relax(self, relaxed: bool) -> None:
        self._current.relaxed = relaxed

    def _is_relaxed(self) -> bool:
        return getattr(self._current, "relaxed", False)

    def is_capturing(self, stream: int) -> bool:
        return self.queues.at(stream, "is_capturing").graph is not None

    def zeros_in(self, graph: int) -> list[tuple[int, int, int]]:
        return [(id(work), *work.spans[0][:2]) for work in self._graphs[graph] if work.zeros]

    def begin_with_zeros(self, graph: int, address: int, count: int) -> None:
        self._graphs[graph].insert(0, self._fill(address, 0, 1, count))

    def leave_out(self, graph: int, node: int) -> None:
        self._graphs[graph] = [work for work in self._graphs[graph] if id(work) != node]

    def instantiate(self, graph: int) -> int:
        with self._lock:
            self._enter("instantiate", captures=False)
            made = next(self.queues.handles)
            self._graphs[made] = list(self._graphs[graph])
            return made

    def launch_graph(self, executable: int, stream: int) -> None:
        with self._lock:
            self._enter("launch_graph")
            for work in self._graphs[executable]:
                self.queues.submit(stream, work)

    def graph_destroy(self, graph: int) -> None:
        del self._graphs[graph]

    def executable_destroy(self, executable: int) -> None:
        del self._graphs[executable]

    # ---- what it wants to know

    def host_uses(self, address: int, count: int, writes: bool) -> None:
        with self._lock:
            self.clocks.used(HOST, address, count, writes, "the host's memory")


def _at(address: int, count: int) -> np.ndarray[Any, Any]:
    """The host's memory at an address."""
    return np.frombuffer((ctypes.c_uint8 * count).from_address(address), np.uint8)
