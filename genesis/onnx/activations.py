"""Activations that ONNX has operators for, and softmax."""

from __future__ import annotations

import math
from typing import Any

from genesis.core.graph.tensor import Tensor
from genesis.onnx.builder import Builder, Value, lowers
from genesis.onnx.whole import whole

whole("elu", "celu", "selu", "gelu", "silu", "mish", "softplus", "softsign", "hardsigmoid", "hardswish", "leaky_relu")
whole("hardshrink", "softshrink", "prelu", when=lambda input, *rest: input.is_floating_point())
whole("relu6", "hardtanh", when=lambda input, *rest: input.is_floating_point())
whole("clamp", when=lambda input, min, max: not isinstance(min, Tensor) and not isinstance(max, Tensor))


@lowers("elu")
def _elu(b: Builder, x: Value, alpha: float = 1.0) -> str:
    return b.node("Elu", x, alpha=float(alpha))


@lowers("celu")
def _celu(b: Builder, x: Value, alpha: float = 1.0) -> str:
    return b.node("Celu", x, alpha=float(alpha))


@lowers("selu")
def _selu(b: Builder, x: Value) -> str:
    return b.node("Selu", x, alpha=1.6732632423543772848170429916717, gamma=1.0507009873554804934193349852946)


@lowers("gelu")
def _gelu(b: Builder, x: Value, approximate: str = "none") -> str:
    if b.opset >= 20:
        return b.node("Gelu", x, approximate=approximate)
    half, one = b.constant(0.5, x.dtype), b.constant(1, x.dtype)
    if approximate == "tanh":
        cube = b.node("Mul", b.node("Mul", b.node("Mul", x, x), x), b.constant(0.044715, x.dtype))
        inner = b.node("Mul", b.node("Add", x, cube), b.constant(math.sqrt(2 / math.pi), x.dtype))
        curve = b.node("Tanh", inner)
    else:
        curve = b.node("Erf", b.node("Mul", x, b.constant(math.sqrt(0.5), x.dtype)))
    return b.node("Mul", b.node("Mul", x, half), b.node("Add", curve, one))


@lowers("silu")
def _silu(b: Builder, x: Value) -> str:
    return b.node("Mul", x, b.node("Sigmoid", x))


@lowers("mish")
def _mish(b: Builder, x: Value) -> str:
    return b.node("Mish", x)


@lowers("softplus")
def _softplus(b: Builder, x: Value, beta: float = 1.0, threshold: float = 20.0) -> str:
    factor = b.constant(beta, x.dtype)
    scaled = x if beta == 1 else b.node("Mul", x, factor)
    out = b.node("Softplus", scaled)
    out = out if beta == 1 else b.node("Div", out, factor)
    return b.node("Where", b.node("Greater", scaled, b.constant(threshold, x.dtype)), x, out)


@lowers("softsign")
def _softsign(b: Builder, x: Value) -> str:
    return b.node("Softsign", x)


@lowers("hardsigmoid")
def _hardsigmoid(b: Builder, x: Value) -> str:
    return b.node("HardSigmoid", x, alpha=1 / 6, beta=0.5)


@lowers("hardswish")
def _hardswish(b: Builder, x: Value) -> str:
    return b.node("HardSwish", x)


@lowers("leaky_relu")
def _leaky_relu(b: Builder, x: Value, negative_slope: float = 0.01) -> str:
    return b.node("LeakyRelu", x, alpha=float(negative_slope))


@lowers("hardshrink")
def _hardshrink(b: Builder, x: Value, lambd: float = 0.5) -> str:
    return b.node("Shrink", x, lambd=float(lambd), bias=0.0)


@lowers("softshrink")
def _softshrink(b: Builder, x: Value, lambd: float = 0.5) -> str:
    return b.node("Shrink", x, lambd=float(lambd), bias=float(lambd))


@lowers("prelu")
def _prelu(b: Builder, x: Value, weight: Value) -> str:
    if x.rank < 2 or weight.shape == (1,):
        return b.node("PRelu", x, b.reshape(weight, [1] * x.rank))
    return b.node("PRelu", x, b.reshape(weight, [*weight.shape, *[1] * (x.rank - 2)]))


@lowers("clamp", "hardtanh")
def _clip(b: Builder, x: Value, low: Any = None, high: Any = None) -> str:
    kind = b.out.dtype
    limits = [None if v is None else b.scalar(v, kind) for v in (low, high)]
    return b.node("Clip", b.cast(x, kind), *limits)


@lowers("relu6")
def _relu6(b: Builder, x: Value) -> str:
    return _clip(b, x, 0, 6)


def _soft(name: str, operator: str) -> None:
    @lowers(name)
    def _(b: Builder, x: Value, dim: Any, dtype: Any = None) -> str:
        given = b.cast(x, b.out.dtype)
        if not x.rank:
            return b.node("Sub", given, given) if name == "log_softmax" else b.node("Exp", b.node("Sub", given, given))
        axis, last = (dim if isinstance(dim, int) else dim[0]) % x.rank, x.rank - 1
        if b.opset >= 13 or axis == last:
            return b.node(operator, given, axis=axis)
        order = list(range(x.rank))  # it was about all dimensions from the axis on
        order[axis], order[last] = last, axis
        turned = b.node(operator, b.node("Transpose", given, perm=order), axis=last)
        return b.node("Transpose", turned, perm=order)


_soft("softmax", "Softmax")
_soft("log_softmax", "LogSoftmax")
