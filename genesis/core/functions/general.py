"""`Function.apply` in general: keywords, containers, `setup_context`, transforms, traces and autocast."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from genesis.arrays.protocol import NeedsValues
from genesis.base import library
from genesis.base.errors import GraphError, message
from genesis.base.pytree import TreeDef, tree_flatten
from genesis.core.call.casts import cast_for
from genesis.core.call.overrides import inside_forward
from genesis.core.functions import opaque
from genesis.core.functions.captures import captured, watch_reads
from genesis.core.functions.context import FunctionCtx
from genesis.core.functions.results import CONTAINER, KINDS, OBJECT, check_unrecorded_writes, finished, watch_views
from genesis.core.graph import autocast
from genesis.core.graph.hooks import SPECIAL
from genesis.core.graph.modes import grad_mode, watchers
from genesis.core.graph.node import edge_key, next_number
from genesis.core.graph.site import user_site
from genesis.core.graph.switches import ACTIVE, LEVELS, OVERRIDES
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import tracer
from genesis.core.graph.version import WRITES
from genesis.core.layers.function_rules import applied, layers_of

if TYPE_CHECKING:
    from genesis.core.functions.function import Function


def apply_general(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`apply` in general; in a trace as the computation that it is, or else as one call (`core/functions/opaque.py`)."""
    if not ACTIVE or tracer.get() is None:
        return _apply_here(cls, args, kwargs)
    try:
        return _apply_here(cls, args, kwargs)
    except NeedsValues:
        if LEVELS and layers_of(tree_flatten((args, kwargs))[0]) is not None:
            raise
        return opaque.traced(cls, args, kwargs)


def _apply_here(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`apply` inside transforms by their rules, under overrides, or as it is."""
    if LEVELS:
        leaves = [
            x
            for a in (*args, *kwargs.values())
            for x in (tree_flatten(a)[0] if KINDS[a.__class__] is CONTAINER else (a,))
        ]
        if layers_of(leaves) is not None:
            with inside_forward() if OVERRIDES else nullcontext():
                return applied(cls, _apply_plain, args, kwargs)
    if OVERRIDES:
        with inside_forward():
            return _apply_plain(cls, args, kwargs)
    return _apply_plain(cls, args, kwargs)


def optional_gradients(
    inputs: Sequence[Any], keywords: dict[str, Any], given: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Arguments whose gradients backward may leave out: the last ones, if None or plain and not ``given`` by position;
    all plain keywords.
    """
    values = [*inputs, *keywords.values()]
    plain = [not any(isinstance(x, Tensor) for x in tree_flatten(value)[0]) for value in values]
    first = len(values)
    while first and (values[first - 1] is None or (plain[first - 1] and first > given)):
        first -= 1
    return tuple(range(first, len(values))), tuple(i for i in range(len(inputs), len(values)) if plain[i])


def _apply_plain(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any], given: int | None = None) -> Any:
    given = len(args) if given is None else given  # how many arguments were given by position
    keywords: dict[str, Any] = {}
    inputs = args
    if kwargs or cls._split:
        bound = cls._bind(args, kwargs)
        inputs, keywords = bound.args, bound.kwargs
    mode = autocast.state() if ACTIVE else None
    if mode is not None and cls.amp_policy is not None:
        values = inputs
        if cls.amp_policy != "preserve":
            values = cast_for(cls.amp_policy, (*inputs, *keywords.values()), mode)
        with autocast.restored(None):
            return _apply_plain(
                cls, values[: len(inputs)], dict(zip(keywords, values[len(inputs) :], strict=False)), given
            )
    edges: list[Any] = []
    structures: list[TreeDef | None] = []
    leaves: list[Any] = []
    for value in (*inputs, *keywords.values()):
        items, structure = tree_flatten(value) if KINDS[value.__class__] is CONTAINER else ([value], None)
        if not any(isinstance(item, Tensor) for item in items):
            items, structure = [None], None  # sizes, names: a plain value
        leaves += items
        structures.append(structure)
        edges += [item._node if isinstance(item, Tensor) else None for item in items]
    ctx = cls._ctx()
    recording = grad_mode.get() and any(e is not None for e in edges)
    ctx._begin(tuple(edges) if recording else (None,) * len(edges))
    if any(s is not None for s in structures):
        ctx._structures = tuple(structures)
    epoch = WRITES[0]
    watched = grad_mode.get() and (
        cls._watched
        or any([KINDS[a.__class__] is OBJECT and not isinstance(a, Tensor) for a in (*inputs, *keywords.values())])
    )
    outside = grad_mode.get()
    try:
        grad_mode.set(False)
        with watch_reads(edges) if watched else nullcontext() as reads:
            if cls._split:
                result = cls.forward(*inputs, **keywords)
                cls.setup_context(ctx, inputs, result)  # type: ignore[attr-defined]
            else:
                result = cls.forward(ctx, *inputs, **keywords)
    finally:
        grad_mode.set(outside)
    if reads:
        recording = _take_captured(ctx, reads, edges, inputs, keywords)
    for observer in watchers.get() if ACTIVE else ():
        observer.function_result(cls, [*inputs, *keywords.values()], result)
    if recording and (bool(kwargs) or cls._split or (inputs and inputs[-1] is None)):
        ctx._optional = optional_gradients(inputs, keywords, given)
    ctx._number = next_number()
    ctx._code, ctx._at = user_site(sys._getframe(2))
    if not recording:
        ctx.check_saved()
        check_unrecorded_writes(cls, leaves, epoch)
        watch_views(result)
        return result
    ctx._hooks = SPECIAL
    if mode is not None:
        ctx._autocast = mode._replace(cache=None)
    return finished(ctx, inputs, keywords, result, epoch, leaves)


def _take_captured(
    ctx: FunctionCtx, reads: dict[Any, Any], edges: list[Any], inputs: tuple[Any, ...], keywords: dict[str, Any]
) -> bool:
    """Tensors that forward used without being given them: refused, or made inputs of the node."""
    cls = ctx._function
    given = inputs if cls._split else (None, *inputs)
    known = {edge_key(t._node): name for name, t in captured(cls.forward, (*given, *keywords.values()))}
    names = [known.get(key, "a tensor") for key in reads]
    if not cls.capture or "a tensor" in names:
        listed = " and ".join(names)
        text = message(
            f"{cls.__name__}.forward",
            f"uses {listed}, which {'requires' if len(names) == 1 else 'require'} grad but "
            f"{'is no argument' if len(names) == 1 else 'are no arguments'}: "
            f"{'its gradient' if len(names) == 1 else 'their gradients'} would be lost",
            operands=[(name, f"{list(e._shape)}") for name, e in zip(names, reads.values(), strict=True)],
            hint=f"pass it to apply, or use {names[0]}.detach(); with `capture = True` in the class backward may "
            f"return {{'{names[0]}': gradient}}",
        )
        if not library.is_torch():
            raise GraphError(text)
        warnings.warn(text, stacklevel=4)  # programs for PyTorch have functions whose backward does it all by itself
        return grad_mode.get() and any(e is not None for e in edges)
    ctx._edges = (*edges, *reads.values())
    ctx._captured = tuple(names)
    return True
