"""The ways in and out of a transform, for arrays and for gradients.

`batch_in`, `batch_out`, `dual_in`, `primal_of` and `tangent_of` put a layer around an array or take it off. Each is a
node of the graph, so a gradient finds its way through. Where an array has layers of later transforms, those stay
outside.

**Gradients that come from outside** carry the mark ``from_outside``. Through `batch_out` they become batched; where
they leave towards a tensor that had no batch (`Lift`), they are summed over it. Through `primal_of` and `tangent_of`
they become dual arrays with value and tangent
*swapped*: the function $(x, \\dot x) \\mapsto (y, \\dot y)$ pairs values with tangents, so a cotangent
$\\bar{\\dot y} + \\bar y \\varepsilon$ pulled back by the ordinary rules, in dual arithmetic, is
$\\bar{\\dot x} + \\bar x \\varepsilon$. No rule has to know.

A user's `Function` takes layers off its arguments and puts them on its results, too (`core/layers/function_rules.py`).
A gradient that passes such a pair of boundaries has the same mark afterwards: they share a ``link``, in which the one
at the results leaves it for the one at the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from genesis.arrays.batched import Batched
from genesis.arrays.dual import Dual
from genesis.arrays.protocol import Layer, level_of, same_level
from genesis.base.errors import GraphError, message
from genesis.core.graph.levels import Level, is_open, mark_created
from genesis.core.graph.lost import history_used
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.node import AccumulateGrad, Node, recorded
from genesis.core.graph.switches import ACTIVE, HISTORY_WATCHES, LEVELS
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer
from genesis.core.graph.version import INFERENCE, SHARED, Version, VersionOfTwo

# ---- arrays

Layer.expanded = lambda array, shape: wrap(array).expand(shape)._array


def layer_at(array: Any, level: int) -> Layer | None:
    """The layer of a level, wherever it is in the array."""
    while isinstance(array, Layer) and array.level >= level:
        if array.level == level:
            return array
        array = array.inner
    return None


def moved(array: Any, source: int, destination: int) -> Any:
    return array if source == destination else wrap(array).movedim(source, destination)._array


def add_batch(array: Any, dim: int | None, level: int, size: int, from_outside: bool = False) -> Any:
    """Hide a dimension (None: the array is the same for all samples)."""
    if level_of(array) > level:
        return array.mapped(lambda a, d: add_batch(a, d, level, size, from_outside), dim)
    return Batched(array if dim is None else moved(array, dim, 0), dim is not None, size, level, from_outside, dim or 0)


def remove_batch(array: Any, dim: int, level: int, size: int) -> Any:
    """Show the hidden dimension as dimension ``dim``; what was the same for all samples is repeated (as a view)."""
    if level_of(array) > level:
        return array.mapped(lambda a, d: remove_batch(a, d, level, size), dim)
    if level_of(array) == level:
        if array.batched:
            return moved(array.array, 0, dim)
        array = array.array
    x = wrap(array).unsqueeze(dim)
    return x.expand([size if i == dim else -1 for i in range(x.ndim)])._array


def add_tangent(primal: Any, tangent: Any, level: int, from_outside: bool = False) -> Any:
    """A dual array; layers of later transforms, which both may have, stay outside."""
    outer = max(level_of(primal), level_of(tangent))
    if outer <= level:
        return Dual(primal, tangent, level, from_outside)
    top = primal if level_of(primal) == outer else tangent
    return top.zipped(lambda p, t: add_tangent(p, t, level, from_outside), primal, tangent)


def primal_and_tangent(array: Any, level: int) -> tuple[Any, Any]:
    """The two parts of a dual array of a level; None for a tangent of zero."""
    if level_of(array) < level:
        return array, None
    if level_of(array) == level:
        return array.primal, array.tangent
    return array.unzipped(lambda a: primal_and_tangent(a, level))  # type: ignore[no-any-return]


# ---- tensors


def _recorded(
    kind: type[_Boundary],
    out: Any,
    sources: tuple[Tensor | None, ...],
    state: tuple[Any, ...],
    counter: Version | None = None,
) -> Tensor:
    """A tensor on the memory of another, whose ``counter`` it shares: what is saved of it is stale when the other was
    written to.
    """
    y = wrap(out)
    y._counter = counter
    active = tracer.get() if ACTIVE else None
    if active is not None:  # the tensors are inputs of the graph, whatever layers their arrays get
        for x in sources:
            if x is not None:
                active.capture(x)
    edges = tuple([None if x is None else x._node for x in sources])
    if not any(e is not None for e in edges):
        return y
    if not grad_mode.get():
        if HISTORY_WATCHES:
            history_used(*edges)
        return y
    y._node = recorded(kind, edges, out, state)
    return y


def _counter_outside(x: Tensor) -> Version:
    """The counter of what leaves a transform. A gradient that others may read stays one: who writes to it copies it."""
    return SHARED if x._counter is SHARED else x._shared_counter()


def before_leaving(results: Sequence[Any]) -> None:
    """One tensor that is returned twice is one memory outside, too, whoever may read it."""
    tensors = [x for x in results if isinstance(x, Tensor)]
    if len({id(x) for x in tensors}) < len(tensors):
        for x in tensors:
            x._shared_counter()


class _Boundary(Node):
    """What the nodes of this file have in common: they save numbers, no tensors."""

    __slots__ = ()
    _frees = False

    def _of(self, g: Tensor, level: int) -> bool:
        """Whether a gradient comes from outside of the transform."""
        layer = layer_at(g._array, level)
        return layer is not None and layer.from_outside


class BatchIn(_Boundary):
    __slots__ = ()
    op_name = "into vmap"
    input_names = ("input",)

    def _pull(self, g: Any) -> Any:
        dim, level, size, link = self._saved
        if link is not None:
            link.from_outside = self._of(g, level)
        return (batch_out(g, dim, level, size, link),)


class Lift(_Boundary):
    """A tensor that is the same for all samples."""

    __slots__ = ()
    op_name = "captured by vmap"
    input_names = ("input",)

    def _pull(self, g: Any) -> Any:
        level, size = self._saved
        # one that does not depend on the cotangent, like zeros, has no mark
        outside = self._of(g, level) or not is_open(level)
        return (batch_out(g, 0, level, size).sum(0) if outside else g,)


class Shared(_Boundary):
    """A tensor from outside that a user's batching rule is given as it is: the rule's gradient is summed over the
    samples.
    """

    __slots__ = ()
    op_name = "argument of a batching rule"
    input_names = ("input",)

    def _pull(self, g: Any) -> Any:
        (level,) = self._saved
        if is_open(level):
            raise GraphError(
                message(
                    "vmap",
                    "inside vmap, the gradient of a tensor from outside was asked for, through a Function with a "
                    "rule for batches",
                    operands=[("tensor", f"shape {list(self._shape)}"), ("called at", self.where())],
                    hint="make it an argument of a function for genesis.func.grad, or ask for the gradient outside",
                )
            )
        return (g,)


class BatchOut(_Boundary):
    __slots__ = ()
    op_name = "out of vmap"
    input_names = ("input",)

    def _pull(self, g: Any) -> Any:
        dim, level, size, link = self._saved
        return (batch_in(g, dim, level, size, link is None or link.from_outside, link),)


class DualIn(_Boundary):
    __slots__ = ()
    op_name = "into forward mode"
    input_names = ("primal", "tangent")

    def _pull(self, g: Any) -> Any:
        level, link = self._saved
        primal, tangent = self._edges
        from_outside = self._of(g, level)
        if link is not None:
            link.from_outside = from_outside
        elif not from_outside:
            return g, None
        return None if primal is None else tangent_of(g, level, link), None if tangent is None else primal_of(
            g, level, link
        )


class PrimalOf(_Boundary):
    __slots__ = ()
    op_name = "value out of forward mode"
    input_names = ("input",)

    def _pull(self, g: Any) -> Any:
        level, link = self._saved
        return (
            dual_in(g._zeros(tuple(g._array.shape), g._array.dtype), g, level, link is None or link.from_outside, link),
        )


class TangentOf(_Boundary):
    __slots__ = ()
    op_name = "tangent out of forward mode"
    input_names = ("input",)

    def _pull(self, g: Any) -> Any:
        level, link = self._saved
        return (dual_in(g, None, level, link is None or link.from_outside, link),)


class Link:
    """What the boundaries around one call of a `Function` tell each other during a backward."""

    __slots__ = ("from_outside",)

    def __init__(self) -> None:
        self.from_outside = False


def batch_in(
    x: Tensor, dim: int, level: int, size: int, from_outside: bool = False, link: Link | None = None
) -> Tensor:
    """Hide a dimension of a tensor."""
    counter = x._shared_counter()
    array = add_batch(x._array, dim, level, size, from_outside)
    return _recorded(BatchIn, array, (x,), (dim, level, size, link), counter)


def _same_for_all(x: Tensor, level: int, size: int) -> Tensor:
    counter = x._shared_counter()
    return _recorded(Lift, add_batch(x._array, None, level, size), (x,), (level, size), counter)


def for_all(x: Tensor, level: Level | None, size: int) -> Tensor:
    """A tensor with history as an argument that a batching rule need not see the samples of; one made inside has a
    gradient for each.
    """
    if x._node is None or level is None:
        return x
    if level.has_created(x):
        return _same_for_all(x, level.number, size)
    counter = x._shared_counter()
    return _recorded(Shared, x._array, (x,), (level.number,), counter)


def batch_out(x: Tensor, dim: int, level: int, size: int, link: Link | None = None) -> Tensor:
    """Show the hidden dimension again. (What is no part of the transform, the same for all samples, joins it first.)"""
    if link is None and x._node is not None and layer_at(x._array, level) is None:
        x = _same_for_all(x, level, size)
    counter = _counter_outside(x)
    return _recorded(BatchOut, remove_batch(x._array, dim, level, size), (x,), (dim, level, size, link), counter)


def dual_in(
    primal: Tensor, tangent: Tensor | None, level: int, from_outside: bool = False, link: Link | None = None
) -> Tensor:
    """A value with a tangent."""
    if tangent is not None:
        primal, tangent = lift_all([primal, tangent])
    counter = primal._shared_counter()
    if tangent is not None:
        second = tangent._shared_counter()
        counter = counter if counter is INFERENCE else VersionOfTwo(counter, second)
    out = add_tangent(primal._array, None if tangent is None else tangent._array, level, from_outside)
    return _recorded(DualIn, out, (primal, tangent), (level, link), counter)


def primal_of(x: Tensor, level: int, link: Link | None = None) -> Tensor:
    """The value of a dual tensor; any other is its own value."""
    if link is None and layer_at(x._array, level) is None:
        return x
    counter = _counter_outside(x)
    return _recorded(PrimalOf, primal_and_tangent(x._array, level)[0], (x,), (level, link), counter)


def tangent_of(x: Tensor, level: int, link: Link | None = None) -> Tensor | None:
    """The tangent of a dual tensor, None if it is zero."""
    counter = _counter_outside(x)
    tangent = primal_and_tangent(x._array, level)[1]
    if tangent is None:
        return None
    return _recorded(TangentOf, tangent, (x,), (level, link), counter)


# how a tensor with history, as an operand, joins a transform that it is not part of: for each class of layers
JOINS: dict[type[Layer], Callable[[Tensor, Any], Tensor]] = {
    Dual: lambda x, layer: dual_in(x, None, layer.level),
    Batched: lambda x, layer: _same_for_all(x, layer.level, layer.size_hidden),
}


def layers_in(array: Any, layers: dict[int, Layer]) -> dict[int, Layer]:
    """One layer of each level in an array, in all its parts."""
    if isinstance(array, Layer):
        layers.setdefault(array.level, array)
        for part in array.parts:
            layers_in(part, layers)
    return layers


def all_in_one(top: Layer, tensors: Iterable[Any]) -> bool:
    """Whether it is seen at a glance that all operands with history are part of one transform, and of nothing else."""
    for x in tensors:
        if isinstance(x, Tensor):
            array = x._array
            if array.__class__ is np.ndarray:
                if x._node is not None:
                    return False
            elif not same_level(array, top) or any([part.__class__ is not np.ndarray for part in array.parts]):
                return False
    return True


def lift_all(tensors: list[Any]) -> list[Any]:
    """Operands of one op: those with history join every transform that another operand is part of."""
    everything: dict[int, Layer] = {}
    for x in tensors:
        if isinstance(x, Tensor) and isinstance(x._array, Layer):
            layers_in(x._array, everything)
    if not everything:
        return tensors
    result = []
    for x in tensors:
        if isinstance(x, Tensor) and x._node is not None:
            mine = layers_in(x._array, {})
            for level in sorted(everything):
                if level not in mine:
                    layer = everything[level]
                    x = JOINS[layer.__class__](x, layer)  # noqa: PLW2901
        result.append(x)
    return result


class TransformArgument(_Boundary):
    """A tensor under another name: an inner derivative ends at this node, an outer one goes on."""

    __slots__ = ()
    op_name = "argument of a transform"
    input_names = ("input",)

    def _pull(self, g: Any) -> Any:
        return (g,)


class LeafArgument(AccumulateGrad):
    """The node of one that has no history: a write that is not recorded would be missing in the derivative."""

    __slots__ = ()


def inside_copy(x: Tensor) -> Tensor:
    """The same memory under a node of its own, to differentiate by."""
    active = tracer.get() if ACTIVE else None
    if x._node is None:
        y = x._alias(None)
        if active is not None:
            y._array = active.aliased(x)
        y.requires_grad_()
        y._node.__class__ = LeafArgument
        if LEVELS:
            mark_created(y)
        return y
    counter = x._shared_counter()
    return _recorded(TransformArgument, x._array if active is None else active.aliased(x), (x,), (), counter)
