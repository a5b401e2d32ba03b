"""Views and in-place writes: correct gradients although memory is shared.

A view remembers its base and the steps (view ops) that lead from the base to it. A recorded write

    v = y.view(-1); v.mul_(3)

is the functional program it stands for: the new value of ``v`` is ``old v * 3``, and the base becomes "the
old base with that region replaced" (`CopySlices`). Every live view of the base then gets a new history,
by taking its steps again from the new base. Views find each other through the `Version` they share.

Every write counts in that `Version`; saved tensors compare the count when they are used (`Node._unpack`).
"""

from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import numpy as np

from genesis.arrays.memory import HOST, copied, memory_of
from genesis.arrays.protocol import Layer, Virtual, bottom, device_of
from genesis.arrays.spec import Spec, memory_order, spec_of
from genesis.base import dtypes
from genesis.base.errors import ArgumentError, DeviceError, DTypeError, InplaceError, ShapeError, message
from genesis.core.call.generated import defined, generated
from genesis.core.call.layer_writes import store
from genesis.core.call.op import Op
from genesis.core.call.overrides import kernel_form
from genesis.core.call.paths import Replay, View
from genesis.core.graph.boundary import lift_all
from genesis.core.graph.hooks import hooks_of
from genesis.core.graph.lost import note
from genesis.core.graph.modes import enable_grad, grad_mode, inference
from genesis.core.graph.node import (
    INFERENCE,
    SHARED,
    WRITES,
    Node,
    Output,
    Version,
    count_write,
    counting,
    next_number,
    recorded,
)
from genesis.core.graph.quiet import unnamed
from genesis.core.graph.saved import PACKED
from genesis.core.graph.site import line_here, site_here
from genesis.core.graph.switches import ACTIVE, LEVELS, OVERRIDES
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer
from genesis.core.graph.unknown import without_derivative


def attach_view(out: Tensor, source: Tensor, op: Op, args: tuple[Any, ...]) -> None:
    """Make ``out`` a view of ``source`` if it shares its memory: one count of writes, one base."""
    if not shares(out._array, source._array):
        return
    counter = source._counter
    if counter is None or counter is SHARED:
        counter = source._shared_counter()
        if not shares(out._array, source._array):  # it was a gradient, now with memory of its own
            out._array = op.run(op, (wrap(source._array), *args))._array
    out._counter = counter
    parent = source._view
    base = source if parent is None else parent.base
    path = None if parent is not None and parent.path is None else (None if parent is None else parent.path, op, args)
    if not grad_mode.get():
        out._view = View(base, False, path)
        if counter is not INFERENCE and LEVELS:
            watch(out, counter)
        return
    out._view = View(base, parent is None or parent.recorded, path)
    if counter is not INFERENCE:
        watch(out, counter)


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
    if len(refs) >= 32 and len(refs) & (len(refs) - 1) == 0:  # at powers of two: forget the dead
        with counting:
            known = len(refs)
            refs[:known] = [ref for ref in refs[:known] if ref() is not None]  # another thread may append meanwhile
    refs.append(weakref.ref(out))


def shares(view: Any, source: Any) -> bool:
    """Whether the result of a view op is one: a reshape may have copied."""
    if view.__class__ is np.ndarray:
        return HOST.shares(view, source)
    view, source = bottom(view), bottom(source)
    if isinstance(view, Virtual):
        return view.is_view
    return view.__class__ is source.__class__ and memory_of(view).shares(view, source)


class OverwriteBackward(Node):
    """A value in the place of one that it does not depend on, which gets zeros."""

    __slots__ = ()
    op_name = "write over"
    input_names = ("old", "new")

    def _pull(self, g: Any) -> Any:
        old, new = self._edges
        return None if old is None else g.new_zeros(old._shape), None if new is None else g


class StepBackward(Node):
    """A value on which what it was computed from has no influence, as far as derivatives go: all of that gets zeros."""

    __slots__ = ()
    op_name = "step"

    def _pull(self, g: Any) -> Any:
        return tuple([None if edge is None else g.new_zeros(edge._shape) for edge in self._edges])


class CopySlices(Node):
    """The base after a recorded write to one of its views: the old base with that region replaced."""

    __slots__ = ()
    op_name = "write through a view"
    input_names = ("base", "value")

    def _pull(self, g: Any) -> Any:
        view, order = self._unpack()
        base_edge, value_edge = self._edges
        # as the base is: the steps are views of nothing else
        laid_out = g.permute(order).clone().permute(tuple(np.argsort(order)))
        gbase = gvalue = None
        if value_edge is not None:
            gvalue = view.replay(laid_out).clone()
        if base_edge is not None:
            gbase = laid_out
            view.replay(gbase).zero_()
        return gbase, gvalue


