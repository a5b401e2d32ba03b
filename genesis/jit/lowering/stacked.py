"""Products of several matrices with one and the same second matrix, as one product of all their rows: that matrix is read,
and copied, once. So are the weights of a layer that is called for several shards of a batch.

    a = linear(x, w)            z = cat(x, y)   c = linear(z, w)
    b = linear(y, w)            a = c[:m]       b = c[m:]

Each row has the same bits: how the terms of a product are added does not depend on the number of rows, but for few of them.
What reads ``x`` after that reads ``z[:m]``, so that ``x`` itself is mostly not stored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from genesis.arrays.spec import Spec, contiguous_strides, strides_of
from genesis.jit.arguments import Var
from genesis.jit.lowering import rounds, vectors
from genesis.jit.lowering.layouts import dense
from genesis.jit.program import Call, Program, op_of, repeatable

F32 = np.dtype(np.float32)
NARROW = 4  # columns, and terms, of the second matrix, from which products of any number of rows are computed alike
MOST = 512  # rows of each, above which that matrix is little beside them


class _Ranked(NamedTuple):
    """A call, and how many products there are at most on a way to it from outside: those of one rank need nothing of each
    other, and calls are in an order in which they can run when they are sorted by rank.
    """

    rank: int
    number: int  # in the program
    call: Call


def stacked(program: Program) -> Program:
    """The program, with such products."""
    ranked = _ranked(program)
    groups = _groups(program, ranked)
    if not groups or rounds.in_rounds(program) is not None:
        return program
    members = {id(each.call) for group in groups for each in group}
    calls = [each for each in ranked if id(each.call) not in members]
    behind: dict[Var, tuple[tuple[int, int], Var]] = {}  # what is read in place of a value, by calls behind this place
    made = {v for call in program.calls for v in call.outs} - {*program.regions, *program.ends}
    for group in groups:
        rank, number = group[0].rank, max([each.number for each in group])
        new, parts = _as_one([each.call for each in group])
        calls += [_Ranked(rank, number, call) for call in new]
        behind |= {x: ((rank, number), part) for x, part in parts.items() if x in made and x not in behind}
    calls.sort(key=lambda each: each[:2])
    return program.with_calls([_renamed(each, behind) for each in calls])


def _ranked(program: Program) -> list[_Ranked]:
    ranks: dict[Var, int] = {}
    out, last = [], 0
    for number, call in enumerate(program.calls):
        rank = max([ranks.get(v, 0) for v in call.inputs], default=0)
        if not repeatable(call) or op_of(call).begins is not None:  # these stay in their order
            rank = last = max(rank, last)
        out.append(_Ranked(rank, number, call))
        ranks |= dict.fromkeys(call.outs, rank + (call.op in ("linear", "matmul")))
    return out


def _groups(program: Program, ranked: Sequence[_Ranked]) -> list[list[_Ranked]]:
    groups: dict[Any, list[_Ranked]] = {}
    ends = set(program.ends)
    for each in ranked:
        if _suits(program, each.call) and ends.isdisjoint(each.call.outs):
            x, *others = each.call.args
            key = each.rank, each.call.op, x.spec.shape, *[id(v) if isinstance(v, Var) else v for v in others]
            groups.setdefault(key, []).append(each)
    return [group for group in groups.values() if len({each.call.args[0] for each in group}) == len(group) > 1]


def _suits(program: Program, call: Call) -> bool:
    """Whether it is a product of rows that lie one after the other, neither few nor many, with one float32 matrix."""
    if call.op not in ("linear", "matmul"):
        return False
    x, w = call.args[:2]
    if {v.spec.dtype for v in (*call.inputs, *call.outs)} != {F32} or len(x.spec.shape) < 2 or len(w.spec.shape) != 2:
        return False
    region = program.regions.get(x)
    strides = strides_of(x.spec) if region is None else region.strides
    rows = math.prod(x.spec.shape[:-1])
    lie = strides == contiguous_strides(x.spec.shape)
    return lie and vectors.FEW < rows <= MOST and min(w.spec.shape) >= NARROW


def _as_one(calls: Sequence[Call]) -> tuple[list[Call], dict[Var, Var]]:
    """The calls in place of several, and where the first operands of these lie now."""
    op, (x, *others), site = calls[0].op, calls[0].args, calls[0].site
    (out,) = calls[0].outs
    rows = x.spec.shape[0]
    given, result = (Var(_of_all(v.spec, len(calls))) for v in (x, out))
    new = [
        Call("cat", (tuple([call.args[0] for call in calls]), 0), (given,), site),
        Call(op, (given, *others), (result,), site),
    ]
    parts = {}
    for i, call in enumerate(calls):
        parts[call.args[0]] = Var(dense(x.spec))
        new.append(Call("narrow", (given, 0, i * rows, rows), (parts[call.args[0]],), call.site))
        new.append(Call("narrow", (result, 0, i * rows, rows), call.outs, call.site))
    return new, parts


def _of_all(spec: Spec, count: int) -> Spec:
    return Spec((spec.shape[0] * count, *spec.shape[1:]), spec.dtype)


def _renamed(each: _Ranked, behind: dict[Var, tuple[tuple[int, int], Var]]) -> Call:
    """A call that reads what lies together, where that is made before it."""

    def seen(v: Var) -> Var:
        rank, part = behind.get(v, ((0, 0), v))
        return part if rank < each[:2] else v

    return each.call.renamed(seen)
