"""Calls that go on beside the program: collectives, whose elements travel while the rest is computed.

Such a call is begun as soon as its operand is there, and waited for where something reads its result. What is computed of
results alone, element by element, as the mean of a sum over ranks is, is left until something else needs it: all of a
backward pass lies between the first gradient that is sent and the optimizer.
"""

from __future__ import annotations

from collections.abc import Sequence

from genesis.core.call.kernels import op_named
from genesis.jit.arguments import Var
from genesis.jit.lowering.layouts import size_of
from genesis.jit.program import Call, Program


def goes_on(program: Program, call: Call) -> bool:
    """Whether a call is one that is begun and waited for: of one value that has memory of its own."""
    op = op_named(call.op)
    if op is None or op.begins is None:  # what rounds are made of is no op
        return False
    given = call.inputs
    return len(given) == len(call.outs) == 1 and given[0] not in program.regions and size_of(call.outs[0].spec) > 0


def late(program: Program, calls: Sequence[Call]) -> list[Call]:
    """The calls, with those that are made of such results alone where the first other call needs them, or at the end."""
    if not any([goes_on(program, call) for call in calls]):
        return list(calls)
    order: list[Call] = []
    held: dict[Var, Call] = {}
    under_way: set[Var] = set()
    outside = set(program.outside)

    def add(call: Call) -> None:
        for var in _roots(program, call):
            if var in held:
                add(held.pop(var))
        order.append(call)

    for call in calls:
        goes, read = goes_on(program, call), {*_roots(program, call)}
        op = op_named(call.op)
        waits = (
            not read.isdisjoint(under_way)
            and read <= under_way | outside
            and op is not None
            and op.kind == "elementwise"
        )
        if goes or waits:
            under_way.update(call.outs)
        if waits:
            held |= dict.fromkeys(call.outs, call)
        else:
            add(call)
    for var in list(held):
        if var in held:
            add(held.pop(var))
    return order


def _roots(program: Program, call: Call) -> list[Var]:
    return [program.regions[v].root if v in program.regions else v for v in call.inputs]
