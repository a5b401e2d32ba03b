"""Convolutions on a GPU: by cuDNN where it is installed and takes them, else as products of matrices of their own, with
sums in float32. The code is in `convolution_code`.

The gradient of a weight sums over all examples and places; programs have parts of those, which another launch sums: the same
bits each time.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, contiguous_strides
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.op import REGISTRY
from genesis.cuda.arrays import MEMORY, CudaArray, used
from genesis.cuda.kernels import convolution_code as code
from genesis.cuda.kernels.columns import HEIGHT, WIDTH, columns
from genesis.cuda.kernels.moves import contiguous
from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import Launched, interpreted
from genesis.cuda.libraries import cudnn
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span
from genesis.jit.lowering.triton_code import pointer_to
from genesis.ops.spatial.convolution import last_strides, one_is_channels_last

PROGRAMS = 264  # two for each processor of an H100
Grid = tuple[int, int, int]


def tile_of(dtype: Any) -> tuple[int, int, int, int]:
    """Rows, columns and steps of a program, and its warps."""
    return (64, 64, 32, 4) if dtype in HALVES else (32, 32, 16, 8)


class Windows(Launched):
    """A kernel of convolutions: "forward", "back" through one, or the gradient of a "weight"."""

    def __init__(self, kind: str, dtype: Any, dims: int, biased: bool = False) -> None:
        self.kind, self.dtype, self.dims, self.biased = kind, dtype, dims, biased
        self.m, self.n, self.k, self.warps = tile_of(dtype)
        if kind == "weight":
            self.source = code.weight(dims, self.m, self.n, self.k)
            self.dtypes: tuple[Any, ...] = dtype, dtype, F32
        else:
            self.source = code.forward(dims, kind == "back", biased, self.m, self.n, self.k)
            self.dtypes = dtype, dtype, dtype, dtype
        self.names = [*code.numbers(dims), *["part"] * (kind == "weight")]
        self.signature = (*[pointer_to(d) for d in self.dtypes], *["i32"] * len(self.names))
        self.letters = "Q" * len(self.dtypes) + "i" * len(self.names)
        first = len(self.dtypes)
        steps = {"xc", "oc", f"xs{dims - 1}", f"os{dims - 1}", "xn", "on", "C", "O"}
        self.free = frozenset([first + i for i, name in enumerate(self.names) if name not in steps])

    # ---- on the emulated device

    def _read(self, grid: Grid, values: tuple[Any, ...]) -> tuple[dict[str, Any], list[tuple[Any, Any]]]:
        """The numbers, and shape and strides of each operand."""
        given = dict(zip(self.names, values[len(self.dtypes) :], strict=True))
        of = {
            what: tuple([given[f"{what}{i}"] for i in range(self.dims)])
            for what in ("S", "P", "T", "stride", "pad", "dilation")
        }
        n, c, o, groups = given["count"], given["C"], given["O"], grid[1]
        steps = [(given[f"{a}n"], given[f"{a}c"], *[given[f"{a}s{i}"] for i in range(self.dims)]) for a in "xo"]
        x, y = ((n, groups * c, *of["S"]), steps[0]), ((n, groups * o, *of["P"]), steps[1])
        shape = (groups * c, o, *of["T"]) if self.kind == "back" else (groups * o, c, *of["T"])
        laid = shape, contiguous_strides(shape)
        if self.kind == "weight":
            parts = (grid[2], *shape)
            return {**given, **of, "groups": groups}, [x, y, (parts, contiguous_strides(parts))]
        bias = ((groups * o,), (1,)) if self.biased else ((0,), (1,))
        return {**given, **of, "groups": groups}, [x, laid, bias, y]

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        spans = []
        for i, (shape, steps) in enumerate(self._read(grid, values)[1]):
            count = 1 + sum([(n - 1) * s for n, s in zip(shape, steps, strict=True)]) if 0 not in shape else 0
            spans.append((values[i], count * self.dtypes[i].itemsize, i == len(self.dtypes) - 1))
        return spans

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        numbers, laid = self._read(grid, values)
        spans = self.spans(grid, values)
        arrays = [memory.array(a, d, n // d.itemsize) for (a, n, _), d in zip(spans, self.dtypes, strict=True)]
        if interpreted():
            given = [a if a.size else np.zeros(1, a.dtype) for a in arrays]
            arrays[-1][...] = interpreter.run(self.source, grid, [*given, *values[len(arrays) :]])[len(arrays) - 1]
            return
        views = [
            np.lib.stride_tricks.as_strided(a, shape, [s * a.itemsize for s in steps])
            for a, (shape, steps) in zip(arrays, laid, strict=True)
        ]
        rules = numbers["stride"], numbers["pad"], numbers["dilation"]
        if self.kind == "weight":
            weight_of_parts(*views, numbers["part"], *rules, numbers["groups"])
            return
        x, w, bias, out = views
        least = [(n - 1) * s - 2 * p + (t - 1) * d + 1 for n, s, p, t, d in
                 zip(numbers["S"], rules[0], rules[1], numbers["T"], rules[2], strict=True)]  # fmt: skip
        back = self.kind == "back"
        extra = tuple([n - m for n, m in zip(numbers["P"], least, strict=True)]) if back else (0,) * self.dims
        added = bias.astype(F32) if self.biased else None
        meaning = REGISTRY["convolution"].meaning
        out[...] = meaning(x.astype(F32), w.astype(F32), added, *rules, back, extra, numbers["groups"]).astype(
            out.dtype
        )


def weight_of_parts(x: Any, y: Any, out: Any, part: int, stride: Any, padding: Any, dilation: Any, groups: int) -> None:
    """What programs of the gradient of a weight give, with NumPy: of each its part of examples and places."""
    meaning, flat = REGISTRY["convolution_weight"].meaning, y.astype(F32)
    every = np.arange(y.shape[0] * math.prod(y.shape[2:])).reshape(y.shape[0], 1, *y.shape[2:]) // part
    for i in range(len(out)):
        chosen = np.where(every == i, flat, F32.type(0))
        out[i] = meaning(x.astype(F32), chosen, out.shape[3:], stride, padding, dilation, groups)


@functools.cache
def windows(kind: str, dtype: Any, dims: int, biased: bool = False) -> Windows:
    return Windows(kind, dtype, dims, biased)


# ---- calls


def _takes(*arrays: Any) -> bool:
    given = [x for x in arrays if x is not None]
    return (
        all([x.dtype == given[0].dtype and x.size < 1 << 31 and min(x.strides, default=0) >= 0 for x in given])
        and all([x.size for x in given]) and (given[0].dtype == F32 or given[0].dtype in HALVES)
    )  # fmt: skip


def _start(kernel: Windows, arrays: list[CudaArray], addresses: list[int], x: CudaArray, y: CudaArray,
           window: Sequence[int], rules: Sequence[Sequence[int]], groups: int, splits: int = 1, part: int = 0) -> None:  # fmt: skip
    """``y`` is the result, or for the gradient of a weight that of the result."""
    c, o = x.shape[1] // groups, y.shape[1] // groups
    numbers = (
        x.shape[0],
        c,
        o,
        *x.shape[2:],
        *y.shape[2:],
        *window,
        *[n for rule in rules for n in rule],
        *x.strides,
        *y.strides,
    )
    if kernel.kind == "weight":
        rows, wide = o, c * math.prod(window)
        numbers = (*numbers, part)
    else:
        rows, wide = y.shape[0] * math.prod(y.shape[2:]), o
    grid = -(-rows // kernel.m) * -(-wide // kernel.n), groups, splits
    kernel.start(x.on, used(*arrays).handle, grid, (*addresses, *numbers))


def convolution(input: CudaArray, weight: CudaArray, bias: CudaArray | None, stride: Any, padding: Any, dilation: Any,
                transposed: bool, output_padding: Any, groups: int) -> Any:  # fmt: skip
    op, dims = REGISTRY["convolution"], len(stride)
    given = [None if x is None else Spec(x.shape, x.dtype, x.device, x.strides) for x in (input, weight, bias)]
    rest = (stride, padding, dilation, transposed, output_padding, groups)
    spec = op.kind.infer(op, (*given, *rest))
    if 0 not in spec.shape and (not _takes(input, weight, bias) or dims > 3 or math.prod(spec.shape) >= 1 << 31):
        return NotImplemented
    out = MEMORY.empty(spec.shape, input.dtype, input.device)
    strides = None if op.strides is None else op.strides(*given, *rest)
    if strides is not None:
        out.strides = tuple(strides)
    if not out.size:
        return out
    if cudnn.convolved(input, weight, bias, out, (stride, padding, dilation), transposed):
        return out
    w = contiguous(weight)
    bias = bias if bias is None else contiguous(bias)
    kernel = windows("back" if transposed else "forward", input.dtype, dims, bias is not None)
    addresses = [input.address, w.address, 0 if bias is None else bias.address, out.address]
    arrays = [x for x in (input, w, bias, out) if x is not None]
    _start(kernel, arrays, addresses, input, out, weight.shape[2:], (stride, padding, dilation), groups)
    return out


def convolution_weight(input: CudaArray, other: CudaArray, kernel: Any, stride: Any, padding: Any, dilation: Any,
                       groups: int) -> Any:  # fmt: skip
    dims = len(stride)
    if not _takes(input, other) or dims > 3:
        return NotImplemented
    shape = (other.shape[1], input.shape[1] // groups, *kernel)
    out = MEMORY.empty(shape, input.dtype, input.device)
    if one_is_channels_last(*[Spec(x.shape, x.dtype, x.device, x.strides) for x in (input, other)]):
        out.strides = last_strides(shape)
    if not out.size or cudnn.weight_of(input, other, out, (stride, padding, dilation)):
        return out
    rows = out if out.is_contiguous else MEMORY.empty(shape, input.dtype, input.device)
    made = windows("weight", input.dtype, dims)
    summed, size = other.shape[0] * math.prod(other.shape[2:]), math.prod(shape)
    tiles = -(-shape[0] // groups // made.m) * -(-size // shape[0] // made.n) * groups
    splits = max(min(PROGRAMS // max(tiles, 1), -(-summed // (8 * made.k))), 1)
    part = -(-summed // (splits * made.k)) * made.k
    splits = -(-summed // part)
    parts = MEMORY.empty((splits, size), F32, input.device)
    _start(made, [input, other, parts], [input.address, other.address, parts.address], input, other, kernel,
           (stride, padding, dilation), groups, splits, part)  # fmt: skip
    stream = used(parts, rows).handle
    values = (parts.address, 0, rows.address, splits, size, size, 0, -(-splits // HEIGHT) * HEIGHT)
    columns(F32, None, rows.dtype).start(rows.on, stream, (-(-size // WIDTH), 1, 1), values)
    if rows is not out:
        MEMORY.assign(out, rows)
    return out


KERNELS = {"convolution": convolution, "convolution_weight": convolution_weight}