def rebase(x: Tensor, new: Any) -> None:
    """After a recorded write: ``x`` now comes from ``new``; so do its base and the base's other views."""
    view = x._view
    base = x if view is None else view.base
    if ACTIVE and tracer.get() is not None:
        tracer.get().history_changes(base, *[ref() for ref in ([] if x._counter is None else x._counter.refs)])
    if view is None:
        _come_from(x, new)
    else:
        node = CopySlices()
        node._edges, node._hooks = (base._node, new), None
        node._number = next_number()
        node._code, node._at = site_here()
        node._shape, node._dtype = tuple(base._array.shape), base._array.dtype
        node._saved, node._epoch = (View(None, view.recorded, view.path), memory_order(base.stride())), WRITES[0]  # type: ignore[arg-type]
        _come_from(base, node)
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
                _come_from(other, again.own(other._view.path)._node)
            elif other is not x:
                other._node = _lost(other)


def _come_from(x: Tensor, new: Any) -> None:
    """Give a tensor its history after a write; hooks stay with the value before, a gradient that it retains is taken
    here from now on.
    """
    before: Any = x._node
    x._node = new
    node, index = (before.node, before.index) if before.__class__ is Output else (before, 0)
    if node is None or node._hooks is None or new is None:
        return
    held = node._hooks.retained.get(index)
    if held is not None and held() is x:
        del node._hooks.retained[index]
        target, place = (new.node, new.index) if new.__class__ is Output else (new, 0)
        hooks_of(target).retained[place] = held


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


def written_over(x: Tensor) -> None:
    """After a write of values that come from nowhere: the history of ``x`` gets zeros."""
    if x._node is not None and grad_mode.get():
        rebase(x, overwritten(x) if x._view is None else None)


def _writable(array: Any) -> bool:
    if array.__class__ is np.ndarray:
        return bool(array.flags.writeable)
    return isinstance(array, Virtual) or memory_of(array).writable(array)


def check_writable(x: Tensor, name: str, recording: bool) -> None:
    """Refuse what a write would make wrong, before anything is written."""
    if x._counter is INFERENCE and not inference.get():
        raise InplaceError(
            message(name, "a tensor made in inference_mode is written to outside it", hint="clone() it first")
        )
    array = bottom(x._array)
    # a shared gradient is copied first
    if not _writable(array) and x._counter is not SHARED:
        raise InplaceError(
            message(name, "the memory cannot be written to: it is read-only, or an expanded tensor",
                    operands=[("input", spec_of(x._array))], hint="clone() it first")
        )  # fmt: skip
    if not grad_mode.get():
        return
    root = x if x._view is None else x._view.base
    if root._node is not None and root._node.is_leaf:
        what = "a leaf" if root is x else "a view of a leaf"
        raise InplaceError(
            message(name, f"{what} that requires grad is written to in place", operands=[("input", spec_of(x._array))],
                    hint="write under no_grad(), or to a clone(): y = x.clone()")
        )  # fmt: skip
    if (recording or root._node is not None) and x._view is not None and not x._view.recorded:
        raise InplaceError(
            message(
                name,
                "a view made under no_grad, or an input returned by a Function, is written to with gradients on",
                hint="make the view outside no_grad, or clone() it",
            )
        )


def bump(x: Tensor, name: str, site: tuple[CodeType | None, int] | None = None) -> None:
    """Count a write, at ``site`` or where the user called."""
    counter = x._counter
    if counter is INFERENCE:
        return
    if counter is None or counter is SHARED:
        counter = x._shared_counter()
    count_write(counter, name, site)


def bump_all(tensors: Sequence[Tensor], name: str) -> None:
    """Count a write of each at once (a third of the time of three)."""
    code, at = site_here()
    counters: list[Any] = [x._counter for x in tensors]
    for i, counter in enumerate(counters):
        if counter is None or counter is SHARED:
            counters[i] = tensors[i]._shared_counter()
    with counting:
        for counter in counters:
            if counter is not INFERENCE:
                WRITES[0] = counter.stamp = WRITES[0] + 1
                counter.count += 1
                counter.writer, counter.code, counter.at = name, code, at


