"""What a program is bound to: tensors, functions that give numbers, dictionaries, random streams, and what must still
be true.

A `Graph` is a program and its binding: it can be replayed, and bound to other things.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from genesis.base.errors import ArgumentError, GraphError, message
from genesis.base.pytree import LEAF, TreeDef, tree_flatten
from genesis.base.text import Printed
from genesis.core.graph.generator import Generator
from genesis.core.graph.tensor import Tensor
from genesis.jit.arguments import Var
from genesis.jit.guards import CapturedAsTheyWere, Modes
from genesis.jit.program import Call, Leaf, Program, Write
from genesis.jit.replay import Plan, replay


class Guard(Protocol):
    """Something that a trace takes for granted."""

    def changed(self) -> str | None:
        """None while it is as it was at the trace, else a sentence that says what is not."""


@dataclass(frozen=True, slots=True)
class Binding:
    """The things of this process that the border of a program stands for, in the program's order."""

    captured: tuple[Tensor, ...] = ()
    others: tuple[Tensor, ...] = ()  # leaves that are not captured
    hooks: tuple[tuple[Any, ...], ...] = ()  # of each leaf that is an argument
    numbers: tuple[Callable[[], float], ...] = ()
    counts: tuple[tuple[Any, str], ...] = ()  # entries of dictionaries that go up by one
    streams: tuple[Generator, ...] = ()
    objects: Mapping[int, Any] = field(default_factory=dict)  # results that are Python's objects, by index
    structure_in: TreeDef = LEAF
    structure_out: TreeDef = LEAF
    plain: tuple[Any, ...] = ()  # the arguments that are no tensors
    guards: tuple[Guard, ...] = ()  # what must be as it was at the trace


