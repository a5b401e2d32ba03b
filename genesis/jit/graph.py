"""Graphs of primitives: what a trace records, what passes change, what a compiler is given.

A graph is a list of nodes in the order in which they can run. A node is the name of a primitive op and its arguments:
variables, numbers, and tuples of them; nothing else, no Python objects. Every variable has a spec and is assigned once.
What comes from outside is at the border: arguments of the call, tensors that the function captured, constants, host
numbers and random streams. What goes out: results, writes into arguments and captured tensors, gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from genesis.base import dtypes
from genesis.base.errors import GraphError, message
from genesis.base.pytree import TreeDef
from genesis.base.text import Printed
from genesis.core.graph.generator import Generator
from genesis.core.graph.tensor import Tensor
from genesis.jit.nodes import Alias, Draw, Leaf, Node, Var, Write, inferred
from genesis.jit.replay import replay


class Guard(Protocol):
    """Something that a trace takes for granted."""

    def changed(self) -> str | None:
        """None while it is as it was at the trace, else a sentence that says what is not."""


@dataclass(slots=True)
class Graph(Printed):
    """A traced function; `replay` runs it."""

    name: str
    nodes: list[Node]
    arguments: list[Var]  # of the tensors among the arguments, in order
    captured: list[tuple[Var, Tensor]]
    constants: list[tuple[Var, np.ndarray[Any, Any]]]
    numbers: list[tuple[Var, Callable[[], float]]]
    counts: list[tuple[Any, str]]  # entries of dictionaries that go up by one
    streams: list[tuple[Generator, int]]  # and by how many blocks a call moves them
    results: list[Any]  # variables, and plain values
    writes: list[Write]
    structure_in: TreeDef
    structure_out: TreeDef
    plain: list[Any] = field(default_factory=list)  # the arguments that are no tensors
    # how many of the counts have gone up when a number is asked for
    after: dict[Var, int] = field(default_factory=dict)
    leaves: list[Leaf] = field(default_factory=list)  # tensors of the outside whose .grad is read or changed
    made: list[Var] = field(default_factory=list)  # memory that several results share
    aliases: dict[int, Alias] = field(default_factory=dict)  # the results that are no memory of their own
    guards: list[Guard] = field(default_factory=list)  # what must be as it was at the trace
    wrote: bool = False  # whether results may depend on how arguments are laid out
    names: dict[Var, str] = field(init=False)  # for printing
    ended: list[list[Var]] = field(init=False)  # for each node the variables that nothing needs after it

    def __post_init__(self) -> None:
        numbers, gradients = [v for v, _ in self.numbers], [leaf.var for leaf in self.leaves if leaf.var is not None]
        outside = (
            ("x", self.arguments),
            ("w", [v for v, _ in self.captured]),
            ("c", [v for v, _ in self.constants]),
            ("n", numbers),
            ("g", gradients),
        )
        inside = [v for node in self.nodes for v in node.outs]
        self.names = {v: f"{letter}{i}" for letter, group in (*outside, ("%", inside)) for i, v in enumerate(group)}
        needed = set(self.ends)
        self.ended = []
        for node in reversed(self.nodes):
            last = {v for v in (*node.inputs, *node.outs) if v not in needed}
            needed |= last
            self.ended.append(list(last))
        self.ended.reverse()

    # ---- running

    def replay(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph op by op: what the function would return, and the writes that it would make.

        Raises:
            TypeError: arguments of another structure than those it was traced with
            RuntimeError: a tensor of another shape or dtype, or something that the trace took for granted has changed
                (see `changed`)
        """
        return replay(self, args, kwargs)

    def changed(self) -> list[str]:
        """What is not as it was at the trace: a sentence for each guard that does not hold any more.

        >>> import genesis
        >>> model = genesis.nn.Dropout(0.5)
        >>> graph = genesis.jit.trace(model, genesis.ones(2))
        >>> graph.changed()
        []
        >>> _ = model.eval(); graph.changed()
        ['Dropout.training is False, it was True']
        """
        return [reason for guard in self.guards if (reason := guard.changed()) is not None]

    # ---- asking

    def verify(self) -> Graph:
        """Check that every variable is assigned once and before it is used, and that every node's specs are what its op
        infers; returns the graph.

        Raises:
            RuntimeError: the first node that is wrong, and why
        """
        outside = [
            *self.arguments,
            *[var for var, _ in (*self.captured, *self.constants, *self.numbers)],
            *[x.var for x in self.leaves if x.var is not None],
        ]
        known = set(outside)
        if len(known) != len(outside):
            raise GraphError(message("verify", "a variable stands for two things of the outside"))
        for node in self.nodes:
            for var in node.inputs:
                if var not in known:
                    raise GraphError(
                        message(
                            "verify",
                            f"{node.op} uses {self.name_of(var)}, which nothing before it assigns",
                            [("node", self.line(node))],
                        )
                    )
            for var in node.outs:
                if var in known:
                    raise GraphError(
                        message("verify", f"{self.name_of(var)} is assigned twice", [("node", self.line(node))])
                    )
                known.add(var)
            if node.op != "draw":
                found = inferred(node)
                if [(s.shape, s.dtype) for s in found] != [(v.spec.shape, v.spec.dtype) for v in node.outs]:
                    raise GraphError(
                        message("verify", f"{node.op} infers {', '.join(map(str, found))}", [("node", self.line(node))])
                    )
        for var in self.ends:
            if var not in known:
                raise GraphError(message("verify", f"the result {self.name_of(var)} is not assigned"))
        return self

    @property
    def ends(self) -> list[Var]:
        """The variables that leave the graph."""
        return (
            [r for r in self.results if isinstance(r, Var)]
            + self.made
            + [w.value for w in self.writes if w.value is not None]
        )

    def count(self, op: str | None = None) -> int:
        """How many nodes there are (of one op)."""
        return len(self.nodes) if op is None else sum(node.op == op for node in self.nodes)

    def with_nodes(self, nodes: list[Node], **changes: Any) -> Graph:
        """The same graph with other nodes."""
        return replace(self, nodes=nodes, **changes)

    # ---- printing

    def line(self, node: Node) -> str:
        """A node as a line of code."""
        outs = ", ".join(f"{self.name_of(v)}: {v.spec}" for v in node.outs)
        text = f"{outs} = {node.op}({', '.join(self._shown(a) for a in node.args)})"
        return text if node.site is None else f"{text:<72}  # {node.site.short}"

    def target(self, w: Write) -> str:
        """What a write changes, by name."""
        if w.of_gradient:
            return self.gradient_of(self.leaves[w.place])
        return self.name_of(self.arguments[w.place] if w.kind == "argument" else self.captured[w.place][0])

    def gradient_of(self, leaf: Leaf) -> str:
        """The .grad of a leaf, by name."""
        if leaf.tensor is None:
            return f"{self.name_of(self.arguments[leaf.argument])}.grad"
        return next(
            (f"{self.name_of(v)}.grad" for v, x in self.captured if x is leaf.tensor), f"({leaf.tensor._spec()}).grad"
        )

    def name_of(self, var: Var) -> str:
        return self.names.get(var, repr(var))

    def _shown(self, value: Any) -> str:
        if isinstance(value, Var):
            return self.name_of(value)
        if isinstance(value, tuple | list):
            inside = ", ".join(self._shown(v) for v in value)
            return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"
        if isinstance(value, slice):
            return ":".join("" if b is None else str(b) for b in (value.start, value.stop)) + (
                "" if value.step in (None, 1) else f":{value.step}"
            )
        if isinstance(value, np.dtype):
            return dtypes.from_numpy(value).short
        if isinstance(value, Draw):
            return f"stream {value.stream} + {value.offset}"
        return "..." if value is Ellipsis else repr(value)

    def _text(self) -> str:
        parameters = [f"{self.name_of(v)}: {v.spec}" for v in self.arguments]
        lines = [f"def {self.name}({', '.join(parameters)}):"]
        lines += [f"    {self.name_of(v)}: {v.spec} = captured tensor" for v, _ in self.captured]
        lines += [
            f"    {self.name_of(x.var)}: {x.var.spec} = {self.gradient_of(x)}" for x in self.leaves if x.var is not None
        ]
        lines += [
            f"    {self.name_of(v)}: {v.spec} = constant" + (f" {array.tolist()}" if array.size <= 4 else "")
            for v, array in self.constants
        ]
        lines += [f"    {self.name_of(v)} = number of the host" for v, _ in self.numbers]
        lines += ["    " + self.line(node) for node in self.nodes]
        lines += [
            f"    {self.target(w)} <- {'None' if w.value is None else self.name_of(w.value)}" for w in self.writes
        ]
        shown = self._shown(tuple(self.results)) if len(self.results) != 1 else self._shown(self.results[0])
        return "\n".join([*lines, f"    return {shown}"])

    def __repr__(self) -> str:
        return f"<graph of {self.name}: {len(self.nodes)} nodes, {len(self.arguments)} arguments, {len(self.captured)} captured tensors>"

    def draw(self, max_nodes: int = 200) -> Any:
        """A picture of the graph, see `genesis.draw`."""
        from importlib import import_module

        return import_module("genesis.debug.traced").draw_graph(self, max_nodes)
