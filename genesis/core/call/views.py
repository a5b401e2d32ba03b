"""Views and in-place writes: correct gradients although memory is shared.

A view remembers its base and the steps (view ops) that lead from the base to it. A recorded write

    v = y.view(-1); v.mul_(3)

is the functional program it stands for: the new value of ``v`` is ``old v * 3``, and the base becomes "the
old base with that region replaced" (`CopySlices`). Every live view of the base then gets a new history,
by taking its steps again from the new base. Views find each other through the `Version` they share.

Every write counts in that `Version`; saved tensors compare the count when they are used (`Node._unpack`).
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import HOST, memory_of
from genesis.arrays.protocol import Virtual, bottom
from genesis.arrays.spec import memory_order
from genesis.base.errors import message
from genesis.base.layouts import contiguous_format
from genesis.core.call.op import Op
from genesis.core.call.paths import Path, Replay, View
from genesis.core.graph.hooks import retained_moves
from genesis.core.graph.modes import enable_grad, grad_mode
from genesis.core.graph.node import Node, Output, recorded
from genesis.core.graph.site import line_here
from genesis.core.graph.switches import ACTIVE, LEVELS
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer
from genesis.core.graph.unknown import without_derivative
from genesis.core.graph.version import INFERENCE, SHARED, Version, counting

_new_view = tuple.__new__  # half of the time of calling the class
_new = object.__new__
_ref = weakref.ref


def attach_view(out: Tensor, source: Tensor, op: Op, args: tuple[Any, ...]) -> None:
    """Make ``out`` a view of ``source`` if it shares its memory: one count of writes, one base."""
    array, memory = out._array, source._array
    owner = array.base if array.__class__ is np.ndarray else None
    if (owner is not memory and (owner is None or owner is not memory.base)) and not shares(array, memory):
        return
    counter = source._counter
    if counter is None or counter is SHARED:
        counter = source._shared_counter()
        if source._array is not memory:  # a gradient, now in memory of its own
            out._array = op.run(op, (wrap(source._array), *args))._array
    out._counter = counter
    base, known = source, True
    path: Path | None = (None, op, args)
    if source._view is not None:
        base, known, before = source._view
        path = None if before is None else (before, op, args)
    if not grad_mode.get():
        out._view = _new_view(View, (base, False, path))
        if counter is not INFERENCE and LEVELS:
            watch(out, counter)
        return
    out._view = _new_view(View, (base, known, path))
    if counter is not INFERENCE:  # `watch`, without a call
        refs = counter.refs
        many = len(refs)
        if many >= 32 and many & (many - 1) == 0:
            _forget_dead(refs)
        refs.append(_ref(out))


def views_of(source: Tensor, op: Op, every: Sequence[tuple[Any, ...]], arrays: Sequence[Any]) -> tuple[Tensor, ...]:
    """The views of a tensor that an op gives with each of these arguments, on the arrays that it gives, without a node of
    their own: for several that are the results of one. Nothing is open, the arrays are NumPy's.
    """
    counter, parent, recording = source._shared_counter(), source._view, grad_mode.get()
    base, known, before = (source, True, None) if parent is None else parent
    lost, known, outs = parent is not None and before is None, known and recording, []
    for args, array in zip(every, arrays, strict=True):
        out = _new(Tensor)
        out._array, out._node, out._counter = array, None, counter
        out._view = _new_view(View, (base, known, None if lost else (before, op, args)))
        outs.append(out)
    if recording and counter is not INFERENCE:
        watch_all(outs, counter)
    return tuple(outs)


def guarded(out: Tensor, source: Tensor) -> Tensor:
    """Make ``out``, the result of a user's function that is ``source`` or on its memory, a view that is not written to."""
    base = source if source._view is None else source._view.base
    out._view = View(base, False)
    counter = base._counter
    if counter is None or counter is SHARED:
        counter = base._shared_counter()
    if counter is not INFERENCE:
        out._counter = counter
        watch(out, counter)
    return out


def watch(out: Tensor, counter: Version) -> None:
    """Note a view, so that writes to its memory find it."""
    refs = counter.refs
    if len(refs) >= 32 and len(refs) & (len(refs) - 1) == 0:  # at powers of two
        _forget_dead(refs)
    refs.append(weakref.ref(out))


