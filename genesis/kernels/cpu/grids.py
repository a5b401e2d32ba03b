"""`grid_sample` of float32 images, between their elements or at the nearest ones, compiled, where llvmlite is.

The composition has ten calls for each corner of each point: a kernel pays from the first point on.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call.halves import F32
from genesis.core.call.kernels import attach
from genesis.kernels.cpu import memory
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.cpu.nests import Nest
from genesis.kernels.llvm import grids, loops


def _fits(input: Any, grid: Any, mode: Any, padding_mode: Any, align_corners: Any) -> bool:
    return (
        mode in ("bilinear", "nearest")
        and padding_mode in ("zeros", "border", "reflection")
        and input.dtype == grid.dtype == F32
        and input.ndim == grid.ndim == 4
        and input.shape[0] == grid.shape[0]
        and grid.shape[3] == 2
        and 0 < math.prod(input.shape[1:]) < 1 << 31
        and loops.available()
    )


@functools.cache
def _loop(name: str, lanes: int, mode: str, border: str, corners: bool) -> Nest:
    pointers = {"forward": grids.FORWARD, "grid_gradient": grids.GRID, "input_gradient": grids.INPUT}[name]
    return Nest(name, getattr(grids, name)(lanes, mode, border, corners), len(pointers), len(grids.SIZES))


def _call(name: str, options: tuple[str, str, bool], input: Any, grid: Any, *arrays: Any) -> None:
    examples, channels, height, width = input.shape
    points = grid.shape[1] * grid.shape[2]
    lanes = min(loops.width() // 4, 1 << max(points.bit_length() - 1, 0))
    blocks = -(-points // lanes)
    count = examples if name == "input_gradient" else examples * blocks
    much = 8 * points * channels * examples >= LARGE["for threads"]
    _loop(name, lanes, *options)(arrays, count, (points, blocks, channels, height, width), much)


@attach(
    "grid_sample",
    np.ndarray,
    when=_fits,
    infer=lambda input, grid, mode, padding_mode, align_corners: (
        Spec((*input.shape[:2], *grid.shape[1:3]), input.dtype),
        ("input", "grid", "mode", "padding_mode", "align_corners"),
    ),
    quiet=True,
)
def grid_sample(input: Any, grid: Any, mode: str, padding_mode: str, align_corners: bool | None) -> Any:
    """The kernel of `genesis.nn.functional.grid_sample`."""
    x, points = np.ascontiguousarray(input), np.ascontiguousarray(grid)
    out = memory.empty((*x.shape[:2], *points.shape[1:3]), F32)
    _call("forward", (mode, padding_mode, bool(align_corners)), x, points, x, points, out)
    return out, (input, grid, mode, padding_mode, align_corners)


@grid_sample.backward(reads=("input", "grid"))
def _(g: Any, kept: Any, needs: Any) -> Any:
    input, grid, mode, border, corners = kept
    options, (g, x, points) = (mode, border, bool(corners)), (np.ascontiguousarray(a) for a in (g, input, grid))
    gx = ggrid = None
    if needs[0]:
        gx = np.zeros(x.shape, F32)
        _call("input_gradient", options, x, points, g, points, gx)
    if needs[1] and mode == "nearest":
        ggrid = np.zeros(points.shape, F32)  # it is the same element all around
    elif needs[1]:
        ggrid = memory.empty(points.shape, F32)
        _call("grid_gradient", options, x, points, g, x, points, ggrid)
    return gx, ggrid
