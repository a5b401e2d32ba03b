"""Numbers in sequence, and the identity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.device import CPU, default_device
from genesis.base.errors import ArgumentError, ShapeError, message
from genesis.core.call.creating import creates
from genesis.core.call.refusal import explain_all
from genesis.core.graph.switches import ACTIVE, LEVELS
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.construct import in_dtype
from genesis.ops.creation.create import finished, new_filled


@creates
def arange(
    start: Any = None,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers from ``start`` (0) up to, not including, ``end`` in steps; int64 if all three are integers.

    Raises:
        RuntimeError: a step of zero, or one that leads away from ``end``

    >>> import genesis
    >>> genesis.arange(1, 7, 2)
    tensor([1, 3, 5])
    """
    if start is None or end is None:
        start, end = 0, start if end is None else end
    if start.__class__ is int is end.__class__ and step.__class__ is int and dtype is device is None:
        array = _counted(start, end, step) if not (requires_grad or ACTIVE or LEVELS) else None
        if array is not None:
            return wrap(array)
    if end is None:
        raise ArgumentError(message("arange", "needs an end", hint="arange(3)"))
    start, end, step = (x.item() if isinstance(x, Tensor) else x for x in (start, end, step))
    whole = all(isinstance(x, int | np.integer) for x in (start, end, step))
    kind = dtypes.as_np(dtype if dtype is not None else dtypes.int64 if whole else dtypes.get_default_dtype())
    if not whole and not (math.isfinite(start) and math.isfinite(end)):
        raise ShapeError(message("arange", f"the range from {start} to {end} is not finite"))
    if not whole and kind == np.int64:  # PyTorch cuts all three before it counts
        start, end, step, whole = int(start), int(end), int(step), True
    if step == 0 or (end - start) * (1 if step > 0 else -1) < 0:
        raise ShapeError(message("arange", f"step {step} does not lead from {start} to {end}"))
    count = max(0, -(-(end - start) // step) if whole else math.ceil((end - start) / step))
    if kind.kind in "iu":
        start, step, whole = int(start), int(step), True
        for bound in (start, end if kind == np.int64 else start):
            in_dtype("arange", int(bound), np.dtype(np.int64))

    def make(shape: tuple[int, ...], k: Any) -> Any:
        return (start + np.arange(count, dtype=np.int64 if whole else np.float64) * step).astype(k)

    return finished(new_filled("arange", (int(count),), kind, device, make), requires_grad)


def _counted(start: int, end: int, step: int) -> Any:
    """`arange` of integers as it is mostly called, by NumPy's; None where there is more to do, or to explain."""
    if default_device() is not CPU or step <= 0 or not -_LARGE < start <= end < _LARGE:
        return None
    return np.arange(start, end, step, np.int64)


_LARGE = 1 << 32  # more numbers may not fit into memory


@creates
def linspace(
    start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """``steps`` evenly spaced numbers from ``start`` to ``end``, both included.

    >>> import genesis
    >>> genesis.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if steps < 0:
        raise ShapeError(message("linspace", f"steps cannot be negative, got {steps}"))
    return finished(
        new_filled(
            "linspace",
            (int(steps),),
            dtype,
            device,
            lambda shape, k: np.linspace(float(start), float(end), steps).astype(k),
        ),
        requires_grad,
    )


@creates
def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """``steps`` numbers from ``base**start`` to ``base**end``, evenly spaced in the exponent.

    >>> import genesis
    >>> genesis.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    make = lambda shape, k: np.logspace(float(start), float(end), steps, base=base).astype(k)  # noqa: E731
    return finished(new_filled("logspace", (int(steps),), dtype, device, make), requires_grad)


@creates
def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones on the diagonal of an ``n`` by ``m`` matrix of zeros.

    >>> import genesis
    >>> genesis.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    shape = (n, n if m is None else m)
    return finished(new_filled("eye", shape, dtype, device, lambda s, k: np.eye(*s, dtype=k)), requires_grad)


explain_all(globals(), "arange", "eye", "linspace", "logspace")

__all__ = [
    "arange",
    "eye",
    "linspace",
    "logspace",
]
