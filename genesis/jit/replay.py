"""Running a graph op by op: check the call, read what comes from outside, compute, then write, all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.arrays.memory import memory_of, placed
from genesis.arrays.protocol import Virtual
from genesis.arrays.spec import Spec, memory_order, strides_of
from genesis.base.errors import ArgumentError, GraphError, message
from genesis.base.pytree import tree_flatten, tree_unflatten
from genesis.base.quiet import quietly
from genesis.core.call import dispatch
from genesis.core.call.op import REGISTRY, Op
from genesis.core.call.writes import bump, write
from genesis.core.graph.modes import enable_grad, grad_mode, no_grad
from genesis.core.graph.tensor import Tensor, wrap
from genesis.jit.arguments import Var, renamed, variables
from genesis.jit.guards import hooks_on
from genesis.jit.program import Alias, Call, Leaf, Program, op_of, takes_tensor

if TYPE_CHECKING:
    from genesis.jit.binding import Graph


def replay(graph: Graph, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """See `Graph.replay`."""
    program, binding = graph.program, graph.binding
    given, tensors = checked(graph, args, kwargs)
    before = [(counts, key, counts[key]) for counts, key in binding.counts]
    starts = [(generator, generator._block) for generator in binding.streams]
    plan = graph.plan
    with no_grad():
        try:
            values = plan.run(_inputs(graph, given, tensors), starts)
        except BaseException:  # as if the call had not been made
            for counts, key, count in reversed(before):
                counts[key] = count
            for generator, start in starts:
                generator._position(start)
            raise
        for blocks, (generator, start) in zip(program.streams, starts, strict=True):
            generator._position(start + blocks)
        aliases = dict(program.aliases)
        own = {
            i: _own(values[plan.slots[r]]) if isinstance(r, Var) else r
            for i, r in enumerate(program.results)
            if i not in aliases
        }
        own |= binding.objects
        made = [_own(values[plan.slots[root]]) for root in program.made]
        # one may read what another overwrites
        _write(
            graph,
            given,
            tensors,
            [None if w.value is None else _own(values[plan.slots[w.value]]) for w in program.writes],
        )
        results: list[Any] = []
        for i in range(len(program.results)):
            results.append(own[i] if i in own else aliased(aliases[i], given, binding.captured, tensors, made, results))
    return tree_unflatten(results, binding.structure_out)


# ---- is this the call that was traced?


def checked(graph: Graph, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Tensor], list[Tensor]]:
    """The tensors among the arguments, and the leaves; an error if this is not the call that was traced."""
    binding = graph.binding
    leaves, structure = tree_flatten((args, kwargs))
    if structure != binding.structure_in:
        raise ArgumentError(
            message(
                "replay",
                f"{graph.name} was traced with other arguments",
                [("traced", binding.structure_in), ("given", structure)],
            )
        )
    given = [x for x in leaves if isinstance(x, Tensor)]
    _check_arguments(graph, given)
    _check_plain(graph, [x for x in leaves if not isinstance(x, Tensor)])
    _check_guards(graph)
    roots = {"argument": given, "captured": binding.captured, "other": binding.others}
    tensors = [roots[leaf.kind][leaf.index] for leaf in graph.program.leaves]
    _check_leaves(graph, given, tensors)
    return given, tensors


def _check_arguments(graph: Graph, given: list[Tensor]) -> None:
    program = graph.program
    if len(given) != len(program.arguments):
        raise ArgumentError(
            message("replay", f"{graph.name} was traced with {len(program.arguments)} tensors, {len(given)} were given")
        )
    differentiated = {leaf.index for leaf in program.leaves if leaf.kind == "argument"}
    for i, (x, var) in enumerate(zip(given, program.arguments, strict=True)):
        if (tuple(x._array.shape), x._array.dtype) != (var.spec.shape, var.spec.dtype) or x.device != var.spec.device:
            raise GraphError(
                message(
                    "replay",
                    f"argument tensor {i} is {x._spec()}, {graph.name} was traced with {var.spec}",
                    hint="trace it again for other shapes",
                )
            )
        if program.laid_out and not isinstance(x._array, Virtual) and not same_layout(x._array, var.spec):
            raise GraphError(
                message(
                    "replay",
                    f"argument tensor {i} is laid out otherwise than when {graph.name} was traced, whose results "
                    "depend on it",
                    operands=[("strides", x.stride()), ("traced", strides_of(var.spec))],
                    hint="x.contiguous(), or trace it again",
                )
            )
        if x.requires_grad and grad_mode.get() and i not in differentiated:
            raise GraphError(
                message(
                    "replay",
                    f"argument tensor {i} requires grad, a replay is not differentiable",
                    operands=[("argument", x._spec())],
                    hint="trace a function that computes the gradient, too; or pass x.detach()",
                )
            )
    if any([w.kind == "argument" or w.kind == "captured" for w in program.writes]):
        _check_shared(graph, given)


def _check_plain(graph: Graph, given: list[Any]) -> None:
    for a, b in zip(graph.binding.plain, given, strict=True):
        if isinstance(a, bool | int | float | complex | str | None) and not (
            type(a) is type(b) and (a == b or (a != a and b != b))
        ):
            raise GraphError(
                message(
                    "replay",
                    f"an argument is {b!r}, {graph.name} was traced with {a!r}",
                    hint="trace it again, or pass the number as a tensor",
                )
            )


def _check_guards(graph: Graph) -> None:
    for guard in graph.binding.guards:
        reason = guard.changed()
        if reason is not None:
            raise GraphError(
                message(
                    "replay",
                    f"{reason}; {graph.name} has to be traced again",
                    hint="graph = jit.trace(...) after the change",
                )
            )


def _check_leaves(graph: Graph, given: list[Tensor], tensors: list[Tensor]) -> None:
    """The leaves are those of the trace, each once, and have a .grad where the function asked for one."""
    if len(set(map(id, tensors))) != len(tensors):
        raise GraphError(
            message(
                "replay",
                f"a tensor is given twice, or is captured as well, and {graph.name} changes its .grad",
                hint="trace it with these arguments",
            )
        )
    hooks = iter(graph.binding.hooks)
    for leaf, tensor in zip(graph.program.leaves, tensors, strict=True):
        if leaf.kind == "argument" and not tensor.requires_grad:
            raise GraphError(
                message(
                    "replay",
                    f"argument tensor {leaf.index} does not require grad, when {graph.name} was traced it did",
                    [("argument", tensor._spec())],
                )
            )
        if leaf.kind == "argument" and hooks_on(tensor._node) != next(hooks):
            raise GraphError(
                message(
                    "replay",
                    f"argument tensor {leaf.index} has other hooks than when {graph.name} was traced",
                    [("argument", tensor._spec())],
                    "trace it again",
                )
            )
        if leaf.present is not None and leaf.present != (tensor.grad is not None):
            now, then = ("None", "was there") if leaf.present else ("there", "was None")
            raise GraphError(
                message(
                    "replay",
                    f"a .grad that {graph.name} reads is {now}, when it was traced it {then}",
                    operands=[("tensor", tensor._spec())],
                    hint="call backward() first" if leaf.present else "set it to None, or trace again",
                )
            )


def _check_shared(graph: Graph, given: list[Tensor]) -> None:
    """A graph that writes takes its tensors for different memory, which can be written to."""
    for w in graph.program.writes:
        if w.kind == "argument" and not _writable(given[w.index]._array):
            text = f"argument tensor {w.index} cannot be written to, which {graph.name} does"
            raise GraphError(message("replay", text, [("argument", given[w.index]._spec())], "pass a clone()"))
    arrays = [x._array for x in (*given, *graph.binding.captured)]
    owners = [id(a if a.base is None else a.base) for a in arrays]
    for i, x in enumerate(given):
        if any(owners[k] == owners[i] and _may_share(arrays[k], arrays[i]) for k in range(i + 1, len(arrays))):
            raise GraphError(
                message(
                    "replay",
                    f"argument tensor {i} shares its memory with another argument or a captured tensor, and "
                    f"{graph.name} writes to one of them",
                    operands=[("argument", x._spec())],
                    hint="pass a clone()",
                )
            )


def _writable(array: Any) -> bool:
    return isinstance(array, Virtual) or memory_of(array).writable(array)


def _may_share(a: Any, b: Any) -> bool:
    return not isinstance(a, np.ndarray) or np.may_share_memory(a, b)


def same_layout(array: Any, spec: Spec) -> bool:
    return not array.size or all(
        n == 1 or s == t for n, s, t in zip(array.shape, memory_of(array).strides(array), strides_of(spec), strict=True)
    )


# ---- what comes in


def _inputs(graph: Graph, given: list[Tensor], tensors: list[Tensor]) -> list[Any]:
    """The values of what stands at the border, in the order of `Program.outside`."""
    values: list[Any] = [wrap(x._array) for x in (*given, *graph.binding.captured)]
    values += [wrap(placed(array, var.spec.device)) for var, array in graph.program.constants]
    gradients = [
        wrap(_incoming(leaf, tensor))
        for leaf, tensor in zip(graph.program.leaves, tensors, strict=True)
        if leaf.var is not None
    ]
    return [*values, *_numbers(graph), *gradients]


def _numbers(graph: Graph) -> list[float]:
    """The numbers of the host, asked for between the counts that went up before and after."""
    numbers, done, all_counts = [], 0, graph.binding.counts
    for (_, after), number in zip(graph.program.numbers, graph.binding.numbers, strict=True):
        for counts, key in all_counts[done:after]:
            counts[key] += 1
        done = max(done, after)
        numbers.append(float(number()))
    for counts, key in all_counts[done:]:
        counts[key] += 1
    return numbers


def _incoming(leaf: Leaf, tensor: Tensor) -> Any:
    """The .grad of a leaf as it is now, laid out as in the trace."""
    spec = leaf.var.spec  # type: ignore[union-attr]
    grad = tensor.grad
    if grad is not None and same_layout(grad._array, spec):
        return grad._array
    if not isinstance(tensor._array, np.ndarray):
        return (-tensor._zeros(spec.shape, spec.dtype) if grad is None else grad.contiguous())._array
    order = memory_order(strides_of(spec))
    array = np.empty([spec.shape[d] for d in order], spec.dtype).transpose(np.argsort(order) if order else None)
    array[...] = -np.zeros((), spec.dtype) if grad is None else grad._array
    return array


# ---- computing


class Plan:
    """A program prepared for being run op by op: every value has a slot in one list, and so has every argument that is
    no value.

    Slot 0 is for the streams and where they are at the beginning of the call.
    """

    __slots__ = ("first", "outside", "slots", "steps")

    def __init__(self, program: Program) -> None:
        outside = list(program.outside)
        variables_ = (*outside, *[v for call in program.calls for v in call.outs])
        self.slots = {var: i for i, var in enumerate(variables_, 1)}
        self.first: list[Any] = [None] * (len(variables_) + 1)
        self.outside = slice(1, len(outside) + 1)
        self.steps = [self._step(call, ended) for call, ended in zip(program.calls, program.ended, strict=True)]

    def _step(self, call: Call, ended: list[Var]) -> tuple[Any, ...]:
        """What to call, what picks its arguments from the list, where results go, and what is over then."""
        op = op_of(call)
        run, unpacked = _runner(op, call)
        fetch = self._fetch(op, call)
        outs = [self.slots[v] for v in call.outs]
        return run, unpacked, fetch, outs[0] if len(outs) == 1 else outs, tuple([self.slots[v] for v in ended])

    def _fetch(self, op: Op, call: Call) -> Callable[[list[Any]], tuple[Any, ...]]:
        inside = [not isinstance(a, Var) and bool(variables(a)) for a in call.args]
        fused = op.kind.fused
        if not any(inside) and all(
            [fused or takes_tensor(op, i) for i, a in enumerate(call.args) if isinstance(a, Var)]
        ):
            where = [self._slot(a) for a in call.args]
            if op.kind.draws:
                where[:0] = [0]
            return itemgetter(*where) if len(where) > 1 else lambda values, at=where[0]: (values[at],)  # type: ignore[misc]
        parts = [partial(_filled, a, self.slots, takes_tensor(op, i)) for i, a in enumerate(call.args)]
        return lambda values: tuple([part(values) for part in parts])

    def _slot(self, argument: Any) -> int:
        if isinstance(argument, Var):
            return self.slots[argument]
        self.first.append(argument)
        return len(self.first) - 1

    def run(self, inputs: list[Any], starts: list[tuple[Any, int]]) -> list[Any]:
        """The values of a call; those that are over are None."""
        values = self.first.copy()
        values[0], values[self.outside] = starts, inputs
        for run, unpacked, fetch, out, ended in self.steps:
            y = run(*fetch(values)) if unpacked else run(fetch(values))
            if out.__class__ is int:
                values[out] = y
            else:
                for slot, part in zip(out, y, strict=True):
                    values[slot] = part
            for slot in ended:
                values[slot] = None
        return values


def _runner(op: Op, call: Call) -> tuple[Callable[..., Any], bool]:
    """What computes an op (as `dispatch.apply` does), and whether it takes the arguments one by one."""
    if op.kind.draws:
        return partial(_drawn, op), False
    if op.kind.fused:
        return partial(_fused, op), False
    first = call.args[0]
    if op.plain and isinstance(first, Var) and first.spec.device.type != "meta":
        return getattr(op.call, "operator", op.call), True
    return partial(op.run, op), False


def _drawn(op: Op, args: tuple[Any, ...]) -> Tensor:
    """A random op, with its stream where it was at this draw."""
    starts, at, *options = args
    generator, start = starts[at.index]
    generator._position(start + at.offset)
    return wrap(op.kernel(generator, *options))


def _fused(op: Op, args: tuple[Any, ...]) -> Any:
    """A kernel of a composite; where it fails, the composition explains."""
    try:
        arrays = quietly(op.kernel, *[a._array if a.__class__ is Tensor else a for a in args])
    except Exception:
        if not op.name.endswith(".backward"):
            op.meaning(*args)
        raise
    return wrap(arrays[0]) if len(arrays) == 1 else [wrap(array) for array in arrays]


def _filled(value: Any, slots: Mapping[Var, int], tensor: bool, values: list[Any]) -> Any:
    """An argument with values: tensors where the op takes tensors; where it takes numbers, what those of the program are."""
    if tensor:
        return renamed(value, lambda var: values[slots[var]])
    return renamed(value, lambda var: _array(values[slots[var]]))


def _array(value: Any) -> Any:
    return value._array if isinstance(value, Tensor) else value


def computed(call: Call, values: Mapping[Var, Any]) -> tuple[Any, ...]:
    """The results of one call, from the values of its inputs."""
    inputs = tuple(dict.fromkeys(call.inputs))
    plan = Plan(Program("call", (call,), inputs, results=call.outs))
    with no_grad():
        results = plan.run([values[v] for v in inputs], [])
    return tuple([results[plan.slots[v]] for v in call.outs])


# ---- what goes out


def _own(y: Any) -> Any:
    """A result with memory of its own, laid out as the function's is."""
    if isinstance(y, Tensor):
        return wrap(y._array.copy("K")) if y._array.__class__ is np.ndarray else y.clone()
    return wrap(np.asarray(y))