def inplace(
    op_name: str, call: Callable[..., Tensor], x: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Tensor:
    """``x.op_(...)`` for any op: compute, check, then write, so that an error leaves ``x`` as it was."""
    recording = grad_mode.get() and (
        x._node is not None or any(isinstance(a, Tensor) and a._node is not None for a in (*args, *kwargs.values()))
    )
    check_writable(x, op_name, recording)
    traced = ACTIVE and tracer.get() is not None
    if traced:
        tracer.get().capture(x)
    if x._counter is SHARED:
        x._own_memory()
    old = wrap(x._array)
    old._node = x._node
    if traced or (recording and not isinstance(x._array, Spec)):
        old._array = copied(x._array)  # its rule may save the value that is about to be overwritten
    if OVERRIDES:
        call = kernel_form(call)
    since = next_number() if recording else 0
    result = call(old, *[old if a is x else a for a in args], **kwargs)
    fits(op_name, x, result)
    # a copy of something that is no part of the transform
    if LEVELS and result._node is not None and isinstance(x._array, Layer):
        result = lift_all([old, result])[1]
    write(x, result)
    bump(x, op_name)
    if recording:
        if x._view is None and old._node is not None and not _depends(result._node, old._node, since):
            note(f"{op_name}, which overwrites the value", old._node, sys._getframe(2))
            rebase(x, overwritten(x, result._node))
        else:
            rebase(x, result._node)
        _tell_saved(result._node, x._node)
    return x


def _tell_saved(node: Any, now: Any) -> None:
    """A node that saved its result knows the history of the tensor that it was written to: it is another if that is a
    view.
    """
    if node is None or node is now or now is None or node.__class__ is Output or now.__class__ is Output:
        return
    if node.saves_out and node._epoch != PACKED and isinstance(inside_copy := node._saved[-1], Tensor):
        inside_copy._written = weakref.ref(now)


def _depends(result: Any, old: Any, since: int) -> bool:
    """Whether a result was computed from a value, by nodes that were recorded since."""
    ahead = [result]
    while ahead:
        edge = ahead.pop()
        if edge is old:
            return True
        node = edge.node if edge.__class__ is Output else edge
        if node is not None and node._sequence_nr() > since and not node.is_leaf:
            ahead.extend(node._edges)
    return False


def overwritten(x: Tensor, new: Any = None) -> Node:
    """The history of a tensor whose whole value was replaced by one that comes from ``new``: that before gets zeros."""
    return recorded(OverwriteBackward, (x._node, new), x._array)  # type: ignore[no-any-return]


def fits(name: str, x: Tensor, result: Tensor) -> None:
    if tuple(result._array.shape) != tuple(x._array.shape):
        raise ShapeError(
            message(
                name,
                f"the result has shape {list(result._array.shape)}, it cannot be written to {list(x._array.shape)}",
                hint="use the out-of-place form",
            )
        )
    if result._array.__class__ is not np.ndarray or x._array.__class__ is not np.ndarray:
        same_device(name, x, result, "the tensor is on {}, the result on {}")
    if result._array.dtype is not x._array.dtype and not dtypes.can_cast(result.dtype, x.dtype):
        raise DTypeError(
            message(
                name, f"the result type {result.dtype} cannot be cast to {x.dtype}", hint="use the out-of-place form"
            )
        )


def same_device(name: str, x: Tensor, y: Tensor, what: str = "the tensor is on {}, the value on {}") -> None:
    """Refuse two tensors on different devices; ``what`` says which they are."""
    if x._array.__class__ is np.ndarray and y._array.__class__ is np.ndarray:
        return
    if device_of(x._array) != device_of(y._array):
        raise DeviceError(
            message(
                name,
                what.format(x.device, y.device),
                [("one", x._spec()), ("other", y._spec())],
                "move one with .to(device)",
            )
        )


def write(x: Tensor, result: Tensor) -> None:
    """Put the elements of a result into the memory of ``x``."""
    target, source = x._array, result._array
    if isinstance(target, Spec):
        return
    plain = target.__class__ is np.ndarray and source.__class__ is np.ndarray and tracer.get() is None
    if plain and target.dtype is source.dtype:
        target[...] = source
        return
    with np.errstate(all="ignore"):
        if plain:
            target[...] = source
        else:
            store(x, result)


def _number_overflows(kernel: Any, x: Any, y: Any) -> bool:
    """Whether a ufunc refuses the number ``y`` in the dtype of ``x``, which it does before its loop."""
    try:
        kernel(np.empty(0, x.dtype), y if y.__class__ is float else np.empty(0, x.dtype))
    except (RuntimeWarning, FloatingPointError):
        return True
    return False


KNOWN = (Tensor, int, float, complex, np.generic, np.ndarray)  # what operators compute with


def stepwise(op: Op) -> Callable[..., Tensor]:
    """``Tensor.eq_``: the answers as numbers, recorded as a function that is constant between its steps."""
    name = op.name + "_"

    def compared(old: Tensor, other: Any) -> Tensor:
        result: Tensor = op.call(old, other)
        if not old.dtype.is_floating_point and not old.dtype.is_complex:
            return result
        result = result.to(old._array.dtype)
        edges = tuple([x._node if isinstance(x, Tensor) else None for x in (old, other)])
        if grad_mode.get() and any([edge is not None for edge in edges]):
            result._node = recorded(StepBackward, edges, result._array)
        return result

    def method(self: Tensor, other: Any) -> Tensor:
        return inplace(name, compared, self, (other,), {})

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"In-place form of `{op.name}`: writes the result into this tensor and returns it."
    return method


def inplace_operator(op: Op, method: Callable[..., Any]) -> Callable[..., Any]:
    """``x += y``: Python asks the other side where its class is not known."""

    def operator(self: Tensor, other: Any) -> Any:
        return method(self, other) if isinstance(other, KNOWN) else NotImplemented

    operator.__name__ = operator.__qualname__ = op.name + "_"
    return operator


def inplace_method(op: Op, name: str | None = None) -> Callable[..., Tensor]:
    """``Tensor.op_``: without recording the kernel writes straight into the tensor's memory."""
    name, kernel = name or op.name + "_", op.kernel
    direct = op.kind.aligned and isinstance(kernel, np.ufunc) and op.result == "same"
    method = _direct_method(op, name, kernel) if direct and kernel.nin == 2 else _composed_method(op, name)  # type: ignore[attr-defined]
    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"In-place form of `{op.name}`: writes the result into this tensor and returns it."
    return method


def _expect_tensor(name: str, target: Any) -> None:
    """Refuse something else as what is written to, which the function ``relu_(x)`` can be given."""
    if not isinstance(target, Tensor):
        raise ArgumentError(message(name, f"expected a tensor to write to, got {type(target).__name__}")) from None


def _composed_method(op: Op, name: str) -> Callable[..., Tensor]:
    """With the parameters of the function, but for ``out`` and ``inplace``."""
    parameters = [p for n, p in op.signature.parameters.items() if n not in ("out", "inplace")]
    scope: dict[str, Any] = {"inplace": inplace, "expect_tensor": _expect_tensor, "op": op, "name": name}
    return generated(lambda: _composed_source(parameters, scope), name, f"<genesis in-place {op.name}>", scope)


def _composed_source(parameters: Sequence[inspect.Parameter], scope: dict[str, Any]) -> str:
    written = defined(parameters, scope)
    given = [
        ("*" if p.kind is p.VAR_POSITIONAL else "") + p.name
        for p in parameters
        if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)
    ]
    named = [
        f"**{p.name}" if p.kind is p.VAR_KEYWORD else f"{p.name!r}: {p.name}"
        for p in parameters
        if p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD)
    ]
    first, *others = given
    call = f"inplace(name, op.call, {first}, ({''.join(o + ', ' for o in others)}), {{{', '.join(named)}}})"
    return f"def call({', '.join(written)}):\n    try:\n        return {call}\n    except AttributeError:\n        expect_tensor(name, {first})\n        raise\n"


