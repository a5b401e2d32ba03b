"""Running a graph op by op: check the call, read what comes from outside, compute, then write, all or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.arrays.spec import Spec, memory_order, strides_of
from genesis.base import dtypes
from genesis.base.errors import ArgumentError, GraphError, message
from genesis.base.pytree import tree_flatten, tree_unflatten
from genesis.core.call import dispatch
from genesis.core.call.op import REGISTRY
from genesis.core.call.views import bump, write
from genesis.core.graph.modes import grad_mode, no_grad
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.layers.draws import DRAWS
from genesis.jit.nodes import Alias, Leaf, Node, Var, hooks_on, renamed

if TYPE_CHECKING:
    from genesis.jit.graph import Graph


def replay(graph: Graph, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """See `Graph.replay`."""
    leaves, structure = tree_flatten((args, kwargs))
    if structure != graph.structure_in:
        raise ArgumentError(
            message(
                "replay",
                f"{graph.name} was traced with other arguments",
                [("traced", graph.structure_in), ("given", structure)],
            )
        )
    given = [x for x in leaves if isinstance(x, Tensor)]
    _check_arguments(graph, given)
    _check_plain(graph, [x for x in leaves if not isinstance(x, Tensor)])
    _check_guards(graph)
    tensors = [given[leaf.argument] if leaf.tensor is None else leaf.tensor for leaf in graph.leaves]
    _check_leaves(graph, given, tensors)
    before = [(counts, key, counts[key]) for counts, key in graph.counts]
    starts = [(generator, generator._block) for generator, _ in graph.streams]
    with no_grad():
        try:
            values = _computed(graph, _inputs(graph, given, tensors), starts)
        except BaseException:  # as if the call had not been made
            for counts, key, count in reversed(before):
                counts[key] = count
            for generator, start in starts:
                generator._position(start)
            raise
        for (generator, blocks), (_, start) in zip(graph.streams, starts, strict=True):
            generator._position(start + blocks)
        own = {i: _own(r, values) for i, r in enumerate(graph.results) if i not in graph.aliases}
        made = [_own(root, values) for root in graph.made]
        _write(graph, given, tensors, values)
        results: list[Any] = []
        for i in range(len(graph.results)):
            results.append(own[i] if i in own else _aliased(graph.aliases[i], given, tensors, made, results))
    return tree_unflatten(results, graph.structure_out)


# ---- is this the call that was traced?


def _check_arguments(graph: Graph, given: list[Tensor]) -> None:
    if len(given) != len(graph.arguments):
        raise ArgumentError(
            message("replay", f"{graph.name} was traced with {len(graph.arguments)} tensors, {len(given)} were given")
        )
    differentiated = {leaf.argument for leaf in graph.leaves if leaf.tensor is None}
    for i, (x, var) in enumerate(zip(given, graph.arguments, strict=True)):
        if (tuple(x._array.shape), x._array.dtype) != (var.spec.shape, var.spec.dtype):
            raise GraphError(
                message(
                    "replay",
                    f"argument tensor {i} is {x._spec()}, {graph.name} was traced with {var.spec}",
                    hint="trace it again for other shapes",
                )
            )
        if graph.wrote and x._array.__class__ is np.ndarray and not same_layout(x._array, var.spec):
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
    if any(w.kind == "argument" or w.kind == "captured" for w in graph.writes):
        _check_shared(graph, given)


def _check_plain(graph: Graph, given: list[Any]) -> None:
    for a, b in zip(graph.plain, given, strict=True):
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
    for guard in graph.guards:
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
    for leaf, tensor in zip(graph.leaves, tensors, strict=True):
        if leaf.tensor is None and not tensor.requires_grad:
            raise GraphError(
                message(
                    "replay",
                    f"argument tensor {leaf.argument} does not require grad, when {graph.name} was traced it did",
                    [("argument", tensor._spec())],
                )
            )
        if leaf.tensor is None and hooks_on(tensor._node) != leaf.hooks:
            raise GraphError(
                message(
                    "replay",
                    f"argument tensor {leaf.argument} has other hooks than when {graph.name} was traced",
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
    """A graph that writes takes its tensors for different memory."""
    arrays = [x._array for x in (*given, *[t for _, t in graph.captured])]
    owners = [id(a if a.base is None else a.base) for a in arrays]
    for i, x in enumerate(given):
        if any(owners[k] == owners[i] and np.may_share_memory(arrays[k], arrays[i]) for k in range(i + 1, len(arrays))):
            raise GraphError(
                message(
                    "replay",
                    f"argument tensor {i} shares its memory with another argument or a captured tensor, and "
                    f"{graph.name} writes to one of them",
                    operands=[("argument", x._spec())],
                    hint="pass a clone()",
                )
            )


def same_layout(array: Any, spec: Spec) -> bool:
    strides = strides_of(spec)
    return not array.size or all(
        n == 1 or s == t * array.itemsize for n, s, t in zip(array.shape, array.strides, strides, strict=True)
    )


# ---- what comes in


def _inputs(graph: Graph, given: list[Tensor], tensors: list[Tensor]) -> dict[Var, Any]:
    values: dict[Var, Any] = {}
    for var, x in zip(graph.arguments, given, strict=True):
        values[var] = wrap(x._array)
    for var, x in graph.captured:
        values[var] = wrap(x._array)
    for var, array in graph.constants:
        values[var] = wrap(array)
    for leaf, tensor in zip(graph.leaves, tensors, strict=True):
        if leaf.var is not None:
            values[leaf.var] = wrap(_incoming(leaf, tensor))
    values.update(_numbers(graph))
    return values


def _numbers(graph: Graph) -> dict[Var, float]:
    """The numbers of the host, asked for between the counts that went up before and after."""
    found, done = {}, 0
    for var, number in graph.numbers:
        for counts, key in graph.counts[done : graph.after[var]]:
            counts[key] += 1
        done = max(done, graph.after[var])
        found[var] = float(number())
    for counts, key in graph.counts[done:]:
        counts[key] += 1
    return found


def _incoming(leaf: Leaf, tensor: Tensor) -> Any:
    """The .grad of a leaf as it is now, laid out as in the trace."""
    spec = leaf.var.spec  # type: ignore[union-attr]
    grad = tensor.grad
    if grad is not None and same_layout(grad._array, spec):
        return grad._array
    order = memory_order(strides_of(spec))
    array = np.empty([spec.shape[d] for d in order], spec.dtype).transpose(np.argsort(order) if order else None)
    array[...] = -np.zeros((), spec.dtype) if grad is None else grad._array
    return array


# ---- computing


def _computed(graph: Graph, values: dict[Var, Any], starts: list[tuple[Any, int]]) -> dict[Var, Any]:
    for node, ended in zip(graph.nodes, graph.ended, strict=True):
        run_node(node, values, starts)
        for var in ended:
            del values[var]
    return values


def run_node(node: Node, values: dict[Var, Any], starts: list[tuple[Any, int]]) -> None:
    """Compute a node's results from the values of its inputs."""
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


