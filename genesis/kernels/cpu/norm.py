"""Layer and RMS norm of float32 arrays over their last dimension, with few temporaries."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call.halves import F32
from genesis.core.call.kernels import attach
from genesis.core.call.op import REGISTRY
from genesis.kernels.cpu import rows as compiled
from genesis.ops.learning.standard import standardized_and_deviation


def _fits(input: Any, normalized_shape: Any, *parameters: Any) -> bool:
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    tensors = [p for p in parameters if isinstance(p, np.ndarray)]
    return (
        input.dtype == F32 and input.ndim > 0 and input.size > 0 and shape == input.shape[-1:]
        and all([p.dtype == F32 and p.shape == shape for p in tensors])
    )  # fmt: skip


def _mean(x: Any) -> Any:
    """The mean of each row, as exact as the op's."""
    return REGISTRY["mean"].kernel(x, (x.ndim - 1,), True, F32)


def _products(x: Any, y: Any) -> Any:
    """The mean of the products in each row."""
    return np.vecdot(x, y)[..., None] / F32.type(x.shape[-1])


def _over_rows(x: Any) -> Any:
    """The sum over all dimensions but the last."""
    return REGISTRY["sum"].kernel(x, tuple(range(x.ndim - 1)), False, F32)


def _across(h: Any, rows: Any) -> Any:
    """What is left of gradients without their part along the rows."""
    gx = rows * _products(h, rows)
    return np.subtract(h, gx, gx)


def _less(h: Any, rows: Any, root: Any) -> Any:
    """The gradient of rows that were standardized."""
    gx = _across(h, rows)
    gx -= _mean(h)
    gx /= root
    return gx


@attach(
    "layer_norm",
    np.ndarray,
    when=_fits,
    infer=lambda input, shape, weight, bias, eps: (input, (input, _rows(input), None if weight is None else "weight")),
)
def layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The kernel of `genesis.nn.functional.layer_norm`."""
    input = np.ascontiguousarray(input)
    dims = (input.ndim - 1,)
    standard = compiled.standardized_and_deviation if compiled.fits(input, dims) else standardized_and_deviation
    rows, root = standard(input, dims, eps)
    out = rows.copy() if weight is None else rows * weight
    if bias is not None:
        out += bias
    return out, (rows, root, weight)


@layer_norm.backward(reads=("weight",))
def _(g: Any, kept: Any, needs: Any) -> Any:
    rows, root, weight = kept
    gx = None
    if needs[0]:
        h = np.ascontiguousarray(g) if weight is None else np.multiply(g, weight, order="C")
        gx = compiled.standardized_gradient(h, rows, root) if compiled.fits(h, (h.ndim - 1,)) else _less(h, rows, root)
    return gx, _over_rows(g * rows) if needs[1] else None, _over_rows(g) if needs[2] else None


@attach(
    "rms_norm",
    np.ndarray,
    when=_fits,
    infer=lambda input, shape, weight, eps: (input, (input, _rows(input), None if weight is None else "weight")),
)
def rms_norm(input: Any, normalized_shape: Any, weight: Any, eps: float | None) -> Any:
    """The kernel of `genesis.nn.functional.rms_norm`."""
    input = np.ascontiguousarray(input)
    root = REGISTRY["root_mean_square"].kernel(input, (input.ndim - 1,), np.finfo(F32).eps if eps is None else eps)
    rows = input / root
    return rows.copy() if weight is None else rows * weight, (rows, root, weight)


@rms_norm.backward(reads=("weight",))
def _(g: Any, kept: Any, needs: Any) -> Any:
    rows, root, weight = kept
    gx = None
    if needs[0]:
        gx = _across(np.ascontiguousarray(g) if weight is None else np.multiply(g, weight, order="C"), rows)
        gx /= root
    return gx, _over_rows(g * rows) if needs[1] else None


def _rows(input: Spec) -> Spec:
    return Spec((*input.shape[:-1], 1), input.dtype)
