"""What is tried before there is said to be no memory left, in this order:

    1  blocks that other streams have finished with         4  everything that is free, after all work is done
    2  free memory, back to the driver                      5  once more
    3  tensors in cycles that nobody can reach              6  an error with all numbers

While a graph is being recorded none of it is possible.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from genesis.base.errors import message
from genesis.cuda.runtime.errors import CaptureError, CudaOutOfMemory

if TYPE_CHECKING:
    from genesis.cuda.memory.allocator import Allocator


@dataclass(frozen=True, slots=True)
class Exhausted:
    """The memory of a device when there was too little of it, in bytes."""

    asked: int
    allocated: int
    reserved: int
    free: int
    total: int
    hole: int

    def __str__(self) -> str:
        said = {
            "in tensors": self.allocated,
            "reserved": self.reserved,
            "largest hole": self.hole,
            "free of the device": self.free,
            "of the device": self.total,
        }
        return message(
            "cuda",
            f"out of memory, {_bytes(self.asked)} were asked for",
            operands=[(name, _bytes(count)) for name, count in said.items()],
            hint="smaller batches, genesis.utils.checkpoint, autocast, or genesis.cuda.empty_cache() for other processes",
        )


def _bytes(count: int) -> str:
    return f"{count / (1 << 20):.1f} MiB"


def climbed(allocator: Allocator, asked: int, take: Callable[[], Any]) -> Any:
    """What ``take`` gives, after as much of what is above as it needs."""
    for step in (None, *STEPS):
        if step is not None:
            allocator.statistics.counts["num_alloc_retries"] += 1
            step(allocator)
        try:
            return take()
        except CudaOutOfMemory:
            continue
        except CaptureError as error:
            raise CudaOutOfMemory(_IN_CAPTURE) from error
    allocator.statistics.counts["num_ooms"] += 1
    raise CudaOutOfMemory(str(allocator.exhausted(asked)))


def _release_after_all_work(allocator: Allocator) -> None:
    allocator.finish()
    allocator.release()


def _collect_garbage(allocator: Allocator) -> None:
    gc.collect()
    allocator.collect()


STEPS: tuple[Callable[[Any], None], ...] = (
    lambda allocator: allocator.collect(),
    lambda allocator: allocator.release(),
    _collect_garbage,
    _release_after_all_work,
)
_IN_CAPTURE = message(
    "cuda",
    "a graph is being recorded, and its pool has too little memory",
    hint="run the function once or twice before it is recorded, so that its memory is there",
)
