"""How much memory of a GPU is used. Without a GPU everything is 0, and nothing is done."""

from __future__ import annotations

from typing import Any

from genesis.base.errors import ArgumentValueError, message
from genesis.cuda.memory.allocator import Allocator, allocator
from genesis.cuda.memory.pinned import pool_of
from genesis.cuda.memory.statistics import Statistics
from genesis.cuda.runtime import connection
from genesis.cuda.runtime.devices import device_at, index_of


def _of(device: Any) -> Allocator | None:
    return allocator(device_at(index_of(device))) if connection.available() else None


def _statistics(device: Any) -> Statistics:
    memory = _of(device)
    if memory is None:
        return Statistics()
    memory.collect()
    return memory.statistics


def memory_allocated(device: Any = None) -> int:
    """Bytes that are in use by tensors.

    >>> import genesis
    >>> genesis.cuda.memory_allocated() >= 0
    True
    """
    return _statistics(device).gauges["allocated_bytes"].current


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that were in use by tensors, since the beginning or `reset_peak_memory_stats`."""
    return _statistics(device).gauges["allocated_bytes"].peak


def memory_reserved(device: Any = None) -> int:
    """Bytes that are this process's: in use, or kept to be used again."""
    return _statistics(device).gauges["reserved_bytes"].current


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that were this process's."""
    return _statistics(device).gauges["reserved_bytes"].peak


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the most bytes be those of now."""
    _statistics(device).reset_peaks()


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Count from now on what is allocated, freed and tried."""
    _statistics(device).reset_totals()


def memory_stats(device: Any = None) -> dict[str, int]:
    """All numbers that there are, under PyTorch's names: ``allocated_bytes.all.peak``, ``num_alloc_retries``, ..."""
    return _statistics(device).as_dict()


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """The numbers of `memory_stats`, a dictionary for each part of a name."""
    out: dict[str, Any] = {}
    for name, value in memory_stats(device).items():
        *parts, last = name.split(".")
        inner = out
        for part in parts:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return out


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The part of a device's memory that this process may have."""
    memory = _of(device)
    if memory is None or memory.limit is None:
        return 1.0
    return memory.limit / memory.on.driver.total_memory(memory.on.index)


def get_allocator_backend() -> str:
    """Which allocator there is: that of this package, which PyTorch calls its own."""
    return "native"


def memory_snapshot(device: Any = None) -> list[dict[str, Any]]:
    """The segments of memory and the blocks in them, as data."""
    memory = _of(device)
    return [] if memory is None else memory.snapshot()


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The numbers of `memory_stats` as a table."""
    rows = [("", "current", "peak", "allocated", "freed")]
    for name, gauge in _statistics(device).gauges.items():
        unit = 1 << 20 if name.endswith("bytes") else 1
        numbers = [gauge.current / unit, gauge.peak / unit, gauge.allocated / unit, gauge.freed / unit]
        rows.append(
            (f"{name}{', MiB' if unit > 1 else ''}", *[f"{x:.1f}" if unit > 1 else f"{x:.0f}" for x in numbers])
        )
    counts = [f"{name} {count}" for name, count in _statistics(device).counts.items()]
    return "\n".join(
        [f"{row[0]:24}" + "".join([f"{x:>12}" for x in row[1:]]) for row in rows] + ([] if abbreviated else counts)
    )


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes that are free on a device, and all of them, whoever uses them."""
    return device_at(index_of(device)).enter().memory_info()


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Let this process have only a part of a device's memory.

    Raises:
        ValueError: not between 0 and 1
    """
    if not 0 <= fraction <= 1:
        raise ArgumentValueError(message("set_per_process_memory_fraction", f"expected 0 to 1, got {fraction}"))
    memory = _of(device)
    if memory is not None:
        memory.limit = int(memory.on.driver.total_memory(memory.on.index) * fraction)


def empty_cache() -> None:
    """Give the driver the memory that nobody uses, so that other processes can have it."""
    for index in range(connection.driver().count() if connection.available() else 0):
        memory = allocator(device_at(index))
        memory.collect()
        memory.release()


def empty_host_cache() -> None:
    """Give back the pinned memory of the host that nobody uses."""
    if connection.available():
        pool_of(connection.driver()).release()


# PyTorch's older names
memory_cached, max_memory_cached = memory_reserved, max_memory_reserved
reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats

__all__ = [
    "empty_cache", "empty_host_cache", "get_allocator_backend", "get_per_process_memory_fraction", "max_memory_cached",
    "memory_cached", "memory_stats_as_nested_dict", "reset_max_memory_allocated", "reset_max_memory_cached", "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated",
    "memory_reserved", "memory_snapshot", "memory_stats", "memory_summary", "reset_accumulated_memory_stats",
    "reset_peak_memory_stats", "set_per_process_memory_fraction",
]  # fmt: skip
