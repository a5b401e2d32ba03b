"""Rows of 16-bit matrices that products write or read begin at multiples of 16 bytes, in memory that nothing outside of a
step sees: of the logits of a language model, say, and of their gradient.

    logits = linear(x, w)        strides (50257, 1)   ->   strides (50304, 1)

cuBLASLt has fast kernels for such matrices alone (`genesis.cuda.kernels.padded`). What reads and writes them besides, loops
and losses, takes any strides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from genesis.arrays.spec import Spec, contiguous_strides, strides_of
from genesis.core.call.halves import HALVES
from genesis.cuda.kernels import products
from genesis.cuda.kernels.loss_gradients import WITH_GRADIENT
from genesis.cuda.kernels.losses import IN_PROGRAMS, OF_HALVES
from genesis.cuda.kernels.lowering import RULED
from genesis.cuda.kernels.padded import BYTES, MOVED, RATES, padded_strides
from genesis.cuda.libraries import cublaslt
from genesis.cuda.libraries.loading import library
from genesis.cuda.steps.told import operations, size_of
from genesis.jit.arguments import Var
from genesis.jit.program import Call, Program, op_of
from genesis.jit.storage import Region

WIDE = 64  # elements of a row from which the gaps are little
VIEWS = {"expand", "slice_view", "reshape", "view_shape", "narrow", "permute", "transpose"}  # that go by strides
LOSSES = {IN_PROGRAMS, OF_HALVES, f"{IN_PROGRAMS}.backward", WITH_GRADIENT}


def is_apart(spec: Spec) -> bool:
    """Whether rows begin at such multiples, behind gaps."""
    if spec.dtype not in HALVES or spec.strides is None:
        return False
    return contiguous_strides(spec.shape) != spec.strides == padded_strides(spec.shape, spec.dtype.itemsize)


def apart(program: Program) -> Program:
    """The program, with such values laid out so."""
    wanted = {} if library(cublaslt.NAME) is None else dict(_chosen(program))
    return _with(program, wanted) if wanted else program


def _chosen(program: Program) -> Iterator[tuple[Var, Var]]:
    """Such values, and what takes their place."""
    regions = program.regions
    kept = {regions[v].root if v in regions else v for v in program.ends}
    uses: dict[Var, list[Call]] = {}
    for call in program.calls:
        if call.outs[0] in regions:
            if not _stays_a_view(call, regions[call.outs[0]]):
                kept.add(regions[call.outs[0]].root)
            continue
        for root in {regions[v].root if v in regions else v for v in (*call.inputs, *call.outs)}:
            uses.setdefault(root, []).append(call)
    for out in [v for call in program.calls if len(call.outs) == 1 or call.op in LOSSES for v in call.outs]:
        wanted = out not in kept and out not in regions and _is_odd(out.spec)
        if wanted and all(map(_takes_gaps, uses[out])) and _pays(out.spec, uses[out]):
            spec = out.spec
            yield out, Var(replace(spec, strides=padded_strides(spec.shape, spec.dtype.itemsize)))


def _pays(spec: Spec, uses: list[Call]) -> bool:
    """Whether products gain more than loops lose, which do not go from one end of memory to the other then: each takes twice
    as long, about.
    """
    slow = RATES[math.gcd(spec.shape[-1] * spec.dtype.itemsize, BYTES)]
    work = sum([operations(call) for call in uses if call.op in products.OPS])
    loops = len([call for call in uses if call.op not in products.OPS and call.op not in LOSSES])
    return work / slow - work / RATES[BYTES] > loops * size_of(spec) / MOVED


def _stays_a_view(call: Call, region: Region) -> bool:
    """Whether what is seen of a matrix without gaps can be seen of one with gaps: no dimension goes from a row into the next."""
    spec, root = call.outs[0].spec, region.root.spec
    if call.op not in VIEWS or not root.shape or 0 in root.shape:
        return False
    row, last = root.shape[-1], region.offset // root.dtype.itemsize % root.shape[-1]
    for n, step in zip(spec.shape, region.strides, strict=True):
        if n > 1 and step % row:
            last += (n - 1) * step
            if step < 0:
                return False
    return last < row


def _is_odd(spec: Spec) -> bool:
    """Whether rows are wide, and begin anywhere."""
    if spec.dtype not in HALVES or len(spec.shape) < 2 or 0 in spec.shape:
        return False
    dense = strides_of(spec) == contiguous_strides(spec.shape)
    return (
        dense and spec.shape[-1] > WIDE and spec.shape[-1] * spec.dtype.itemsize % BYTES > 0 and math.prod(spec.shape[:-1]) > 1
    )  # fmt: skip


def _takes_gaps(call: Call) -> bool:
    """Whether a call goes through what it reads and writes by strides."""
    return (
        call.op in products.OPS or call.op in LOSSES or call.op in RULED or call.op == "convert"
        or bool(op_of(call).kind.aligned)
    )  # fmt: skip


def _with(program: Program, wanted: dict[Var, Var]) -> Program:
    """The program with other variables, and views of them as they are then."""
    now = dict(wanted)
    calls: list[Call] = []
    for call in program.calls:
        other = call.renamed(lambda v: now.get(v, v))
        if other is not call and call.outs[0] in program.regions:
            now[call.outs[0]] = Var(call.outs[0].spec)
        outs = tuple([now.get(v, v) for v in call.outs])
        calls.append(other if outs == call.outs else replace(other, outs=outs))
    return program.with_calls(calls)
