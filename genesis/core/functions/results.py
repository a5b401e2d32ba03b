"""The results of a user's function get their history, and what forward saved is taken care of."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from itertools import repeat
from operator import is_
from typing import TYPE_CHECKING, Any

from genesis.arrays.spec import spec_of
from genesis.base.errors import InplaceError, message
from genesis.base.pytree import TreeDef, is_container, tree_flatten, tree_unflatten
from genesis.core.call.halves import F32, F64
from genesis.core.call.recording import refuse_inference
from genesis.core.call.views import guarded, rebase, watch
from genesis.core.call.writes import check_writable
from genesis.core.functions import second_order
from genesis.core.functions.context import FunctionCtx, hold_attributes
from genesis.core.graph.hooks import SPECIAL
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.node import Output
from genesis.core.graph.saved import pack
from genesis.core.graph.switches import ACTIVE, PACKING
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.version import INFERENCE, WRITES

if TYPE_CHECKING:
    from genesis.core.functions.function import Function


class _Kinds(dict[type, Any]):
    """For each class of argument that is no tensor: None for a value, CONTAINER for a structure of tensors, OBJECT for
    what may hide some.
    """

    def __missing__(self, kind: type) -> Any:
        plain = kind.__module__ in ("builtins", "numpy", "genesis.base.dtypes", "genesis.base.device") or issubclass(
            kind, int | float | str
        )
        self[kind] = way = CONTAINER if is_container(kind) else None if plain else OBJECT
        return way


CONTAINER, OBJECT = object(), object()

KINDS = _Kinds()


def finished(
    ctx: FunctionCtx,
    args: tuple[Any, ...],
    keywords: dict[str, Any],
    result: Any,
    epoch: int,
    leaves: Sequence[Any] | None = None,
) -> Any:
    """Give the results their history, and take care of what was saved."""
    if result.__class__ is tuple and leaves is None and epoch is WRITES[0] and _take_usual(ctx, args, result):
        return result
    inputs = args if leaves is None else leaves
    written = _check_written(ctx, inputs, epoch) if epoch is not WRITES[0] or ctx._dirty else []
    ctx._epoch = WRITES[0]
    results, structure = [result], None
    if not isinstance(result, Tensor):
        results, structure = (
            tree_flatten(result) if result.__class__ is not tuple or not _flat(result) else (list(result), PLAIN_TUPLE)
        )
        if not any([isinstance(r, Tensor) for r in results]):
            return result
    outs = [r if not isinstance(r, Tensor) or (written and is_in(r, written)) else _fresh(r, inputs) for r in results]
    first = outs[0] if isinstance(outs[0], Tensor) else next(r for r in outs if isinstance(r, Tensor))
    ctx._shape, ctx._dtype = first._array.shape, first._array.dtype
    if structure is not None:
        ctx._outputs = [(r._array.shape, r._array.dtype) if isinstance(r, Tensor) else None for r in outs]
        ctx._hooks = SPECIAL
        if structure is not PLAIN_TUPLE and (
            structure.kind not in (tuple, list) or any(child.kind is not None for child in structure.children)
        ):
            ctx._result = structure
    _keep(ctx, args, keywords, inputs, results, written)
    for index, (raw, out) in enumerate(zip(results, outs, strict=True)):
        if (
            isinstance(out, Tensor)
            and _carries_grad(out)
            and not (ctx._non_differentiable and is_in(raw, ctx._non_differentiable))
        ):
            edge = ctx if structure is None else Output(ctx, index)
            if written and is_in(out, written):
                rebase(out, edge)
            else:
                out._node = edge
    if ctx.__dict__:
        ctx.__dict__.pop("_non_differentiable", None)
        ctx.__dict__.pop("_dirty", None)
    return (
        outs[0] if structure is None else tuple(outs) if structure is PLAIN_TUPLE else tree_unflatten(outs, structure)
    )


def _take_usual(ctx: FunctionCtx, args: tuple[Any, ...], results: tuple[Any, ...]) -> bool:
    """Give several results their history, if they are new tensors and nothing but tensors with history is saved (4 us
    less); whether they are.
    """
    if not results or ACTIVE or PACKING or ctx.__dict__:
        return False
    for r in results:
        if r.__class__ is not Tensor or r._node is not None or r._view is not None:
            return False
        dtype = r._array.dtype
        if dtype is not F32 and dtype is not F64:
            return False
    for t in ctx._saved:
        if t.__class__ is not Tensor or t._node is None or t._counter is INFERENCE:
            return False
    if None in ctx._edges and any([is_in(r, args) for r in results]):
        return False
    ctx._outputs = outputs = [(r._array.shape, r._array.dtype) for r in results]
    ctx._shape, ctx._dtype = outputs[0]
    ctx._hooks = SPECIAL
    for index, r in enumerate(results):
        r._node = Output(ctx, index)
    return True


PLAIN_TUPLE = TreeDef(tuple)  # stands for a tuple of tensors and values, the usual result of several


def _flat(results: tuple[Any, ...]) -> bool:
    return all([isinstance(r, Tensor) or KINDS[r.__class__] is not CONTAINER for r in results])


def _keep(
    ctx: FunctionCtx,
    args: tuple[Any, ...],
    keywords: dict[str, Any],
    inputs: Sequence[Any],
    results: list[Any],
    written: list[Tensor],
) -> None:
    """Find out where the saved tensors come from (`core/functions/second_order.py`); a saved output is kept as a
    detached alias.
    """
    for t in ctx._saved:
        if t.__class__ is not Tensor or t._node is None or t._counter is INFERENCE:
            break
    else:
        if not (ctx.__dict__ or ACTIVE or PACKING):
            return  # nothing but tensors with history, as usual: 3 us less for 13 of them
    ctx.check_saved()
    refuse_inference(ctx.op_name, ctx._saved)
    constants = ctx.__dict__.pop("_constants", ())

    def origin(t: Tensor) -> Any:
        return second_order.origin_of(t, inputs, results, constants)

    saved: tuple[Any, ...] = ctx._saved
    # not just inputs with history
    if saved and (ACTIVE or PACKING or not all([isinstance(t, Tensor) and t._node is not None for t in saved])):
        origins = [origin(t) if isinstance(t, Tensor) else None for t in ctx._saved]
        ctx._saved = tuple(
            [
                t._alias(None) if isinstance(o, int) and t._node is None else t
                for t, o in zip(ctx._saved, origins, strict=True)
            ]
        )
        if any(o is not None for o in origins):
            ctx._origins = tuple(origins)
        if ACTIVE or PACKING:
            pack(ctx)
    elif ACTIVE or PACKING:
        pack(ctx)
    if ctx.__dict__:
        hold_attributes(ctx, origin)
    everything = [*ctx._origins, *(o for held in (ctx._held or {}).values() for o in held[2])]
    if any(o is second_order.INTERMEDIATE for o in everything) and not written:
        weak: Callable[[Any], Any] = lambda a: weakref.ref(a) if isinstance(a, Tensor) else a
        ctx._hooks = SPECIAL
        ctx._call = second_order.Call([weak(a) for a in args], {k: weak(a) for k, a in keywords.items()}, ctx._epoch)


def is_in(t: Any, tensors: Sequence[Any]) -> bool:
    """Membership by identity (``in`` would compare elements)."""
    return any(map(is_, tensors, repeat(t)))


def _carries_grad(t: Tensor) -> bool:
    return t._array.dtype.kind in "fc" or t.dtype.category > 1


def _fresh(r: Tensor, args: Sequence[Any]) -> Tensor:
    """An output that is an input, or a view of one, becomes a tensor of its own on the same memory, and is not written
    to in place.
    """
    if r._node is None and r._view is None and not is_in(r, args):
        return r
    return guarded(r._alias(None), r)


def watch_views(result: Any) -> None:
    """Results on the memory of inputs without history: these may get one, and then the results' is not known."""
    if grad_mode.get():
        for r in tree_flatten(result)[0]:
            if (
                isinstance(r, Tensor)
                and r._view is not None
                and not r._view.recorded
                and r._counter is not None
                and r._counter is not INFERENCE
            ):
                watch(r, r._counter)


def check_unrecorded_writes(cls: type[Function], args: Sequence[Any], epoch: int) -> None:
    """An input without history that was written to may be a view of something that has one."""
    if grad_mode.get():
        for t in args:
            if isinstance(t, Tensor) and t._view is not None and t._counter is not None and t._counter.stamp > epoch:
                check_writable(t, cls.__name__, False)


def _check_written(ctx: FunctionCtx, args: Sequence[Any], epoch: int) -> list[Tensor]:
    """The inputs that forward wrote to, declared with `mark_dirty` or found by the time of their last write."""
    name = ctx._function.__name__
    tensors = [a for a in args if isinstance(a, Tensor) and a._counter is not None]
    written = [t for t in tensors if t._counter.stamp > epoch]  # type: ignore[union-attr]
    for t in ctx._dirty:
        if not is_in(t, written):
            raise InplaceError(
                message(
                    name,
                    "mark_dirty names a tensor that forward did not write to",
                    operands=[("tensor", spec_of(t._array))],
                )
            )
    for t in written:
        check_writable(t, f"{name}.forward", True)
    return written
