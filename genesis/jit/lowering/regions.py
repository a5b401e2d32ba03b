"""Which calls of a program run together."""

from __future__ import annotations

from genesis.jit.lowering.phases import Phase
from genesis.jit.program import Program, op_of


def phases(program: Program) -> list[Phase]:
    """The phases of a program: each call one that the host computes. Views are no calls, they are parts of their root."""
    return [
        Phase((), (call,), why=f"there is no kernel for {op_of(call).name}")
        for call in program.calls
        if call.outs[0] not in program.regions
    ]
