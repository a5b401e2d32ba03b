"""Ops without a kernel are computed by the CPU: their operands are copied there, the result is copied back.

That is right, and slow: each op says so once. `HOST` are the ops of which that is so whatever they are called with;
`computed_on_host` lists those that it happened to, in this process.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.core.call.kernels import on_host
from genesis.core.call.op import Op
from genesis.cuda.arrays import MEMORY, CudaArray

HOST = {
    "how many elements there are is in the elements": "mask_places",
    "elements that only move": "without_gradient",
    "factors of matrices": "eigenvectors ldl_factors ldl_system",
    "integers of other kinds": "gcd lcm binary_exponent",
    "functions with loops that end where each number says": "igamma igammac special_airy_ai special_zeta",
    "blocks for ranks, which share memory of the CPU": "exchange gather_to scatter_from sum_in_tree",
}
computed_on_host: dict[str, str] = {}  # ops, and why


class HostWarning(UserWarning):
    """An op of tensors on a GPU was computed by the CPU."""


def host_kernel(op: Op) -> Callable[..., Any]:
    """The kernel that asks the CPU."""
    compute = on_host(op)

    def kernel(*args: Any) -> Any:
        device = next(arrays_in(args)).device
        said(op.name, "it has no kernel")
        results = compute(*[fetched(a) for a in args])
        if isinstance(results, tuple | list):
            return tuple([MEMORY.from_host(np.asarray(r), device) for r in results])
        return MEMORY.from_host(np.asarray(results), device)

    return kernel


def said(name: str, why: str) -> None:
    """Warn, once for each op."""
    if name not in computed_on_host:
        computed_on_host[name] = why
        warnings.warn(f"cuda: {name} is computed by the CPU, {why} of this form yet", HostWarning, stacklevel=2)


def fetched(value: Any) -> Any:
    """An argument with arrays of the host."""
    if isinstance(value, CudaArray):
        return MEMORY.to_host(value)
    return type(value)([fetched(v) for v in value]) if isinstance(value, tuple | list) else value


def arrays_in(value: Any) -> Any:
    """The arrays of a device in an argument."""
    if isinstance(value, CudaArray):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from arrays_in(item)