@dataclass(frozen=True, eq=False, repr=False)
class Graph(Printed):
    """A traced function: a `program`, and the `binding` that says what it is called with; `replay` runs it."""

    program: Program
    binding: Binding

    # ---- running

    def replay(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph op by op: what the function would return, and the writes that it would make.

        Raises:
            TypeError: arguments of another structure than those it was traced with
            RuntimeError: a tensor of another shape or dtype, or something that the trace took for granted has changed
                (see `changed`)
        """
        return replay(self, args, kwargs)

    __call__ = replay

    def save(self, path: Any) -> None:
        """Write the function to a file, with the tensors that it captured; `genesis.jit.load` makes it callable again.

        Raises:
            RuntimeError: it has what no file has a form for, see `genesis.jit.save`
        """
        import_module("genesis.jit.saved").save(self, path)

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
        return [reason for guard in self.binding.guards if (reason := guard.changed()) is not None]

    def bind(self, *pairs: tuple[Any, Any]) -> Graph:
        """The same program with other tensors, modules, optimizers or generators in the place of those that it was
        traced with.

        Args:
            pairs: ``(old, new)``: of modules and optimizers all tensors, numbers of the host and states are exchanged,
                by name

        Raises:
            RuntimeError: what is new differs in more than its values: other shapes, another ``training``, other options

        >>> import genesis
        >>> old, new = genesis.nn.Linear(2, 2), genesis.nn.Linear(2, 2)
        >>> x = genesis.ones(1, 2)
        >>> graph = genesis.jit.trace(old, x).bind((old, new))
        >>> genesis.equal(graph.replay(x), new(x))
        True
        """
        from genesis.jit.rebinding import rebound

        return replace(self, binding=rebound(self.program, self.binding, pairs))

    @property
    def plan(self) -> Plan:
        """The program, prepared for being run op by op."""
        plan = self.__dict__.get("_plan")
        if plan is None:
            plan = self.__dict__["_plan"] = Plan(self.program)
        return plan  # type: ignore[no-any-return]

    # ---- asking

    def verify(self) -> Graph:
        """Check the program, see `Program.verify`, and that the binding has one thing for each that the program asks
        for; returns the graph.

        Raises:
            RuntimeError: the first call that is wrong, and why
        """
        self.program.verify()
        for name, wanted, bound in _border(self.program, self.binding):
            if wanted != bound:
                raise GraphError(message("verify", f"the program has {wanted} {name}, the binding {bound}"))
        return self

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def nodes(self) -> tuple[Call, ...]:
        """The calls of the program."""
        return self.program.calls

    @property
    def arguments(self) -> tuple[Var, ...]:
        return self.program.arguments

    @property
    def captured(self) -> list[tuple[Var, Tensor]]:
        return list(zip(self.program.captured, self.binding.captured, strict=True))

    @property
    def constants(self) -> list[tuple[Var, np.ndarray[Any, Any]]]:
        return list(self.program.constants)

    @property
    def numbers(self) -> list[tuple[Var, Callable[[], float]]]:
        return [(var, number) for (var, _), number in zip(self.program.numbers, self.binding.numbers, strict=True)]

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return self.program.leaves

    @property
    def results(self) -> list[Any]:
        """Variables, and plain values."""
        return [self.binding.objects.get(i, r) for i, r in enumerate(self.program.results)]

    @property
    def writes(self) -> tuple[Write, ...]:
        return self.program.writes

    def count(self, op: str | None = None) -> int:
        """How many nodes there are (of one op)."""
        return self.program.count(op)

    def with_nodes(self, nodes: Sequence[Call], **changes: Any) -> Graph:
        """The same graph with other nodes."""
        return self.with_program(self.program.with_calls(nodes, **changes))

    def with_program(self, program: Program) -> Graph:
        """The same binding around a program that was made of this one by leaving out and changing calls, captured
        tensors and numbers.
        """
        captured = dict(zip(self.program.captured, self.binding.captured, strict=True))
        numbers = dict(self.numbers)
        binding = replace(
            self.binding,
            captured=tuple([captured[v] for v in program.captured]),
            numbers=tuple([numbers[v] for v, _ in program.numbers]),
        )
        return Graph(program, binding)

    def _text(self) -> str:
        return self.program._text()

    def __repr__(self) -> str:
        border = f"{len(self.arguments)} arguments, {len(self.binding.captured)} captured tensors"
        return f"<graph of {self.name}: {len(self.nodes)} nodes, {border}>"

    def draw(self, max_nodes: int = 200) -> Any:
        """A picture of the graph, see `genesis.draw`."""
        return import_module("genesis.debug.traced").draw_graph(self, max_nodes)


def _border(program: Program, binding: Binding) -> list[tuple[str, int, int]]:
    """What stands at the border of a program: how much of it the program has, and the binding."""
    others = sum(leaf.kind == "other" for leaf in program.leaves)
    return [
        ("captured tensors", len(program.captured), len(binding.captured)),
        ("numbers of the host", len(program.numbers), len(binding.numbers)),
        ("counts", program.counts, len(binding.counts)),
        ("streams", len(program.streams), len(binding.streams)),
        ("other leaves", others, len(binding.others)),
    ]


def bound(
    program: Program,
    captured: Iterable[Tensor] = (),
    numbers: Iterable[Callable[[], float]] = (),
    counts: Iterable[tuple[Any, str]] = (),
    streams: Iterable[Generator] = (),
    others: Iterable[Tensor] = (),
) -> Graph:
    """See `Program.bind`: the graph takes the program's arguments one by one, and returns its results as they stand."""
    tensors, leaves = tuple(captured), tuple(others)
    ghosts = ((0,) * len(program.arguments), {})
    binding = Binding(
        tensors,
        leaves,
        tuple([() for leaf in program.leaves if leaf.kind == "argument"]),
        tuple(numbers),
        tuple(counts),
        tuple(streams),
        structure_in=tree_flatten(ghosts)[1],
        structure_out=LEAF if len(program.results) == 1 else tree_flatten((0,) * len(program.results))[1],
    )
    for name, wanted, there in _border(program, binding):
        if wanted != there:
            raise ArgumentError(message("bind", f"{program.name} has {wanted} {name}, {there} were given"))
    check_tensors(program, binding)
    return Graph(program, replace(binding, guards=(Modes(), CapturedAsTheyWere((*tensors, *leaves)))))


def check_tensors(program: Program, binding: Binding) -> None:
    """Refuse tensors that are not what the program says of them."""
    wanted = [
        *[(program.name_of(v), v.spec) for v in program.captured],
        *[(program.gradient_of(x), x.spec) for x in program.leaves if x.kind == "other"],
    ]
    for (name, spec), x in zip(wanted, (*binding.captured, *binding.others), strict=True):
        if not isinstance(x, Tensor):
            raise ArgumentError(message("bind", f"{name} must be a tensor, got {type(x).__name__}"))
        if (tuple(x._array.shape), x._array.dtype) != (spec.shape, spec.dtype):
            raise GraphError(message("bind", f"{name} of {program.name} is {spec}, got {x._spec()}"))
