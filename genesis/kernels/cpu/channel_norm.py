"""Batch and instance norm of float32 arrays, with few temporaries."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call.halves import F32
from genesis.core.call.kernels import attach
from genesis.core.call.op import REGISTRY
from genesis.ops.learning.standard import standardized_and_deviation


def _fits(input: Any, dim: Any, weight: Any, bias: Any, eps: float) -> bool:
    given = [p for p in (weight, bias) if p is not None]
    return (
        input.dtype == F32
        and input.size > 0
        and dim in (tuple(range(2, input.ndim)), (0, *range(2, input.ndim)))
        and all([p.dtype == F32 and p.shape == input.shape[1:2] for p in given])
    )


def _roots(input: Spec, dim: Any) -> Spec:
    return Spec(tuple([1 if i in dim else n for i, n in enumerate(input.shape)]), input.dtype)


def _along(p: Any, ndim: int) -> Any:
    """A number for each channel, to be broadcast."""
    return p.reshape(-1, *[1] * (ndim - 2))


def _sum(x: Any, dim: Any) -> Any:
    return REGISTRY["sum"].kernel(x, dim, True, F32)


@attach(
    "standardized_channels",
    np.ndarray,
    when=_fits,
    infer=lambda input, dim, weight, bias, eps: (
        input,
        (input, _roots(input, dim), None if weight is None else "weight"),
    ),
)
def standardized_channels(input: Any, dim: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The kernel of batch and instance norm."""
    input = np.ascontiguousarray(input)
    rows, root = standardized_and_deviation(input, dim, eps)
    out = rows.copy() if weight is None else rows * _along(weight, input.ndim)
    if bias is not None:
        out += _along(bias, input.ndim)
    return out, (rows, root, weight)


@standardized_channels.backward(reads=("weight",))
def _(g: Any, kept: Any, needs: Any) -> Any:
    rows, root, weight = kept
    dim = tuple([i for i, n in enumerate(root.shape) if n != rows.shape[i]])
    return _gradients(np.ascontiguousarray(g), rows, root, weight, dim, needs)


def _gradients(g: Any, rows: Any, root: Any, weight: Any, dim: Any, needs: Any) -> Any:
    """Those of the three: what is left of g without its mean and its part along the rows, over the spread."""
    product = g * rows
    along, total = _sum(product, dim), _sum(g, dim)
    per_channel = tuple([i for i in range(g.ndim) if i != 1])
    g_weight = _sum(along, per_channel).reshape(-1) if needs[1] else None
    g_bias = _sum(total, per_channel).reshape(-1) if needs[2] else None
    gx = None
    if needs[0]:
        n = F32.type(g.size // root.size)
        gx = np.multiply(rows, along / n, out=product)
        gx += total / n
        np.subtract(g, gx, out=gx)
        gx *= (1 if weight is None else _along(weight, g.ndim)) / root
    return gx, g_weight, g_bias
