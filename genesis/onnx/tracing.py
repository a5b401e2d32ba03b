"""What is exported: a program, and of each number in it how it depends on the sizes that are left open.

A trace has sizes as plain numbers: ``reshape(x, (2, 48))``. With dynamic axes the model is therefore traced several
times, with other sizes of these axes (no data is involved), and the programs are compared call by call. A number that is
the same in all of them is a constant; one that differs is a `Dim`: its values in all traces. `sizes` finds the
expression that gives them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import is_not
from typing import Any

import numpy as np

from genesis.base.errors import GraphError, UnsupportedError, message
from genesis.base.pytree import tree_flatten, tree_unflatten
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor, wrap
from genesis.jit.arguments import Var, shown
from genesis.jit.binding import Graph
from genesis.jit.program import Call
from genesis.jit.tracer import trace
from genesis.onnx.whole import kept_whole


@dataclass(frozen=True, slots=True)
class Dim:
    """A number that depends on dynamic sizes, by its values in the traces; it takes part in no arithmetic."""

    values: tuple[int, ...]


@dataclass(slots=True)
class Traces:
    """The program at the sizes of the example, and what differs at others."""

    graph: Graph
    calls: list[Call]  # with `Dim`s among their arguments
    shapes: dict[Var, tuple[Any, ...]]  # likewise
    constants: dict[Var, tuple[np.ndarray[Any, Any], ...]]  # their arrays in all traces
    names: list[str]  # of the dynamic sizes
    sizes: list[tuple[int, ...]] = field(default_factory=list)  # their values, for each trace


def traced(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic: dict[tuple[int, int], str]) -> Traces:
    """Trace a model; ``dynamic`` names axes of the tensors among its arguments: ``{(0, 0): "batch"}``."""
    names = list(dict.fromkeys(dynamic.values()))
    leaves, structure = tree_flatten((args, kwargs))
    base = _example_sizes(leaves, dynamic, names)
    sizes = [tuple([n * m for n, m in zip(base, factors, strict=True)]) for factors in _factors(len(names))]
    graphs = []
    with no_grad(), kept_whole():
        for each in sizes:
            given = _resized(leaves, dynamic, dict(zip(names, each, strict=True)))
            inner_args, inner_kwargs = tree_unflatten(given, structure)
            graphs.append(trace(model, *inner_args, **inner_kwargs))
    graph = graphs[0]
    _refuse_effects(graph)
    calls, shapes = _compared(graphs)
    constants = {
        v: tuple([g.program.constants[i][1] for g in graphs]) for i, (v, _) in enumerate(graph.program.constants)
    }
    return Traces(graph, calls, shapes, constants, names, sizes)


def _factors(count: int) -> list[tuple[int, ...]]:
    """By what the sizes are multiplied in each trace: enough of them to tell sums of products of two apart."""
    if not count:
        return [()]
    monomials = 1 + count + count * (count + 1) // 2
    every = sorted(itertools.product(range(1, 5), repeat=count), key=lambda f: (sum(f), f))
    return every[: monomials + 2]


def _example_sizes(leaves: list[Any], dynamic: dict[tuple[int, int], str], names: list[str]) -> list[int]:
    """The sizes to begin with: those of the example, but not one, at which shapes broadcast."""
    tensors = [x for x in leaves if isinstance(x, Tensor)]
    sizes: dict[str, int] = {}
    for (index, axis), name in dynamic.items():
        size = tensors[index].shape[axis]
        if sizes.setdefault(name, size) != size:
            raise GraphError(message("export", f"the dynamic size {name!r} is {sizes[name]} and {size} in the example"))
    return [max(sizes[name], 2) for name in names]


def _resized(leaves: list[Any], dynamic: dict[tuple[int, int], str], sizes: dict[str, int]) -> list[Any]:
    given, index = [], -1
    for x in leaves:
        if not isinstance(x, Tensor):
            given.append(x)
            continue
        index += 1
        shape = tuple([sizes[dynamic[index, i]] if (index, i) in dynamic else n for i, n in enumerate(x.shape)])
        given.append(wrap(np.zeros(shape, x._array.dtype)) if dynamic else x.detach())  # a trace asks for no values
    return given


def _refuse_effects(graph: Graph) -> None:
    program = graph.program
    if program.writes:
        what = ", ".join(sorted({program.target(w) for w in program.writes}))
        raise GraphError(
            message("export", f"the model writes to tensors of its own ({what})", hint="model.eval() before the export")
        )
    if program.numbers:
        raise GraphError(message("export", "the model reads numbers of the host that may change"))


# ---- comparing


def _compared(graphs: Sequence[Graph]) -> tuple[list[Call], dict[Var, tuple[Any, ...]]]:
    first = graphs[0].program
    programs = [g.program for g in graphs]
    captured = [g.binding.captured for g in graphs]
    if any([len(c) != len(captured[0]) or any(map(is_not, c, captured[0])) for c in captured]) or any(
        [len(p.constants) != len(first.constants) for p in programs]
    ):
        text = "the model uses other tensors at other sizes of the dynamic axes"
        raise UnsupportedError(message("export", text, hint="leave the axes that decide out of dynamic_axes"))
    same: list[dict[Var, Var]] = [{} for _ in programs]  # the variables of the first, by those of each
    for p, variables in zip(programs, same, strict=True):
        variables.update(zip(p.outside, first.outside, strict=False))
    calls = []
    for i, call in enumerate(first.calls):
        others = [p.calls[i] if i < len(p.calls) else None for p in programs]
        if any([o is None or o.op != call.op or len(o.outs) != len(call.outs) for o in others]):
            raise _differ(first, call)
        try:
            used = 1 if call.op == "check_range" else len(call.args)  # the rest is for its message
            args = tuple([_merged([o.args[k] for o in others], same) for k in range(used)])
        except (ValueError, IndexError):
            raise _differ(first, call) from None
        for other, variables in zip(others, same, strict=True):
            variables.update(zip(other.outs, call.outs, strict=True))
        calls.append(Call(call.op, args, call.outs, call.site))
    shapes: dict[Var, tuple[Any, ...]] = {}
    inverse = [{mine: theirs for theirs, mine in variables.items()} for variables in same]
    for var in inverse[0]:
        shapes[var] = _merged([table[var].spec.shape for table in inverse], same)
    return calls, shapes


def _differ(program: Any, call: Call) -> UnsupportedError:
    text = f"the model does other things at other sizes of the dynamic axes, from {call.op} on"
    hint = "fix the sizes that decide what is done: leave them out of dynamic_axes"
    return UnsupportedError(message("export", text, [("call", program.line(call))], hint))


def _merged(values: Sequence[Any], same: Sequence[dict[Var, Var]]) -> Any:
    """One argument of a call in all traces."""
    first = values[0]
    if isinstance(first, Var):
        if any([table[v] is not first for v, table in zip(values, same, strict=True)]):
            raise ValueError
        return first
    if isinstance(first, tuple | list):
        if any([type(v) is not type(first) or len(v) != len(first) for v in values]):
            if all([isinstance(v, tuple) and len(set(v)) == 1 for v in values]):  # the steps of a recurrent layer
                return Steps(_merged([len(v) for v in values], same), _merged([v[0] for v in values], same))
            raise ValueError
        return type(first)([_merged([v[i] for v in values], same) for i in range(len(first))])
    if isinstance(first, slice):
        parts = [_merged([getattr(v, part) for v in values], same) for part in ("start", "stop", "step")]
        return slice(*parts)
    if all([type(v) is type(first) and (v == first or v != v) for v in values]):
        return first
    if all([type(v) is int for v in values]):
        return Dim(tuple(values))
    raise ValueError


@dataclass(frozen=True, slots=True)
class Steps:
    """A tuple of equal numbers whose length is a dynamic size, too."""

    count: Any
    value: Any


# ---- expressions


def expression(dim: Dim, sizes: Sequence[tuple[int, ...]]) -> list[tuple[int, tuple[int, ...]]] | None:
    """A number as a sum of products of dynamic sizes: ``[(2, (0, 1)), (3, ())]`` is ``2 a b + 3``; None if it is none.

    >>> expression(Dim((7, 11, 15)), [(2,), (4,), (6,)])
    [(2, (0,)), (3, ())]
    """
    count = len(sizes[0])
    for degree in (1, 2):
        monomials: list[tuple[int, ...]] = [()]
        for d in range(1, degree + 1):
            monomials += list(itertools.combinations_with_replacement(range(count), d))
        if len(monomials) > len(sizes):
            continue
        table = np.array([[np.prod([s[i] for i in m], dtype=float) for m in monomials] for s in sizes])
        weights, *_ = np.linalg.lstsq(table, np.array(dim.values, float), rcond=None)
        exact = [round(w) for w in weights.tolist()]
        if all(
            [
                sum(w * int(t) for w, t in zip(exact, row, strict=True)) == v
                for row, v in zip(table, dim.values, strict=True)
            ]
        ):
            return [(w, m) for w, m in reversed(list(zip(exact, monomials, strict=True))) if w]
    return None


def printed(call: Call) -> str:
    """A call for a message, without names of variables."""
    inside = ", ".join(shown(a, lambda v: str(v.spec)) for a in call.args)
    return f"{call.op}({inside})"
