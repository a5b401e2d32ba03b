"""Parts of calls that join elements: of reductions, and of functions of rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.jit.lowering.parts import (
    BOOL,
    F64,
    I64,
    Builder,
    Memory,
    Part,
    Unknown,
    normal_dims,
    row_strides,
    rule,
    size_of,
    total,
    wide,
)
from genesis.jit.program import Call


def _begin(memory: Memory, call: Call, dims: Any) -> tuple[Builder, Any, int, tuple[int, ...]]:
    """The builder, the input's element, how many there are of them in a row, and the dimensions."""
    x = call.args[0]
    shape = x.spec.shape
    dims = normal_dims(dims, len(shape))
    made = Builder(memory, call, shape, dims)
    return made, made.read(x), size_of([shape[d] for d in dims]), dims


def _reduced(made: Builder, call: Call, value: Any, dims: tuple[int, ...]) -> list[Part]:
    made.give(call.outs[0], value, row_strides(call.outs[0], made.shape, dims))
    return [made.made()]


def _real(x: Any) -> Any:
    if x.dtype.kind == "c":
        raise Unknown("complex numbers")
    return x.astype(wide(x.dtype))


@rule("sum", "mean", "nansum")
def sums(memory: Memory, call: Call) -> list[Part]:
    made, x, n, dims = _begin(memory, call, call.args[1])
    dtype = call.outs[0].spec.dtype
    x = _real(x.astype(dtype))
    if call.op == "nansum":
        x = np.where(x != x, 0, x)
    value = total("add", x)
    return _reduced(made, call, value / float(n) if call.op == "mean" else value, dims)


@rule("prod")
def prod(memory: Memory, call: Call) -> list[Part]:
    made, x, _, dims = _begin(memory, call, call.args[1])
    return _reduced(made, call, total("multiply", _real(x.astype(call.outs[0].spec.dtype))), dims)


@rule("amax", "amin")
def extremes(memory: Memory, call: Call) -> list[Part]:
    made, x, _, dims = _begin(memory, call, call.args[1])
    if x.dtype.itemsize == 2:
        x = x.astype(np.float32)
    return _reduced(made, call, total("maximum" if call.op == "amax" else "minimum", x), dims)


@rule("argmax", "argmin")
def positions_of_extremes(memory: Memory, call: Call) -> list[Part]:
    """The first place of what the extreme is; NaN is more than all, and less than all."""
    made, x, n, dims = _begin(memory, call, call.args[1])
    x = x.astype(I64 if x.dtype.kind in "bi" else F64 if x.dtype == F64 else np.float32)
    most = total("maximum" if call.op == "argmax" else "minimum", x)
    at, step = 0, 1
    for d in reversed(dims):
        at, step = made.count(d) * step + at, step * made.shape[d]
    memory.limits[call.outs[0]] = n
    return _reduced(made, call, total("minimum", np.where((x == most) | (x != x), at, n)), dims)


@rule("any", "all")
def flags(memory: Memory, call: Call) -> list[Part]:
    made, x, _, dims = _begin(memory, call, call.args[1])
    return _reduced(made, call, total("bitwise_or" if call.op == "any" else "bitwise_and", x.astype(BOOL)), dims)


@rule("norm")
def norm(memory: Memory, call: Call) -> list[Part]:
    p = call.args[1]
    made, x, _, dims = _begin(memory, call, call.args[2])
    if call.args[4] is not None:
        x = x.astype(call.args[4])
    size = np.absolute(_real(x))
    if p in (None, "fro", 2):
        value = np.sqrt(total("add", size * size))
    elif p == 1:
        value = total("add", size)
    elif p == 0:
        value = total("add", (size != 0).astype(F64))
    elif isinstance(p, float) and math.isinf(p):
        value = total("maximum" if p > 0 else "minimum", size)
    else:
        raise Unknown(f"a norm of {p}")
    return _reduced(made, call, value, dims)


@rule("var", "std")
def spread(memory: Memory, call: Call) -> list[Part]:
    x, dims, unbiased, _, correction, *_ = call.args
    made, x, n, dims = _begin(memory, call, dims)
    less = correction if correction is not None else 1 if unbiased in (None, True) else 0
    x = _real(x)
    d = x - total("add", x) / float(n)
    value = total("add", d * d) / (max(float(n - less), 0.0) if n - less > 0 else math.nan if n == 0 else 0.0)
    return _reduced(made, call, np.sqrt(value) if call.op == "std" else value, dims)


