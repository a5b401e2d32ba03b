"""What reductions, scans and sorts share: shapes, accumulation, picking by position, and refusals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.errors import DTypeError, message
from genesis.core.dispatch import F32, F64, HALVES
from genesis.core.modes import ACTIVE, grad_mode
from genesis.core.tracing import tracer
from genesis.core.tensor import Tensor, wrap
from genesis.ops.join import cat
from genesis.ops.shape import expand

WIDE = dict.fromkeys(HALVES, F32)  # 16-bit floats are accumulated in float32

# ---- on arrays


def count(shape: Sequence[int], dim: Sequence[int]) -> int:
    """How many elements are reduced to one."""
    return math.prod(shape) if len(dim) >= len(shape) else math.prod([shape[d] for d in dim])


def resized(shape: Sequence[int], dim: int, size: int) -> tuple[int, ...]:
    """The shape with another size along ``dim``."""
    return tuple(size if i == dim else n for i, n in enumerate(shape))


def axes(x: Any, dim: tuple[int, ...]) -> Any:
    """Dimensions as NumPy wants them: None for all, which it does faster."""
    return None if len(dim) >= x.ndim else dim


def widened(x: Any) -> Any:
    """16-bit floats as float32, all others as they are."""
    return x.astype(F32) if x.dtype in WIDE else x


def rounded(x: Any, dtype: Any) -> Any:
    """A result in its dtype; ``astype`` alone takes 0.7 us to find that there is nothing to do."""
    return x if x.dtype == dtype else x.astype(dtype)


def real_of(dtype: Any) -> Any:
    """The real dtype of the same precision."""
    return dtypes.from_numpy(dtype).to_real().np


def fold(ufunc: Any, x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """``ufunc.reduce`` with a result in ``dtype``."""
    if dtype is F32 or dtype is F64:
        return ufunc.reduce(x, None if len(dim) >= x.ndim else dim, dtype, None, keepdim)
    wide = WIDE.get(dtype, dtype)
    total = ufunc.reduce(x, axes(x, dim), wide, None, keepdim)
    return total if wide is dtype else total.astype(dtype)


# ---- on tensors


def restore(reduced: Tensor, shape: Sequence[int], dim: Sequence[int]) -> Tensor:
    """Undo a reduction's change of shape: the reduced dimensions come back, expanded to their sizes."""
    array = reduced._array
    if 0 < array.ndim < len(shape):
        reduced = reduced.reshape([1 if i in dim else n for i, n in enumerate(shape)])
        array = reduced._array
    if math.prod(shape) <= 256 and not grad_mode.get():  # for few elements a copy costs a third of a view
        if array.__class__ is np.ndarray and not ACTIVE:
            full = np.empty(shape, array.dtype)
            full[...] = array
            return wrap(full)
        if tracer.get() is not None:  # a product of it rounds as it does outside of a trace
            return expand(reduced, shape).clone()
    return expand(reduced, shape)


def pick(input: Tensor, dim: int, indices: Tensor, keepdim: bool) -> tuple[Tensor, Tensor]:
    """One element along ``dim`` for each index, and the indices; the gradient goes back to where they were."""
    values = input.gather(dim, indices)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def product_of_others(x: Tensor, dim: Sequence[int]) -> Tensor:
    """For each element the product of the others along ``dim``: of those before times that of those after.

    Dividing the whole product by the element would fail where it is zero, and lose digits where the product underflows.
    """
    order = [*(i for i in range(x.ndim) if i not in dim), *(i for i in range(x.ndim) if i in dim)]
    swept = x.permute(order)
    flat = swept.reshape([*(n for i, n in enumerate(x.shape) if i not in dim), count(x.shape, dim)])
    one = x.new_ones(flat[..., :1].shape)
    before = cat([one, flat[..., :-1]], -1).cumprod(-1)
    after = cat([flat[..., 1:], one], -1).flip(-1).cumprod(-1).flip(-1)
    return (before * after).reshape(swept.shape).permute([order.index(i) for i in range(x.ndim)])


def check_floating(name: str, input: Tensor, kinds: str = "floating or complex") -> None:
    """Refuse integers, and complex numbers where ``kinds`` does not name them."""
    if input.dtype.category < 2 or (input.is_complex() and "complex" not in kinds):
        raise DTypeError(message(name, f"the input must be {kinds}, it is {input.dtype}", hint=f"x.float().{name}(...)"))


def check_ordered(name: str, input: Tensor) -> None:
    """Refuse complex numbers, which have no order."""
    if input.is_complex():
        raise DTypeError(message(name, f"{input.dtype} has no order", [("input", input._spec())], hint=f"x.abs().{name}(...)"))
