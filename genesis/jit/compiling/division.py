"""The trace of a function and its gradient as two programs, the forward and the backward."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from genesis.base.errors import GraphError, message
from genesis.jit.arguments import Var
from genesis.jit.binding import Graph
from genesis.jit.compiling.joint import Decided, Joint, JointTracer
from genesis.jit.compiling.results import inside
from genesis.jit.passes import dead_code, optimized
from genesis.jit.program import Alias, Call, Program


def divided(tracer: JointTracer, graph: Graph) -> Joint:
    """The forward and the backward of a trace."""
    whole = optimized(graph.program)
    end = len(whole.results) - len(tracer.answers)
    own = whole.results[: tracer.results] + whole.results[end - tracer.told : end]
    gradients, asked = whole.results[tracer.results : end - tracer.told], whole.results[end:]
    _refuse(whole)
    aliases, made = _own_aliases(whole, tracer.results)
    ends = [v for v in (*own, *asked, *made) if isinstance(v, Var)] + [
        w.value for w in whole.writes if w.value is not None
    ]
    needed = _needed(whole, ends)
    calls = [c for c in whole.calls if id(c) not in needed]
    cotangents = whole.arguments[tracer.given :]
    behind, crossing = _crossing(whole, calls, gradients, set(cotangents))
    homes, extra = _sources_of(whole, tracer.given, crossing)
    forward = replace(
        whole,
        calls=tuple([c for c in whole.calls if id(c) in needed]),
        arguments=whole.arguments[: tracer.given],
        results=(*own, *extra),
        aliases=aliases,
        made=made,
    )
    backward = Program(
        f"the gradient of {whole.name}",
        tuple(behind),
        (*crossing, *cotangents),
        constants=whole.constants,
        numbers=whole.numbers,
        streams=whole.streams,
        results=gradients,
    )
    bound = graph.with_program(forward)
    objects = {i: inside(x) for i, x in graph.binding.objects.items() if i < tracer.results}
    assert tracer.structure is not None
    bound = replace(bound, binding=replace(bound.binding, objects=objects, structure_out=tracer.structure))
    backward = dead_code(backward)
    index = {v: i for i, (v, _) in enumerate(whole.numbers)}
    numbers = tuple([index[v] for v, _ in backward.numbers])
    decided = _decided(tracer, asked)
    outputs, inputs = tuple(tracer.outputs), tuple(tracer.inputs)
    return Joint(bound, backward, outputs, tracer.views, inputs, homes, numbers, decided, tracer.reached)


def undivided(tracer: JointTracer, graph: Graph) -> tuple[Graph, Decided]:
    """The graph of a function that no gradients flow through; after the passes, if Python decided on something in it."""
    early = any([call.early for call in tracer.hosts.calls])
    graph = optimized(graph) if tracer.answers or early else graph
    end = len(graph.program.results) - len(tracer.answers)
    decided = _decided(tracer, graph.program.results[end:])
    aliases = tuple([(i, a) for i, a in graph.program.aliases if i < end])
    program = replace(graph.program, results=graph.program.results[:end], aliases=aliases)
    assert tracer.structure is not None
    objects = {i: inside(x) for i, x in graph.binding.objects.items()}
    binding = replace(graph.binding, objects=objects, structure_out=tracer.structure)
    return Graph(program, binding), decided


def _decided(tracer: JointTracer, asked: Any) -> Decided:
    calls, returned = tuple(tracer.hosts.calls), tuple(tracer.returned)
    return Decided(
        asked,
        tracer.answers,
        returned,
        calls,
        tracer.told,
        tracer.behind,
        tracer.closed,
        tracer.closed_told,
        tuple(tracer.turned),
        tracer.modes,
        tracer.shared,
        tracer.asked_gradients,
        tuple(tracer.hosts.slots.known.values()),
        tracer.loads,
        tracer.hosts.puts_before,
        tracer.hosts.puts_last,
        frozenset([i for i, at in enumerate(tracer.hosts.slots.known) if at in tracer.hosts.slots.ahead]),
        tracer.inference,
        tracer.asks_leaves,
    )


def _own_aliases(whole: Program, results: int) -> tuple[tuple[tuple[int, Alias], ...], tuple[Var, ...]]:
    """Of which memory the first results are, not the gradients; and what of it several of them share."""
    own = [(i, alias) for i, alias in whole.aliases if i < results]
    kept = sorted({alias.index for _, alias in own if alias.kind == "made"})
    own = [(i, replace(a, index=kept.index(a.index)) if a.kind == "made" else a) for i, a in own]
    return tuple(own), tuple([whole.made[k] for k in kept])


def _refuse(whole: Program) -> None:
    """Refuse what a node between forward and backward cannot say."""
    if any(w.kind == "argument" for w in whole.writes):
        raise GraphError(message("compile", "an argument is written to, and gradients flow through the function"))


def _needed(program: Program, ends: list[Any]) -> set[int]:
    """The calls that values need, by id."""
    wanted, needed = set(ends), set()
    for call in reversed(program.calls):
        if any(v in wanted for v in call.outs):
            needed.add(id(call))
            wanted |= set(call.inputs)
    return needed


def _crossing(
    program: Program, calls: list[Call], gradients: tuple[Any, ...], cotangents: set[Var]
) -> tuple[list[Call], list[Var]]:
    """The calls of the backward, and the values of the forward that they use; views are made again."""
    made = {v for c in calls for v in c.outs} | cotangents
    made |= {v for v, _ in program.constants} | {v for v, _ in program.numbers}
    maker = {v: c for c in program.calls for v in c.outs}
    again, crossing = dict[int, Call](), dict[Var, None]()

    def use(var: Var) -> None:
        if var in made or var in crossing:
            return
        if var in program.regions:
            use(maker[var].args[0])
            again[id(maker[var])] = maker[var]
            made.add(var)
        else:
            crossing[var] = None

    for call in calls:
        for var in call.inputs:
            use(var)
    for g in gradients:
        if isinstance(g, Var):
            use(g)
    return [*again.values(), *calls], list(crossing)


def _sources_of(program: Program, given: int, crossing: list[Var]) -> tuple[tuple[tuple[str, int], ...], list[Var]]:
    """Where each value that is saved is found: among arguments, captured tensors, or what the forward returns more."""
    arguments = {v: i for i, v in enumerate(program.arguments[:given])}
    written = {w.index for w in program.writes if w.kind == "captured"}  # they hold something else afterwards
    captured = {v: i for i, v in enumerate(program.captured) if i not in written}
    homes, extra = [], list[Var]()
    for var in crossing:
        if var in arguments:
            homes.append(("argument", arguments[var]))
        elif var in captured:
            homes.append(("captured", captured[var]))
        else:
            homes.append(("made", len(extra)))
            extra.append(var)
    return tuple(homes), extra
