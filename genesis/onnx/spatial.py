"""Convolutions, pooling, interpolation, borders, windows as columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.base.errors import UnsupportedError, message
from genesis.onnx.builder import INT64, Builder, Value, lowers
from genesis.onnx.shapes import onnx_pads
from genesis.onnx.whole import whole
from genesis.ops.spatial.tables import table


def each(value: Any, dims: int) -> list[int]:
    """One number for each dimension."""
    numbers = list(value) if isinstance(value, list | tuple) else [value]
    return [int(n) for n in (numbers * dims if len(numbers) == 1 else numbers)]


# ---- convolutions


@lowers("convolution")
def _convolution(b: Builder, x: Value, weight: Value, bias: Value | None, stride: Any, padding: Any, dilation: Any,
                 transposed: bool, output_padding: Any, groups: int) -> str:  # fmt: skip
    options = {"kernel_shape": list(weight.shape[2:]), "strides": list(stride), "pads": [*padding, *padding],
               "dilations": list(dilation), "group": groups}  # fmt: skip
    if transposed:
        return b.node("ConvTranspose", x, weight, bias, output_padding=list(output_padding), **options)
    return b.node("Conv", x, weight, bias, **options)


# ---- pooling


def _floating(input: Any, *rest: Any) -> bool:
    return input.is_floating_point()


def _mean_of_windows(input: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, *rest: Any) -> bool:
    divisor = rest[1] if len(rest) > 1 else None
    return not ceil_mode and divisor is None  # how a last, smaller window counts has changed between versions of ONNX


def _cells(dims: int) -> Any:
    """Whether the cells of an adaptive pool are of one size."""

    def even(input: Any, output_size: Any, *rest: Any) -> bool:
        sizes = output_size if isinstance(output_size, list | tuple) else [output_size]
        if None in sizes or any(rest) or not input.is_floating_point():
            return False
        return all([n % m == 0 for n, m in zip(input.shape[-dims:], each(sizes, dims), strict=True)])

    return even


def _batched(b: Builder, x: Value, dims: int, pool: Any) -> Any:
    """Pool an input that may lack the dimension of examples."""
    if x.rank == dims + 2:
        return pool(x.name)
    outs = pool(b.unsqueeze(x, 0))
    squeezed = [
        b.node("Squeeze", out, b.constant([0], INT64)) for out in (outs if isinstance(outs, tuple) else (outs,))
    ]
    return tuple(squeezed) if isinstance(outs, tuple) else squeezed[0]


def _pools(dims: int) -> None:
    whole(f"max_pool{dims}d", when=_floating)
    whole(f"avg_pool{dims}d", when=_mean_of_windows)
    whole(f"adaptive_avg_pool{dims}d", f"adaptive_max_pool{dims}d", when=_cells(dims))

    def windows(kernel: Any, stride: Any, padding: Any) -> dict[str, Any]:
        size = each(kernel, dims)
        steps = each(stride, dims) if stride not in (None, [], ()) else size
        pads = each(padding, dims)
        return {"kernel_shape": size, "strides": steps, "pads": [*pads, *pads]}

    @lowers(f"max_pool{dims}d")
    def _max(b: Builder, x: Value, kernel: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
             return_indices: bool = False) -> Any:  # fmt: skip
        options = {**windows(kernel, stride, padding), "dilations": each(dilation, dims), "ceil_mode": int(ceil_mode)}
        if not return_indices:
            return _batched(b, x, dims, lambda name: b.node("MaxPool", name, **options))
        out, indices = _batched(b, x, dims, lambda name: b.node("MaxPool", name, outputs=2, **options))
        sizes = b.node("Shape", x, start=-dims)  # ONNX counts through channels and examples, too
        return out, b.node("Mod", indices, b.node("ReduceProd", sizes, keepdims=0))

    @lowers(f"avg_pool{dims}d")
    def _avg(b: Builder, x: Value, kernel: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
             count_include_pad: bool = True, divisor: Any = None) -> Any:  # fmt: skip
        options = {**windows(kernel, stride, padding), "count_include_pad": int(count_include_pad)}
        return _batched(b, x, dims, lambda name: b.node("AveragePool", name, **options))

    def adaptive(name: str, operator: str) -> None:
        @lowers(name)
        def _(b: Builder, x: Value, output_size: Any, *rest: Any) -> Any:
            sizes = each(output_size, dims)
            if set(sizes) == {1}:
                return _batched(b, x, dims, lambda given: b.node(f"Global{operator}", given))
            cell = [n // m for n, m in zip(x.shape[-dims:], sizes, strict=True)]
            return _batched(b, x, dims, lambda given: b.node(operator, given, kernel_shape=cell, strides=cell))

    adaptive(f"adaptive_avg_pool{dims}d", "AveragePool")
    adaptive(f"adaptive_max_pool{dims}d", "MaxPool")


for _dims in (1, 2, 3):
    _pools(_dims)


# ---- sums by rule: what is left of pooling and interpolation


@lowers("mix")
def _mix(b: Builder, x: Value, dim: int, rule: Any, back: bool = False) -> str:
    positions, weights = table(rule)
    if not back and positions.shape[1] == 1 and weights is None:
        return b.node("Gather", x, b.constant(positions[:, 0], INT64), axis=dim)
    n = rule[1]
    matrix = np.zeros((n, len(positions)))
    for t in range(positions.shape[1]):
        rows = np.flatnonzero(positions[:, t] >= 0)
        np.add.at(matrix, (positions[rows, t], rows), 1.0 if weights is None else weights[rows, t])
    name = b.initializer((matrix.T if back else matrix).astype(x.dtype), rule[0])
    if dim == x.rank - 1:
        return b.node("MatMul", x, name)
    order = [*[i for i in range(x.rank) if i != dim], dim]
    out = b.node("MatMul", b.node("Transpose", x, perm=order), name)
    return b.node("Transpose", out, perm=[order.index(i) for i in range(x.rank)])


@lowers("max_places")
def _max_positions(b: Builder, x: Value, rules: Any) -> str:
    """Where the largest element of each window is: the windows side by side, ArgMax, and a table of places."""
    dims, first = len(rules), x.rank - len(rules)
    tables = [table(rule)[0] for rule in rules]
    name = x.name
    for i, positions in enumerate(tables):
        name = b.node("Gather", name, b.constant(np.maximum(positions, 0), INT64), axis=first + 2 * i)
    lead = list(range(first))
    name = b.node(
        "Transpose",
        name,
        perm=[*lead, *[first + 2 * i for i in range(dims)], *[first + 2 * i + 1 for i in range(dims)]],
    )
    counts, taps = [t.shape[0] for t in tables], [t.shape[1] for t in tables]
    flat, there = _flat_positions(tables, [rule[1] for rule in rules])
    lowest = -math.inf if x.floating else np.iinfo(x.dtype).min
    inside = b.constant(there.reshape(*counts, *taps), np.dtype(bool))
    name = b.node("Where", inside, name, b.constant(lowest, x.dtype))
    name = b.node("Reshape", name, b.ints([*[0] * first, *counts, -1]))
    best = b.node("ArgMax", name, axis=x.rank, keepdims=0)
    offset = b.constant(np.arange(math.prod(counts)).reshape(counts) * math.prod(taps), INT64)
    return b.node("Gather", b.constant(flat.reshape(-1), INT64), b.node("Add", best, offset))


def _flat_positions(tables: Sequence[Any], sizes: Sequence[int]) -> tuple[Any, Any]:
    """For all windows and all of their elements: the place in row-major order, and whether there is one."""
    dims = len(tables)
    flat, there = np.zeros((), np.int64), np.ones((), bool)
    for i, (positions, n) in enumerate(zip(tables, sizes, strict=True)):
        shape = [1] * (2 * dims)
        shape[i], shape[dims + i] = positions.shape
        flat, there = flat * n + np.maximum(positions, 0).reshape(shape), there & (positions >= 0).reshape(shape)
    return np.ascontiguousarray(flat), np.ascontiguousarray(there)


# ---- interpolation

MODES = {"nearest": "nearest", "nearest-exact": "nearest", "linear": "linear", "bilinear": "linear", "trilinear": "linear",
         "bicubic": "cubic"}  # fmt: skip


def _resizes(
    input: Any, size: Any, scale_factor: Any, mode: str, align_corners: Any, recompute: Any, antialias: bool
) -> bool:
    return mode in MODES and not antialias and not recompute and input.is_floating_point()


whole("interpolate", when=_resizes)


@lowers("interpolate")
def _interpolate(
    b: Builder, x: Value, size: Any, scale_factor: Any, mode: str, align_corners: Any = None, *rest: Any
) -> str:
    dims = x.rank - 2
    options: dict[str, Any] = {"mode": MODES[mode]}
    if mode == "nearest":
        options |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    elif mode == "nearest-exact":
        options |= {"coordinate_transformation_mode": "half_pixel", "nearest_mode": "round_prefer_ceil"}
    else:
        options["coordinate_transformation_mode"] = "align_corners" if align_corners else "half_pixel"
        options |= {"cubic_coeff_a": -0.75} if mode == "bicubic" else {}
    if size is None:
        factors = list(scale_factor) if isinstance(scale_factor, list | tuple) else [scale_factor] * dims
        scales = b.constant([1.0, 1.0, *map(float, factors)], np.dtype(np.float32))
        return b.node("Resize", x, None, scales, **options)
    return b.node("Resize", x, None, None, b.ints([*x.shape[:2], *b.out.shape[2:]]), **options)


# ---- borders

BORDERS = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
whole("pad", when=lambda input, pad, mode, *rest: mode in BORDERS and all([n >= 0 for n in pad]))


@lowers("pad")
def _pad(b: Builder, x: Value, pad: Sequence[int], mode: str, value: Any = None) -> str:
    pads = onnx_pads(pad, x.rank)
    if mode != "circular":
        return b.node("Pad", x, b.constant(pads, INT64), mode=BORDERS[mode])
    name = x.name
    for dim, (before, after) in enumerate(zip(pads[: x.rank], pads[x.rank :], strict=True)):
        if before or after:
            parts = [b.slice(name, dim, -before, np.iinfo(np.int64).max)] if before else []
            parts += [name, *([b.slice(name, dim, 0, after)] if after else [])]
            name = b.node("Concat", *parts, axis=dim)
    return name


# ---- channels and positions, windows as columns

whole("pixel_shuffle", when=lambda input, factor: input.ndim == 4)


@lowers("pixel_shuffle")
def _pixel_shuffle(b: Builder, x: Value, factor: int) -> str:
    return b.node("DepthToSpace", x, blocksize=factor, mode="CRD")


@lowers("unfold_columns")
def _unfold(b: Builder, x: Value, kernel: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> str:
    kernel, dilation, padding, stride = (each(v, 2) for v in (kernel, dilation, padding, stride))
    name, lead = x.name, list(range(x.rank - 2))
    if any(padding):
        name = b.node("Pad", x, b.constant([*[0] * len(lead), *padding, *[0] * len(lead), *padding], INT64))
    counts = []
    for i, (n, k, d, p, s) in enumerate(zip(x.shape[-2:], kernel, dilation, padding, stride, strict=True)):
        count = (n + 2 * p - d * (k - 1) - 1) // s + 1
        positions = np.arange(k)[:, None] * d + np.arange(count) * s  # (k, count)
        name = b.node("Gather", name, b.constant(positions, INT64), axis=len(lead) + 2 * i)
        counts.append(count)
    at = len(lead)
    name = b.node("Transpose", name, perm=[*lead, at, at + 2, at + 1, at + 3])
    return b.reshape(name, b.out.shape)


@lowers("fold_columns")
def _fold(
    b: Builder, x: Value, output_size: Any, kernel: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> str:
    numbers = {"dilations": each(dilation, 2), "pads": each(padding, 2) * 2, "strides": each(stride, 2)}
    sizes, block = b.constant(each(output_size, 2), INT64), b.constant(each(kernel, 2), INT64)
    if x.rank == 3:
        return b.node("Col2Im", x, sizes, block, **numbers)
    if x.rank != 2:
        raise UnsupportedError(message("export", f"fold of a tensor of {x.rank} dimensions"))
    return b.node("Squeeze", b.node("Col2Im", b.unsqueeze(x, 0), sizes, block, **numbers), b.constant([0], INT64))
