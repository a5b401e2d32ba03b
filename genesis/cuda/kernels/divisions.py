"""Quotients rounded down and their remainders, of integers and floats, as NumPy has them.

An integer divided by 0 is an error on the CPU; here it is 0, for nobody waits for the numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.core.call.halves import F32, HALVES
from genesis.core.call.op import REGISTRY
from genesis.cuda.arrays import MEMORY, CudaArray, empty
from genesis.cuda.kernels.lanes import Code, Operand, Placed, start
from genesis.cuda.kernels.lowering import results_of
from genesis.cuda.kernels.moves import broadcast
from genesis.jit.lowering.triton_code import type_of


def _int_remainder(x: str, y: str) -> str:
    """With the sign of the divisor; 0 where that is 0. Triton's has the sign of the other."""
    by = f"tl.where({y} == 0, 1, {y})"
    left = f"({x} % {by})"
    turned = f"tl.where(({left} != 0) & (({left} < 0) != ({y} < 0)), {left} + {y}, {left})"
    return f"tl.where({y} == 0, 0, {turned}).to({x}.dtype)"


def _int_floor_divide(x: str, y: str) -> str:
    """Rounded down, where Triton rounds towards 0."""
    by = f"tl.where({y} == 0, 1, {y})"
    lower = f"((({x} % {by}) != 0) & (({x} < 0) != ({y} < 0)))"
    return f"tl.where({y} == 0, 0, ({x} // {by}) - {lower}.to({x}.dtype)).to({x}.dtype)"


def _remainder(x: str, y: str) -> str:
    left = f"libdevice.fmod({x}, {y})"
    zero = f"libdevice.copysign(tl.full((), 0.0, {x}.dtype), {y})"
    return f"tl.where({left} != 0, tl.where(({y} < 0) != ({left} < 0), {left} + {y}, {left}), {zero})"


def _floor_divide(x: str, y: str) -> str:
    """As NumPy does: of what is left without the remainder, the integer that is nearest."""
    left = f"libdevice.fmod({x}, {y})"
    whole = (
        f"(divided({x} - {left}, {y}) - tl.where(({left} != 0) & (({y} < 0) != ({left} < 0)), 1.0, 0.0).to({x}.dtype))"
    )
    near = f"(tl.floor({whole}) + tl.where({whole} - tl.floor({whole}) > 0.5, 1.0, 0.0).to({x}.dtype))"
    zero = f"libdevice.copysign(tl.full((), 0.0, {x}.dtype), divided({x}, {y}))"
    return f"tl.where({y} == 0, divided({x}, {y}), tl.where({whole} != 0, {near}, {zero}))"


TEXTS = {
    "remainder": (_remainder, _int_remainder, np.remainder),
    "floor_divide": (_floor_divide, _int_floor_divide, np.floor_divide),
}


@functools.cache
def dividing(name: str, wide: Any) -> Code:
    floats, integers, compute = TEXTS[name]
    text = (floats if wide.kind == "f" else integers)("a", "b")
    lines = "\n".join(
        [
            f"{v} = tl.load({w} + {w}_at, mask=inside, other=1).to(tl.{type_of(wide)})"
            for v, w in (("a", "x"), ("b", "y"))
        ]
        + [f"tl.store(out + out_at, ({text}).to(out.dtype.element_ty), mask=inside)"]
    )

    def meaning(x: Any, y: Any, out: Any) -> None:
        with np.errstate(all="ignore"):
            out[...] = compute(x.astype(wide), y.astype(wide)).astype(out.dtype)

    return Code(name, (Operand("x"), Operand("y"), Operand("out", writes=True)), lines, meaning)


def divided(name: str) -> Callable[..., Any]:
    def kernel(*args: Any) -> Any:
        (spec,) = results_of(REGISTRY[name], args)
        dtype = spec.dtype
        wide = F32 if dtype in HALVES else dtype
        if wide.char not in "fd" and wide.kind not in "iu":
            return NotImplemented
        like = next(a for a in args if isinstance(a, CudaArray))
        out = empty(like.on, spec.shape, dtype, spec.strides)
        if out.size:
            x, y = (a if isinstance(a, CudaArray) else MEMORY.full((), wide, a, like.device) for a in args)
            placed = [Placed(a, broadcast(a, spec.shape)) for a in (x, y)]
            start(dividing(name, wide), spec.shape, [*placed, Placed(out, out.strides)])
        return out

    return kernel


KERNELS = {name: divided(name) for name in TEXTS}
