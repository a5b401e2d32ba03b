"""Empty tensors with chosen places in memory, and PyTorch's old `range`."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from genesis.arrays.memory import placed
from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.base.device import CPU, META, as_device, default_device, require_available
from genesis.base.errors import ShapeError, message
from genesis.base.narrow import restrided
from genesis.core.call.creating import creates
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.create import finished, new_filled
from genesis.ops.creation.sequences import arange
from genesis.ops.shapes.expand import sizes


def empty_strided(
    size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor of whatever the memory holds, with chosen steps between neighbours along each dimension.

    Raises:
        RuntimeError: not one step for each size, or a negative one

    >>> import genesis
    >>> genesis.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    shape, steps = sizes((size,)), sizes((stride,))
    if len(shape) != len(steps) or any(n < 0 for n in (*shape, *steps)):
        raise ShapeError(message("empty_strided", f"sizes {list(shape)} and strides {list(steps)} do not fit"))
    count = 0 if 0 in shape else 1 + sum([s * (n - 1) for n, s in zip(shape, steps, strict=True)])
    kind = dtypes.as_np(dtypes.get_default_dtype() if dtype is None else dtype)
    device = require_available(default_device() if device is None else as_device(device))
    if device == META:
        return finished(Spec(shape, kind, META, steps), requires_grad)
    flat = new_filled("empty_strided", (count,), kind, CPU, np.empty)
    array = restrided(flat, shape, [s * kind.itemsize for s in steps])
    return finished(placed(array, device), requires_grad)


def empty_permuted(size: Any, physical_layout: Any, **options: Any) -> Tensor:
    """A tensor of whatever the memory holds, whose dimensions lie in memory in the given order.

    >>> import genesis
    >>> genesis.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    shape, order = sizes((size,)), sizes((physical_layout,))
    if sorted(order) != list(builtins.range(len(shape))):
        raise ShapeError(message("empty_permuted", f"{list(order)} is no order of {len(shape)} dimensions"))
    steps, step = [0] * len(shape), 1
    for d in reversed(order):
        steps[d], step = step, step * shape[d]
    return empty_strided(shape, steps, **options)


@creates
def range(  # noqa: A001
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers from ``start`` (0) up to and including ``end`` in steps, in the default dtype; `arange` leaves ``end`` out.

    >>> import genesis
    >>> genesis.range(1, 3)
    tensor([1., 2., 3.])
    """
    if end is None:
        start, end = 0, start
    count = math.floor((end - start) / step) + 1
    kind = dtypes.get_default_dtype() if dtype is None else dtype
    return (
        (arange(count, dtype=dtypes.float64) * step + start).to(dtype=kind, device=device).requires_grad_(requires_grad)
    )


explain_all(globals(), "empty_permuted", "empty_strided", "range")

__all__ = ["empty_permuted", "empty_strided", "range"]