def _direct_method(op: Op, name: str, kernel: Any) -> Callable[..., Tensor]:
    ndarray = np.ndarray

    def rebind(attached: Any) -> None:
        nonlocal kernel
        # only these write into memory that they are given
        kernel = attached if isinstance(attached, np.ufunc) else None

    op.shortcuts.append(rebind)

    def method(self: Tensor, other: Any, *, alpha: Any = None) -> Tensor:
        x = self._array
        y = other._array if isinstance(other, Tensor) else other
        if alpha is not None:
            if "alpha" not in inspect.signature(op.call).parameters:
                raise TypeError(f"{name}() got an unexpected keyword argument 'alpha'")
            return inplace(name, op.call, self, (other,), {"alpha": alpha})
        if grad_mode.get() or ACTIVE or x.__class__ is not ndarray or self._counter is INFERENCE or kernel is None:
            return inplace(name, op.call, self, (other,), {})
        if y.__class__ is ndarray:
            if y.dtype is not x.dtype or x.dtype.kind != "f":
                return inplace(name, op.call, self, (other,), {})
        elif y.__class__ is not float or x.dtype.kind != "f":
            return inplace(name, op.call, self, (other,), {})
        if self._counter is SHARED:
            self._own_memory()
            x = self._array
        try:
            kernel(x, y, out=x)
        except (ValueError, TypeError):
            return inplace(name, op.call, self, (other,), {})
        # where they are errors: raised after the loop, which has written to x
        except (RuntimeWarning, FloatingPointError):
            if _number_overflows(kernel, x, y):
                return inplace(name, op.call, self, (other,), {})
        bump(self, name)
        return self

    return unnamed(method)  # type: ignore[no-any-return]
