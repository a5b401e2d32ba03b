"""The Python around a compiled step: one function, written for one traced graph.

    def call(sure, args, kwargs):
        x0 = args[0]                                       # are these the arguments that were traced?
        a0 = x0._array
        if a0.shape != ... : return MISS
        if not (w0._array is ... and ...): return MISS     # is everything as it was at the trace?
        ...
        with lock:
            values = run((a0, ..., *captured), numbers, starts)
            ...                                            # writes are counted, gradients set
        return wrap(values[0])

It returns `MISS`, before it has changed anything, where it cannot tell at once that all is as it was: then somebody
looks closely (`Graph.replay` does, and knows the reasons).

What comes from outside (Ctrl-C) leaves all as it was before the call, or as it is behind it: while native code runs it
waits, and then the writes are counted and the gradients set before it is raised.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import memory_of, number_in
from genesis.arrays.spec import contiguous_strides, strides_of
from genesis.base.device import MEMORIES
from genesis.base.errors import UnsupportedError, message
from genesis.base.locks import object_lock
from genesis.base.pytree import TreeDef, tree_unflatten
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.version import INFERENCE, SHARED, WRITES, counting
from genesis.jit.arguments import Var
from genesis.jit.binding import Graph
from genesis.jit.compiling.again import Again, renewed
from genesis.jit.compiling.checks import (
    Looks,
    apart,
    arguments,
    decision_of,
    differs,
    guards,
    last_drawn,
    origins,
    same,
    surroundings,
    value_of,
)
from genesis.jit.compiling.deciding import LARGEST
from genesis.jit.compiling.flow import closed, used_up
from genesis.jit.compiling.joint import Decided
from genesis.jit.compiling.leaves import Asked, HostCall, NotKept, without_history
from genesis.jit.compiling.numbers import in_order, numbers_of, reads
from genesis.jit.compiling.positions import Position
from genesis.jit.compiling.questions import looked_up
from genesis.jit.compiling.segments import Elsewhere, Segments
from genesis.jit.compiling.slots import UNREAD
from genesis.jit.compiling.text import ELSEWHERE, Text
from genesis.jit.compiling.values import HostValue
from genesis.jit.lowering.runner import finished
from genesis.jit.numbers import Decision
from genesis.jit.replay import aliased, viewed


def caller(graph: Graph, step: Any, example: list[Any], first: Sequence[int], flow: Any, decided: Decided) -> Any:
    """The function ``call(sure, args, kwargs)``; ``sure``: it is known that no mode is open that matters.

    Args:
        graph: what was traced
        step: what computes its program
        example: the leaves of the arguments of the trace, tensors by their `Looks`
        first: of each tensor among these, where it stands first
        decided: what Python asks for, and does
        flow: what joins the forward with its backward, if gradients flow through the function: see `flow.py`
    """
    text = Text()
    surroundings(text)
    if decided.slots:
        loads = zip(decided.slots, decided.loads, strict=True)
        taken = [slot.source(text.name) if is_read else text.name(UNREAD) for slot, is_read in loads]
        text.add(f"args = (*args, {', '.join(taken)})")
    count = arguments(text, graph.binding.structure_in, example)
    looks = [x for x in example if isinstance(x, Looks)]
    same(text, looks, first)
    apart(text, graph, first)
    if decided.gradients is not None:
        origins(text, looks, first, decided.gradients)
    drawn = [call.number.holder for call in decided.calls if call.number is not None]
    again = guards(text, graph, drawn, [_leaf_tensors(graph)[i]._node for i in renewed(graph, step)])
    gradients = _gradients(text, graph)
    text.add(*(["done = []"] if decided.calls else []))
    text.add(f"with {text.name(object_lock(reentrant=bool(decided.calls)))}:")
    text.add(
        *["    " + line for line in _computed(text, graph, step, count, gradients, decided, again, flow is not None)]
    )
    count += sum(len(call.gives) for call in decided.calls)
    text.add(*_returned(text, graph, count, flow, decided))
    return text.compiled("call", "sure, args, kwargs")


# ---- gradients


def _gradients(text: Text, graph: Graph) -> list[str]:
    """The ``.grad`` of each leaf that is asked for is ``g0``, ``g1``, ...; returns the names of the arrays of those that have a variable."""
    arrays, looked_at = [], {w.index for w in graph.program.writes if w.kind == "grad"}
    looked_at |= {alias.index for _, alias in graph.program.aliases if alias.kind == "grad"}
    for i, (leaf, tensor) in enumerate(zip(graph.program.leaves, _leaf_tensors(graph), strict=True)):
        if leaf.var is None and leaf.present is None and i not in looked_at:
            continue  # another takes its place, whatever it is
        text.add(f"g{i} = {_grad_of(text, tensor)}")
        if leaf.present is not None:
            text.miss_if(f"g{i} is {'' if leaf.present else 'not '}None")
        text.miss_if(
            f"g{i} is not None and (g{i}.__class__ is not Tensor or g{i}._node is not None "
            f"or g{i}._counter is {text.name(SHARED)})"
        )
        if leaf.var is not None:
            zeros = _negative_zeros(leaf.var)
            nothing, kind = text.name(zeros), text.array_class(type(zeros))
            copied, writes = ("copy('K')", f" and b{i}.flags.writeable") if kind == "ndarray" else ("copy()", "")
            text.add(f"b{i} = {nothing}.{copied} if g{i} is None else g{i}._array")
            text.unless(f"b{i}.__class__ is {kind} and b{i}.strides == {nothing}.strides{writes}")
            arrays.append(f"b{i}")
    return arrays


def _grad_of(text: Text, tensor: Tensor) -> str:
    """Where the ``.grad`` of a leaf is, which may begin to require grad in the function only."""
    return f"{text.name(tensor)}._own_grad" if tensor._node is None else f"{text.name(tensor._node)}._grad"


def _leaf_tensors(graph: Graph) -> tuple[Tensor, ...]:
    roots = {"captured": graph.binding.captured, "other": graph.binding.others}
    return tuple([roots[leaf.kind][leaf.index] for leaf in graph.program.leaves])


def _negative_zeros(var: Var) -> Any:
    """What stands for no gradient, laid out as in the trace."""
    if var.spec.device.type != "cpu":
        memory = MEMORIES[var.spec.device.type]
        if strides_of(var.spec) != contiguous_strides(var.spec.shape):
            raise UnsupportedError(message("compile", "a gradient on this device that is not contiguous"))
        return memory.full(var.spec.shape, var.spec.dtype, -0.0, var.spec.device)
    shape, strides = var.spec.shape, strides_of(var.spec)
    size = 1 + sum([(n - 1) * s for n, s in zip(shape, strides, strict=True)]) if 0 not in shape else 0
    memory = -np.zeros(size, var.spec.dtype)
    return np.lib.stride_tricks.as_strided(memory, shape, [s * memory.itemsize for s in strides])


# ---- the call


def _computed(
    text: Text,
    graph: Graph,
    step: Any,
    count: int,
    gradients: list[str],
    decided: Decided,
    again: Again | None,
    is_recorded: bool,
) -> Iterator[str]:
    """The counts go up, the numbers are asked for, all is computed and written."""
    streams = [text.name(s) for s in graph.binding.streams]
    numbers, undo = numbers_of(text, graph)
    yield from reads(text, graph)
    yield from [f"s{i} = {s}._block" for i, s in enumerate(streams)]
    tail = text.name(tuple([x._array for x in graph.binding.captured]))
    given_numbers, drawn = [*text.given], [*_drawn(text, graph, count, decided, is_recorded)]
    arguments = [f"a{i}" for i in range(count + sum(len(call.gives) for call in decided.calls))]
    others = [*arguments, *gradients]
    given = f"({''.join(f'{a}, ' for a in [*arguments, f'*{tail}', *gradients])})" if others else tail
    starts = "".join(f"({s}, s{i}), " for i, s in enumerate(streams))
    yield "try:"
    yield from [f"    {text.name(where.holder)}[{where.index}] = {name}" for where, name in given_numbers]
    leaves = _every("x", len(arguments))
    yield from ["    " + line for line in drawn]
    yield from ["    " + line for line in numbers]
    more = ""
    if isinstance(step, Segments):
        done = "done" if decided.calls else "None"
        more = f", {leaves}, {done}, {text.name(in_order(graph, again=True))}"
    if again is not None:
        yield f"    kept = {text.name(again)}.arrays if same == 1 else ()"
        more = ", kept"
    yield f"    values = {text.name(step.run)}({given}, numbers, ({starts}){more})"
    undo += [f"{s}._position(s{i})" for i, s in enumerate(streams)]
    if isinstance(step, Segments):
        text.scope |= {"Elsewhere": Elsewhere, "ELSEWHERE": ELSEWHERE}
        yield "except Elsewhere:"
        back = ["drawn.restore()"] if decided.draws else []
        yield from ["    " + line for line in (*undo, *back, "return ELSEWHERE")]
    settled = [
        f"{s}._position(s{i} + {n})" for i, (s, n) in enumerate(zip(streams, graph.program.streams, strict=True))
    ]
    settled += _counted(text, graph)
    gone, new = _set_gradients(text, graph, step)
    if again is not None:  # where they are kept, those that are there are the new ones
        new = ["if not kept:", *["    " + line for line in (*new, f"{text.name(again)}.keep(values)")]]
    settled += [*gone, *new]
    settled += [f"{f'x{x}' if x.__class__ is int else text.name(x)}.requires_grad_({now})" for x, now in decided.turned]
    settled += [f"{text.name(module.__dict__)}['training'] = {now}" for module, now in decided.modes]
    if not settled and not graph.program.writes:
        yield "except BaseException:"
        yield from ["    " + line for line in (*undo, "raise")]
        return
    text.scope["finished"] = finished
    yield "except BaseException as error:"
    yield "    values = finished(error)"
    yield "    if values is None:"
    yield from ["        " + line for line in (*undo, "raise")]
    yield "    stop = error"
    yield "else:"
    yield "    stop = None"
    yield "while True:"  # once, or again where Ctrl-C came in between
    yield "    try:"
    yield from ["        " + line for line in settled]
    yield "        break"
    yield "    except BaseException as error:"
    yield "        if stop is not None: raise"
    yield "        stop = error"
    yield "if stop is not None: raise stop"


def _drawn(text: Text, graph: Graph, count: int, decided: Decided, is_recorded: bool) -> Iterator[str]:
    """What Python does before all that is computed; tensors that it gives are arguments of the graph."""
    calls = [call for call in decided.calls if call.first]
    if decided.draws:
        text.scope |= {"Position": Position, "ELSEWHERE": ELSEWHERE}
        yield f"drawn = Position({', '.join(map(str, _set_back(graph, decided, is_recorded)))})"
    for k, call in enumerate(calls):
        if call.number is not None:
            yield from _drawn_number(text, graph, call, k)
            continue
        done = f"{text.name(call)}((), {_every('x', count)}, done)"
        if any([other.gives for other in calls[k:]]):  # a call as it is raises its errors where they are
            yield from ["try:", f"    {done}", "except Exception:", "    drawn.restore()", "    return ELSEWHERE"]
        else:
            yield done
        for index, looks in call.gives:
            yield f"x{count} = done[{k}][{index}]"
            yield f"if {differs(text, count, looks)}:"
            yield "    drawn.restore()"
            yield "    return ELSEWHERE"
            count += 1


def _set_back(graph: Graph, decided: Decided, is_recorded: bool) -> tuple[bool, bool]:
    """Whether random numbers of Python and of NumPy may have to be set back: where Python decides something, a number may be
    too large or a tensor of another shape, or the function may be run again for a second derivative.
    """
    if any([call.gives for call in decided.calls]):
        return True, True
    drawn = [call for call in decided.calls if call.number is not None]
    holder = drawn[0].number.holder
    decides = any([isinstance(x, Decision) and last_drawn(x, holder) >= 0 for x in graph.binding.guards])
    whole = any([type(holder[call.number.index]) is int for call in drawn])
    if not (is_recorded or decided.in_parts or decides or whole):
        return False, False
    return any([call.of_python for call in drawn]), not all([call.of_python for call in drawn])


def _drawn_number(text: Text, graph: Graph, call: HostCall, k: int) -> Iterator[str]:
    """Python draws a random number; where it would decide otherwise by those so far, this is a call for another graph."""
    name, kind = f"p_{k}", type(call.number.holder[call.number.index])
    function = call.build(lambda leaf: leaf)[0]
    yield f"{name} = {text.name(function)}()"
    yield f"done.append(({name}, []))"
    text.given.append((call.number, name))
    yield f"{text.name(call.number.holder)}[{call.number.index}] = {name}"
    wrong = [
        f"{name}.__class__ is not {kind.__name__}",
        *([f"not {-LARGEST} < {name} < {LARGEST}"] if kind is int else []),
    ]
    wrong += [
        f"({decision_of(text, guard)}) is not {guard.answer}"
        for guard in graph.binding.guards
        if isinstance(guard, Decision) and last_drawn(guard, call.number.holder) == call.number.index
    ]
    yield f"if {' or '.join(wrong)}:"
    yield from ["    drawn.restore()", "    return ELSEWHERE"]


def _every(name: str, count: int) -> str:
    """A tuple of numbered variables."""
    return f"({''.join(f'{name}{i}, ' for i in range(count))})"


def _counted(text: Text, graph: Graph) -> Iterator[str]:
    """The writes are counted, all with one number."""
    writes = graph.program.writes
    captured = tuple([graph.binding.captured[w.index]._shared_counter() for w in writes if w.kind == "captured"])
    given = [f"x{w.index}._shared_counter()" for w in writes if w.kind == "argument"]
    grads = [f"g{w.index}" for w in writes if w.kind == "grad"]
    if not captured and not given and not grads:
        return
    text.scope |= {"WRITES": WRITES, "counting": counting}
    one = f"c.stamp = stamp; c.count += 1; c.last = {text.name((f'{graph.name}, compiled', None, -1))}"
    yield "with counting:"
    yield "    stamp = WRITES[0] = WRITES[0] + 1"
    if captured:
        yield f"    for c in {text.name(captured)}: {one}"
    for counter in given:
        yield f"    c = {counter}; {one}"
    for g in grads:
        yield f"    c = None if {g} is None else {g}._counter"
        yield f"    if c is not None: {one}"


def _set_gradients(text: Text, graph: Graph, step: Any) -> tuple[list[str], list[str]]:
    """The ``.grad`` of leaves is gone, or new."""
    text.scope["make"] = object.__new__
    program, tensors = graph.program, _leaf_tensors(graph)
    gone, new = list[str](), list[str]()
    at = len(step.returns) - sum(w.value is not None and not here for w, here in _writes(graph, step))
    for w, here in _writes(graph, step):
        if w.of_gradient:
            grad = _grad_of(text, tensors[w.index])
            if w.value is None:
                gone.append(f"{grad} = None")
            elif here:
                new.append(f"if g{w.index} is None: {grad} = wrap(b{w.index})")
            elif w.kind == "new grad" or program.leaves[w.index].present is False:
                new.append("new = make(Tensor); new._node = new._counter = new._view = None")  # `wrap`, without a call
                new.append(f"new._array = values[{at}]; {grad} = new")
            else:
                new.append(f"if g{w.index} is None: {grad} = wrap(values[{at}])")
                text.scope["overwritten"] = _overwritten
                new.append(f"else: overwritten(g{w.index}._array, values[{at}])")
        at += w.value is not None and not here
    return gone, new


def _overwritten(target: Any, source: Any) -> None:
    memory_of(target).assign(target, source)


def _writes(graph: Graph, step: Any) -> Iterator[tuple[Any, bool]]:
    return zip(graph.program.writes, step.overwrites, strict=True)


def _done(text: Text, graph: Graph, count: int, decided: Decided) -> Iterator[str]:
    """What Python does when all has been computed."""
    late = [call for call in decided.calls if not call.first and not call.early]
    if not late:
        return
    aliases = dict(graph.program.aliases)
    results = graph.program.results[: graph.binding.structure_out.num_leaves]
    first = sum(isinstance(r, Var) and i not in aliases for i, r in enumerate(results))
    yield f"told = list(values[{first}:{first + decided.told}])"
    for k, (kind, i) in sorted(decided.shared.items()):
        yield (
            f"told[{k}] = told[{i}]"
            if kind == "told"
            else f"told[{k}] = without_history({'r' if kind == 'result' else 'x'}{i})"
        )
        text.scope["without_history"] = without_history
    yield f"given = {_every('x', count)}"
    for k, ends in decided.closed_told:
        spec: Any = graph.program.results[len(results) + k]
        text.scope["used_up"] = used_up
        yield f"told[{k}] = used_up(told[{k}], {text.name(spec.spec)}, {text.name(ends)}, given)"
    for call in late:
        yield f"{text.name(call)}(told, given, done)"


def _closed(text: Text, graph: Graph, decided: Decided) -> Iterator[str]:
    """The results whose history is used up have a node that says so: the same at each call, if it leads to no arguments."""
    aliases = dict(graph.program.aliases)
    for i, ends in decided.closed:
        if i in aliases and aliases[i].same:
            continue
        spec: Any = graph.program.results[i]
        if any([x.__class__ is int for x in ends]):
            leaves = "".join([f", x{x}" if x.__class__ is int else f", {text.name(x)}" for x in ends])
            yield f"r{i}._node = {text.name(closed)}({text.name(spec.spec)}{leaves})"
        else:
            yield f"r{i}._node = {text.name(closed(spec.spec, *ends))}"


def _returned(text: Text, graph: Graph, count: int, flow: Any, decided: Decided) -> Iterator[str]:
    program, binding, numbers = graph.program, graph.binding, decided.returned
    aliases, names, own, behind = dict(program.aliases), list[str](), 0, list[str]()
    first = sum(isinstance(r, Var) and i not in aliases for i, r in enumerate(program.results))
    roots = f"given, {text.name(binding.captured)}, {text.name(_leaf_tensors(graph))}, made"
    if aliases:
        text.scope["aliased"] = aliased
        yield f"made = [{', '.join(f'wrap(values[{first + i}])' for i in range(len(program.made)))}]"
        yield f"given = {_every('x', count)}"
    if flow is not None:
        positions = [f"({text.name(stream)}._seed, s{i}), " for i, stream in enumerate(binding.streams)]
        outputs, heads = flow.joint.outputs, [i for i in flow.joint.outputs if flow.joint.views.get(i) == i]
        views = [f"aliased({text.name(aliases[i])}, {roots}, ())" for i in outputs if i in aliases and i not in heads]
        more = f", ({''.join(f'{view}, ' for view in views)})" if views else ""
        position = ", drawn=drawn" if decided.draws else ""
        yield f"joined = {text.name(flow)}(values, numbers, ({''.join(positions)}), {_every('x', count)}, args, kwargs{more}{position})"
        yield from [f"made[{aliases[i].index}] = joined[{outputs.index(i)}]" for i in heads]
        text.scope["viewed"] = viewed
    for i, r in enumerate(program.results[: binding.structure_out.num_leaves]):
        if flow is not None and i in flow.joint.views:
            yield f"r{i} = viewed({text.name(aliases[i])}, {roots})"
        elif flow is not None and i in flow.joint.outputs:
            yield f"r{i} = joined[{flow.joint.outputs.index(i)}]"
            own += i not in aliases
        elif isinstance(binding.objects.get(i), HostValue):
            leaf = binding.objects[i].leaf
            at_once = isinstance(leaf, Asked) and looked_up(leaf.ask) <= {id(where.holder) for where, _ in text.given}
            yield f"r{i} = {value_of(text, leaf.ask) if at_once else None}"
            if not at_once:
                behind.append(f"r{i} = {text.name(leaf)}.now((), (), {'done' if decided.calls else '()'})")
        elif i in binding.objects:
            yield f"r{i} = {text.name(binding.objects[i])}"
        elif i in aliases:
            yield f"r{i} = aliased({text.name(aliases[i])}, {roots}, [{', '.join(names)}])"
        elif isinstance(r, Var):
            text.scope["number_in"] = number_in
            yield f"r{i} = number_in(values[{own}])" if i in numbers else f"r{i} = wrap(values[{own}])"
            own += 1
        else:
            yield f"r{i} = {text.name(r)}"
        names.append(f"r{i}")
    yield from _closed(text, graph, decided)
    made_there = [i for i in decided.inference if i not in aliases or not aliases[i].same]
    yield from [f"r{i}._counter = {text.name(INFERENCE)}" for i in made_there]
    structure, puts, ahead = binding.structure_out, list[str](), list[str]()
    if decided.slots:
        structure, of_slots = structure.children
        at = structure.num_leaves
        for k, (slot, child) in enumerate(zip(decided.slots, of_slots.children, strict=True)):
            lines = ahead if k in decided.ahead and not isinstance(binding.objects.get(at), HostValue) else puts
            lines.append(f"{slot.target(text.name)} = {_built(text, child, names[at : at + child.num_leaves])}")
            at += child.num_leaves
    if puts and behind and decided.puts_before:
        raise NotKept(message("compile", "Python looks at what it gives, where the function has set that"))
    yield from ahead
    yield from () if decided.puts_last or behind else puts
    yield from _done(text, graph, count, decided)
    yield from behind
    yield from puts if decided.puts_last or behind else ()
    yield f"return {_built(text, structure, names[: structure.num_leaves])}"


def _built(text: Text, structure: TreeDef, names: list[str]) -> str:
    """A result with these leaves."""
    if structure.kind is None:
        return names[0]
    if structure.kind is tuple and all(child.kind is None for child in structure.children):
        return f"({''.join(f'{name}, ' for name in names)})"
    text.scope["tree_unflatten"] = tree_unflatten
    return f"tree_unflatten([{', '.join(names)}], {text.name(structure)})"
