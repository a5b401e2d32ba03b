"""Dead code: nodes whose results nobody uses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from genesis.jit.passes.on_graphs import on_graphs
from genesis.jit.program import Program


@on_graphs
def dead_code(program: Program) -> Program:
    """Drop nodes, captured tensors, constants and numbers that no result and no write depends on.

    (A draw may be dropped: the stream moves on by what the whole function draws, whoever draws it.)

    Before: ``a = exp(x); b = sin(x); return b``     After: ``b = sin(x); return b``

    >>> import genesis
    >>> from genesis import jit
    >>> graph = jit.trace(lambda x: (x.exp(), x.sin())[1], genesis.ones(2))
    >>> [n.op for n in graph.nodes], [n.op for n in jit.dead_code(graph).nodes]
    (['exp', 'sin'], ['sin'])
    """
    wanted = set(program.ends)
    kept = []
    for call in reversed(program.calls):
        if wanted.intersection(call.outs):
            kept.append(call)
            wanted.update(call.inputs)
    aliases = [a for _, a in program.aliases]
    named = {thing.index for thing in (*program.writes, *program.leaves, *aliases) if thing.kind == "captured"}
    indices = [i for i, var in enumerate(program.captured) if var in wanted or i in named]
    moved = {old: i for i, old in enumerate(indices)}

    def follow(thing: Any) -> Any:
        """A write, a leaf or an alias that counts the captured tensors that are left."""
        return replace(thing, index=moved[thing.index]) if thing.kind == "captured" else thing

    leaves = [
        follow(leaf if leaf.var is None or leaf.var in wanted else replace(leaf, var=None)) for leaf in program.leaves
    ]
    return program.with_calls(
        kept[::-1],
        captured=[program.captured[i] for i in indices],
        constants=[c for c in program.constants if c[0] in wanted],
        numbers=[n for n in program.numbers if n[0] in wanted],
        writes=[follow(w) for w in program.writes],
        leaves=leaves,
        aliases=[(i, follow(a)) for i, a in program.aliases],
    )
