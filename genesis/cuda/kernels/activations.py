"""GELU as one kernel forward and one backward, where the composite would be four of each in 16 bits: computed in float32
and rounded once.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call.halves import F32, F64, HALVES
from genesis.core.call.kernels import attach
from genesis.core.call.op import REGISTRY
from genesis.cuda.arrays import CudaArray, laid_so
from genesis.cuda.kernels.lanes import Code, Operand, Placed, start
from genesis.cuda.kernels.moves import broadcast
from genesis.cuda.kernels.signatures import KNOWN
from genesis.cuda.kernels.wanted import kernels_wanted
from genesis.cuda.layouts import Layout, layout
from genesis.cuda.runtime.streams import current
from genesis.jit.lowering.layouts import is_dense

SCALE = 2 * math.sqrt(2 / math.pi)  # of the approximation: gelu(x) is about x sigmoid(SCALE x + CUBE x^3)
CUBE = SCALE * 0.044715
DENSITY = 1 / math.sqrt(2 * math.pi)

_FUNCTIONS = {"none": "gelu", "tanh": "gelu_tanh"}
_EXACT = "out.dtype.element_ty.primitive_bitwidth > 16"


def _shares(a: Any, approximate: str) -> Any:
    """What an element is multiplied by."""
    if approximate == "none":
        meaning = REGISTRY["normal_cdf"].meaning
        return getattr(meaning, "__wrapped__", meaning)(a)
    return 1 / (1 + np.exp(-(a * (SCALE + CUBE * a * a))))


@functools.cache
def forward(approximate: str, wide: Any) -> Code:
    lines = (
        f"a = tl.load(x + x_at, mask=inside, other=0).to(tl.{wide.name})\n"
        f"value = {_FUNCTIONS[approximate]}(a, {_EXACT})\n"
        "tl.store(out + out_at, value.to(out.dtype.element_ty), mask=inside)"
    )

    def meaning(x: Any, out: Any) -> None:
        a = x.astype(wide)
        out[...] = (a * _shares(a, approximate)).astype(out.dtype)

    return Code("gelu", (Operand("x"), Operand("out", writes=True)), lines, meaning)


@functools.cache
def backward(approximate: str, wide: Any) -> Code:
    lines = (
        f"a = tl.load(x + x_at, mask=inside, other=0).to(tl.{wide.name})\n"
        f"slope = {_FUNCTIONS[approximate]}_slope(a, {_EXACT})\n"
        f"change = tl.load(g + g_at, mask=inside, other=0).to(tl.{wide.name}) * slope\n"
        "tl.store(out + out_at, change.to(out.dtype.element_ty), mask=inside)"
    )

    def meaning(x: Any, g: Any, out: Any) -> None:
        a = x.astype(wide)
        share = _shares(a, approximate)
        if approximate == "none":
            slope = share + a * wide.type(DENSITY) * np.exp(-0.5 * a * a)
        else:
            slope = share + a * share * (1 - share) * (SCALE + 3 * CUBE * a * a)
        out[...] = (g.astype(wide) * slope).astype(out.dtype)

    return Code("gradient of gelu", (Operand("x"), Operand("g"), Operand("out", writes=True)), lines, meaning)


def fits(input: Any, approximate: str) -> bool:
    known = input.dtype == F32 or input.dtype == F64 or input.dtype in HALVES
    return known and approximate in _FUNCTIONS and input.size > 0 and kernels_wanted()


def _infer(input: Spec, approximate: str) -> tuple[Spec, tuple[Any, ...]]:
    return Spec(input.shape, input.dtype), ("input", "approximate")


def _empty_like(x: CudaArray) -> CudaArray:
    """In its order, if it has no gaps."""
    return laid_so(_without_gaps(x.layout), current(x.on))


@functools.lru_cache(KNOWN)
def _without_gaps(x: Layout) -> Layout:
    return layout(x.on, x.shape, x.dtype, x.strides if is_dense(Spec(x.shape, x.dtype, strides=x.strides)) else None)


def _wide(x: CudaArray) -> Any:
    return F64 if x.dtype == F64 else F32


@attach("gelu", CudaArray, when=fits, infer=_infer)
def gelu(input: CudaArray, approximate: str) -> Any:
    """The kernel of `genesis.nn.functional.gelu`."""
    out = _empty_like(input)
    start(forward(approximate, _wide(input)), input.shape, [Placed(a, a.strides) for a in (input, out)])
    return out, (input, approximate)


@gelu.backward(reads=("input",))
def _(g: CudaArray, kept: Any, needs: Any) -> Any:
    input, approximate = kept
    out = _empty_like(input)
    placed = [Placed(input, input.strides), Placed(g, broadcast(g, input.shape)), Placed(out, out.strides)]
    start(backward(approximate, _wide(input)), input.shape, placed)
    return (out,)
