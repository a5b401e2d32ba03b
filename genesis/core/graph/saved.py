"""Hooks on what nodes save for backward: every saved tensor goes through ``pack`` and comes back through ``unpack``.

While a pair of hooks is open (`PACKING`), what a new node saved is replaced by `Packed` records. Where pairs are open
inside each other, the innermost alone packs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from operator import is_not
from typing import TYPE_CHECKING, Any

from genesis.base.errors import ArgumentError, GraphError, InplaceError, message
from genesis.core.graph.modes import grad_mode, watchers
from genesis.core.graph.switches import PACKING

if TYPE_CHECKING:
    from genesis.core.graph.node import Node
    from genesis.core.graph.tensor import Tensor

PACKED = -2  # the epoch of a node whose saved tensors are packed


class saved_tensors_hooks:
    """Context manager: ``pack_hook(tensor)`` is called for every tensor saved for backward, ``unpack_hook(packed)``
    when it is needed.

    ``pack_hook`` may return anything; ``unpack_hook`` must return a tensor of the same shape and dtype. Inside
    another pair this one alone is used.

    Raises:
        RuntimeError: hooks are disabled here, the tensor is written to, or unpacking gives something else

    >>> import genesis
    >>> x = genesis.ones(3, requires_grad=True)
    >>> with genesis.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), lambda a: genesis.from_numpy(a)):
    ...     y = (x * x).sum()
    >>> y.backward(); x.grad
    tensor([2., 2., 2.])
    """

    def __init__(self, pack_hook: Callable[..., Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook
        self._tokens: list[Any] = []

    def __enter__(self) -> saved_tensors_hooks:
        reason = disabled.get()
        if reason is not None:
            raise GraphError(message("saved_tensors_hooks", reason))
        PACKING.append(self)
        self._tokens.append(packing.set((*packing.get(), self)))
        return self

    def __exit__(self, *_: object) -> None:
        packing.reset(self._tokens.pop())
        PACKING.pop()

    def packed(self, node: Node) -> tuple[Any, ...]:
        """What a new node keeps in place of what it saved; the same, if there is no tensor among it."""
        saved = tuple([_packed(node, value, self) for value in node._saved])
        return saved if any(map(is_not, saved, node._saved)) else node._saved

    def before_run_again(self) -> None:
        """Called before something that was computed while this was open is computed once more, as checkpoints do."""


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
    """Stands for a tensor that a node saved."""

    __slots__ = ()

    def unpack(self, name: str) -> Tensor:
        """The tensor, for the backward of the node of this name."""
        raise NotImplementedError


class PackedByHooks(Packed):
    """One saved tensor after packing: by which pair of hooks, into what, and where its gradient goes."""

    __slots__ = ("dtype", "edge", "hooks", "shape", "value")

    def __init__(self, node: Node, t: Tensor, hooks: saved_tensors_hooks) -> None:
        self.edge, self.shape, self.dtype = t._node, t._array.shape, t._array.dtype
        self.hooks = hooks
        given = t._alias(None)
        before = given._version
        mode = grad_mode.get()
        try:
            grad_mode.set(False)
            self.value = hooks.pack_hook(given)
        finally:
            grad_mode.set(mode)
        if given._version != before:
            raise InplaceError(
                message(
                    "saved_tensors_hooks",
                    f"pack_hook wrote to the tensor that it was given, with {given._counter.writer}",  # type: ignore[union-attr]
                    operands=[("saved by", type(node).__name__)],
                    hint="clone() it first, others use its memory",
                )
            )

    def unpack(self, name: str) -> Tensor:
        from genesis.core.graph.tensor import Tensor

        value = self.value
        mode = grad_mode.get()
        try:
            grad_mode.set(False)
            value = self.hooks.unpack_hook(value)
        finally:
            grad_mode.set(mode)
        if not isinstance(value, Tensor):
            raise ArgumentError(
                message(
                    "saved_tensors_hooks",
                    f"unpack_hook returned {type(value).__name__}, expected a tensor",
                    [("for", name)],
                )
            )
        if value._array.shape != self.shape or value._array.dtype != self.dtype:
            raise GraphError(
                message(
                    "saved_tensors_hooks",
                    f"unpack_hook returned {value._spec()}, packed was shape {list(self.shape)} of {self.dtype}",
                    [("for", name)],
                )
            )
        return value if self.edge is None or value._node is self.edge else value._alias(self.edge)


def pack(node: Node) -> None:
    """Replace the tensors that a new node saved, if hooks are open; tell whoever watches of the node."""
    for watch in watchers.get():
        watch.new_node(node)
    open_pairs = packing.get()
    if not open_pairs or not node._saved:
        return
    saved = open_pairs[-1].packed(node)
    if saved is not node._saved:
        node._saved, node._epoch = saved, PACKED


def _packed(node: Node, value: Any, hooks: saved_tensors_hooks) -> Any:
    if value.__class__ is list:
        return [_packed(node, v, hooks) for v in value]
    return PackedByHooks(node, value, hooks) if hasattr(value, "_array") else value


def unpack(node: Node) -> tuple[Any, ...]:
    """What a node saved, unpacked."""
    return tuple([_unpacked(value, type(node).__name__) for value in node._saved])


def _unpacked(value: Any, name: str) -> Any:
    if value.__class__ is list:
        return [_unpacked(v, name) for v in value]
    return value.unpack(name) if isinstance(value, Packed) else value


def saved_as(name: str) -> property:
    """What the node of an op saved of its argument, or of its result, of this name."""

    def value(node: Node) -> Any:
        op = getattr(node, "op", None)
        names = () if op is None else (*op.names, "out") if op.plain else [saved for saved, _, _, _ in op.saves]
        kept = dict(zip(names, node._unpack(), strict=False)).get(name)
        if kept is None:
            raise AttributeError(f"{type(node).__name__} saved no {name}")
        return kept

    return property(value)
