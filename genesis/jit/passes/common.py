"""Common subexpressions: what is computed twice."""

from __future__ import annotations

from typing import Any

from genesis.jit.arguments import Var
from genesis.jit.passes.on_graphs import on_graphs
from genesis.jit.program import Call, Program, Write, repeatable


@on_graphs
def common_subexpressions(program: Program) -> Program:
    """Compute once what several nodes compute from the same values. (Draws are not: each gives other numbers.)

    Before: ``a = exp(x); b = exp(x); c = add(a, b)``     After: ``a = exp(x); c = add(a, a)``

    >>> import genesis
    >>> from genesis import jit
    >>> graph = jit.trace(lambda x: x.exp() + x.exp(), genesis.ones(2))
    >>> [n.op for n in graph.nodes], [n.op for n in jit.common_subexpressions(graph).nodes]
    (['exp', 'exp', 'add'], ['exp', 'add'])
    """
    seen: dict[Any, tuple[Var, ...]] = {}
    same: dict[Var, Var] = {}
    calls = []
    for call in program.calls:
        call = call.renamed(lambda v: same.get(v, v))  # noqa: PLW2901
        key = (call.op, _key(call.args))
        if repeatable(call) and key in seen:
            same.update(zip(call.outs, seen[key], strict=True))
            continue
        seen[key] = call.outs
        calls.append(call)
    return replaced(program, calls, same)


def replaced(program: Program, calls: list[Call], same: dict[Var, Var]) -> Program:
    """A program whose ends follow a renaming."""
    results = [same.get(r, r) if isinstance(r, Var) else r for r in program.results]
    writes = [w if w.value is None else Write(w.kind, w.index, same.get(w.value, w.value)) for w in program.writes]
    return program.with_calls(calls, results=results, writes=writes, made=[same.get(v, v) for v in program.made])


def _key(value: Any) -> Any:
    """Arguments as something that can be looked up; 1, 1.0 and True are three things."""
    if isinstance(value, tuple | list):
        return type(value).__name__, tuple([_key(v) for v in value])
    if isinstance(value, slice):
        return "slice", value.start, value.stop, value.step
    return (type(value).__name__, repr(value)) if isinstance(value, int | float | complex) else value
