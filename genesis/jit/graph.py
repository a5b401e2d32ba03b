"""Graphs of primitives: what a trace records, what passes change, what a compiler is given.

A graph is a list of nodes in the order in which they can run. A node is the name of a primitive op and its arguments: variables,
numbers, and tuples of them; nothing else, no Python objects. Every variable has a spec and is assigned once. What comes from outside is at
the border: arguments of the call, tensors that the function captured, constants, host numbers and random streams. What goes out: results,
writes into arguments and captured tensors, gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, strides_of
from genesis.base import dtypes
from genesis.base.errors import ArgumentError, GraphError, message
from genesis.base.pytree import TreeDef, tree_flatten, tree_unflatten
from genesis.core import dispatch
from genesis.core.draws import DRAWS
from genesis.core.generator import Generator
from genesis.core.layout import with_strides
from genesis.core.modes import grad_mode, no_grad
from genesis.core.op import REGISTRY
from genesis.core.site import Site
from genesis.core.tensor import Tensor, wrap
from genesis.core.views import bump, write


class Var:
    """A value of a graph."""

    __slots__ = ("spec",)

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def __repr__(self) -> str:
        return f"<variable {self.spec}>"


@dataclass(frozen=True, slots=True)
class Node:
    """One call of a primitive: ``outs = op(*args)``."""

    op: str
    args: tuple[Any, ...]
    outs: tuple[Var, ...]
    site: Site | None = None

    @property
    def inputs(self) -> Iterator[Var]:
        """The variables among the arguments."""
        return variables(self.args)


@dataclass(frozen=True, slots=True)
class Draw:
    """Where a random node finds its numbers: a stream, and how many blocks after the beginning of the call."""

    stream: int
    offset: int


@dataclass(frozen=True, slots=True)
class Write:
    """What a call leaves behind in a tensor of the outside."""

    # "argument" or "captured": its new value. "grad": the new .grad of a captured tensor; "add grad": what is added to it; "argument grad": to that of an argument
    kind: str
    place: int
    value: Var


@dataclass(slots=True)
class Graph:
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
    gradients: dict[int, int] = field(default_factory=dict)  # which captured tensors are the .grad of which others
    wrote: bool = False  # whether the function wrote to tensors: then arguments must be laid out as those of the trace
    names: dict[Var, str] = field(init=False)  # for printing
    ended: list[list[Var]] = field(init=False)  # for each node the variables that nothing needs after it

    def __post_init__(self) -> None:
        outside = (("x", self.arguments), ("w", [v for v, _ in self.captured]), ("c", [v for v, _ in self.constants]), ("n", [v for v, _ in self.numbers]))
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
            RuntimeError: a tensor of another shape or dtype
        """
        leaves, structure = tree_flatten((args, kwargs))
        if structure != self.structure_in:
            raise ArgumentError(message("replay", f"{self.name} was traced with other arguments", [("traced", self.structure_in), ("given", structure)]))
        given = [x for x in leaves if isinstance(x, Tensor)]
        self._check(given)
        self._check_plain([x for x in leaves if not isinstance(x, Tensor)])
        for counts, key in self.counts:
            counts[key] += 1
        values: dict[Var, Any] = {}
        for var, x in zip(self.arguments, given, strict=True):
            values[var] = wrap(x._array)
        for place, (var, x) in enumerate(self.captured):
            values[var] = wrap(x._array) if place not in self.gradients else self._gradient(place)
        for var, array in self.constants:
            values[var] = wrap(array)
        starts = [(generator, generator._block) for generator, _ in self.streams]
        with no_grad():
            try:
                for var, number in self.numbers:
                    values[var] = float(number())
                for node, ended in zip(self.nodes, self.ended, strict=True):
                    self._run(node, values, starts)
                    for var in ended:
                        del values[var]
            except BaseException:  # as if the call had not been made
                for counts, key in self.counts:
                    counts[key] -= 1
                for generator, start in starts:
                    generator._position(start)
                raise
            for (generator, blocks), (_, start) in zip(self.streams, starts, strict=True):
                generator._position(start + blocks)
            results = [self._result(r, values) for r in self.results]
            self._write(given, values)
        return tree_unflatten(results, self.structure_out)

    def _check(self, given: list[Tensor]) -> None:
        if len(given) != len(self.arguments):
            raise ArgumentError(message("replay", f"{self.name} was traced with {len(self.arguments)} tensors, {len(given)} were given"))
        for i, (x, var) in enumerate(zip(given, self.arguments, strict=True)):
            if (tuple(x._array.shape), x._array.dtype) != (var.spec.shape, var.spec.dtype):
                raise GraphError(message("replay", f"argument tensor {i} is {x._spec()}, {self.name} was traced with {var.spec}", hint="trace it again for other shapes"))
            if self.wrote and x._array.__class__ is np.ndarray and not _same_layout(x._array, var.spec):
                raise GraphError(
                    message("replay", f"argument tensor {i} is laid out otherwise than when {self.name} was traced, which writes to tensors in place",
                            operands=[("strides", x.stride()), ("traced", strides_of(var.spec))], hint="x.contiguous(), or trace it again")
                )  # fmt: skip
            if x.requires_grad and grad_mode.get() and not any(w.kind == "argument grad" and w.place == i for w in self.writes):
                raise GraphError(
                    message("replay", f"argument tensor {i} requires grad, a replay is not differentiable",
                            operands=[("argument", x._spec())], hint="trace a function that computes the gradient, too; or pass x.detach()")
                )  # fmt: skip
        if any(w.kind == "argument" or w.kind == "captured" for w in self.writes):
            self._check_shared(given)

    def _check_plain(self, given: list[Any]) -> None:
        for a, b in zip(self.plain, given, strict=True):
            if isinstance(a, bool | int | float | complex | str | None) and not (type(a) is type(b) and (a == b or (a != a and b != b))):
                raise GraphError(message("replay", f"an argument is {b!r}, {self.name} was traced with {a!r}", hint="trace it again, or pass the number as a tensor"))

    def _check_shared(self, given: list[Tensor]) -> None:
        """A graph that writes takes its tensors for different memory."""
        arrays = [x._array for x in (*given, *[t for _, t in self.captured])]
        owners = [id(a if a.base is None else a.base) for a in arrays]
        for i, x in enumerate(given):
            if any(owners[k] == owners[i] and np.may_share_memory(arrays[k], arrays[i]) for k in range(i + 1, len(arrays))):
                raise GraphError(
                    message("replay", f"argument tensor {i} shares its memory with another argument or a captured tensor, and {self.name} writes to one of them",
                            operands=[("argument", x._spec())], hint="pass a clone()")
                )  # fmt: skip

    def _gradient(self, place: int) -> Tensor:
        """The .grad of a captured tensor, as it is now."""
        leaf, spec = self.captured[self.gradients[place]][1], self.captured[place][0].spec
        if leaf.grad is not None:
            return wrap(leaf.grad._array)
        if any(w.kind == "captured" and w.place == place for w in self.writes):  # it is added to
            return wrap(np.zeros(spec.shape, spec.dtype))
        raise GraphError(message("replay", f"a .grad that {self.name} reads is None", operands=[("tensor", leaf._spec())], hint="call backward() first"))

    def _run(self, node: Node, values: dict[Var, Any], starts: list[tuple[Generator, int]]) -> None:
        if node.op == "draw":
            name, shape, kind, options, at = node.args
            generator, start = starts[at.stream]
            generator._position(start + at.offset)
            values[node.outs[0]] = wrap(DRAWS[name](generator, shape, dtypes.as_dtype(kind).np, *options))
            return
        op = REGISTRY[node.op]
        args = tuple([_filled(a, values, i in op.tensors or (op.variadic and i == 0)) for i, a in enumerate(node.args)])
        out = dispatch.apply(op, args)
        for var, y in zip(node.outs, out if isinstance(out, tuple) else (out,), strict=True):
            values[var] = y

    def _result(self, result: Any, values: dict[Var, Any]) -> Any:
        if not isinstance(result, Var):
            return result
        y = values[result]
        if isinstance(y, Tensor):  # its own memory, laid out as the function's is: what was read may be written to later
            return wrap(y._array.copy("K")) if y._array.__class__ is np.ndarray else y.clone()
        return wrap(np.asarray(y))

    def _write(self, given: list[Tensor], values: dict[Var, Any]) -> None:
        new = [values[w.value].clone() for w in self.writes]  # one write may read what another overwrites
        for w, value in zip(self.writes, new, strict=True):
            target = given[w.place] if w.kind.startswith("argument") else self.captured[w.place][1]
            if w.kind == "captured" and w.place in self.gradients:
                leaf = self.captured[self.gradients[w.place]][1]
                if leaf.grad is None:
                    leaf.grad = value
                    continue
                target = leaf.grad
            if w.kind == "grad" or (w.kind.endswith("grad") and target.grad is None):
                target.grad = value
            elif w.kind.endswith("grad"):
                target.grad.add_(value)
            else:
                write(target, value)
                bump(target, f"{self.name}, replayed")

    # ---- asking

    def verify(self) -> Graph:
        """Check that every variable is assigned once and before it is used, and that every node's specs are what its op infers; returns the graph.

        Raises:
            RuntimeError: the first node that is wrong, and why
        """
        known = {var for var, _ in (*self.captured, *self.constants, *self.numbers)} | set(self.arguments)
        if len(known) != len(self.captured) + len(self.constants) + len(self.numbers) + len(self.arguments):
            raise GraphError(message("verify", "a variable stands for two things of the outside"))
        for node in self.nodes:
            for var in node.inputs:
                if var not in known:
                    raise GraphError(message("verify", f"{node.op} uses {self.name_of(var)}, which nothing before it assigns", [("node", self.line(node))]))
            for var in node.outs:
                if var in known:
                    raise GraphError(message("verify", f"{self.name_of(var)} is assigned twice", [("node", self.line(node))]))
                known.add(var)
            if node.op != "draw":
                found = inferred(node)
                if [(s.shape, s.dtype) for s in found] != [(v.spec.shape, v.spec.dtype) for v in node.outs]:
                    raise GraphError(message("verify", f"{node.op} infers {', '.join(map(str, found))}", [("node", self.line(node))]))
        for var in self.ends:
            if var not in known:
                raise GraphError(message("verify", f"the result {self.name_of(var)} is not assigned"))
        return self

    @property
    def ends(self) -> list[Var]:
        """The variables that leave the graph."""
        return [r for r in self.results if isinstance(r, Var)] + [w.value for w in self.writes]

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
        name = self.name_of(self.arguments[w.place] if w.kind.startswith("argument") else self.captured[w.place][0])
        if w.kind == "captured" and w.place in self.gradients:
            return f"{self.name_of(self.captured[self.gradients[w.place]][0])}.grad"
        return f"{name}.grad" if w.kind.endswith("grad") else name

    def name_of(self, var: Var) -> str:
        return self.names.get(var, repr(var))

    def _shown(self, value: Any) -> str:
        if isinstance(value, Var):
            return self.name_of(value)
        if isinstance(value, tuple | list):
            inside = ", ".join(self._shown(v) for v in value)
            return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"
        if isinstance(value, slice):
            return ":".join("" if b is None else str(b) for b in (value.start, value.stop)) + ("" if value.step in (None, 1) else f":{value.step}")
        if isinstance(value, np.dtype):
            return dtypes.from_numpy(value).short
        if isinstance(value, Draw):
            return f"stream {value.stream} + {value.offset}"
        return "..." if value is Ellipsis else repr(value)

    def __str__(self) -> str:
        parameters = [f"{self.name_of(v)}: {v.spec}" for v in self.arguments]
        lines = [f"def {self.name}({', '.join(parameters)}):"]
        for place, (v, _) in enumerate(self.captured):
            what = f"{self.name_of(self.captured[self.gradients[place]][0])}.grad" if place in self.gradients else "captured tensor"
            lines.append(f"    {self.name_of(v)}: {v.spec} = {what}")
        lines += [f"    {self.name_of(v)}: {v.spec} = constant" + (f" {array.tolist()}" if array.size <= 4 else "") for v, array in self.constants]
        lines += [f"    {self.name_of(v)} = number of the host" for v, _ in self.numbers]
        lines += ["    " + self.line(node) for node in self.nodes]
        lines += [f"    {self.target(w)} {'+=' if w.kind in ('add grad', 'argument grad') else '<-'} {self.name_of(w.value)}" for w in self.writes]
        shown = self._shown(tuple(self.results)) if len(self.results) != 1 else self._shown(self.results[0])
        return "\n".join([*lines, f"    return {shown}"])

    def __repr__(self) -> str:
        return f"<graph of {self.name}: {len(self.nodes)} nodes, {len(self.arguments)} arguments, {len(self.captured)} captured tensors>"

    def draw(self, max_nodes: int = 200) -> Any:
        """A picture of the graph, see `genesis.draw`."""
        from importlib import import_module

        return import_module("genesis.debug.traced").draw_graph(self, max_nodes)


