"""The driver: all calls that this package makes of CUDA, as one interface, and who answers them.

    Bound       NVIDIA's driver, by `cuda-bindings` (``bindings.py``)
    Emulated    NumPy's memory, with ``GENESIS_CUDA=emulate`` (``emulated.py``): for tests, and to see what a program does

Addresses and handles are ints. A call that fails raises one of ``errors.py``. No kernel is waited for but by calls
that say so. ``connection.py`` says which driver a process has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from genesis.cuda.runtime.parameters import Parameters

NULL = 0


class Driver(ABC):
    """What is asked of CUDA. Streams, events, modules and graphs are those of the context that is current."""

    emulated = False
    _known: Mapping[int, Any] = {}  # the devices that were asked for, see `genesis.cuda.runtime.devices`
    notes: Any = None  # of work that is only noted (`genesis.cuda.launch.noted`)

    # ---- devices and contexts

    @abstractmethod
    def version(self) -> int:
        """1000 times the major version plus 10 times the minor one."""

    @abstractmethod
    def count(self) -> int: ...

    @abstractmethod
    def device_name(self, index: int) -> str: ...

    @abstractmethod
    def attribute(self, index: int, name: str) -> int:
        """A number such as "MULTIPROCESSOR_COUNT": the driver's name behind ``CU_DEVICE_ATTRIBUTE_``."""

    @abstractmethod
    def total_memory(self, index: int) -> int: ...

    @abstractmethod
    def retain(self, index: int) -> int:
        """The context that all of a process share of a device."""

    @abstractmethod
    def make_current(self, context: int) -> None:
        """Of this thread."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for all work of the context."""

    @abstractmethod
    def can_access_peer(self, index: int, other: int) -> bool: ...

    # ---- memory

    @abstractmethod
    def memory_info(self) -> tuple[int, int]:
        """Bytes that are free, and all."""

    @abstractmethod
    def allocate(self, count: int) -> int: ...

    @abstractmethod
    def free(self, address: int) -> None:
        """Waits for all work that may use it."""

    @abstractmethod
    def host_allocate(self, count: int) -> int:
        """Memory of the host that copies need not be staged for."""

    @abstractmethod
    def host_free(self, address: int) -> None: ...

    @abstractmethod
    def copy_in(self, target: int, host: int, count: int, stream: int) -> None:
        """From the host's memory; it must stay as it is until the copy is made."""

    @abstractmethod
    def copy_out(self, host: int, source: int, count: int, stream: int) -> None: ...

    @abstractmethod
    def copy(self, target: int, source: int, count: int, stream: int) -> None: ...

    @abstractmethod
    def copy_peer(self, target: int, to: int, source: int, origin: int, count: int, stream: int) -> None:
        """Between devices, which are given by their contexts."""

    @abstractmethod
    def fill(self, target: int, value: int, width: int, count: int, stream: int) -> None:
        """Write a number of 1, 2 or 4 bytes so many times."""

    # ---- memory in pieces of an address range (the driver's virtual memory management)

    @abstractmethod
    def granularity(self, index: int) -> int:
        """Bytes that pieces are multiples of; 0 where there are none."""

    @abstractmethod
    def reserve(self, count: int) -> int:
        """A range of addresses without memory."""

    @abstractmethod
    def release(self, address: int, count: int) -> None: ...

    @abstractmethod
    def back(self, address: int, count: int, index: int) -> int:
        """Put memory of a device behind a part of a range; the handle is what `unback` takes."""

    @abstractmethod
    def unback(self, address: int, count: int, handle: int) -> None:
        """Waits for nothing: work that may use it has to be done."""

    # ---- streams and events

    @abstractmethod
    def stream(self, priority: int = 0) -> int:
        """A stream that waits for no other."""

    @abstractmethod
    def stream_destroy(self, stream: int) -> None: ...

    @abstractmethod
    def stream_query(self, stream: int) -> bool:
        """Whether everything on it is done."""

    @abstractmethod
    def stream_synchronize(self, stream: int) -> None: ...

    @abstractmethod
    def stream_wait(self, stream: int, event: int) -> None: ...

    @abstractmethod
    def event(self, timing: bool = False) -> int: ...

    @abstractmethod
    def event_destroy(self, event: int) -> None: ...

    @abstractmethod
    def event_record(self, event: int, stream: int) -> None: ...

    @abstractmethod
    def event_query(self, event: int) -> bool: ...

    @abstractmethod
    def event_synchronize(self, event: int) -> None: ...

    @abstractmethod
    def elapsed(self, start: int, end: int) -> float:
        """Milliseconds between two events with timing."""

    # ---- kernels

    @abstractmethod
    def load(self, image: Any) -> int:
        """A module, of a cubin (the emulated driver: of an `Image`, ``emulated.py``)."""

    @abstractmethod
    def unload(self, module: int) -> None: ...

    @abstractmethod
    def function(self, module: int, name: str) -> int: ...

    @abstractmethod
    def allow_shared(self, function: int, count: int) -> None:
        """Let a kernel have more shared memory than 48 KiB."""

    @abstractmethod
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
        """Start a kernel of so many blocks of so many threads, with these values for its parameters."""

    # ---- graphs

    @abstractmethod
    def begin_capture(self, stream: int) -> None: ...

    @abstractmethod
    def end_capture(self, stream: int) -> int:
        """The graph of what was called since; nothing of it was done."""

    @abstractmethod
    def relax(self, relaxed: bool) -> None:
        """Whether this thread may ask for memory while it records a graph."""

    @abstractmethod
    def is_capturing(self, stream: int) -> bool: ...

    @abstractmethod
    def zeros_in(self, graph: int) -> list[tuple[int, int, int]]:
        """What only writes zeros in a graph: the node, the address, and how many bytes."""

    @abstractmethod
    def begin_with_zeros(self, graph: int, address: int, count: int) -> None:
        """Let a graph write zeros to so many bytes before all else."""

    @abstractmethod
    def leave_out(self, graph: int, node: int) -> None:
        """Take a node out of a graph: what came after it comes after what came before it."""

    @abstractmethod
    def instantiate(self, graph: int) -> int: ...

    @abstractmethod
    def launch_graph(self, executable: int, stream: int) -> None: ...

    @abstractmethod
    def graph_destroy(self, graph: int) -> None: ...

    @abstractmethod
    def executable_destroy(self, executable: int) -> None: ...

    # ---- what the emulated driver wants to know

    def host_uses(self, address: int, count: int, writes: bool) -> None:  # noqa: B027, only one of them asks
        """The program reads or writes pinned memory."""
