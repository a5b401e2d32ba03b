"""Batch and instance norm of float32 arrays: batch norm compiled, in training and in evaluation, of matrices and of images
that a vector fits into; the rest with few temporaries.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base.quiet import quietly
from genesis.core.call.halves import F32
from genesis.core.call.kernels import attach
from genesis.core.call.op import REGISTRY
from genesis.kernels.cpu import memory
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.cpu.nests import Nest
from genesis.kernels.cpu.norm import number
from genesis.kernels.llvm import channels, columns, loops
from genesis.ops.learning.norm import MOVES, of_call
from genesis.ops.learning.standard import standardized_and_deviation


def _fits(input: Any, dim: Any, weight: Any, bias: Any, eps: float) -> bool:
    inside, shape = tuple(range(2, input.ndim)), input.shape[1:2]
    return (
        input.dtype == F32
        and input.size > 0
        and (dim == (0, *inside) or dim == inside)
        and all([p is None or (p.dtype == F32 and p.shape == shape) for p in (weight, bias)])
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
    quiet=True,
)
def standardized_channels(input: Any, dim: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The kernel of batch and instance norm."""
    if _is_compiled(input, dim):
        return _compiled_forward(input, weight, bias, eps)
    return quietly(_forward, input, dim, weight, bias, eps)


def _forward(input: Any, dim: Any, weight: Any, bias: Any, eps: float) -> Any:
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
    g = np.ascontiguousarray(g)
    if _is_compiled(rows, dim):
        return _compiled_gradients(g, rows, root, weight, needs)
    return quietly(_gradients, g, rows, root, weight, dim, needs)


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


# ---- compiled


@functools.lru_cache(maxsize=256)
def code_of(shape: Sequence[int]) -> ModuleType | None:
    """The loops for arrays (examples, channels, places): over a vector of places or of channels; None for less places."""
    size = math.prod(shape[2:])
    return columns if size == 1 else channels if size >= loops.width() // 4 else None


def _is_compiled(x: Any, dim: Any) -> bool:
    """Whether the loops take an array: over all dimensions but that of channels."""
    return len(dim) == x.ndim - 1 and loops.available() and code_of(x.shape) is not None


