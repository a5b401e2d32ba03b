"""Collectives with gradients: `functional`."""

from __future__ import annotations

from genesis.distributed.nn import functional, on_devices
from genesis.distributed.nn.functional import (
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "functional", "gather", "on_devices", "reduce",
    "reduce_scatter", "scatter",
]  # fmt: skip
