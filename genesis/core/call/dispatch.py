"""The call path: from a call of an op to its result, recorded if a gradient is wanted.

- `core/call/fast.py` makes the public functions of elementwise ops, whose first lines take what is usual.
- `elementwise` is the same for all dtypes, Python scalars, devices and numbers of operands.
- `run` is the path of every other primitive; `run_one`, `run_several` and `run_list` are that for plain arrays.

What the arguments become is in `operands`, who computes in `computing`, in which dtypes in `promotion`, the node in
`recording`, what happens with ``out=`` in `out`. Where a kernel fails, the op's `infer` is asked to explain: it raises
the error that users see.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray
from genesis.arrays.protocol import device_of
from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.base.device import CPU
from genesis.base.errors import (
    ArgumentError,
    message,
)
from genesis.base.quiet import silent
from genesis.core.call.computing import (
    compute,
    compute_operands,
    device_operands,
    in_memory,
    infer,
    infer_operands,
    intercepted,
    interpreted,
    on_device,
)
from genesis.core.call.halves import F32
from genesis.core.call.op import REGISTRY, Op
from genesis.core.call.operands import KNOWN, array_of, autocast_arguments, lifted, scalar_of
from genesis.core.call.out import write_out
from genesis.core.call.overrides import OVERRIDES, override_of
from genesis.core.call.recording import (
    differentiable,
    made_inside,
    record,
    record_elementwise,
    unrecorded,
    wrap_several,
)
from genesis.core.call.strides import with_strides
from genesis.core.call.views import attach_view
from genesis.core.graph.levels import mark_created
from genesis.core.graph.lost import HISTORY_WATCHES
from genesis.core.graph.modes import ACTIVE, LEVELS, grad_mode
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer

_new, ndarray = object.__new__, np.ndarray


# ---- elementwise, in general


def operated(op: Op, input: Tensor, other: Any) -> Any:
    """`elementwise` for operators, which leave operands of unknown classes to the other side."""
    known = isinstance(other, KNOWN) or hasattr(type(other), "__torch_function__")
    return elementwise(op, (input, other)) if known else NotImplemented


def elementwise(op: Op, args: tuple[Any, ...], out: Tensor | None = None) -> Tensor:
    """Any elementwise op on anything it accepts: promotion, scalars, devices, broadcasting."""
    try:
        if op.plain and not ACTIVE:
            array = in_memory(
                op, [a._array if isinstance(a, Tensor) else None if a.__class__ is ndarray else a for a in args]
            )
            usual = device_operands(args) if array is None else None
            if usual is not None:
                array = on_device(op, *usual)
            if array is not None:
                return _made(op, args, array, out)
        return _elementwise(op, args, out)
    except Exception as error:
        from genesis.core.call.refusal import refuse_op

        answer = refuse_op(op.name, args, error)
        if answer is not None:
            return answer[0]  # type: ignore[no-any-return]
        raise


def _elementwise(op: Op, args: tuple[Any, ...], out: Tensor | None) -> Tensor:
    if ACTIVE:
        if OVERRIDES and (override := override_of(op)) is not None:
            result = override(*args)
            return result if out is None else write_out(op.name, result, out)  # type: ignore[no-any-return]
        active = tracer.get()
        if active is not None:
            return active.computes(op, partial(_operands_computed, op, args, out))  # type: ignore[no-any-return]
    return _operands_computed(op, args, out)


_OF_NUMBERS = frozenset(["add", "sub", "mul", "div", "floor_divide"])  # what PyTorch takes two numbers for, too


def _dtype_of_number(x: Any) -> Any:
    """The dtype of a tensor of one number."""
    if isinstance(x, bool | int):
        return np.dtype(np.bool_ if isinstance(x, bool) else np.int64)
    kind = dtypes.get_default_dtype()
    return (kind.to_complex() if isinstance(x, complex) else kind).np


def _operands_computed(op: Op, args: tuple[Any, ...], out: Tensor | None) -> Tensor:
    if ACTIVE and op.autocast != "promote":
        args = autocast_arguments(op, args)
    if any([a.__class__ is np.ndarray for a in args]):  # NumPy's arrays are tensors here
        args = tuple([wrap(a) if i in op.tensors and a.__class__ is np.ndarray else a for i, a in enumerate(args)])
    args, top = lifted(op, args)
    if top is not None and device_of(top) is not CPU:
        args = _with_numbers_at(op, args, device_of(top))
    given = args if op.plain else [args[i] for i in op.tensors]
    operands = [a._array if isinstance(a, Tensor) else scalar_of(op, a) for a in given]
    if top is None and not any([isinstance(a, Tensor) for a in given]):
        if op.name in _OF_NUMBERS and all([isinstance(a, bool | int | float | complex) for a in operands]):
            first = wrap(np.array(operands[0], _dtype_of_number(operands[0])))
            return _operands_computed(op, (first, *args[1:]), out)
        raise ArgumentError(
            message(op.name, f"expected a tensor, got {type(args[0]).__name__}", hint="wrap it in genesis.tensor(...)")
        )
    if top is not None:
        array: Any = interpreted(op, (*operands, *args[len(given) :]), top)
    else:
        array = in_memory(op, operands, args[len(given) :]) if not ACTIVE else None
        if array is None:
            result = infer_operands(op, operands)
            array = (
                with_strides(op, operands, result)
                if result.device.type != "cpu"
                else intercepted(op, operands, partial(compute_operands, op, operands, args[len(given) :], result))
            )
    return _made(op, args, array, out)


def _made(op: Op, args: tuple[Any, ...], array: Any, out: Tensor | None) -> Tensor:
    """The tensor of the result of an elementwise op, with its node."""
    y = wrap(array)
    record_elementwise(op, args, y)
    if ACTIVE or LEVELS:
        made_inside(y)
    return y if out is None else write_out(op.name, y, out)


def _with_numbers_at(op: Op, args: tuple[Any, ...], device: Any) -> tuple[Any, ...]:
    """0-d tensors of the CPU go along with any device: they are moved there."""

    def moved(x: Any) -> Any:
        plain = isinstance(x, Tensor) and not x._array.ndim and device_of(x._array) is CPU
        return public("transfer")(x, device, CPU) if plain and x._array.__class__ is not Spec else x

    return tuple([moved(x) if i in op.tensors else x for i, x in enumerate(args)])


# ---- every other primitive


def path_of(op: Op) -> Callable[..., Any]:
    """Which of the paths below an op takes."""

    def rebind(attached: Any) -> None:
        op.silent = attached if op.kind.views or op.quiet else partial(_first_call, op)

    rebind(op.kernel)
    op.shortcuts.append(rebind)
    if op.kind.moves:
        return run
    return run_list if op.variadic else run_one if op.tensors == (0,) else run_several


def _first_call(op: Op, *arrays: Any) -> Any:
    """What the kernel calls is looked at when all of it is there."""
    op.silent = silent(op.kernel)
    return op.silent(*arrays)


def run_one(op: Op, args: tuple[Any, ...]) -> Any:
    """`run` for the ops whose only tensor is their first argument, without its loops (1 us less)."""
    input = args[0]
    if ACTIVE or not isinstance(input, Tensor):
        return run(op, args)
    if input._array.__class__ is not np.ndarray:
        return run_there(op, args)
    try:
        r = op.silent(input._array, *args[1:])
    except Exception:
        return run(op, args)  # fails again, and explains
    if r.__class__ is not np.ndarray:
        if r.__class__ is tuple or r.__class__ is list:
            return run(op, args)
        r = np.asanyarray(r)
    elif r.ndim > 1 and op.kind.packed and not r.flags.c_contiguous:
        r = r.copy()
    out = _new(Tensor)
    out._array = r
    out._node = out._counter = out._view = None
    edge = input._node
    if edge is not None:
        if grad_mode.get() and op.node is not None and (r.dtype is F32 or differentiable(r.dtype)):
            record(op, args, (edge,), out)
        elif HISTORY_WATCHES or grad_mode.get():
            unrecorded(op, (edge,), out)
    if op.kind.views:
        attach_view(out, input, op, args[1:])
    if LEVELS:
        mark_created(out)
    return out


def run_several(op: Op, args: tuple[Any, ...]) -> Any:
    """`run` for ops of several tensors, where all is as usual: NumPy arrays in, one array out, no mode open (1 us
    less).
    """
    if ACTIVE:
        return run(op, args)
    arrays = [*args]
    edges: list[Any] = [None] * len(op.tensors)
    at, recorded = -1, False
    for i in op.tensors:
        at += 1
        x = args[i]
        if x is None:
            continue
        if x.__class__ is not Tensor and not isinstance(x, Tensor):
            return run(op, args)
        arrays[i] = a = x._array
        if a.__class__ is not ndarray:
            return run_there(op, args)
        edge = x._node
        if edge is not None:
            edges[at], recorded = edge, True
    try:
        r = op.silent(*arrays)
    except Exception:
        return run(op, args)  # fails again, and explains
    if r.__class__ is not ndarray:
        if not isinstance(r, np.generic):
            return run(op, args)
        r = np.asarray(r)
    out = _new(Tensor)
    out._array = r
    out._node = out._counter = out._view = None
    if recorded:
        if grad_mode.get() and op.node is not None and (r.dtype is F32 or differentiable(r.dtype)):
            record(op, args, tuple(edges), out)
        elif HISTORY_WATCHES or grad_mode.get():
            unrecorded(op, edges, out)
    if op.kind.views:
        attach_view(out, args[0], op, args[1:])
    if LEVELS:
        mark_created(out)
    return out


def run_there(op: Op, args: tuple[Any, ...]) -> Any:
    """`run` for ops of tensors that are all on one device, no mode open (half of the time)."""
    arrays: Any = [*args]
    top = kind = device = None
    recorded = False
    for i in op.tensors:
        x = args[i]
        if x is None:
            continue
        if x.__class__ is not Tensor and not isinstance(x, Tensor):
            return run(op, args)
        arrays[i] = a = x._array
        if a.__class__ is not kind or a.device is not device:
            if top is not None or not isinstance(a, DeviceArray):
                return run(op, args)
            top, kind, device = a, a.__class__, a.device
        if x._node is not None:
            recorded = True
    if top is None:
        return run(op, args)
    r = on_device(op, arrays, top)
    if r.__class__ is tuple or r.__class__ is list:
        return _several_there(op, args, recorded, r)
    out = _new(Tensor)
    out._array = r
    out._node = out._counter = out._view = None
    if recorded:
        edges = tuple([None if args[i] is None else args[i]._node for i in op.tensors])
        if grad_mode.get() and op.node is not None and (r.dtype is F32 or differentiable(r.dtype)):
            record(op, args, edges, out)
        elif HISTORY_WATCHES or grad_mode.get():
            unrecorded(op, edges, out)
    if op.kind.views:
        attach_view(out, args[0], op, args[1:])
    if LEVELS:
        mark_created(out)
    return out


def _several_there(op: Op, args: tuple[Any, ...], recorded: bool, results: Any) -> Any:
    edges = None
    if recorded and op.node is not None and grad_mode.get():
        edges = tuple([None if args[i] is None else args[i]._node for i in op.tensors])
    outs: Any = wrap_several(op, args, edges, results)
    if op.kind.views:
        attach_view(outs, args[0], op, args[1:])
    if LEVELS:
        for out in outs:
            mark_created(out)
    return outs


def run_list(op: Op, args: tuple[Any, ...]) -> Any:
    """`run` for the ops of a list of tensors, which all have NumPy arrays (a third less)."""
    tensors, recorded = args[0], False
    arrays = []
    for x in tensors:
        if ACTIVE or not isinstance(x, Tensor) or x._array.__class__ is not ndarray:
            return run(op, args)
        arrays.append(x._array)
        recorded = recorded or x._node is not None
    try:
        r = op.silent(arrays, *args[1:])
    except Exception:
        return run(op, args)  # fails again, and explains
    if r.__class__ is not ndarray:
        return run(op, args)
    if r.ndim > 1 and op.kind.packed and not r.flags.c_contiguous:
        r = r.copy()
    out = _new(Tensor)
    out._array = r
    out._node = out._counter = out._view = None
    if recorded:
        edges = tuple([x._node for x in tensors])
        if grad_mode.get() and op.node is not None and (r.dtype is F32 or differentiable(r.dtype)):
            record(op, args, edges, out)
        elif HISTORY_WATCHES or grad_mode.get():
            unrecorded(op, edges, out)
    if LEVELS:
        mark_created(out)
    return out


def run(op: Op, args: tuple[Any, ...]) -> Any:
    """Call a primitive: arrays out of tensors, the kernel, the result wrapped and recorded."""
    if ACTIVE:
        if OVERRIDES and (override := override_of(op)) is not None:
            return override(*args)
        active = tracer.get()
        if active is not None:
            return active.computes(op, partial(_run, op, args))
    return _run(op, args)


def _run(op: Op, args: tuple[Any, ...]) -> Any:
    if ACTIVE and op.autocast != "promote":
        args = autocast_arguments(op, args)
    args, top = lifted(op, args)
    needed = virtual = False
    arrays = list(args)
    if op.variadic:
        tensors = list(args[0])
        arrays[0] = inner = [array_of(op, x) for x in tensors]
        virtual = any(a.__class__ is not np.ndarray for a in inner)
        needed = any(x._node is not None for x in tensors)
    else:
        for i in op.tensors:
            x = args[i]
            if isinstance(x, Tensor):
                arrays[i] = a = x._array
                virtual = virtual or a.__class__ is not np.ndarray
                needed = needed or x._node is not None
            else:
                array_of(op, x)
        tensors = []
    if top is not None:
        result = interpreted(op, tuple(arrays), top)
    else:
        result = (
            with_strides(op, arrays, infer(op, arrays))
            if virtual
            else intercepted(op, arrays, partial(compute, op, arrays))
        )
    edges = None
    if needed:
        tensors = tensors or [args[i] for i in op.tensors]
        edges = tuple([None if x is None else x._node for x in tensors])
    if result.__class__ is tuple or result.__class__ is list:
        out: Any = wrap_several(op, args, edges if op.node is not None and grad_mode.get() else None, result)
    else:
        out = wrap(result)
        if edges is not None:
            if op.node is not None and grad_mode.get() and differentiable(result.dtype):
                record(op, args, edges, out)
            else:
                unrecorded(op, edges, out)
    if op.kind.views and (not virtual or top is not None):
        attach_view(out, args[0], op, args[1:])
    if ACTIVE or LEVELS:
        for y in out if isinstance(out, tuple) else (out,):
            made_inside(y)
    return out


# ---- arrays that are no memory


def apply(op: Op, args: tuple[Any, ...]) -> Any:
    """Call a primitive with arguments that are as its public function would have made them."""
    if op.plain and isinstance(args[0], Tensor):
        return op.call(*args)
    return op.run(op, args)


def public(name: str) -> Callable[..., Any]:
    """The public function of an op, for those who are imported before it is declared."""
    return REGISTRY[name].call


# ---- out=