@functools.cache
def _loop(name: str, code: ModuleType) -> Nest:
    pointers = getattr(channels, name.upper())
    return Nest(name, getattr(code, name)(loops.width() // 4), len(pointers), len(channels.SIZES))


@functools.lru_cache(maxsize=256)
def sizes_of(shape: Sequence[int]) -> tuple[int, ...]:
    """The integers of the loops, behind the first and the last."""
    examples, many, *image = shape
    size = math.prod(image)
    rest = size % (loops.width() // 4)
    return examples, many, size, size - rest, int(rest > 0), examples * size


def _call(name: str, shape: Sequence[int], *arrays: Any) -> None:
    """Call the loop for all channels, in the threads that there are."""
    code = code_of(shape)
    assert code is not None, "it is asked for where it is"
    much = 4 * arrays[0].size > LARGE["for threads"]  # else as long as waking threads takes
    _loop(name, code)(arrays, shape[1], sizes_of(shape), much)


def _compiled_forward(input: Any, weight: Any, bias: Any, eps: float) -> Any:
    x, many = np.ascontiguousarray(input), input.shape[1]
    rows, out = memory.like(x), memory.like(x)
    root, moments = np.empty((1, many, *[1] * (x.ndim - 2)), F32), np.empty((2, many), F32)
    w = np.ones(many, F32) if weight is None else np.ascontiguousarray(weight)
    b = np.zeros(many, F32) if bias is None else np.ascontiguousarray(bias)
    _call("forward", x.shape, x, w, b, rows, out, root, moments, number(eps))
    if of_call.moments is not None:
        of_call.moments[id(input)] = input, moments
    return out, (rows, root, weight)


def _compiled_gradients(g: Any, rows: Any, root: Any, weight: Any, needs: Any) -> Any:
    many = g.shape[1]
    w = np.ones(many, F32) if weight is None else np.ascontiguousarray(weight)
    gx, along, total = memory.like(g), np.empty(many, F32), np.empty(many, F32)
    _call("backward", g.shape, g, np.ascontiguousarray(rows), w, np.ascontiguousarray(root), gx, along, total)
    return gx if needs[0] else None, along if needs[1] else None, total if needs[2] else None


def _moments_fit(input: Any) -> bool:
    return input.dtype is F32 and input.ndim > 1 and input.size > 0 and _is_compiled(input, (0, *range(2, input.ndim)))


@attach(
    "channel_moments",
    np.ndarray,
    when=_moments_fit,
    infer=lambda input: (Spec((2, input.shape[1]), input.dtype), ("input", Spec((2, input.shape[1]), input.dtype))),
)
def channel_moments(input: Any) -> Any:
    """The kernel of the statistics of channels."""
    input, out = np.ascontiguousarray(input), np.empty((2, input.shape[1]), F32)
    _call("moments", input.shape, input, out)
    return out, (input, out.copy())


@channel_moments.backward(reads=("input",))
def _(g: Any, kept: Any, needs: Any) -> Any:
    x, (mean, _variance) = kept
    n = F32.type(x[:, 0].size)
    of_mean, of_variance = (_along(part / n, x.ndim) for part in g)
    return ((x - _along(mean, x.ndim)) * (2 * of_variance) + of_mean,)


# ---- statistics that run along


@functools.cache
def _moving() -> Nest:
    return Nest("moved", channels.moved(), len(channels.MOVED), 2)


@functools.lru_cache(maxsize=64)
def _by(unbiased: float, momentum: float) -> Any:
    return np.array((1 - momentum, momentum, unbiased), F32)


def _move(mean: Any, var: Any, moments: Any, unbiased: float, momentum: float) -> None:
    """The same bits as by NumPy, in one call."""
    if loops.available() and mean.flags.c_contiguous and var.flags.c_contiguous:
        _moving()((mean, var, moments, _by(unbiased, momentum)), len(mean), (), False)
    else:
        MOVES[0](mean, var, moments, unbiased, momentum)


MOVES.append(_move)


# ---- in evaluation


def _has_numbers(input: Any, mean: Any, variance: Any, weight: Any, bias: Any, eps: float) -> bool:
    """A number for each channel, of each of the four."""
    given = [p for p in (mean, variance, weight, bias) if p is not None]
    return (
        input.dtype == F32
        and input.ndim > 1
        and input.size > 0
        and all([p.dtype == F32 and p.shape == input.shape[1:2] for p in given])
    )


@attach(
    "normalized_channels",
    np.ndarray,
    when=_has_numbers,
    infer=lambda input, mean, variance, weight, bias, eps: (
        input,
        ("input", "mean", Spec(mean.shape, F32), None if weight is None else "weight"),
    ),
)
def normalized_channels(input: Any, mean: Any, variance: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The kernel of batch norm in evaluation."""
    root = np.sqrt(variance + F32.type(eps))
    scale, ndim, out = _scale(root, weight), input.ndim, memory.empty(input.shape, F32)
    if _is_compiled(input, (0, *range(2, ndim))):
        shift = np.full(input.shape[1], -0.0, F32) if bias is None else np.ascontiguousarray(bias)
        _call("normalized", input.shape, np.ascontiguousarray(input), np.ascontiguousarray(mean), scale, shift, out)
    else:
        np.subtract(input, _along(mean, ndim), out)
        out *= _along(scale, ndim)
        if bias is not None:
            out += _along(bias, ndim)
    return out, (input, mean, root, weight)


def _scale(root: Any, weight: Any) -> Any:
    return (1 if weight is None else weight) / root


@normalized_channels.backward(reads=("input", "mean", "weight"))
def _(g: Any, kept: Any, needs: Any) -> Any:
    x, mean, root, weight = kept
    scale, rest = _scale(root, weight), tuple([i for i in range(g.ndim) if i != 1])
    gx = np.multiply(g, _along(scale, g.ndim), order="C") if needs[0] else None
    total = REGISTRY["sum"].kernel(g, rest, False, F32) if needs[1] or needs[4] else None
    g_variance = g_weight = None
    if needs[2] or needs[3]:
        along = REGISTRY["sum"].kernel((x - _along(mean, x.ndim)) * g, rest, False, F32) / root
        g_weight = along if needs[3] else None
        g_variance = along * scale / (-2 * root) if needs[2] else None
    return gx, -scale * total if needs[1] else None, g_variance, g_weight, total if needs[4] else None