def _same_layout(array: Any, spec: Spec) -> bool:
    strides = strides_of(spec)
    return not array.size or all(n == 1 or s == t * array.itemsize for n, s, t in zip(array.shape, array.strides, strides, strict=True))


def variables(value: Any) -> Iterator[Var]:
    """The variables in an argument."""
    if isinstance(value, Var):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from variables(item)


def renamed(value: Any, f: Callable[[Var], Any]) -> Any:
    """An argument with other things in place of its variables."""
    if isinstance(value, Var):
        return f(value)
    if isinstance(value, tuple):
        return tuple([renamed(v, f) for v in value])
    return [renamed(v, f) for v in value] if isinstance(value, list) else value


def _filled(value: Any, values: dict[Var, Any], tensor: bool) -> Any:
    """An argument with values: tensors where the op takes tensors, arrays in indices."""
    if tensor:
        return renamed(value, values.__getitem__)
    return renamed(value, lambda var: values[var]._array)


def inferred(node: Node) -> list[Spec]:
    """The specs of a node's results, from its op."""
    op = REGISTRY[node.op]
    specs = renamed(node.args, lambda var: var.spec if var.spec.device.type != "meta" else 1.0)
    specs = tuple([s if i in op.tensors or (op.variadic and i == 0) else _ghosts(s) for i, s in enumerate(specs)])
    if op.kind == "elementwise":
        found = op.infer(*[specs[i] for i in op.tensors])  # type: ignore[misc]
    else:
        found = op.infer(*specs)  # type: ignore[misc]
    return list(found) if isinstance(found, tuple | list) else [with_strides(op, specs, found)]


def _ghosts(value: Any) -> Any:
    """Zeros for the specs in an index."""
    if isinstance(value, Spec):
        return np.broadcast_to(np.zeros((), value.dtype), value.shape)
    return tuple([_ghosts(v) for v in value]) if isinstance(value, tuple) else value