def aliased(
    alias: Alias,
    given: list[Tensor],
    captured: tuple[Tensor, ...],
    tensors: list[Tensor],
    made: list[Tensor],
    results: list[Any],
) -> Any:
    """A result on memory that somebody else has, too; without a history."""
    if alias.kind == "result":
        return results[alias.index]
    root = _root(alias, given, captured, tensors, made)
    return root if alias.same else _taken(alias, root.detach())


def viewed(
    alias: Alias, given: list[Tensor], captured: tuple[Tensor, ...], tensors: list[Tensor], made: list[Tensor]
) -> Tensor:
    """A result that is a view of its root, with the history of one."""
    with enable_grad():
        return _taken(alias, _root(alias, given, captured, tensors, made))


def _root(
    alias: Alias, given: list[Tensor], captured: tuple[Tensor, ...], tensors: list[Tensor], made: list[Tensor]
) -> Tensor:
    roots: Any = {"argument": given, "captured": captured, "made": made}
    root = tensors[alias.index].grad if alias.kind == "grad" else roots[alias.kind][alias.index]
    assert root is not None
    return root  # type: ignore[no-any-return]


def _taken(alias: Alias, root: Tensor) -> Tensor:
    for name, args in alias.steps:
        root = dispatch.apply(REGISTRY[name], (root, *args))
    return root


def _write(graph: Graph, given: list[Tensor], tensors: list[Tensor], new: list[Any]) -> None:
    for w, value in zip(graph.program.writes, new, strict=True):
        if w.of_gradient:
            tensor = tensors[w.index]
            if w.kind == "grad" and tensor.grad is not None:
                if tensor.grad._node is not None:  # a view without a history is written to as it is
                    tensor.grad.detach_()
                _overwrite(tensor.grad, value, graph.name)
            else:
                tensor.grad = value
        else:
            _overwrite(given[w.index] if w.kind == "argument" else graph.binding.captured[w.index], value, graph.name)


def _overwrite(target: Tensor, value: Tensor, name: str) -> None:
    write(target, value)
    bump(target, f"{name}, replayed")
