"""Memory that a part of a program has for itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from genesis.base.errors import ArgumentError, message
from genesis.cuda.memory.allocator import Allocator, allocator
from genesis.cuda.runtime.devices import device_at, index_of


class MemPool:
    """Memory that is handed out inside of `use_mem_pool` only, and to nobody else as long as the pool is there.

    Args:
        allocator, use_on_oom, no_split: accepted, without an effect

    >>> import genesis
    >>> if genesis.cuda.is_available():
    ...     with genesis.cuda.use_mem_pool(genesis.cuda.MemPool()):
    ...         x = genesis.ones(2, device="cuda")
    """

    def __init__(self, allocator: Any = None, use_on_oom: bool = False, no_split: bool = False) -> None:
        self._memory: Allocator = _of(None)
        self._number = self._memory.new_pool()
        self._memory.keep_pool(self._number)

    @property
    def id(self) -> tuple[int, int]:
        """What `genesis.cuda.graph` takes as ``pool``."""
        return 0, self._number

    def snapshot(self) -> list[dict[str, Any]]:
        """Its segments, as `genesis.cuda.memory_snapshot` tells of them."""
        return [s for s in self._memory.snapshot() if s["segment_pool_id"] == self.id]

    def __del__(self) -> None:
        if hasattr(self, "_number"):
            self._memory.drop_pool(self._number)


@contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    """Inside, tensors that this thread makes on a device have their memory from a pool.

    Raises:
        TypeError: it is no pool
    """
    if not isinstance(pool, MemPool):
        raise ArgumentError(message("use_mem_pool", f"expected a MemPool, got a {type(pool).__name__}"))
    memory = _of(device)
    before, memory.pool.number = memory.pool.number, pool._number
    try:
        yield
    finally:
        memory.pool.number = before


def _of(device: Any) -> Allocator:
    return allocator(device_at(index_of(device)))


__all__ = ["MemPool", "use_mem_pool"]
