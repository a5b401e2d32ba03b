"""Reductions, running ones, and positions along a dimension."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.base.errors import UnsupportedError, message
from genesis.onnx.builder import INT64, Builder, Value, lowers


def _reduces(name: str, operator: str) -> None:
    @lowers(name)
    def _(b: Builder, x: Value, dim: tuple[int, ...], keepdim: bool = False, dtype: Any = None) -> str:
        return b.reduced(operator, b.cast(x, b.out.dtype), dim if x.rank else (), keepdim)


for _name, _operator in (("sum", "ReduceSum"), ("mean", "ReduceMean"), ("prod", "ReduceProd")):
    _reduces(_name, _operator)


def _extreme(name: str, operator: str) -> None:
    @lowers(name)
    def _(b: Builder, x: Value, dim: tuple[int, ...], keepdim: bool = False) -> str:
        return b.reduced(operator, x, dim, keepdim)


_extreme("amax", "ReduceMax")
_extreme("amin", "ReduceMin")
_extreme("logsumexp", "ReduceLogSumExp")


def _logical(name: str, operator: str) -> None:
    @lowers(name)
    def _(b: Builder, x: Value, dim: tuple[int, ...], keepdim: bool = False) -> str:
        ones, dim = b.node("Cast", b.cast(x, np.dtype(bool)), to=b.code(np.int32)), dim if x.rank else ()
        return b.node("Cast", b.reduced(operator, ones, dim, keepdim), to=b.code(b.out.dtype))


_logical("any", "ReduceMax")
_logical("all", "ReduceMin")


@lowers("nansum")
def _nansum(b: Builder, x: Value, dim: tuple[int, ...], keepdim: bool = False, dtype: Any = None) -> str:
    given, dim = b.cast(x, b.out.dtype), dim if x.rank else ()
    if x.floating:
        given = b.node("Where", b.node("IsNaN", given), b.constant(0, b.out.dtype), given)
    return b.reduced("ReduceSum", given, dim, keepdim)


@lowers("norm")
def _norm(b: Builder, x: Value, p: Any, dim: tuple[int, ...], keepdim: bool = False, dtype: Any = None) -> str:
    given, dim = b.cast(x, b.out.dtype), dim if x.rank else ()
    if p in (2, "fro", None) and x.rank:
        return b.reduced("ReduceL2", given, dim, keepdim)
    size = b.node("Abs", given)
    if p in (2, "fro", None):
        return size
    if p in (math.inf, -math.inf):
        return b.reduced("ReduceMax" if p > 0 else "ReduceMin", size, dim, keepdim)
    if p == 1:
        return b.reduced("ReduceSum", size, dim, keepdim)
    if p == 0:
        there = b.node("Cast", b.node("Cast", given, to=b.code(bool)), to=b.code(b.out.dtype))
        return b.reduced("ReduceSum", there, dim, keepdim)
    total = b.reduced("ReduceSum", b.node("Pow", size, b.constant(p, b.out.dtype)), dim, keepdim)
    return b.node("Pow", total, b.constant(1 / p, b.out.dtype))


# ---- about the mean


def centered(b: Builder, x: Any, dim: tuple[int, ...]) -> str:
    """What is left without the mean."""
    dim = dim if not isinstance(x, Value) or x.rank else ()
    return b.node("Sub", x, b.reduced("ReduceMean", x, dim, True))


def root(b: Builder, x: Any, dim: tuple[int, ...], eps: float, dtype: Any) -> str:
    """The root of the mean square, plus eps."""
    mean = b.reduced("ReduceMean", b.node("Mul", x, x), dim, True)
    return b.node("Sqrt", b.node("Add", mean, b.constant(eps, dtype)))


@lowers("centered")
def _centered(b: Builder, x: Value, dim: tuple[int, ...]) -> str:
    return centered(b, x, dim)


@lowers("deviation")
def _deviation(b: Builder, x: Value, dim: tuple[int, ...], eps: float) -> str:
    return root(b, centered(b, x, dim), dim, eps, x.dtype)


@lowers("standardized")
def standardized(b: Builder, x: Value, dim: tuple[int, ...], eps: float) -> str:
    """Without the mean, divided by the root of the mean square of what is left."""
    rest = centered(b, x, dim)
    return b.node("Div", rest, root(b, rest, dim, eps, x.dtype))


@lowers("root_mean_square")
def _root_mean_square(b: Builder, x: Value, dim: tuple[int, ...], eps: float) -> str:
    return root(b, x, dim, eps, x.dtype)


def _spread(name: str) -> None:
    @lowers(name)
    def _(b: Builder, x: Value, dim: tuple[int, ...], unbiased: Any = None, keepdim: bool = False, *rest: Any) -> str:
        correction = next((v for v in rest if v is not None), 1 if unbiased is None else int(unbiased))
        dim = dim if x.rank else ()
        rest_ = centered(b, x, dim)
        total = b.reduced("ReduceSum", b.node("Mul", rest_, rest_), dim, keepdim)
        count = b.node("ReduceProd", b.node("Gather", b.node("Shape", x), b.constant(list(dim), INT64)), keepdims=0)
        left = b.node("Sub", b.node("Cast", count, to=b.code(x.dtype)), b.constant(correction, x.dtype))
        out = b.node("Div", total, b.node("Max", left, b.constant(0, x.dtype)))
        return b.node("Sqrt", out) if name == "std" else out


_spread("var")
_spread("std")


# ---- along a dimension


def one_dim(dim: Any) -> int:
    """The only dimension among those that are named."""
    return dim if isinstance(dim, int) else dim[0]


def _position(name: str, operator: str) -> None:
    @lowers(name)
    def _(b: Builder, x: Value, dim: Any, keepdim: bool = False) -> str:
        given = b.cast(x, np.dtype(np.int32)) if x.dtype.kind == "b" else x
        if isinstance(dim, int) or len(dim) == 1:
            return b.node(operator, given, axis=one_dim(dim), keepdims=int(keepdim))
        flat = b.node(operator, b.reshape(given, [-1]), axis=0, keepdims=0)
        return b.reshape(flat, [1] * x.rank if keepdim else [])


_position("argmax", "ArgMax")
_position("argmin", "ArgMin")


@lowers("cumsum")
def _cumsum(b: Builder, x: Value, dim: int, dtype: Any = None) -> str:
    given = b.cast(x, b.out.dtype)
    return b.node("CumSum", given, b.constant(one_dim(dim), INT64)) if x.rank else given


@lowers("cumprod")
def _cumprod(b: Builder, x: Value, dim: int, dtype: Any = None) -> str:
    """Step by step: ONNX has no running product."""
    given, dim = b.cast(x, b.out.dtype), one_dim(dim)
    if not x.rank:
        return given
    steps = [b.slice(given, dim, i, i + 1) for i in range(x.shape[dim])]
    for i in range(1, len(steps)):
        steps[i] = b.node("Mul", steps[i - 1], steps[i])
    return b.node("Concat", *steps, axis=dim) if steps else given


def _top(b: Builder, x: Value, k: Any, dim: int, largest: bool) -> str:
    if not x.rank:
        return b.constant(0, INT64)
    given = b.cast(x, np.dtype(np.int32)) if x.dtype.kind == "b" else x
    return b.node("TopK", given, b.ints([k]), outputs=2, axis=dim, largest=int(largest), sorted=1)[1]


@lowers("argsort")
def _argsort(b: Builder, x: Value, dim: int = -1, descending: bool = False, stable: bool = False) -> str:
    return _top(b, x, x.shape[dim] if x.rank else 1, dim, descending)


@lowers("top_positions")
def _top_positions(b: Builder, x: Value, k: int, dim: int, largest: bool) -> str:
    return _top(b, x, k, dim, largest)


@lowers("kth_position")
def _kth_position(b: Builder, x: Value, k: int, dim: int) -> str:
    lowest = _top(b, x, k, dim, False)
    return b.slice(lowest, dim, k - 1, k) if x.rank else lowest


@lowers("mask_places")
def _true_positions(b: Builder, mask: Value, count: int, dim: int) -> str:
    if not isinstance(count, int):
        raise UnsupportedError(message("export", "a mask picks another number of elements at other sizes"))
    return b.node("Gather", b.node("NonZero", mask), b.constant(dim, INT64), axis=0)
