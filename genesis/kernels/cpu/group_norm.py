"""Group norm of float32 arrays, compiled where a channel has a vector of places at least, or there are few numbers; else
with few temporaries.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
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
from genesis.kernels.cpu.norm import less, number
from genesis.kernels.llvm import groups, loops
from genesis.ops.learning.standard import standardized_and_deviation


def _fits(input: Any, num_groups: Any, weight: Any, bias: Any, eps: float) -> bool:
    return (
        input.dtype == F32
        and input.size > 0
        and num_groups > 0
        and input.shape[1] % num_groups == 0
        and all([p is None or (p.dtype == F32 and p.shape == input.shape[1:2]) for p in (weight, bias)])
    )


FEW = 1 << 13  # numbers, up to which a loop over one place after the other takes less time than NumPy's calls


@functools.lru_cache(maxsize=256)
def lanes_of(shape: Sequence[int]) -> int:
    """How many places of a channel the loops compute at once: a vector of them, or of few numbers one; 0 for no loop."""
    lanes = loops.width() // 4
    return lanes if math.prod(shape[2:]) >= lanes else int(math.prod(shape) < FEW)


def _is_compiled(x: Any) -> bool:
    return loops.available() and lanes_of(x.shape) > 0


@functools.lru_cache(maxsize=256)
def sizes_of(shape: Sequence[int], num_groups: int) -> tuple[int, ...]:
    """The integers of the functions of `groups`, behind the first and the last."""
    size = math.prod(shape[2:])
    members, whole = shape[1] // num_groups, size - size % lanes_of(shape)
    return members, num_groups, size, whole, int(size != whole), members * size


@functools.cache
def _loop(name: str, lanes: int) -> Nest:
    code, pointers = {"forward": (groups.forward, groups.FORWARD), "backward": (groups.backward, groups.BACKWARD)}[name]
    return Nest(name, code(lanes), len(pointers), len(groups.SIZES))


def _call(name: str, shape: Sequence[int], num_groups: int, *arrays: Any) -> None:
    much = arrays[0].size >= LARGE["for threads"]
    _loop(name, lanes_of(shape))(arrays, shape[0] * num_groups, sizes_of(shape, num_groups), much)


def _parameter(p: Any, many: int, value: float) -> Any:
    return np.full(many, value, F32) if p is None else np.ascontiguousarray(p)


def _roots(input: Spec, num_groups: int) -> Spec:
    return Spec((input.shape[0], num_groups), input.dtype)


@attach(
    "group_norm",
    np.ndarray,
    when=_fits,
    infer=lambda input, many, weight, bias, eps: (
        input,
        (input, _roots(input, many), None if weight is None else "weight"),
    ),
    quiet=True,
)
def group_norm(input: Any, num_groups: int, weight: Any, bias: Any, eps: float) -> Any:
    """The kernel of `genesis.nn.functional.group_norm`."""
    x, channels = np.ascontiguousarray(input), input.shape[1]
    if not _is_compiled(x):
        return quietly(_forward, x, num_groups, weight, bias, eps)
    rows, out = memory.like(x), memory.like(x)
    root = np.empty((x.shape[0], num_groups), F32)
    w, b = _parameter(weight, channels, 1.0), _parameter(bias, channels, -0.0)
    _call("forward", x.shape, num_groups, x, w, b, rows, out, root, number(eps))
    return out, (rows, root, weight)


@group_norm.backward(reads=("weight",))
def _(g: Any, kept: Any, needs: Any) -> Any:
    rows, root, weight = kept
    many, channels = rows.shape[:2]
    g = np.ascontiguousarray(g)
    if not _is_compiled(rows):
        gx, along, total = quietly(_gradients, g, rows, root, weight)
    else:
        gx, along, total = memory.like(rows), np.empty((many, channels), F32), np.empty((many, channels), F32)
        w = _parameter(weight, channels, 1.0)
        _call("backward", rows.shape, root.shape[1], g, rows, w, np.ascontiguousarray(root), gx, along, total)
    g_weight, g_bias = (
        quietly(_sum, x, (0,)) if need else None for x, need in zip((along, total), needs[1:], strict=True)
    )
    return gx if needs[0] else None, g_weight, g_bias


# ---- by NumPy


def _sum(x: Any, dim: Any) -> Any:
    return REGISTRY["sum"].kernel(x, dim, False, F32)


def _along(p: Any, ndim: int) -> Any:
    """A number for each channel, to be broadcast."""
    return p.reshape(-1, *[1] * (ndim - 2))


def _forward(x: Any, num_groups: int, weight: Any, bias: Any, eps: float) -> Any:
    rows, root = standardized_and_deviation(x.reshape(x.shape[0], num_groups, -1), (2,), eps)
    rows = rows.reshape(x.shape).copy()  # of its own
    out = rows.copy() if weight is None else rows * _along(weight, x.ndim)
    if bias is not None:
        out += _along(bias, x.ndim)
    return out, (rows, root[..., 0].copy(), weight)


def _gradients(g: Any, rows: Any, root: Any, weight: Any) -> Any:
    """That of the input, and for each channel of each example the sums of ``g rows`` and of ``g``."""
    inside = tuple(range(2, g.ndim))
    change = (g if weight is None else g * _along(weight, g.ndim)).reshape(*root.shape, -1)
    gx = less(change, rows.reshape(change.shape), root[..., None]).reshape(g.shape)
    return gx, _sum(g * rows, inside) if inside else g * rows, _sum(g, inside) if inside else g
