"""What a traced function leaves behind, and the graph that is made of it and of what was recorded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from genesis.arrays.memory import in_order, memory_of, strides_of_copy
from genesis.arrays.protocol import Layer
from genesis.arrays.spec import Spec
from genesis.base.errors import GraphError, message
from genesis.base.pytree import tree_flatten
from genesis.core.graph.generator import Generator
from genesis.core.graph.tensor import Tensor
from genesis.jit.arguments import Var, refused
from genesis.jit.binding import Binding, Graph
from genesis.jit.gradients import LeafRecord
from genesis.jit.memory import Capture, check_overlaps
from genesis.jit.program import Alias, Leaf, Program, Write
from genesis.jit.traced import Cell

if TYPE_CHECKING:
    from genesis.jit.tracer import Tracer


@dataclass(frozen=True, slots=True)
class Outcome:
    """The ends of a traced function, all in variables: it holds no tensor that the function made."""

    arguments: list[Var]
    results: list[Any]
    structures: tuple[Any, Any]  # of the arguments and of the result
    leaves: list[LeafRecord]
    argument_writes: list[Write]
    gradient_writes: list[Write]
    streams: list[tuple[Generator, int]]  # and how many blocks were drawn from each
    aliases: dict[int, Alias]
    outside: dict[int, tuple[Var, Alias]]  # results that are aliases if a variable is a captured tensor
    made: list[Var]  # memory that several results share, or of which one is a part with gaps


def outcome_of(tracer: Tracer, result: Any, arguments: list[Capture], structure_in: Any) -> Outcome:
    """What the function returned, wrote and drew, while the trace is still open."""
    leaves, structure = tree_flatten(result)
    results = [
        tracer.capture(y).var() if isinstance(y, Tensor) and not isinstance(y._array, Layer) else y for y in leaves
    ]
    grads, gradients, roots, parts = tracer.gradients.ends(tracer)
    _refuse_parts(tracer, leaves, parts)
    aliases, outside, made = _aliases(tracer, leaves, arguments, roots)
    used = (
        {v for call in tracer.calls for v in call.inputs}
        | {r for r in results if isinstance(r, Var)}
        | {w.value for w in gradients}
    )
    for argument in arguments:
        if argument.cell.written and not memory_of(argument.array).writable(argument.array):
            text = "an argument is written to, whose memory is read-only, or that of an expanded tensor"
            raise GraphError(message("trace", text, [("argument", argument.var.spec)], "pass a clone()"))
    met = [c for c in (*arguments, *tracer.memory.captures.values()) if c.cell.written or c.var in used]
    check_overlaps([(c.array, c.cell.written > 0, c.cell.value.spec) for c in met])
    return Outcome(
        arguments=[a.var for a in arguments],
        results=results,
        structures=(structure_in, structure),
        leaves=grads,
        argument_writes=[
            Write("argument", i, a.cell.value) for i, a in enumerate(arguments) if a.cell.value is not a.var
        ],
        gradient_writes=gradients,
        streams=[(g, g._block - start) for g, start in tracer.streams],
        aliases=aliases,
        outside=outside,
        made=made,
    )


def _refuse_parts(tracer: Tracer, results: list[Any], parts: set[Cell]) -> None:
    """Refuse a result on memory of which a ``.grad`` that the function sets is a part."""
    for y in results:
        if isinstance(y, Tensor) and not isinstance(y._array, Layer) and tracer.array(y._array).cell in parts:
            text = "a result shares its memory with a .grad that is set: they would be two"
            raise GraphError(message("trace", text, [("result", y._spec())], "x.grad = g.clone()"))


def _aliases(
    tracer: Tracer, results: list[Any], arguments: list[Capture], gradients: dict[Cell, int]
) -> tuple[dict[int, Alias], dict[int, tuple[Var, Alias]], list[Var]]:
    """The results that share their memory with an argument, a gradient, or each other; and those that do if a variable
    is a captured tensor.
    """
    tensors = {i: y for i, y in enumerate(results) if isinstance(y, Tensor) and not isinstance(y._array, Layer)}
    arrays = {i: tracer.array(y._array) for i, y in tensors.items()}
    shared = Counter(x.cell for x in {id(tensors[i]): x for i, x in arrays.items()}.values())
    own = {a.cell: (i, a) for i, a in enumerate(arguments)}
    outside = {c.cell: c for c in tracer.memory.captures.values()}
    aliases: dict[int, Alias] = {}
    captured: dict[int, tuple[Var, Alias]] = {}
    first: dict[int, int] = {}  # of each tensor, by id
    made: dict[Cell, int] = {}
    for i, x in arrays.items():
        y = tensors[i]
        if id(y) in first:
            aliases[i] = Alias("result", first[id(y)], same=True)
        elif x.cell in own:
            index, argument = own[x.cell]
            aliases[i] = Alias("argument", index, x.steps, same=argument.tensor() is y)
        elif x.cell in gradients:
            aliases[i] = Alias("grad", gradients[x.cell], x.steps, same=not x.steps)
        else:
            if x.cell in outside:
                capture = outside[x.cell]
                captured[i] = capture.var, Alias("captured", -1, x.steps, same=capture.tensor() is y)
            if shared[x.cell] > 1 or any([_has_gaps(view.spec) for view in x.views()]):
                aliases[i] = Alias("made", made.setdefault(x.cell, len(made)), x.steps)
        first.setdefault(id(y), i)
    return aliases, captured, [cell.value for cell in made]


def _has_gaps(spec: Spec) -> bool:
    """Whether other elements lie between those of a view, or several of its elements are one in memory: a copy would have
    other strides, and could be written to where that cannot.
    """
    if spec.strides is None or in_order(spec.shape, spec.strides):
        return False
    return strides_of_copy(spec.shape, spec.strides) != spec.strides


def graph_of(
    tracer: Tracer,
    outcome: Outcome,
    captured: list[tuple[Var, Tensor]],
    constants: list[tuple[Var, Any]],
    writes: list[Write],
) -> Graph:
    """The program of what was recorded, and its binding."""
    tensors = [x for _, x in captured]
    indices = {id(tensor): i for i, tensor in reversed(list(enumerate(tensors)))}
    others = [x.tensor for x in outcome.leaves if x.tensor is not None and id(x.tensor) not in indices]
    objects = {i: r for i, r in enumerate(outcome.results) if refused(r) is not None}
    program = Program(
        tracer.name,
        tuple(tracer.calls),
        tuple(outcome.arguments),
        tuple([var for var, _ in captured]),
        tuple(constants),
        tuple([(var, tracer.after[var]) for var, _ in tracer.numbers]),
        len(tracer.counts),
        tuple([n for _, n in outcome.streams]),
        tuple([_leaf(x, indices, others) for x in outcome.leaves]),
        tuple([None if i in objects else r for i, r in enumerate(outcome.results)]),
        (*outcome.argument_writes, *writes, *outcome.gradient_writes),
        tuple(outcome.made),
        _all_aliases(outcome, [var for var, _ in captured]),
        tracer.wrote,
    )
    binding = Binding(
        tuple(tensors),
        tuple(others),
        tuple([x.hooks for x in outcome.leaves if x.argument >= 0]),
        tuple([f for _, f in tracer.numbers]),
        tuple(tracer.counts),
        tuple([g for g, _ in outcome.streams]),
        objects,
        *outcome.structures,
        tuple(tracer.plain),
        (
            *tracer.guards.collected(tensors, [x.tensor for x in outcome.leaves if x.tensor is not None]),
            *tracer.decisions.values(),
        ),
    )
    return Graph(program.verified(tracer.calls), binding)


def _all_aliases(outcome: Outcome, captured: list[Var]) -> tuple[tuple[int, Alias], ...]:
    """The aliases, with those of variables that are captured tensors."""
    index = {var: i for i, var in enumerate(captured)}
    more = {i: replace(a, index=index[var]) for i, (var, a) in outcome.outside.items() if var in index}
    return tuple(sorted((outcome.aliases | more).items()))


def _leaf(leaf: LeafRecord, indices: dict[int, int], others: list[Tensor]) -> Leaf:
    """A leaf of the program, named by where its tensor stands at the border."""
    if leaf.argument >= 0:
        return Leaf("argument", leaf.argument, leaf.spec, leaf.var, leaf.present)
    if id(leaf.tensor) in indices:
        return Leaf("captured", indices[id(leaf.tensor)], leaf.spec, leaf.var, leaf.present)
    return Leaf("other", [id(x) for x in others].index(id(leaf.tensor)), leaf.spec, leaf.var, leaf.present)
