"""Hooks: functions that see, and may replace, gradients on their way through the graph.

They hang on nodes, not on tensors, so they fire even when the tensor is long gone. The order in which they run around
one node:

1. tensor hooks on its outputs (`Tensor.register_hook`), in the order of registration
2. retained gradients (`Tensor.retain_grad`): they see what the tensor hooks made
3. pre-hooks of the node (`Node.register_prehook`)
4. the node itself; for a leaf the accumulation into ``.grad``, then `Tensor.register_post_accumulate_grad_hook`
5. post-hooks of the node (`Node.register_hook`)

A tensor of which nothing but the gradient was asked for (``autograd.grad(z, y)``) has 1 and 2 only: its node does not
run. After an in-place write hooks stay with the value before it, retained gradients move on to the new one, those of
the other views of that memory as soon as these are used again (`core/call/views.py`).
"""

from __future__ import annotations

import itertools
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from genesis.base.errors import ArgumentError, DTypeError, ShapeError, message
from genesis.base.locks import process_lock
from genesis.core.graph.tracing import changes, tracer

if TYPE_CHECKING:
    from genesis.core.graph.node import AccumulateGrad, Node
    from genesis.core.graph.tensor import Tensor


class RemovableHandle:
    """What registering a hook returns; ``remove()`` takes the hook off again, also at the end of a ``with``."""

    __slots__ = ("_hooks", "_id")
    _next = itertools.count().__next__

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self._id = RemovableHandle._next()
        self._hooks = hooks
        hooks[self._id] = hook

    def remove(self) -> None:
        if self._id in self._hooks:
            changes(self._hooks, "a hook is removed")
        self._hooks.pop(self._id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class NodeHooks:
    """All hooks of one node, in the order in which they run."""

    __slots__ = ("metadata", "post", "post_accumulate", "pre", "retained", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, tuple[int, Callable[[Tensor], Any]]] = {}  # on the gradient of one output
        self.retained: dict[int, Retaining] = {}  # tensors that keep that gradient, by output
        self.pre: dict[int, Callable[..., Any]] = {}  # on all gradients entering the node
        self.post: dict[int, Callable[..., Any]] = {}  # on the gradients it computed
        self.post_accumulate: dict[int, Callable[[Tensor], Any]] = {}  # on a leaf, after .grad was updated
        self.metadata: dict[Any, Any] = {}  # whatever users want to note of the node

    @property
    def are_called(self) -> bool:
        """Whether any function is called."""
        return bool(self.tensor or self.pre or self.post or self.post_accumulate)

    @property
    def sees_sums_only(self) -> bool:
        """Whether no hook gets a gradient, only tensors whose ``.grad`` it is in: it need not be apart from that."""
        return not (self.tensor or self.retained or self.pre or self.post)

    def before(self, node: Node, g: Any) -> Any:
        """Tensor hooks, retained gradients, then pre-hooks; returns the gradient(s) to go on with."""
        g = self.on_outputs(node, g)
        if not self.pre:
            return g
        parts = list(g) if node._outputs is not None else [g]
        for hook in list(self.pre.values()):
            result = hook(tuple(parts))
            if result is not None:
                parts = _replaced_all(node, "register_prehook", result, parts)
        return parts if node._outputs is not None else parts[0]

    def on_outputs(self, node: Node, g: Any) -> Any:
        """Tensor hooks and retained gradients."""
        if node._outputs is None and not self.retained:
            g = g._shared()
            for _, hook in [*self.tensor.values()]:
                result = hook(g)
                if result is not None:
                    g = replaced(result, g, "register_hook")
            return g
        g = lent(g)
        parts = list(g) if node._outputs is not None else [g]
        hooks = list(self.tensor.values())
        for output in dict.fromkeys([index for index, _ in hooks]):  # one output after the other
            for index, hook in hooks:
                if index == output:
                    parts[index] = replaced(hook(parts[index]), parts[index], "register_hook")
        for index, held in self.retained.items():
            held.take(node, parts[index])
        return parts if node._outputs is not None else parts[0]

    def after(self, node: Node, results: Sequence[Any], g: Any) -> Sequence[Any]:
        """Post-hooks: they see the inputs' gradients and the output's, and may replace the former."""
        if not self.post:
            return results
        incoming, results = lent(g if isinstance(g, list) else [g]), lent(list(results))
        for hook in list(self.post.values()):
            changed = hook(tuple(results), tuple(incoming))
            if changed is not None:
                results = _replaced_all(node, "register_hook", changed, results)
        return results

    def after_accumulation(self, node: AccumulateGrad, g: Tensor) -> None:
        tensor = node.tensor()
        if tensor is not None:
            for hook in list(self.post_accumulate.values()):
                hook(tensor)
        self.after(node, (), g)


_making = process_lock()
# empty: the engine's sign for a node that is not an ordinary one (several outputs, containers, ...)
SPECIAL = NodeHooks()
HOOKED = [False]  # whether any node was ever given hooks


def add_hook(node: Node, kind: str, hook: Any) -> RemovableHandle:
    """Put a hook behind the others of its kind."""
    active = tracer.get()
    if active is not None:
        active.hooked(node)
    return RemovableHandle(getattr(hooks_of(node), kind), hook)


def hooks_of(node: Node) -> NodeHooks:
    if node._hooks is None or node._hooks is SPECIAL:
        with _making:
            if node._hooks is None or node._hooks is SPECIAL:
                node._hooks, HOOKED[0] = NodeHooks(), True
    return node._hooks


def lent(g: Any) -> Any:
    """Gradients as hooks get them: others may hold their memory, so writing to one copies it first."""
    if isinstance(g, list):
        return [part if part is None else part._shared() for part in g]
    return g._shared()


def replaced(result: Tensor | None, g: Tensor | None, name: str) -> Tensor | None:
    """What a hook returned in place of the gradient: None keeps it, another shape or dtype is an error."""
    if result is None:
        return g
    if g is None:
        raise ArgumentError(
            message(
                name,
                "the hook returned a tensor where there is no gradient (only other results of the operation were used)",
                hint="return None when it is given None",
            )
        )
    if not isinstance(result, type(g)) and not hasattr(result, "_array"):  # of a sparse one a dense one
        raise ArgumentError(message(name, f"the hook returned {type(result).__name__}, expected a tensor or None"))
    if tuple(result._array.shape) != tuple(g._array.shape):
        raise ShapeError(
            message(
                name,
                f"the hook returned shape {list(result._array.shape)}, the gradient has {list(g._array.shape)}",
                hint="return a gradient of the same shape, or None to keep it",
            )
        )
    if result._array.dtype is not g._array.dtype:
        raise DTypeError(
            message(name, f"the hook returned {result.dtype}, the gradient is {g.dtype}", hint="g.to(dtype)")
        )
    return result


def _replaced_all(node: Node, name: str, given: Any, before: Sequence[Any]) -> list[Any]:
    """What a node's hook returned in place of all gradients."""
    replacements = list(given) if isinstance(given, tuple | list) else [given]
    if len(replacements) != len(before):
        raise ArgumentError(
            message(
                f"{type(node).__name__}.{name}",
                f"the hook returned {len(replacements)} gradients, expected {len(before)}",
                hint="return one for each it was given, or None to keep all",
            )
        )
    for new, old in zip(replacements, before, strict=True):
        if old is not None and new is not None:
            replaced(new, old, f"{type(node).__name__}.{name}")
    return replacements


class Retaining:
    """A tensor that keeps its gradient, and the node at which it does.

    A view whose base is written to has a new node from then on. It keeps the gradient that arrives at its old node
    until something is computed from it again; so both nodes know of it.
    """

    __slots__ = ("node", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = weakref.ref(tensor)
        self.node = weakref.ref(_ends_at(tensor._node)[0])

    def take(self, node: Node, g: Tensor | None) -> None:
        """Keep the gradient that has arrived at one of the nodes, if it is the one that counts."""
        tensor = self.tensor()
        if tensor is None or g is None:
            return
        if tensor._node is not None:
            self.follow(tensor)
        if self.node() is node:
            before = tensor._retained
            tensor._retained = g.clone() if before is None else before + g

    def follow(self, tensor: Tensor) -> None:
        """Go on to the tensor's node if anything was computed from it."""
        if sys.getrefcount(tensor._node) > _HELD_BY_ITS_TENSOR:
            self.node = weakref.ref(_ends_at(tensor._node)[0])


def retained_moves(x: Tensor, new: Any, written: bool) -> None:
    """``x``, which retains its gradient, is about to get the history ``new``: it was written to, or only its base."""
    held = hooks_of(_ends_at(x._node)[0]).retained[x.output_nr]
    target, index = _ends_at(new)
    if written:
        held.node = weakref.ref(target)
    else:
        held.follow(x)
    hooks_of(target).retained[index] = held


def _ends_at(edge: Any) -> tuple[Node, int]:
    """The node of an edge, and which of its outputs."""
    return (edge.node, edge.index) if hasattr(edge, "index") else (edge, 0)


class _Tensor:
    __slots__ = ("_node",)
    _node: Any


def _held_by_its_tensor() -> int:
    """What `sys.getrefcount` says of a node that nothing was computed from yet; versions of Python differ."""
    tensor = _Tensor()
    tensor._node = object()
    return sys.getrefcount(tensor._node)


_HELD_BY_ITS_TENSOR = _held_by_its_tensor()
