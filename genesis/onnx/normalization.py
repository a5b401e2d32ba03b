"""Batch, layer, group, instance and local response normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.onnx.builder import Builder, Value, lowers
from genesis.onnx.reductions import standardized
from genesis.onnx.whole import whole

whole(
    "batch_norm",
    when=lambda input, mean, var, weight, bias, training, *rest: not training and mean is not None and input.ndim >= 2,
)
whole("layer_norm")
whole("group_norm", when=lambda input, *rest: input.ndim >= 2 and 0 not in input.shape)
whole(
    "instance_norm",
    when=lambda input, mean, var, weight, bias, use_input_stats, *rest: (
        use_input_stats and mean is None and input.ndim >= 3
    ),
)
whole("local_response_norm", when=lambda input, size, *rest: size % 2 == 1 and input.ndim == 4)


def _ones(b: Builder, weight: Value | None, shape: Sequence[int], dtype: Any, value: int = 1) -> Any:
    """A weight, or what stands for one that is missing."""
    return weight if weight is not None else b.constant(np.full(tuple(shape), value), dtype)


@lowers("batch_norm")
def _batch_norm(b: Builder, x: Value, mean: Value, var: Value, weight: Any, bias: Any, training: bool, momentum: Any,
                eps: float) -> str:  # fmt: skip
    scale, shift = _ones(b, weight, mean.shape, mean.dtype), _ones(b, bias, mean.shape, mean.dtype, 0)
    return b.node("BatchNormalization", x, scale, shift, mean, var, epsilon=float(eps))


@lowers("layer_norm")
def _layer_norm(b: Builder, x: Value, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> str:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if b.opset < 17:
        out = standardized(b, x, tuple(range(-len(shape), 0)), eps)
        out = out if weight is None else b.node("Mul", out, weight)
        return out if bias is None else b.node("Add", out, bias)
    scale = _ones(b, weight, shape, x.dtype)
    return b.node("LayerNormalization", x, scale, bias, axis=-len(shape), epsilon=float(eps))


@lowers("instance_norm")
def _instance_norm(b: Builder, x: Value, mean: Any, var: Any, weight: Any, bias: Any, use_input_stats: bool, momentum: float,
                   eps: float) -> str:  # fmt: skip
    channels = [x.shape[1]]
    scale, shift = _ones(b, weight, channels, x.dtype), _ones(b, bias, channels, x.dtype, 0)
    return b.node("InstanceNormalization", x, scale, shift, epsilon=float(eps))


@lowers("group_norm")
def _group_norm(b: Builder, x: Value, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> str:
    apart = b.node("Reshape", x, b.ints([0, groups, -1]))
    even = b.node("InstanceNormalization", apart, _ones(b, None, [groups], x.dtype), _ones(b, None, [groups], x.dtype, 0),
                  epsilon=float(eps))  # fmt: skip
    out = b.node("Reshape", even, b.node("Shape", x))
    for operator, each in (("Mul", weight), ("Add", bias)):
        if each is not None:
            out = b.node(operator, out, b.reshape(each, [-1, *[1] * (x.rank - 2)]))
    return out


@lowers("local_response_norm")
def _local_response_norm(b: Builder, x: Value, size: int, alpha: float, beta: float, k: float) -> str:
    return b.node("LRN", x, size=size, alpha=float(alpha), beta=float(beta), bias=float(k))
