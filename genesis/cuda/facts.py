"""Which GPUs there are, what they are, and which of them is used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from genesis.cuda.runtime import connection
from genesis.cuda.runtime.devices import current_index, device_at, index_of, set_current
from genesis.cuda.runtime.reports import checked


def is_available() -> bool:
    """Whether there is a GPU: a driver, and a device of it. `why_unavailable` says what is missing.

    >>> import genesis
    >>> genesis.cuda.is_available() == (genesis.cuda.why_unavailable() == "")
    True
    """
    return connection.available()


def why_unavailable() -> str:
    """Why there is no GPU, in a sentence; empty where there is one."""
    return connection.unavailable()


def device_count() -> int:
    """How many GPUs there are."""
    return connection.driver().count() if is_available() else 0


def current_device() -> int:
    """The index of the device that "cuda" stands for in this thread.

    Raises:
        RuntimeError: there is no GPU
    """
    return device_at().index


def set_device(device: Any) -> None:
    """Let "cuda" stand for a device in this thread."""
    index = index_of(device)
    if is_available():
        set_current(device_at(index).index)


class device:  # noqa: N801, PyTorch's name
    """Inside a ``with``, "cuda" stands for a device: an index, a name, a device; None or -1 changes nothing."""

    def __init__(self, device: Any) -> None:
        self.index = index_of(device)
        self._before: list[int] = []

    def __enter__(self) -> device:
        self._before.append(current_index())
        set_device(self.index)
        return self

    def __exit__(self, *_: object) -> None:
        set_current(self._before.pop())


class device_of(device):  # noqa: N801, PyTorch's name
    """Inside a ``with``, "cuda" stands for the device of a tensor, if that is on one."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device if obj.is_cuda else None)


def synchronize(device: Any = None) -> None:
    """Wait until a device, or the current one, has done everything that it was told.

    Raises:
        RuntimeError: there is no GPU; or one of its kernels went wrong since
        IndexError: one of its kernels met an index that is none
    """
    on = device_at(index_of(device))
    on.enter().synchronize()
    checked(on)


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """What a GPU is. Memory and caches are in bytes."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int
    max_threads_per_block: int
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    L2_cache_size: int
    is_integrated: int
    is_multi_gpu_board: int


_ATTRIBUTES = {
    "multi_processor_count": "MULTIPROCESSOR_COUNT",
    "warp_size": "WARP_SIZE",
    "max_threads_per_block": "MAX_THREADS_PER_BLOCK",
    "max_threads_per_multi_processor": "MAX_THREADS_PER_MULTIPROCESSOR",
    "regs_per_multiprocessor": "MAX_REGISTERS_PER_MULTIPROCESSOR",
    "shared_memory_per_block": "MAX_SHARED_MEMORY_PER_BLOCK",
    "shared_memory_per_block_optin": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "shared_memory_per_multiprocessor": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    "L2_cache_size": "L2_CACHE_SIZE",
    "is_integrated": "INTEGRATED",
    "is_multi_gpu_board": "MULTI_GPU_BOARD",
}


def get_device_properties(device: Any = None) -> DeviceProperties:
    """What a GPU is: its name, how many processors it has, how much memory."""
    on = device_at(index_of(device))
    return on.keep("properties", _properties)


def _properties(on: Any) -> DeviceProperties:
    driver, index = on.driver, on.index
    major, minor = (driver.attribute(index, f"COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR"))
    others = {name: driver.attribute(index, asked) for name, asked in _ATTRIBUTES.items()}
    return DeviceProperties(driver.device_name(index), major, minor, driver.total_memory(index), **others)


def get_device_name(device: Any = None) -> str:
    """The name of a GPU."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """What a GPU can do, as NVIDIA numbers it: (9, 0) is Hopper."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether a GPU can read the memory of another."""
    index, other = index_of(device), index_of(peer_device)
    return device_at(index).enter().can_access_peer(index, other)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether there is a GPU that computes with bfloat16."""
    return is_available() and get_device_capability() >= (8, 0)


def get_arch_list() -> list[str]:
    """The kinds of GPUs that kernels are made for here: those that there are."""
    kinds = {get_device_capability(index) for index in range(device_count())}
    return [f"sm_{major}{minor}" for major, minor in sorted(kinds)]


def init() -> None:
    """Find the driver now, not when it is first needed.

    Raises:
        RuntimeError: there is no GPU
    """
    device_at()


def is_initialized() -> bool:
    """Whether there is a GPU that was used already."""
    return is_available() and "allocator" in device_at().kept


def ipc_collect() -> None:
    """Nothing: memory is not shared between processes."""


__all__ = [
    "can_device_access_peer", "current_device", "device", "device_count", "device_of", "get_arch_list", "get_device_capability",
    "get_device_name", "get_device_properties", "init", "ipc_collect", "is_available", "is_bf16_supported", "is_initialized",
    "set_device", "synchronize", "why_unavailable",
]  # fmt: skip