def _filled(value: Any, values: dict[Var, Any], tensor: bool) -> Any:
    """An argument with values: tensors where the op takes tensors, arrays in indices."""
    if tensor:
        return renamed(value, values.__getitem__)
    return renamed(value, lambda var: values[var]._array)


# ---- what goes out


def _own(result: Any, values: dict[Var, Any]) -> Any:
    """A result with memory of its own, laid out as the function's is."""
    if not isinstance(result, Var):
        return result
    y = values[result]
    if isinstance(y, Tensor):
        return wrap(y._array.copy("K")) if y._array.__class__ is np.ndarray else y.clone()
    return wrap(np.asarray(y))


def _aliased(alias: Alias, given: list[Tensor], tensors: list[Tensor], made: list[Tensor], results: list[Any]) -> Any:
    """A result on memory that somebody else has, too."""
    if alias.kind == "result":
        return results[alias.place]
    if alias.kind == "captured":
        root = alias.tensor
    else:
        root = (
            {"argument": given, "made": made}[alias.kind][alias.place]
            if alias.kind != "grad"
            else tensors[alias.place].grad
        )
    assert root is not None
    if alias.same:
        return root
    root = root.detach()
    for name, args in alias.steps:
        root = dispatch.apply(REGISTRY[name], (root, *args))
    return root


def _write(graph: Graph, given: list[Tensor], tensors: list[Tensor], values: dict[Var, Any]) -> None:
    new = [_own(w.value, values) for w in graph.writes]  # one write may read what another overwrites
    for w, value in zip(graph.writes, new, strict=True):
        if w.of_gradient:
            tensor = tensors[w.place]
            if w.kind == "grad" and tensor.grad is not None:
                tensor.grad.detach_()
                _overwrite(tensor.grad, value, graph.name)
            else:
                tensor.grad = value
        else:
            _overwrite(given[w.place] if w.kind == "argument" else graph.captured[w.place][1], value, graph.name)


def _overwrite(target: Tensor, value: Tensor, name: str) -> None:
    write(target, value)
    bump(target, f"{name}, replayed")
