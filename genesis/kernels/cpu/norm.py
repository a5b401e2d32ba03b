"""Layer and RMS norm of float32 arrays over their last dimension, compiled where a row has a vector of numbers at least;
else with few temporaries.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base.quiet import quietly, unnamed
from genesis.core.call.halves import F32, F64
from genesis.core.call.kernels import attach
from genesis.core.call.op import REGISTRY
from genesis.kernels.cpu import memory
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.cpu.nests import Nest
from genesis.kernels.llvm import loops, norms
from genesis.kernels.native import runtime
from genesis.ops.learning.standard import standardized_and_deviation


def _fits(input: Any, normalized_shape: Any, *parameters: Any) -> bool:
    if not (input.dtype == F32 and input.ndim > 0 and input.size > 0):
        return False
    shape = input.shape[-1:]
    if normalized_shape != shape and normalized_shape != shape[0] and tuple(normalized_shape) != shape:
        return False
    return all([p.__class__ is not np.ndarray or (p.dtype == F32 and p.shape == shape) for p in parameters])


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


def less(h: Any, rows: Any, root: Any) -> Any:
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
    quiet=True,
)
def layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The kernel of `genesis.nn.functional.layer_norm`."""
    input = np.ascontiguousarray(input)
    if _is_compiled(input):
        return _compiled_forward(input, weight, bias, eps, True)
    return quietly(_layers, input, weight, bias, eps)


def _layers(input: Any, weight: Any, bias: Any, eps: float) -> Any:
    rows, root = standardized_and_deviation(input, (input.ndim - 1,), eps)
    out = rows.copy() if weight is None else rows * weight
    if bias is not None:
        out += bias
    return out, (rows, root, weight)


@layer_norm.backward(reads=("weight",))
def _(g: Any, kept: Any, needs: Any) -> Any:
    rows, root, weight = kept
    if _is_compiled(rows):
        return _compiled_gradients(g, rows, root, weight, needs, True)
    return quietly(_gradients_of_layers, g, rows, root, weight, needs)


def _gradients_of_layers(g: Any, rows: Any, root: Any, weight: Any, needs: Any) -> Any:
    gx = None
    if needs[0]:
        gx = less(np.ascontiguousarray(g) if weight is None else np.multiply(g, weight, order="C"), rows, root)
    return gx, _over_rows(g * rows) if needs[1] else None, _over_rows(g) if needs[2] else None


@attach(
    "rms_norm",
    np.ndarray,
    when=_fits,
    infer=lambda input, shape, weight, eps: (input, (input, _rows(input), None if weight is None else "weight")),
    quiet=True,
)
def rms_norm(input: Any, normalized_shape: Any, weight: Any, eps: float | None) -> Any:
    """The kernel of `genesis.nn.functional.rms_norm`."""
    input = np.ascontiguousarray(input)
    eps = float(np.finfo(F32).eps) if eps is None else eps
    if _is_compiled(input):
        return _compiled_forward(input, weight, None, eps, False)
    return quietly(_over_roots, input, weight, eps)


def _over_roots(input: Any, weight: Any, eps: float) -> Any:
    root = REGISTRY["root_mean_square"].kernel(input, (input.ndim - 1,), eps)
    rows = input / root
    return rows.copy() if weight is None else rows * weight, (rows, root, weight)


@rms_norm.backward(reads=("weight",))
def _(g: Any, kept: Any, needs: Any) -> Any:
    rows, root, weight = kept
    if _is_compiled(rows):
        return _compiled_gradients(g, rows, root, weight, needs, False)
    return quietly(_gradients_over_roots, g, rows, root, weight, needs)


def _gradients_over_roots(g: Any, rows: Any, root: Any, weight: Any, needs: Any) -> Any:
    gx = None
    if needs[0]:
        gx = _across(np.ascontiguousarray(g) if weight is None else np.multiply(g, weight, order="C"), rows)
        gx /= root
    return gx, _over_rows(g * rows) if needs[1] else None


def _rows(input: Spec) -> Spec:
    return Spec((*input.shape[:-1], 1), input.dtype)


# ---- compiled

PARTS = 8  # of the rows, at most: the sums of columns are those of the parts, for any number of threads


def _is_compiled(x: Any) -> bool:
    return loops.available() and bool(x.shape[-1] >= loops.width() // 4)


@functools.cache
def _loop(name: str, centered: bool) -> Nest:
    code, pointers = {"forward": (norms.forward, norms.FORWARD), "backward": (norms.backward, norms.BACKWARD)}[name]
    return Nest(name, code(loops.width() // 4, centered), len(pointers), len(norms.SIZES))


def _sizes(size: int) -> tuple[int, int, int]:
    rest = size % (loops.width() // 4)
    return size, size - rest, int(rest > 0)


@functools.lru_cache(maxsize=64)
def number(x: float) -> Any:
    """A number as loops read it."""
    return np.array(x, F64)


def _parameter(p: Any, size: int, value: float) -> Any:
    return np.full(size, value, F32) if p is None else np.ascontiguousarray(p)


def _compiled_forward(x: Any, weight: Any, bias: Any, eps: float, centered: bool) -> Any:
    size = x.shape[-1]
    out, rows, root = memory.like(x), memory.like(x), np.empty((*x.shape[:-1], 1), F32)
    w, b = _parameter(weight, size, 1.0), _parameter(bias, size, -0.0)
    loop, much = _loop("forward", centered), 4 * x.size >= LARGE["for threads"]
    loop((x, w, b, number(eps), out, rows, root), root.size, _sizes(size), much)
    return out, (rows, root, weight)


@unnamed
def _compiled_gradients(g: Any, rows: Any, root: Any, weight: Any, needs: Any, centered: bool) -> Any:
    g, rows, root = map(np.ascontiguousarray, (g, rows, root))
    w, size = _parameter(weight, g.shape[-1], 1.0), g.shape[-1]
    gx, parts = memory.like(g), min(PARTS, root.size)
    sums = np.zeros((2, parts, size))
    given = [memory.address(a) for a in (g, w, rows, root, gx, *sums)]
    part, loop = sums.strides[1], _loop("backward", centered).of_addresses
    runtime.in_slices(loop, given, root.size, _sizes(size), parts, {len(given) - 2: part, len(given) - 1: part})
    along, total = np.add.reduce(sums, 1).astype(F32)
    return gx if needs[0] else None, along if needs[1] else None, *([total if needs[2] else None] if centered else [])