@rule("logsumexp")
def logsumexp(memory: Memory, call: Call) -> list[Part]:
    made, x, _, dims = _begin(memory, call, call.args[1])
    x = _real(x)
    top = total("maximum", x)
    shift = np.where(np.absolute(top) < math.inf, top, 0.0)
    return _reduced(made, call, np.log(total("add", np.exp(x - shift))) + shift, dims)


# ---- functions of rows


def _in_rows(memory: Memory, call: Call, dims: Any, dtype: Any = None) -> tuple[Builder, Any, int]:
    made, x, n, _ = _begin(memory, call, dims)
    return made, _real(x if dtype is None else x.astype(dtype)), n


@rule("softmax", "log_softmax")
def softmax(memory: Memory, call: Call) -> list[Part]:
    made, x, _ = _in_rows(memory, call, call.args[1], call.outs[0].spec.dtype)
    top = total("maximum", x)
    d = x - top
    power = np.exp(d)
    if call.op == "softmax":
        value = power * (1.0 / total("add", power))
    else:
        value = d - np.log(total("add", power))
    made.give(call.outs[0], value)
    return [made.made()]


@rule("centered")
def centered(memory: Memory, call: Call) -> list[Part]:
    made, x, n = _in_rows(memory, call, call.args[1])
    made.give(call.outs[0], x - total("add", x) / float(n))
    return [made.made()]


def standard(x: Any, n: int, eps: float, centre: bool = True) -> tuple[Any, Any]:
    """Less the mean, and the root of the mean square of that."""
    d = x - total("add", x) / float(n) if centre else x
    return d, np.sqrt(total("add", d * d) / float(n) + eps)


@rule("deviation", "root_mean_square")
def deviation(memory: Memory, call: Call) -> list[Part]:
    made, x, n, dims = _begin(memory, call, call.args[1])
    _, root = standard(_real(x), n, call.args[2], call.op == "deviation")
    return _reduced(made, call, root, dims)


@rule("standardized")
def standardized(memory: Memory, call: Call) -> list[Part]:
    made, x, n = _in_rows(memory, call, call.args[1])
    d, root = standard(x, n, call.args[2])
    made.give(call.outs[0], d * (1.0 / root))
    return [made.made()]


@rule("fused.layer_norm", "fused.rms_norm")
def layer_norm(memory: Memory, call: Call) -> list[Part]:
    """The result, the standardized rows, and their deviations."""
    x, _, weight, *rest = call.args
    bias, eps = (rest[0], rest[1]) if call.op == "fused.layer_norm" else (None, rest[0])
    eps = float(np.finfo(np.float32).eps) if eps is None else eps
    last = len(x.spec.shape) - 1
    made, value, n = _in_rows(memory, call, last)
    d, root = standard(value, n, eps, call.op == "fused.layer_norm")
    rows = d * (1.0 / root)
    y = rows
    if weight is not None:
        y = y * _real(made.read(weight))
    if bias is not None:
        y = y + _real(made.read(bias))
    made.give(call.outs[0], y)
    made.give(call.outs[1], rows)
    made.give(call.outs[2], root, row_strides(call.outs[2], made.shape, (last,)))
    return [made.made()]


@rule("fused.layer_norm.backward", "fused.rms_norm.backward")
def layer_norm_backward(memory: Memory, call: Call) -> list[Part]:
    """The gradient of the input row by row, those of the weight and the bias column by column."""
    g, (rows, root, weight), wanted = call.args
    outs, shape, parts = iter(call.outs), g.spec.shape, []
    last = len(shape) - 1
    if wanted[0] is not None:
        made = Builder(memory, call, shape, (last,))
        h, r = _real(made.read(g)), _real(made.read(rows))
        if weight is not None:
            h = h * _real(made.read(weight))
        n = float(shape[last])
        along = total("add", h * r) / n
        d = h - total("add", h) / n if call.op == "fused.layer_norm.backward" else h
        made.give(next(outs), (d - r * along) * (1.0 / _real(made.read(root))))
        parts.append(made.made())
    for i, each in enumerate(wanted[1:]):
        if each is not None:
            made = Builder(memory, call, shape, tuple(range(last)))
            value = _real(made.read(g))
            if i == 0:
                value = value * _real(made.read(rows))
            made.give(next(outs), total("add", value), [*[0] * last, 1])
            parts.append(made.made())
    return parts
