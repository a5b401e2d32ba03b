"""The ``.grad`` of tensors of the outside while a trace is made.

A leaf may have a gradient at one call and none at the next. So what a backward adds is added to a variable that stands
for what is there at the call, -0.0 where there is nothing (``-0.0 + g`` is ``g``, for every ``g``). Where the function
asks whether there is a gradient, the answer is a branch that was taken: the graph holds for calls with the same answer.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from genesis.arrays.protocol import Virtual
from genesis.arrays.spec import Spec
from genesis.base.errors import GraphError, message
from genesis.core.graph.node import AccumulateGrad, next_number
from genesis.core.graph.tensor import Tensor, wrap
from genesis.jit.arguments import Var
from genesis.jit.guards import hooks_on
from genesis.jit.program import Write
from genesis.jit.traced import Cell, Traced

if TYPE_CHECKING:
    from genesis.jit.memory import Memory
    from genesis.jit.tracer import Tracer


class LeafGradient:
    """A leaf of the outside, and what has happened to its ``.grad`` so far."""

    __slots__ = (
        "argument",
        "asked",
        "assigned",
        "before",
        "cell",
        "hooks",
        "is_leaf",
        "origin",
        "raw",
        "tensor",
        "used",
        "var",
    )

    def __init__(self, tensor: Tensor, argument: int = -1, origin: Any = None) -> None:
        node = tensor._node
        assert isinstance(node, AccumulateGrad)
        self.origin = node if origin is None else origin  # the node outside of the trace
        is_leaf = self.origin.is_leaf
        self.tensor, self.argument, self.is_leaf = tensor, argument, is_leaf
        self.before, self.hooks = node.grad, hooks_on(node)
        self.raw = node, node._grad, tensor._retained
        self.used = self.asked = self.assigned = False
        self.var: Var | None = None
        self.cell: Cell | None = None

    def end(self) -> LeafRecord:
        array, present = self.tensor._array, self.before is not None if self.asked else None
        return LeafRecord(
            self.argument,
            None if self.argument >= 0 else self.tensor,
            Spec(tuple(array.shape), array.dtype),
            self.var,
            present,
            self.hooks,
        )

    def restore(self) -> None:
        node, node._grad, retained = self.raw
        if self.tensor._retained is not retained:
            self.tensor._retained = retained


class LeafRecord(NamedTuple):
    """What a trace found out about a leaf whose ``.grad`` it met."""

    argument: int  # -1: it is none
    tensor: Tensor | None  # None of an argument
    spec: Spec
    var: Var | None
    present: bool | None
    hooks: tuple[Any, ...]


class Gradients:
    """The leaves of the outside whose ``.grad`` a trace has met."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.start = memory, next_number()
        self.leaves: dict[int, LeafGradient] = {}  # by the id of the tensor
        # what tensors came from, before the function changed it
        self.histories: dict[int, tuple[Tensor, Any, Any]] = {}
        self.began: list[weakref.ref[Tensor]] = []  # those that were no leaves, and have a gradient

    def argument(self, tensor: Tensor, index: int, origin: Any) -> None:
        """What stands for an argument that requires grad, whose node is ``origin``."""
        self.leaves[id(tensor)] = LeafGradient(tensor, index, origin)

    def of_arguments(self, nodes: Collection[Any]) -> list[LeafGradient]:
        """Those among nodes that stand for arguments."""
        return [leaf for leaf in self.leaves.values() if leaf.argument >= 0 and leaf.raw[0] in nodes]

    def history_changes(self, tensor: Tensor) -> None:
        if not isinstance(tensor._array, Virtual):
            self.histories.setdefault(id(tensor), (tensor, tensor._node, tensor._own_grad))
            self.leaf(tensor._node)

    def leaf(self, node: Any) -> LeafGradient | None:
        """The record of a leaf; None for one that the function made."""
        tensor = node.tensor() if isinstance(node, AccumulateGrad) else None
        if tensor is None:
            return None
        leaf = self.leaves.get(id(tensor))
        if leaf is None and node._number < self.start:
            leaf = self.leaves[id(tensor)] = LeafGradient(tensor)
        return leaf

    # ---- what the engine and `Tensor.grad` tell

    def read(self, node: AccumulateGrad) -> None:
        """The function looks at a ``.grad``: whether there is one is known from now on."""
        leaf = self.leaf(node)
        if leaf is not None and not leaf.used:
            leaf.asked = True
            self.adds(node)

    def adds(self, node: AccumulateGrad) -> None:
        """A backward adds to the ``.grad`` that there was."""
        leaf = self.leaf(node)
        if leaf is None or leaf.used:
            return
        leaf.used = True
        if leaf.before is not None:
            capture = self.memory.capture(leaf.before._array)
            if capture.of_gradient:
                raise GraphError(
                    message(
                        "trace",
                        "two tensors have the same .grad",
                        operands=[("one of them", leaf.tensor._spec())],
                        hint="x.grad = y.grad.clone()",
                    )
                )
            capture.of_gradient = True
            leaf.var, leaf.cell = capture.var, capture.cell

    def assigned(self, node: AccumulateGrad) -> None:
        leaf = self.leaf(node)
        if leaf is not None:
            leaf.used = leaf.assigned = True

    def first(self, tracer: Tracer, node: AccumulateGrad, g: Tensor) -> Tensor:
        """The gradient of a leaf that has none in the trace: there may be one at a replay, it is added to that."""
        leaf = self.leaf(node)
        if leaf is None or leaf.used:
            return g
        if not leaf.is_leaf:
            raise GraphError(
                message(
                    "trace",
                    "an argument that requires grad was computed: its gradient would have to go on to where it came "
                    "from",
                    [("argument", leaf.tensor._spec())],
                    "pass x.detach().requires_grad_(), or compute it inside",
                )
            )
        leaf.used = True
        spec = tracer.array(g._array).spec
        leaf.var = Var(replace(spec))
        leaf.cell = Cell(leaf.var, outside=True)
        there = wrap(Traced(tracer, leaf.cell, leaf.var.spec))
        return there.add_(g) if g._node is None else there + g

    # ---- at the end

    def ends(self, tracer: Tracer) -> tuple[list[LeafRecord], list[Write], dict[Cell, int], set[Cell]]:
        """The leaves of the graph, what becomes of their gradients, which memory is whose gradient, and of which memory
        gradients are parts.
        """
        leaves, writes, cells, parts = [], [], dict[Cell, int](), set[Cell]()
        for index, leaf in enumerate([x for x in self.leaves.values() if x.used]):
            leaves.append(leaf.end())
            write, array = _end(tracer, leaf, index)
            if write is not None:
                writes.append(write)
            if array is None:
                continue
            if array.cell in cells or array.cell in parts or self._is_of_others(array, leaf):
                text = "a .grad is set to memory that the outside or another .grad has, too: they would be two"
                raise GraphError(message("trace", text, [("tensor", leaf.tensor._spec())], "x.grad = g.clone()"))
            if array.steps:
                parts.add(array.cell)
            else:
                cells[array.cell] = index
        return leaves, writes, cells, parts

    def _is_of_others(self, array: Traced, leaf: LeafGradient) -> bool:
        """Whether memory is not made by the function, and is not what the ``.grad`` of a leaf was, and that alone."""
        if array.cell is not leaf.cell:
            return not self.memory.is_made(array.cell)
        capture = None if leaf.before is None else self.memory.find(leaf.before._array)
        other = None if capture is None else capture.tensor()
        return bool(array.steps) or not (other is None or other is leaf.before)

    def restore(self) -> None:
        """Tensors of the outside get back the histories and gradients that they had."""
        for tensor, node, own_grad in self.histories.values():
            if node is None and isinstance(tensor._node, AccumulateGrad) and tensor._node._grad is not None:
                self.began.append(weakref.ref(tensor))
            tensor._node = node
            if tensor._own_grad is not own_grad:
                tensor._own_grad = own_grad
        for leaf in self.leaves.values():
            leaf.restore()
        self.histories.clear()
        self.leaves.clear()

    def refuse_new_leaves(self) -> None:
        """When all is over: a tensor of the outside began to require grad in the function, and has a gradient now."""
        for tensor in [ref() for ref in self.began]:
            if tensor is not None:
                raise GraphError(
                    message(
                        "trace",
                        "a tensor from outside begins to require grad inside, and gets a gradient",
                        [("tensor", tensor._spec())],
                        "call requires_grad_() before the trace",
                    )
                )


def _end(tracer: Tracer, leaf: LeafGradient, index: int) -> tuple[Write | None, Traced | None]:
    """What becomes of a leaf's .grad, and its memory."""
    node = leaf.tensor._node
    value = node.grad if isinstance(node, AccumulateGrad) else leaf.tensor._own_grad
    if value is None:
        return (Write("no grad", index, None) if leaf.before is not None or leaf.assigned else None), None
    array = tracer.array(value._array)
    if array.steps or array.cell is not leaf.cell:
        return Write("new grad", index, array.var()), array
    return (None if array.cell.value is leaf.var else Write("grad", index, array.cell.value)), array
