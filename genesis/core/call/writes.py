"""Writes in place: what is refused, how the elements get into the memory, and what is recorded.

Without recording the memory is written to and the write is counted. With it the result of the op becomes the history of
the tensor, its base and its views: `rebase` in `core/call/views.py`.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import numpy as np

from genesis.arrays.memory import copied, memory_of
from genesis.arrays.protocol import Layer, Virtual, bottom, device_of
from genesis.arrays.spec import Spec, spec_of
from genesis.base import dtypes
from genesis.base.errors import DeviceError, DTypeError, InplaceError, ShapeError, message
from genesis.core.call.layer_writes import store
from genesis.core.call.overrides import kernel_form
from genesis.core.call.views import overwritten, rebase
from genesis.core.graph.boundary import lift_all
from genesis.core.graph.lost import HISTORY_WATCHES, note
from genesis.core.graph.modes import grad_mode, inference
from genesis.core.graph.node import Output, next_number
from genesis.core.graph.saved import PACKED
from genesis.core.graph.site import LIBRARY, site_here, user_site
from genesis.core.graph.switches import ACTIVE, LEVELS, OVERRIDES
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer
from genesis.core.graph.version import INFERENCE, SHARED, WRITES, counting


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


def only_writes(x: Tensor) -> bool:
    """Whether a write of values without a history is one to NumPy's memory, with nothing to record or to refuse: `unwatched`,
    without a call.
    """
    array, counter = x._array, x._counter
    return (
        array.__class__ is np.ndarray
        and not (ACTIVE or LEVELS or HISTORY_WATCHES)
        and (x._node is x._view is None or not grad_mode.get())
        and counter is not INFERENCE
        and counter is not SHARED
        and bool(array.flags.writeable)
    )


def unwatched(x: Tensor) -> bool:
    """Whether a write of values without a history is one to memory, with nothing to record, or to refuse for who sees it."""
    counter = x._counter
    return (
        not (ACTIVE or LEVELS or HISTORY_WATCHES)
        and (x._node is x._view is None or not grad_mode.get())
        and counter is not INFERENCE
        and counter is not SHARED
    )


def bump(x: Tensor, name: str, site: tuple[CodeType | None, int] | None = None) -> None:
    """Count a write, at ``site`` or where the user called: by a function of this package, which counts it. (`count_write`,
    without its calls.)
    """
    counter = x._counter
    if counter is INFERENCE:
        return
    if counter is None or counter is SHARED:
        counter = x._shared_counter()
    if site is None:
        frame = sys._getframe(2)
        code = frame.f_code
        site = user_site(frame) if LIBRARY[code.co_filename] else (code, frame.f_lasti)
    with counting:
        WRITES[0] = counter.stamp = WRITES[0] + 1
        counter.count += 1
    counter.last = (name, *site)


def bump_all(tensors: Sequence[Tensor], name: str) -> None:
    """Count a write of each at once (a third of the time of three)."""
    last = (name, *site_here())
    counters: list[Any] = [x._counter for x in tensors]
    if None in counters or SHARED in counters:
        counters = [x._shared_counter() for x in tensors]
    with counting:
        WRITES[0] = stamp = WRITES[0] + 1
        for counter in counters:
            if counter is not INFERENCE:
                counter.stamp = stamp
                counter.count += 1
                counter.last = last


def write_all(tensors: Sequence[Tensor], name: str, change: Callable[[Any], object]) -> list[Tensor]:
    """Let ``change`` write to the NumPy arrays of those tensors where that is all there is to do, and count a write of
    each; gives the others, which need a call each.
    """
    if ACTIVE or LEVELS:
        return [*tensors]
    here: list[Tensor] = []
    others: list[Tensor] = []
    recording = grad_mode.get()
    for x in tensors:
        array, counter = x._array, x._counter
        plain = (
            array.__class__ is np.ndarray and array.flags.writeable and not (counter is INFERENCE or counter is SHARED)
        )
        (here if plain and (x._node is x._view is None or not recording) else others).append(x)
    if here:
        bump_all(here, name)  # before: what an error, or Ctrl-C, leaves half written counts as written
        with np.errstate(all="ignore"):
            for x in here:
                change(x._array)
    return others


def inplace(
    op_name: str, call: Callable[..., Tensor], x: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Tensor:
    """``x.op_(...)`` for any op: compute, check, then write, so that an error leaves ``x`` as it was."""
    given = (*args, *kwargs.values()) if kwargs else args
    recording = grad_mode.get() and (
        x._node is not None or any([isinstance(a, Tensor) and a._node is not None for a in given])
    )
    if recording or not only_writes(x):
        return _inplace(op_name, call, x, args, kwargs, recording)
    old = wrap(x._array)  # as there, where nothing is recorded or refused: half of the time
    old._node = x._node
    result = call(old, *[old if a is x else a for a in args], **kwargs)
    if result.__class__ is not Tensor and result.is_sparse:
        result = result.to_dense()
    source, target = result._array, x._array
    if source.__class__ is np.ndarray and source.dtype is target.dtype and source.shape == target.shape:
        target[...] = source
    else:
        fits(op_name, x, result)
        write(x, result)
    bump(x, op_name)
    return x


def _inplace(
    op_name: str,
    call: Callable[..., Tensor],
    x: Tensor,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    recording: bool,
) -> Tensor:
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
    if result.__class__ is not Tensor and result.is_sparse:  # of a dense tensor and a sparse one
        result = result.to_dense()
    fits(op_name, x, result)
    # a copy of something that is no part of the transform
    if LEVELS and result._node is not None and isinstance(x._array, Layer):
        result = lift_all([old, result])[1]
    write(x, result)
    bump(x, op_name)
    if recording:
        if x._view is None and old._node is not None and not _depends(result._node, old._node, since):
            note(f"{op_name}, which overwrites the value", old._node, sys._getframe(3))
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
