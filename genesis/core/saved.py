"""Hooks on what nodes save for backward: every saved tensor goes through ``pack`` and comes back through ``unpack``.

While a pair of hooks is open, the call path takes its general form (`core/modes.py`, `ACTIVE`), and what a node saved is
replaced by `Packed` records. Pairs nest: the innermost packs first; an outer one packs what the inner one made of the
tensor, if that is still a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from genesis.base.errors import ArgumentError, GraphError, message
from genesis.core.modes import ACTIVE, grad_mode, watcher

if TYPE_CHECKING:
    from genesis.core.node import Node
    from genesis.core.tensor import Tensor

PACKED = -2  # the epoch of a node whose saved tensors are packed


class saved_tensors_hooks:
    """Context manager: ``pack_hook(tensor)`` is called for every tensor saved for backward, ``unpack_hook(packed)`` when it is needed.

    ``pack_hook`` may return anything; ``unpack_hook`` must return a tensor of the same shape and dtype. Pairs nest, see above.

    Raises:
        RuntimeError: hooks are disabled here, or unpacking gives something else

    >>> import genesis
    >>> x = genesis.ones(3, requires_grad=True)
    >>> with genesis.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), lambda a: genesis.from_numpy(a)):
    ...     y = (x * x).sum()
    >>> y.backward(); x.grad
    tensor([2., 2., 2.])
    """

    wants_node = False  # checkpointing looks at the node, too

    def __init__(self, pack_hook: Callable[..., Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook
        self._tokens: list[Any] = []

    def __enter__(self) -> saved_tensors_hooks:
        reason = disabled.get()
        if reason is not None:
            raise GraphError(message("saved_tensors_hooks", reason))
        self._tokens.append(packing.set((*packing.get(), self)))
        ACTIVE.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        ACTIVE.remove(self)
        packing.reset(self._tokens.pop())

    def pack(self, node: Node, t: Tensor) -> Any:
        return self.pack_hook(node, t) if self.wants_node else self.pack_hook(t)


packing: ContextVar[tuple[saved_tensors_hooks, ...]] = ContextVar("genesis_saved_tensors_hooks", default=())
disabled: ContextVar[str | None] = ContextVar("genesis_saved_tensors_hooks_disabled", default=None)


class disable_saved_tensors_hooks:
    """Context manager: opening `saved_tensors_hooks` inside is an error with this message.

    >>> import genesis
    >>> with genesis.autograd.graph.disable_saved_tensors_hooks("not here"):
    ...     genesis.ones(1, requires_grad=True).exp().requires_grad
    True
    """

    def __init__(self, error_message: str) -> None:
        self._message = error_message

    def __enter__(self) -> None:
        self._token = disabled.set(self._message)

    def __exit__(self, *_: object) -> None:
        disabled.reset(self._token)


class Packed:
    """One saved tensor after packing: by which hooks, into what, and where its gradient goes."""

    __slots__ = ("dtype", "edge", "hooks", "shape", "value")

    def __init__(self, node: Node, t: Tensor, hooks: Sequence[saved_tensors_hooks]) -> None:
        self.edge, self.shape, self.dtype = t._node, t._array.shape, t._array.dtype
        self.hooks: list[saved_tensors_hooks] = []
        value: Any = t._alias(None)
        kind = type(value)
        token = grad_mode.set(False)
        try:
            for hook in reversed(hooks):
                if isinstance(value, kind):
                    value = hook.pack(node, value)
                    self.hooks.append(hook)
        finally:
            grad_mode.reset(token)
        self.value = value

    def unpack(self, name: str) -> Tensor:
        from genesis.core.tensor import Tensor

        value = self.value
        token = grad_mode.set(False)
        try:
            for hook in reversed(self.hooks):
                value = hook.unpack_hook(value)
        finally:
            grad_mode.reset(token)
        if not isinstance(value, Tensor):
            raise ArgumentError(message("saved_tensors_hooks", f"unpack_hook returned {type(value).__name__}, expected a tensor", [("for", name)]))
        if value._array.shape != self.shape or value._array.dtype != self.dtype:
            raise GraphError(
                message("saved_tensors_hooks", f"unpack_hook returned {value._spec()}, packed was shape {list(self.shape)} of {self.dtype}", [("for", name)])
            )
        return value if self.edge is None or value._node is self.edge else value._alias(self.edge)


def pack(node: Node) -> None:
    """Replace the tensors that a new node saved, if hooks are open; tell whoever watches of the node."""
    watch = watcher.get()
    if watch is not None:
        watch.new_node(node)
    hooks = packing.get()
    if not hooks or not node._saved:
        return
    saved = tuple([_packed(node, value, hooks) for value in node._saved])
    if any(a is not b for a, b in zip(saved, node._saved, strict=True)):
        node._saved, node._epoch = saved, PACKED


def _packed(node: Node, value: Any, hooks: Sequence[saved_tensors_hooks]) -> Any:
    if value.__class__ is list:
        return [_packed(node, v, hooks) for v in value]
    return Packed(node, value, hooks) if hasattr(value, "_array") else value


def unpack(node: Node) -> tuple[Any, ...]:
    """What a node saved, unpacked."""
    return tuple([_unpacked(value, type(node).__name__) for value in node._saved])


def _unpacked(value: Any, name: str) -> Any:
    if value.__class__ is list:
        return [_unpacked(v, name) for v in value]
    return value.unpack(name) if isinstance(value, Packed) else value
