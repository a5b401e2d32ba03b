"""The backward of a compiled function where only some of its results got a gradient: what comes from the others alone is
not computed.

That is what calls as they are do, too. Zeros in their place would give the same where all numbers are finite; but zero
times infinity is NaN, and time would be spent on them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from genesis.arrays.spec import strides_of
from genesis.jit.arguments import Var
from genesis.jit.lowering.layouts import dense
from genesis.jit.passes import dead_code
from genesis.jit.passes.common import replaced
from genesis.jit.program import Call, Program


def without(program: Program, cotangents: Iterable[Var], absent: Iterable[Var]) -> Program:
    """The program for calls in which some of the cotangents are not there. A result that comes from these alone is None.

    Before: ``a = mul(g0, x); b = mul(g1, y); c = add(a, b); return c, b``     After, without g1: ``a = mul(g0, x); return a, None``
    """
    gone, flowing = set(absent), set(cotangents)
    same, zeros, calls = dict[Var, Var](), dict[Var, Var](), list[Call]()
    for call in program.calls:
        call = call.renamed(lambda v: same.get(v, v))  # noqa: PLW2901
        coming = [v for v in call.inputs if v in flowing]
        flowing.update(call.outs if coming else ())
        if coming and all([v in gone for v in coming]):
            gone.update(call.outs)
        elif (term := _term(call, gone)) is not None:
            same[call.outs[0]] = term
        else:
            zeros |= {v: Var(dense(v.spec)) for v in coming if v in gone and v not in zeros}
            calls.append(call.renamed(lambda v, zeros=zeros: zeros.get(v, v)))  # type: ignore[misc]
    made = tuple([(var, np.zeros(var.spec.shape, var.spec.dtype)) for var in zeros.values()])
    arguments = tuple([v for v in program.arguments if v not in set(absent)])
    program = replace(replaced(program, calls, same), arguments=arguments, constants=(*program.constants, *made))
    results = tuple([None if isinstance(r, Var) and r in gone else r for r in program.results])
    return dead_code(replace(program, results=results))


def _term(call: Call, gone: set[Var]) -> Var | None:
    """What is left of a sum of two of which one is not there, if it is all of it."""
    if call.op != "add" or len(call.args) != 2 or not all([isinstance(x, Var) for x in call.args]):
        return None
    left, spec = [x for x in call.args if x not in gone], call.outs[0].spec
    return left[0] if len(left) == 1 and left[0].spec == spec and strides_of(left[0].spec) == strides_of(spec) else None