def watch_all(outs: Sequence[Tensor], counter: Version) -> None:
    """`watch` of several."""
    refs = counter.refs
    if len(refs) >= 32 and len(refs).bit_length() < (len(refs) + len(outs)).bit_length():
        _forget_dead(refs)
    refs.extend(map(weakref.ref, outs))


def _forget_dead(refs: list[Any]) -> None:
    with counting:
        known = len(refs)
        refs[:known] = [ref for ref in refs[:known] if ref() is not None]  # another thread may append meanwhile


def shares(view: Any, source: Any) -> bool:
    """Whether the result of a view op is one: a reshape may have copied."""
    if view.__class__ is np.ndarray:
        return HOST.shares(view, source)
    view, source = bottom(view), bottom(source)
    if isinstance(view, Virtual):
        return view.is_view
    return view.__class__ is source.__class__ and memory_of(view).shares(view, source)


class CopySlices(Node):
    """The base after a recorded write to one of its views: the old base with that region replaced."""

    __slots__ = ()
    op_name = "write through a view"
    input_names = ("base", "value")

    def _pull(self, g: Any) -> Any:
        view, order = self._unpack()
        base_edge, value_edge = self._edges
        # as the base is: the steps are views of nothing else
        laid_out = g.permute(order).clone(memory_format=contiguous_format).permute(tuple(np.argsort(order)))
        gbase = gvalue = None
        if value_edge is not None:
            gvalue = view.replay(laid_out).clone()
        if base_edge is not None:
            gbase = laid_out
            view.replay(gbase).zero_()
        return gbase, gvalue


class OverwriteBackward(Node):
    """A value instead of one that it does not depend on, which gets zeros."""

    __slots__ = ()
    op_name = "write over"
    input_names = ("old", "new")

    def _pull(self, g: Any) -> Any:
        old, new = self._edges
        return None if old is None else g.new_zeros(old._shape), None if new is None else g


def rebase(x: Tensor, new: Any) -> None:
    """After a recorded write: ``x`` now comes from ``new``; so do its base and the base's other views."""
    view = x._view
    base = x if view is None else view.base
    if ACTIVE and tracer.get() is not None:
        tracer.get().history_changes(base, *[ref() for ref in ([] if x._counter is None else x._counter.refs)])
    if view is None:
        _come_from(x, new)
    else:
        saved = View(None, view.recorded, view.path), memory_order(base.stride())  # type: ignore[arg-type]
        _come_from(base, recorded(CopySlices, (base._node, new), base._array, saved))
    counter = x._counter
    if counter is None or not counter.refs:
        return
    again = Replay(base)
    with enable_grad():
        for ref in list(counter.refs):
            other = ref()
            if other is None or other._view is None or other._view.base is not base:
                continue  # a view of what was detached from this memory has a history of its own
            if other._view.recorded:
                _come_from(other, again.own(other._view.path)._node, other is x)
            elif other is not x:
                other._node = _lost(other)


def _come_from(x: Tensor, new: Any, written: bool = True) -> None:
    """Give a tensor its history after a write to it, or to its base alone; hooks stay with the value before."""
    node: Any = x._node.node if x._node.__class__ is Output else x._node
    hooked = node is not None and node._hooks is not None
    del node  # who holds it is counted
    if hooked and new is not None and x.retains_grad:
        retained_moves(x, new, written)
    x._node = new


def _lost(view: Tensor) -> Node:
    """The history of a result of a Function that shares its input's memory, once that memory was written to: nobody
    knows it.
    """
    reason = message(
        "backward",
        "a Function returned its input, or a view of it, and that memory was written to in place since",
        operands=[("result", view._spec()), ("written at", line_here())],
        hint="return a clone() from forward, or write to a clone()",
    )
    return without_derivative(view, [view._node], reason)._node  # type: ignore[return-value]


def overwritten(x: Tensor, new: Any = None) -> Node:
    """The history of a tensor whose whole value was replaced by one that comes from ``new``: that before gets zeros."""
    return recorded(OverwriteBackward, (x._node, new), x._array)  # type: ignore[no-any-return]


def written_over(x: Tensor) -> None:
    """After a write of values that come from nowhere: the history of ``x`` gets zeros."""
    if x._node is not None and grad_mode.get():
        rebase(x, overwritten(x) if x._view is None else None)
