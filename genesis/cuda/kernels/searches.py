"""Where values go in sorted sequences: a lane for each value halves what is left of the sequence until nothing is. NaN comes
behind all numbers, as NumPy has it.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from genesis.core.call.halves import F32, HALVES
from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.cuda.kernels.lanes import Code, Operand, Placed, start
from genesis.jit.lowering.triton_code import type_of

_LINES = """
v = tl.load(x + x_at, mask=inside, other=0).to(tl.{wide})
low = at.to(tl.int64) * 0
high = low + s_size0
for _ in range(steps):
    middle = (low + high) // 2
    left = inside & (low < high)
    w = tl.load(s + s_at + middle * s_step0, mask=left, other=0).to(tl.{wide})
    behind = left & {behind}
    low = tl.where(behind, middle + 1, low)
    high = tl.where(left & (behind == 0), middle, high)
tl.store(out + out_at, low.to(out.dtype.element_ty), mask=inside)
"""
_LESS = "(({a} < {b}) | (({b} != {b}) & ({a} == {a})))"


def _less(a: Any, b: Any) -> Any:
    return (a < b) | ((b != b) & (a == a))


@functools.cache
def searching(wide: Any, right: bool) -> Code:
    """Behind all that are less, or on the right behind all that are not larger."""
    behind = f"({_LESS.format(a='v', b='w')} == 0)" if right else _LESS.format(a="w", b="v")

    def meaning(s: Any, x: Any, out: Any, steps: int) -> None:
        v = x.astype(wide)
        low = np.zeros(v.shape, np.int64)
        high = low + s.shape[-1]
        for _ in range(steps):
            middle, left = (low + high) // 2, low < high
            w = np.take_along_axis(s, np.where(left, middle, 0)[..., None], -1)[..., 0].astype(wide)
            after = left & (~_less(v, w) if right else _less(w, v))
            low, high = np.where(after, middle + 1, low), np.where(left & ~after, middle, high)
        out[...] = low.astype(out.dtype)

    operands = (Operand("s", 1), Operand("x"), Operand("out", writes=True))
    lines = _LINES.format(wide=type_of(wide), behind=behind).strip()
    return Code("search on the right" if right else "search", operands, lines, meaning, ("steps",))


def _wide(*dtypes: Any) -> Any:
    """What both are compared in; None of what has no kernel."""
    short = [F32 if d in HALVES else d for d in dtypes]
    wide = np.result_type(*short) if all([d.kind in "fi" or d.name == "uint8" for d in short]) else None
    return wide if wide is None or wide.char in "fd" or wide.kind in "iu" else None


def searchsorted(sequence: CudaArray, input: CudaArray, out_int32: bool, right: bool, side: Any, sorter: Any) -> Any:
    wide = _wide(sequence.dtype, input.dtype)
    if sorter is not None or wide is None:
        return NotImplemented
    out = MEMORY.empty(input.shape, np.dtype(np.int32 if out_int32 else np.int64), input.device)
    *lead, step = sequence.strides
    along = (*lead, 0) if lead else (0,) * input.ndim
    size = sequence.shape[-1]
    placed = [Placed(sequence, along, ((size, step),)), *[Placed(a, a.strides) for a in (input, out)]]
    start(searching(wide, side == "right"), input.shape, placed, (size.bit_length(),))
    return out


KERNELS = {"searchsorted": searchsorted}
