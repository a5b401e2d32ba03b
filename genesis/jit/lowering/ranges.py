"""Indices of the outside are looked at before anything else is computed.

One that is out of range is an error, after which nothing may have been written to. What is made of arguments and captured
tensors can be checked before the rest: machine code says of each whether it holds a wrong one, and only if so, the host
is asked, which raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call.kinds.indexing import AT
from genesis.jit.arguments import Var
from genesis.jit.lowering.parts import BOOL, I64, Builder, Check, Memory, Part, Unknown, total
from genesis.jit.program import Call, Program


def of_outside(program: Program) -> dict[Check, tuple[Call, ...]]:
    """What is checked of the arrays that a program is given, and the calls that raise if it does not hold."""
    outside = {*program.arguments, *program.captured}
    known: dict[Check, tuple[Call, ...]] = {}
    for call in program.calls:
        for check, calls in _asked(call):
            made = {v for each in calls for v in each.outs}
            needed = [v for each in calls for v in each.inputs if v not in made]
            roots = {v if v not in program.regions else program.regions[v].root for v in needed}
            if roots <= outside:
                known.setdefault(check, calls)
    return known


def _asked(call: Call) -> Iterator[tuple[Check, tuple[Call, ...]]]:
    if call.op == "check_range":
        index, _, size, _ = call.args
        if isinstance(index, Var):
            yield Check(index, size), (call,)
    elif call.op in ("put", "take_index"):
        index, key = call.args[-2:] if call.op == "put" else call.args[1:]
        dim = one_dimension(key)
        if index is not None and dim is not None:
            size = call.args[0].spec.shape[dim]
            x, rows = call.args[0], Var(Spec((), call.args[0].spec.dtype))
            yield Check(index, size, -size), (Call("take_index", (x, index, key), (rows,), call.site),)
    elif call.op == "fused.cross_entropy":
        x, target, _, _, ignored, *_ = call.args
        yield of_classes(call, target, ignored, x.spec.shape[1])


def of_classes(call: Call, target: Var, ignored: int, count: int) -> tuple[Check, tuple[Call, ...]]:
    """That of the classes of a cross entropy."""
    shape, dtype = target.spec.shape, target.spec.dtype
    counts, classes, checked = (Var(Spec(shape, kind)) for kind in (BOOL, dtype, dtype))
    calls = (
        Call("ne", (target, ignored), (counts,), call.site),
        Call("select_where", (counts, target, 0), (classes,), call.site),
        Call("check_range", (classes, "cross_entropy", count, f"{count} classes"), (checked,), call.site),
    )
    return Check(target, count, ignored=ignored), calls


def one_dimension(key: Any) -> int | None:
    """The dimension of which an index array says which rows are meant; None for other keys."""
    dims = [d for d, k in enumerate(key) if k == AT]
    others = all([k == AT or (isinstance(k, slice) and k == slice(None)) for k in key])
    return dims[0] if len(dims) == 1 and others else None


def flag(memory: Memory, call: Call, check: Check) -> Part:
    """Whether a number is none of those: 0 or 1."""
    index, size, low, ignored = check
    dims = range(len(index.spec.shape))
    if index.spec.dtype.kind not in "iu":
        raise Unknown("an index of this dtype")
    made = Builder(memory, call, index.spec.shape, dims)
    x = made.read(index, memory.strides(index)).astype(I64)
    x = x if ignored is None else np.where(x != ignored, x, 0)
    made.give(
        Var(Spec((), I64)), total("maximum", np.where((x < low) | (x >= size), 1, 0).astype(I64)), (0,) * len(dims)
    )
    return made.made()


def as_it_is(memory: Memory, call: Call) -> Part:
    """Indices that were checked before."""
    made = Builder(memory, call, call.outs[0].spec.shape)
    made.give(call.outs[0], made.read(call.args[0]))
    return made.made()
