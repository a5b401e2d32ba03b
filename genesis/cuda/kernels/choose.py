"""What computes an op on a GPU: chosen when it is first called, kept for the op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.core.call.op import Op
from genesis.cuda.kernels.host import host_kernel
from genesis.cuda.kernels.views import view_of

_chosen: dict[Op, Callable[..., Any]] = {}


def kernel_of(op: Op) -> Callable[..., Any] | None:
    """The kernel of an op, but of composites, which are made of others, and of random ones, which the CPU draws."""
    if op.kind.composed or op.kind.draws:
        return None
    chosen = _chosen.get(op)
    if chosen is None:
        chosen = _chosen[op] = view_of(op) if op.kind.views else host_kernel(op)
    return chosen
