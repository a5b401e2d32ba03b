"""The public functions of elementwise ops, whose first lines are the fast path.

It takes float32 or float64 tensors of one dtype, while no mode is active, and costs about twice NumPy's own call on the CPU.
On devices what computes is looked up. Whatever does not fit, and whatever fails, goes to `elementwise`
(`core/call/dispatch.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.arrays.protocol import Dispatched
from genesis.base.quiet import silent, unnamed
from genesis.core.call.computing import of_floats_there
from genesis.core.call.dispatch import elementwise, operated
from genesis.core.call.generated import rename_parameters
from genesis.core.call.halves import F32, F64
from genesis.core.call.op import Op
from genesis.core.call.operands import KNOWN, unknown_operand
from genesis.core.call.recording import kept, refuse_inference
from genesis.core.graph.levels import mark_created
from genesis.core.graph.lost import HISTORY_WATCHES, history_used
from genesis.core.graph.modes import ACTIVE, LEVELS, grad_mode
from genesis.core.graph.node import next_number
from genesis.core.graph.saved import pack
from genesis.core.graph.site import LIBRARY, user_site
from genesis.core.graph.switches import PACKING
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.version import INFERENCE, WRITES

_new = object.__new__
_frame = sys._getframe
BOOL = np.dtype(np.bool_)
_FAILED = (ValueError, TypeError, RuntimeWarning, OverflowError, FloatingPointError, MemoryError)


def unary_path(op: Op) -> Callable[..., Any]:
    """The public function ``op(input, *, out=None)`` of an elementwise op."""
    ndarray, kernel, make_node, recording = np.ndarray, silent(op.kernel), op.node, grad_mode.get
    names = {name for name, _, _, _ in op.saves}
    keep_input, keep_out = "input" in names, "out" in names

    def rebind(attached: Any) -> None:
        nonlocal kernel
        kernel = silent(attached)

    op.shortcuts.append(rebind)
    users: Any = None  # the code that called last, known not to be this package's own
    exact = _exact(op)

    def call(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        nonlocal users
        if ACTIVE or out is not None or not isinstance(input, Tensor):
            return elementwise(op, (input,), out)
        x = input._array
        dtype = x.dtype
        if (dtype is not F32 and dtype is not F64) or x.__class__ is not ndarray:
            if dtype.kind in exact and x.__class__ is ndarray:
                y = counted(op, kernel, x)
                return elementwise(op, (input,)) if y is None else y
            r = None if dtype is not F32 and dtype is not F64 else of_floats_there(op, x)
            if r is None:
                return elementwise(op, (input,))
        else:
            try:
                r = kernel(x)
            except _FAILED:
                return elementwise(op, (input,))
            if r.__class__ is not ndarray:  # NumPy makes scalars of 0-d arrays
                r = np.asarray(r)
        y = _new(Tensor)
        y._array = r
        y._counter = y._view = None
        edge = input._node
        if edge is None or make_node is None or not recording():
            y._node = None
            if edge is not None and HISTORY_WATCHES:
                history_used(edge)
            if LEVELS:
                mark_created(y)
            return y
        y._node = node = make_node()
        node._edges = (edge,)
        node._shape, node._dtype, node._hooks, node._epoch = r.shape, r.dtype, None, WRITES[0]
        node._number = next_number()
        frame = _frame(1)
        node._code = code = frame.f_code
        node._at = frame.f_lasti
        if code is not users:
            if LIBRARY[code.co_filename]:
                node._code, node._at = user_site(frame.f_back)
            else:
                users = code
        kept = input if keep_input else None
        node._saved = (kept, y._alias(None)) if keep_out else (kept,) if keep_input else ()
        if keep_input and input._counter is INFERENCE:
            refuse_inference(op.name, node._saved)
        if PACKING:
            pack(node)
        return y

    return unnamed(call)  # type: ignore[no-any-return]


def binary_path(op: Op, weak_scalars: bool, second: str = "other") -> Callable[..., Any]:
    """The public function ``op(input, other, *, out=None)`` of an elementwise op, and its operator; ``second`` is what
    callers call the second operand.
    """
    ndarray, kernel, make_node, recording = np.ndarray, silent(op.kernel), op.node, grad_mode.get
    keep, saves_out = _kept(op), any(name == "out" for name, _, _, _ in op.saves)
    saves, checks = bool(op.saves), not isinstance(kernel, np.ufunc)
    exact = _exact(op)

    def rebind(attached: Any) -> None:
        nonlocal kernel, checks, weak_scalars
        kernel, checks = silent(attached), not isinstance(attached, np.ufunc)
        weak_scalars = weak_scalars and not checks

    op.shortcuts.append(rebind)

    def call(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
        if out is not None or not isinstance(input, Tensor):
            return elementwise(op, (input, other), out)
        result = operator(input, other)
        if result is NotImplemented:
            raise unknown_operand(op, other)
        return result

    rename_parameters(call, "input", second)
    users: Any = None  # as in `unary_path`

    def operator(input: Tensor, other: Any) -> Tensor:
        nonlocal users
        if ACTIVE:
            return operated(op, input, other)  # type: ignore[no-any-return]
        x = input._array
        dtype = x.dtype
        if isinstance(other, Tensor):
            y = other._array
            b = other._node
            if dtype is not y.dtype:
                return elementwise(op, (input, other))
        elif other.__class__ is int and dtype.kind in exact and x.__class__ is ndarray and dtype.kind != "b":
            z = counted(op, kernel, x, other)
            return operated(op, input, other) if z is None else z  # type: ignore[no-any-return]
        elif weak_scalars and (other.__class__ is float or other.__class__ is int):
            y = other
            b = None
        else:
            return operated(op, input, other)  # type: ignore[no-any-return]
        if dtype is not F32 and dtype is not F64:
            z = counted(op, kernel, x, y) if dtype.kind in exact and x.__class__ is ndarray is y.__class__ else None
            return elementwise(op, (input, other)) if z is None else z
        if x.__class__ is not ndarray or (checks and isinstance(y, Dispatched)):
            r = of_floats_there(op, x, y)
            if r is None:
                return elementwise(op, (input, other))
        else:
            try:
                r = kernel(x, y)
            except _FAILED:
                return elementwise(op, (input, other))
            if r.__class__ is not ndarray:
                r = np.asarray(r)
        z = _new(Tensor)
        z._array = r
        z._counter = z._view = None
        a = input._node
        if (a is None and b is None) or make_node is None or not recording():
            z._node = None
            if HISTORY_WATCHES and (a is not None or b is not None):
                history_used(a, b)
            if LEVELS:
                mark_created(z)
            return z
        z._node = node = make_node()
        node._edges = (a, b)
        node._shape, node._dtype, node._hooks, node._epoch = r.shape, r.dtype, None, WRITES[0]
        node._number = next_number()
        frame = _frame(1)
        node._code = code = frame.f_code
        node._at = frame.f_lasti
        if code is not users:
            if LIBRARY[code.co_filename]:
                node._code, node._at = user_site(frame.f_back)
            else:
                users = code
        if not saves:
            node._saved = ()
            return z
        keep_x, keep_y, keep_z = keep[a is not None, b is not None]
        node._saved = saved = (input if keep_x else None, other if keep_y else None)
        if saves_out:
            node._saved = saved = (*saved, z._alias(None) if keep_z else None)  # type: ignore[assignment]
        if (keep_x and input._counter is INFERENCE) or (keep_y and y is not other and other._counter is INFERENCE):
            refuse_inference(op.name, saved)
        if PACKING:
            pack(node)
        return z

    operator = unnamed(operator)
    call.operator = operator  # type: ignore[attr-defined]
    return call


def _exact(op: Op) -> str:
    """The kinds of integers and bools that an op computes in as they are."""
    same = op.result == "same" or op.result == "bool"
    return "".join([kinds for letter, kinds in (("i", "iu"), ("b", "b")) if same and letter in op.dtypes])


def _counted(op: Op, kernel: Any, x: Any, *other: Any) -> Tensor | None:
    """The result of arrays of one integer dtype, or of bools, which have no history; an integer takes their dtype. None
    where that is not all that is to be done.
    """
    dtype = x.dtype
    try:
        if other and other[0].__class__ is int:
            other = (np.array(other[0], dtype),)
        r = kernel(x, *other)
    except Exception:  # `elementwise` explains
        return None
    if r.dtype is not (dtype if op.result == "same" else BOOL):
        return None
    if r.__class__ is not np.ndarray:
        r = np.asarray(r)
    elif r.base is not None or r is x or (other and r is other[0]):
        r = r.copy()
    y = wrap(r)
    if LEVELS:
        mark_created(y)
    return y


counted = unnamed(_counted)


def reversed_path(op: Op, call: Callable[..., Any]) -> Callable[..., Any]:
    """The reflected operator, ``2 - x``; of a float and what has no history it costs what ``x - 2`` does."""
    ndarray = np.ndarray
    kernel = silent(op.kernel) if isinstance(op.kernel, np.ufunc) else None

    def rebind(attached: Any) -> None:
        nonlocal kernel
        kernel = silent(attached) if isinstance(attached, np.ufunc) else None

    op.shortcuts.append(rebind)

    def reflected(self: Tensor, other: Any) -> Tensor:
        x = self._array
        plain = (other.__class__ is float or other.__class__ is int) and (x.dtype is F32 or x.dtype is F64)
        if not plain or ACTIVE or LEVELS or self._node is not None or kernel is None or x.__class__ is not ndarray:
            return elementwise(op, (other, self)) if isinstance(other, KNOWN) else NotImplemented
        try:
            return wrap(np.asarray(kernel(other, x)))
        except _FAILED:
            return elementwise(op, (other, self))

    return unnamed(reflected)  # type: ignore[no-any-return]


def _kept(op: Op) -> dict[tuple[bool, bool], tuple[bool, bool, bool]]:
    """For a binary op: whether the operands and the result are saved, by which of the operands need a gradient."""
    table = {}
    for a in (False, True):
        for b in (False, True):
            (x, y), out = kept(op, (a, b))
            table[a, b] = x, y, out
    return table
