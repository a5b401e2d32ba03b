"""What stages of a plan are here: loops, draws and small products as kernels of a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from genesis.arrays.spec import Spec, strides_of
from genesis.cuda.kernels.draws import Draw
from genesis.cuda.kernels.lowering import in_memory
from genesis.cuda.steps.held import Held
from genesis.cuda.steps.tiled import Small, Tiled
from genesis.jit.arguments import Var
from genesis.jit.lowering.loops import Affine, Axis, For, Load, Nest, Store, loads_of, values_of
from genesis.jit.lowering.phases import Stage


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel of a stage: loops, or a draw; ``count`` is how long a loop is that is told so, and of a draw how many
    numbers there are. It stands for a `genesis.jit.lowering.phases.Kernel` in the plan.
    """

    kernel: Held | Draw | Tiled
    writes: frozenset[int]
    count: int
    over: tuple[tuple[int, int], ...] = ()
    chunks: int = 1


def stage_of(nest: Nest, operands: list[Var], numbers: set[Var], count: int = 0) -> Stage:
    """The launch of loops over these values."""
    held = frozenset([i for i, v in enumerate(operands) if v in numbers])
    dtypes = [np.dtype(np.float64) if i in held else v.spec.dtype for i, v in enumerate(operands)]
    tables = {i: _reach(operands[i].spec) for i in _indexed(nest)}
    kernel = Held(in_memory(nest, dtypes), held, tables)
    _ = kernel.code  # it can be printed
    same = tuple([(r, w) for r, w in nest.over if dtypes[r] == dtypes[w]])
    return Stage(Launch(kernel, nest.writes, count, same), tuple(operands))  # type: ignore[arg-type]


def _indexed(nest: Nest) -> set[int]:
    """The operands of which an index says what is read."""
    values = [v for each in nest.body for v in (values_of(each) if isinstance(each, For) else [each.value])]
    return {load.operand for value in values for load in loads_of(value) if load.index is not None}


def _reach(spec: Spec) -> int:
    """How many elements there are from the first one to the last in memory."""
    return 1 + sum([(n - 1) * s for n, s in zip(spec.shape, strides_of(spec), strict=True)])


def product_stage(small: Small, loop: Stage | None, kept: bool) -> Stage:
    """The launch of a product, with a loop over its elements at its end; whether the product is stored, too."""
    first, kept = len(small.operands), kept or loop is None
    outs, writes = (small.out,) if kept else (), frozenset({first} if kept else ())
    if loop is None:
        return Stage(Launch(Tiled(small), writes, small.count), (*small.operands, *outs))  # type: ignore[arg-type]
    given = loop.operands.index(small.out)
    kernel = Tiled(small, loop.kernel.kernel, given, kept)  # type: ignore[attr-defined]
    at = {i: first + kept + i - (i > given) for i in range(len(loop.operands)) if i != given}
    writes |= {at[i] for i in loop.kernel.writes}
    over = tuple([(at[r], at[w]) for r, w in loop.kernel.over if r != given])
    operands = (*small.operands, *outs, *[loop.operands[i] for i in at])
    return Stage(Launch(kernel, writes, small.count, over), operands)  # type: ignore[arg-type]


def copy_launch(spec: Spec, offset: int, source: Sequence[int], target: Sequence[int]) -> Launch:
    """What `genesis.jit.lowering.copies.copy_kernel` is on the CPU."""
    dtype = spec.dtype
    axes = [Axis(n) for n in spec.shape if n != 1] or [Axis(1)]
    steps = [(s, t) for n, s, t in zip(spec.shape, source, target, strict=True) if n != 1] or [(0, 0)]
    reads = tuple([(axis, s) for axis, (s, _) in zip(axes, steps, strict=True) if s])
    writes = tuple([(axis, t) for axis, (_, t) in zip(axes, steps, strict=True) if t])
    load = Load(0, Affine(offset // dtype.itemsize, reads), dtype)
    nest = Nest((dtype, dtype), (For(tuple(axes), (Store(1, Affine(0, writes), load),), vector=True),))
    return Launch(Held(nest, frozenset()), frozenset({1}), 0)
