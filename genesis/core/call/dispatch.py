"""The call path: from a call of an op to its result, recorded if a gradient is wanted.

- `unary_path` and `binary_path` make the public functions of elementwise ops. Their first lines are the
  fast path: float32 or float64 tensors on the CPU, same dtype, no mode active. It costs about twice
  NumPy's own call. (An array that is not NumPy's makes a ufunc raise TypeError: ``__array_ufunc__ = None``.) Whatever
  does not fit, and whatever fails, goes to `elementwise`.
- `elementwise` is the same for all dtypes, Python scalars, devices and numbers of operands.
- `run` is the path of every other primitive.

Where a kernel fails, the op's `infer` is asked to explain: it raises the error that users see.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from genesis.arrays.batched import Batched
from genesis.arrays.memory import DeviceArray, copied, memory_of, placed
from genesis.arrays.protocol import Dispatched, Layer, Virtual, device_of
from genesis.arrays.spec import Spec, spec_of
from genesis.base import dtypes
from genesis.base.device import CPU
from genesis.base.errors import (
    ArgumentError,
    DeviceError,
    DimError,
    DTypeError,
    GenesisError,
    GraphError,
    IndexOutOfRange,
    ShapeError,
    UnsupportedError,
    message,
)
from genesis.base.memory import impossible, too_large
from genesis.core.call.casts import cast_for
from genesis.core.call.generated import generated
from genesis.core.call.halves import HALVES
from genesis.core.call.op import REGISTRY, Op, node_for
from genesis.core.call.overrides import OVERRIDES, override_of
from genesis.core.call.strides import packed, with_strides
from genesis.core.call.views import KNOWN, attach_view, same_device
from genesis.core.graph import autocast
from genesis.core.graph.boundary import all_in_one_vmap, lift_all
from genesis.core.graph.hooks import SPECIAL
from genesis.core.graph.levels import born, check_at_home, levels
from genesis.core.graph.lost import UNTOUCHED, note, touched
from genesis.core.graph.modes import ACTIVE, LEVELS, grad_mode, inference, interception
from genesis.core.graph.node import INFERENCE, WRITES, Output, next_number, recorded
from genesis.core.graph.quiet import quietly, silent, unnamed
from genesis.core.graph.saved import pack
from genesis.core.graph.site import LIBRARY, user_level, user_site
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
_new = object.__new__
_frame = sys._getframe
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

    def call(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        nonlocal users
        if ACTIVE or out is not None or not isinstance(input, Tensor):
            return elementwise(op, (input,), out)
        x = input._array
        dtype = x.dtype
        if (dtype is not F32 and dtype is not F64) or x.__class__ is not ndarray:
            return elementwise(op, (input,))
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
            if edge is not None and UNTOUCHED:
                touched(edge)
            if LEVELS:
                born(y)
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
        return y

    return unnamed(call)  # type: ignore[no-any-return]


def binary_path(op: Op, weak_scalars: bool) -> Callable[..., Any]:
    """The public function ``op(input, other, *, out=None)`` of an elementwise op, and its operator."""
    ndarray, kernel, make_node, recording = np.ndarray, silent(op.kernel), op.node, grad_mode.get
    keep = _kept(op)
    keep_out = any(name == "out" for name, _, _, _ in op.saves)
    saves, checks = bool(op.saves), not isinstance(kernel, np.ufunc)

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
            raise _unknown(op, other)
        return result

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
        elif weak_scalars and (other.__class__ is float or other.__class__ is int):
            y = other
            b = None
        else:
            return operated(op, input, other)  # type: ignore[no-any-return]
        if (dtype is not F32 and dtype is not F64) or (
            checks and (x.__class__ is not ndarray or isinstance(y, Dispatched))
        ):
            return elementwise(op, (input, other))
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
            if UNTOUCHED and (a is not None or b is not None):
                touched(a, b)
            if LEVELS:
                born(z)
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
        keep_x, keep_y = keep[a is not None, b is not None]
        node._saved = saved = (input if keep_x else None, other if keep_y else None)
        if keep_out:
            node._saved = saved = (*saved, z._alias(None))  # type: ignore[assignment]
        if (keep_x and input._counter is INFERENCE) or (keep_y and y is not other and other._counter is INFERENCE):
            refuse_inference(op.name, saved)
        return z

    operator = unnamed(operator)
    call.operator = operator  # type: ignore[attr-defined]
    return call


def reversed_path(op: Op, call: Callable[..., Any]) -> Callable[..., Any]:
    """The reflected operator, ``2 - x``."""

    def reflected(self: Tensor, other: Any) -> Tensor:
        return elementwise(op, (other, self)) if isinstance(other, KNOWN) else NotImplemented

    return reflected


def _kept(op: Op) -> dict[tuple[bool, bool], tuple[bool, bool]]:
    """For a binary op: which operands are saved, by which of them need a gradient."""
    users = {place: who for _, source, place, who in op.saves if source == "tensor"}
    table = {}
    for a in (False, True):
        for b in (False, True):
            active = {i for i, needed in enumerate((a, b)) if needed}
            table[a, b] = (bool(users.get(0, frozenset()) & active), bool(users.get(1, frozenset()) & active))
    return table


# ---- elementwise, in general


def operated(op: Op, input: Tensor, other: Any) -> Any:
    """`elementwise` for operators, which leave operands of unknown classes to the other side."""
    return elementwise(op, (input, other)) if isinstance(other, KNOWN) else NotImplemented


def elementwise(op: Op, args: tuple[Any, ...], out: Tensor | None = None) -> Tensor:
    """Any elementwise op on anything it accepts: promotion, scalars, devices, broadcasting."""
    try:
        return _elementwise(op, args, out)
    except Exception as error:
        from genesis.core.call.refusal import refuse_op

        refuse_op(op.name, args, error)
        raise


def _elementwise(op: Op, args: tuple[Any, ...], out: Tensor | None) -> Tensor:
    if ACTIVE:
        if OVERRIDES and (override := override_of(op)) is not None:
            result = override(*args)
            return result if out is None else write_out(op.name, result, out)
        if op.autocast != "promote":
            args = autocast_arguments(op, args)
    if any([a.__class__ is np.ndarray for a in args]):  # NumPy's arrays are tensors here
        args = tuple([wrap(a) if i in op.tensors and a.__class__ is np.ndarray else a for i, a in enumerate(args)])
    args, top = lifted(op, args)
    if top is not None and device_of(top) is not CPU:
        args = _with_numbers_at(op, args, device_of(top))
    given = args if op.plain else [args[i] for i in op.tensors]
    operands = [a._array if isinstance(a, Tensor) else _scalar(op, a) for a in given]
    if top is None and not any([isinstance(a, Tensor) for a in given]):
        raise ArgumentError(
            message(op.name, f"expected a tensor, got {type(args[0]).__name__}", hint="wrap it in genesis.tensor(...)")
        )
    if top is not None:
        array: Any = interpreted(op, (*operands, *args[len(given) :]), top)
    else:
        result = _infer_operands(op, operands)
        array = (
            with_strides(op, operands, result)
            if result.device.type != "cpu"
            else _between(op, operands, partial(_compute, op, operands, args[len(given) :], result))
        )
    y = wrap(array)
    _record_elementwise(op, args, y)
    if ACTIVE or LEVELS:
        made_inside(y)
    return y if out is None else write_out(op.name, y, out)


def _with_numbers_at(op: Op, args: tuple[Any, ...], place: Any) -> tuple[Any, ...]:
    """0-d tensors of the CPU go along with any device: they are moved there."""

    def moved(x: Any) -> Any:
        plain = isinstance(x, Tensor) and not x._array.ndim and device_of(x._array) is CPU
        return public("transfer")(x, place, CPU) if plain and x._array.__class__ is not Spec else x

    return tuple([moved(x) if i in op.tensors else x for i, x in enumerate(args)])


def _infer_operands(op: Op, operands: Sequence[Any]) -> Any:
    return op.infer(*[spec_of(x) if hasattr(x, "shape") else x for x in operands])  # type: ignore[misc]


def _between(op: Op, arrays: Sequence[Any], kernel: Callable[[], Any]) -> Any:
    if ACTIVE:
        for between in interception.get():
            # no closure: an error that is kept would keep what that holds
            kernel = partial(between, op, arrays, kernel)
    return kernel()


def _compute(op: Op, operands: Sequence[Any], options: Sequence[Any], result: Spec) -> np.ndarray[Any, Any]:
    """The kernel on operands of one dtype; what follows them in the signature is handed on as it is."""
    with np.errstate(all="ignore"):
        cast = [cast_operand(x, dtype) for x, dtype in zip(operands, compute_dtypes(op, operands), strict=True)]
        try:
            r = np.asarray(op.kernel(*cast, *options))
        except (MemoryError, ValueError) as error:
            _check_memory(op.name, (result,), error)
            raise
        # a kernel may return its operand: results have memory of their own
        if not r.flags.owndata or any([r is x for x in cast]):
            r = r.copy()
        return r.astype(result.dtype, copy=False)


def compute_elementwise(op: Op, *arguments: Any) -> np.ndarray[Any, Any]:
    """An elementwise op on NumPy arrays and numbers."""
    operands = arguments if op.plain else [arguments[i] for i in op.tensors]
    return _compute(op, operands, arguments[len(operands) :], _infer_operands(op, operands))


def cast_operand(x: Any, dtype: Any) -> Any:
    """An operand in the dtype of the computation; Python integers wrap around as they do in C."""
    if dtype is None or x is None:
        return x
    if isinstance(x, np.ndarray):
        return x.astype(dtype, copy=False)
    if dtype.kind in "iub" and isinstance(x, int):
        return np.array(x, dtype=np.int64 if -(2**63) <= x < 2**63 else np.uint64).astype(dtype)
    return np.array(x).astype(dtype)


def compute_dtypes(op: Op, operands: Sequence[Any]) -> Sequence[Any]:
    """The dtype each operand is computed in: the promoted one, float32 for the 16-bit floats."""
    if callable(op.result):
        return op.result(operands, "compute")  # type: ignore[no-any-return]
    if op.result == "bool" and _mixed_integers(operands):
        return [_compared_dtype(operands)] * len(operands)
    dtype = dtypes.result_np_dtype([x for x in operands if x is not None])
    if op.result == "float" and dtype.kind in "biu":
        dtype = dtypes.as_np(dtypes.get_default_dtype())
    if dtype in HALVES:
        dtype = F32
    return [dtype] * len(operands)


def _mixed_integers(operands: Sequence[Any]) -> bool:
    """Integer tensors of several dtypes, or with a number that their dtype does not hold."""
    kinds = {x.dtype for x in operands if hasattr(x, "dtype")}
    if not all([kind.kind in "biu" for kind in kinds]):
        return False
    return len(kinds) > 1 or any([x.__class__ is int and not _holds(kind, x) for x in operands for kind in kinds])


def _holds(kind: Any, number: int) -> bool:
    return kind.kind == "b" or np.iinfo(kind).min <= number <= np.iinfo(kind).max


def _compared_dtype(operands: Sequence[Any]) -> Any:
    """Integers are compared exactly: in the dtype that all tensors promote to, 0-d ones too, whose values PyTorch
    wraps into the dtype of the others. None for uint64 with signed integers and for numbers out of range, which NumPy
    compares as they are.
    """
    kinds = [dtypes.from_numpy(x.dtype) for x in operands if hasattr(x, "dtype")]
    if len(kinds) == 1 or (dtypes.uint64 in kinds and any([k.category == 1 and k.is_signed for k in kinds])):
        return None
    return dtypes.result_np_dtype([np.empty(1, k.np) for k in kinds] + [x for x in operands if not hasattr(x, "dtype")])


def _scalar(op: Op, value: Any) -> Any:
    if isinstance(value, np.generic):  # np.float64 is a float, but NumPy would not treat it as a plain number
        return value.item()
    if value is None or isinstance(value, bool | int | float | complex):
        return value
    if isinstance(value, np.ndarray):
        return value
    raise _unknown(op, value)


def _unknown(op: Op, value: Any) -> ArgumentError:
    text = message(
        op.name, f"expected a tensor or a number, got {type(value).__name__}", hint="genesis.tensor(...) makes one"
    )
    return ArgumentError(text)


def _record_elementwise(op: Op, args: tuple[Any, ...], y: Tensor) -> None:
    if op.plain and not any([isinstance(a, Tensor) and a._node is not None for a in args]):
        return
    tensors = [args[i] for i in op.tensors]
    edges = tuple([a._node if isinstance(a, Tensor) else None for a in tensors])
    y._node = None
    if not any(e is not None for e in edges):
        return
    if op.node is None or not grad_mode.get() or not _differentiable(y._array.dtype):
        _unrecorded(op, edges, y)
        return
    node = recorded(node_for(op, y._array.dtype), edges, y._array)
    if op.saves and op.plain:  # the layout of the fast paths: the operands, then the result
        active = {i for i, e in enumerate(edges) if e is not None}
        users = {place: who for _, source, place, who in op.saves if source == "tensor"}
        saved = tuple([a if users.get(i, frozenset()) & active else None for i, a in enumerate(args)])
        node._saved = (*saved, y._alias(None)) if op.node.saves_out else saved
    elif op.saves:
        node._saved = saved_values(op, args, edges, y)
    refuse_inference(op.name, node._saved)
    y._node = node
    if ACTIVE:
        pack(node)


# ---- every other primitive


def path_of(op: Op) -> Callable[..., Any]:
    """Which of the paths below an op takes."""
    return run if op.variadic or op.kind.moves else run_one if op.tensors == (0,) else run_several


def run_one(op: Op, args: tuple[Any, ...]) -> Any:
    """`run` for the ops whose only tensor is their first argument, without its loops (1 us less)."""
    input = args[0]
    if ACTIVE or not isinstance(input, Tensor) or input._array.__class__ is not np.ndarray:
        return run(op, args)
    try:
        r = op.kernel(input._array, *args[1:]) if op.kind.views else quietly(op.kernel, input._array, *args[1:])
    except Exception:
        return run(op, args)  # fails again, and explains
    if r.__class__ is not np.ndarray:
        if r.__class__ is tuple or r.__class__ is list:
            return run(op, args)
        r = np.asarray(r)
    elif r.ndim > 1 and op.kind.packed:
        r = packed(r)
    out = _new(Tensor)
    out._array = r
    out._node = out._counter = out._view = None
    edge = input._node
    if edge is not None:
        if grad_mode.get() and op.node is not None and _differentiable(r.dtype):
            _record(op, args, (edge,), out)
        elif UNTOUCHED or grad_mode.get():
            _unrecorded(op, (edge,), out)
    if op.kind.views:
        attach_view(out, input, op, args[1:])
    if LEVELS:
        born(out)
    return out


def run_several(op: Op, args: tuple[Any, ...]) -> Any:
    """`run` for ops of several tensors, where all is as usual: NumPy arrays in, one array out, no mode open (1 us
    less).
    """
    if ACTIVE:
        return run(op, args)
    arrays = list(args)
    edges: list[Any] = []
    needed = False
    for i in op.tensors:
        x = args[i]
        if x is None:
            edges.append(None)
            continue
        if not isinstance(x, Tensor) or x._array.__class__ is not np.ndarray:
            return run(op, args)
        arrays[i] = x._array
        edges.append(x._node)
        if x._node is not None:
            needed = True
    try:
        r = quietly(op.kernel, *arrays)
    except Exception:
        return run(op, args)  # fails again, and explains
    if r.__class__ is not np.ndarray:
        return run(op, args)
    out = _new(Tensor)
    out._array = r
    out._node = out._counter = out._view = None
    if needed:
        if grad_mode.get() and op.node is not None and _differentiable(r.dtype):
            _record(op, args, tuple(edges), out)
        elif UNTOUCHED or grad_mode.get():
            _unrecorded(op, edges, out)
    if op.kind.views:
        attach_view(out, args[0], op, args[1:])
    if LEVELS:
        born(out)
    return out


def run(op: Op, args: tuple[Any, ...]) -> Any:
    """Call a primitive: arrays out of tensors, the kernel, the result wrapped and recorded."""
    if ACTIVE:
        if OVERRIDES and (override := override_of(op)) is not None:
            return override(*args)
        if op.autocast != "promote":
            args = autocast_arguments(op, args)
    args, top = lifted(op, args)
    needed = virtual = False
    arrays = list(args)
    if op.variadic:
        tensors = list(args[0])
        arrays[0] = inner = [_array(op, x) for x in tensors]
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
                _array(op, x)
        tensors = []
    if top is not None:
        result = interpreted(op, tuple(arrays), top)
    else:
        result = (
            with_strides(op, arrays, infer(op, arrays))
            if virtual
            else _between(op, arrays, partial(compute, op, arrays))
        )
    edges = None
    if needed:
        tensors = tensors or [args[i] for i in op.tensors]
        edges = tuple([None if x is None else x._node for x in tensors])
    if result.__class__ is tuple or result.__class__ is list:
        out: Any = _wrap_several(op, args, edges if op.node is not None and grad_mode.get() else None, result)
    else:
        out = wrap(result)
        if edges is not None:
            if op.node is not None and grad_mode.get() and _differentiable(result.dtype):
                _record(op, args, edges, out)
            else:
                _unrecorded(op, edges, out)
    if op.kind.views and (not virtual or top is not None):
        attach_view(out, args[0], op, args[1:])
    if ACTIVE or LEVELS:
        for y in out if isinstance(out, tuple) else (out,):
            made_inside(y)
    return out


def made_inside(y: Tensor) -> None:
    """A result that came while a mode was open: of inference mode, or made inside transforms of which it has no layer."""
    if inference.get():
        y._counter = INFERENCE
    if not isinstance(y._array, Virtual):
        born(y)
        if tracer.get() is not None:
            tracer.get().created(y)
    elif LEVELS and isinstance(y._array, Layer):
        open_levels = levels()
        if open_levels and y._array.level < open_levels[-1].number:
            born(y)


# ---- arrays that are no memory

# For each class of virtual array but specs: interpret(op, arrays, top), the result arrays of an op. ``arrays`` are its
# arguments with arrays for tensors, ``top`` the one of that class whose layer is outermost.
INTERPRETERS: dict[type, Callable[[Op, tuple[Any, ...], Any], Any]] = {}


def interpreted(op: Op, arrays: tuple[Any, ...], top: Any) -> Any:
    """The result arrays of an op on virtual arrays; where that fails, an error that speaks of the shapes that the user
    sees.
    """
    try:
        if isinstance(top, DeviceArray):
            return on_device(op, arrays, top)
        attached = op.kernels.get(top.__class__)
        result = NotImplemented if attached is None else attached(*arrays)
        return INTERPRETERS[top.__class__](op, arrays, top) if result is NotImplemented else result
    except (ShapeError, DTypeError, DimError, IndexOutOfRange):
        infer(op, arrays)
        raise


def on_device(op: Op, arrays: tuple[Any, ...], top: Any) -> Any:
    """The result arrays of an op on a device, by the kernel that is attached for the class of its arrays, or for
    `DeviceArray`.
    """
    place = top.device
    _check_devices(op, arrays, place)
    kernel = op.kernels.get(top.__class__) or op.kernels.get(DeviceArray)
    at_home = [_index_at(a, place) for a in arrays] if op.kind.copies else arrays
    result = NotImplemented
    try:
        if kernel is not None:
            result = kernel(*at_home)
    except GenesisError:
        raise
    except Exception:
        # raises an error that explains, if it can
        infer(op, arrays)
        raise
    if result is NotImplemented:
        raise UnsupportedError(
            message(
                op.name,
                f"{place.type} has no kernel for this op",
                operands=[("input", spec_of(top))],
                hint=f"attach a kernel (genesis.devices.attach), or x.cpu().{op.name}(...)",
            )
        )
    return result


def _index_at(value: Any, place: Any) -> Any:
    """An index with its arrays, which lists and masks are, on a device."""
    return (
        tuple([placed(x, place) if x.__class__ is np.ndarray else x for x in value])
        if isinstance(value, tuple)
        else value
    )


def _operand_names(op: Op, count: int) -> list[str]:
    names = [] if op.variadic else [list(op.signature.parameters)[i] for i in op.tensors]
    return [*names, *[f"index {i}" if names else str(i) for i in range(count - len(names))]]


def _check_devices(op: Op, arrays: tuple[Any, ...], place: Any) -> None:
    """Refuse tensors, and index tensors, on another device than the one that computes."""
    given = arrays[0] if op.variadic else [arrays[i] for i in op.tensors]
    specs = [
        (name, spec_of(x)) for name, x in zip(_operand_names(op, len(given)), given, strict=True) if hasattr(x, "shape")
    ]
    places = dict.fromkeys([spec.device for _, spec in specs])
    if len(places) > 1:
        raise DeviceError(
            message(
                op.name,
                f"operands are on {' and '.join(map(str, places))}",
                operands=specs,
                hint="move one with .to(device)",
            )
        )
    assert place in places


def lifted(op: Op, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
    """The arguments, and the array whose class interprets the op, if any; operands with history join its transform."""
    tensors = args[0] if op.variadic else args if op.plain else [args[i] for i in op.tensors]
    top = None
    for x in tensors:
        if isinstance(x, Tensor) and x._array.__class__ is not np.ndarray:
            top = _outer(top, x._array)
    if not isinstance(top, Layer):
        return args, top if not ACTIVE or tracer.get() is None else tracing_tensors(tensors)
    check_at_home(top, op.name)
    if (top.__class__ is Batched and all_in_one_vmap(top, tensors)) or not any(
        [isinstance(x, Tensor) and x._node is not None for x in tensors]
    ):
        return args, top
    operands = lift_all(list(tensors))
    if op.variadic:
        return (operands, *args[1:]), top
    changed = list(args)
    for i, x in zip(op.tensors, operands, strict=True):
        changed[i] = x
    return tuple(changed), top


def tracing_tensors(tensors: Any) -> Any:
    """While a trace is made it records every op; the tensors are inputs of the graph."""
    active = tracer.get()
    for x in tensors:
        if isinstance(x, Tensor):
            active.capture(x)
    return active.marker


def _outer(top: Any, array: Any) -> Any:
    if array.__class__ is Spec or (
        isinstance(top, Layer) and (not isinstance(array, Layer) or array.level <= top.level)
    ):
        return top
    return array


def apply(op: Op, args: tuple[Any, ...]) -> Any:
    """Call a primitive with arguments that are as its public function would have made them."""
    if op.plain and isinstance(args[0], Tensor):
        return op.call(*args)
    return op.run(op, args)


def public(name: str) -> Callable[..., Any]:
    """The public function of an op, for those who are imported before it is declared."""
    return REGISTRY[name].call


def _unrecorded(op: Op, edges: Sequence[Any], out: Tensor) -> None:
    """Note that values with history gave one without, see `core/graph/lost.py`."""
    if not grad_mode.get():
        if UNTOUCHED:
            touched(*edges)
    elif not _differentiable(out._array.dtype):
        note(f"{op.name} giving {out.dtype}", next(e for e in edges if e is not None), _frame(2))


def _record(op: Op, args: tuple[Any, ...], edges: tuple[Any, ...], out: Tensor) -> None:
    """The node of a primitive with one result."""
    array = out._array
    node: Any = (op.node if array.dtype is F32 else node_for(op, array.dtype))()  # type: ignore[misc]
    node._edges, node._hooks, node._outputs, node._epoch, node._number = edges, None, None, WRITES[0], next_number()
    node._code, node._at = user_site(_frame(3))
    node._shape, node._dtype = array.shape, array.dtype
    node._saved = saved_values(op, args, edges, out)
    out._node = node
    if ACTIVE:
        pack(node)


def compute(op: Op, arrays: Sequence[Any]) -> Any:
    try:
        result = quietly(op.kernel, *arrays)
    except GenesisError:
        raise
    except Exception as error:
        specs = infer(op, arrays)  # raises an error that explains, if it can
        _check_memory(op.name, specs if isinstance(specs, tuple | list) else (specs,), error)
        raise
    if op.kind.packed:
        return tuple([packed(r) for r in result]) if isinstance(result, tuple | list) else packed(np.asarray(result))
    if (
        result.__class__ is np.ndarray
        or result.__class__ is tuple
        or result.__class__ is list
        or isinstance(result, Dispatched)
    ):
        return result
    return np.asarray(result)


def _check_memory(name: str, specs: Sequence[Any], error: Exception) -> None:
    """Raise what explains a kernel that failed for want of memory."""
    for spec in specs:
        if isinstance(spec, Spec) and (isinstance(error, MemoryError) or impossible(spec.shape, spec.dtype)):
            raise too_large(name, spec.shape, spec.dtype, spec) from None


def infer(op: Op, arrays: Sequence[Any]) -> Any:
    """The specs of the results, from the specs of the arguments."""
    return op.kind.infer(op, arrays)


def _array(op: Op, x: Any) -> Any:
    if isinstance(x, Tensor):
        return x._array
    if x is None:
        return None
    raise ArgumentError(
        message(op.name, f"expected a tensor, got {type(x).__name__}", hint="wrap it in genesis.tensor(...)")
    )


def _wrap_several(op: Op, args: Any, edges: tuple[Any, ...] | None, result: Sequence[Any]) -> tuple[Tensor, ...]:
    outs = tuple(wrap(r) for r in result)
    if edges is not None:
        _record(op, args, edges, outs[0])
        node: Any = outs[0]._node
        node._hooks = SPECIAL
        node._outputs = [(tuple(r.shape), r.dtype) for r in result]
        for i, y in enumerate(outs):
            y._node = Output(node, i) if _differentiable(y._array.dtype) else None
    return outs


def _differentiable(dtype: Any) -> bool:
    return dtype is F32 or dtype is F64 or dtype.kind in "fc" or dtypes.from_numpy(dtype).is_floating_point


def saved_values(op: Op, args: tuple[Any, ...], edges: tuple[Any, ...], out: Tensor) -> tuple[Any, ...]:
    """What the rules of the inputs that need a gradient ask for by name, see `core/call/op.py`."""
    if op.save is None:
        op.save = _compile_save(op)
    return op.save(args, edges, out)  # type: ignore[no-any-return]


def _compile_save(op: Op) -> Callable[..., Any]:
    """`saved_values` of one op as straight-line code, made at its first use: a loop over ``op.saves`` costs 0.4 us
    more.
    """
    lines, parts = [], []
    for i, (name, source, place, users) in enumerate(op.saves):
        if source == "tensor" and op.kind.copies and name not in op.vjp:
            lines.append(f"    t{i} = own(args[{place}])")
        elif source == "tensor":
            lines += [
                f"    t{i} = args[{place}]",
                f"    if t{i}.__class__ is Tensor and t{i}._counter is INFERENCE: refuse(name, (t{i},))",
            ]
        value = {"value": f"args[{place}]", "tensor": f"t{i}", "shape": f"args[{place}]._array.shape",
                 "shapes": f"[x._array.shape for x in args[{place}]]", "out": "out._alias(None)"}[source]  # fmt: skip
        wanted = " or ".join(f"edges[{user}] is not None" for user in sorted(users))
        always = source == "value" or op.variadic or len(op.tensors) == 1
        parts.append(value if always else f"({value} if {wanted} else None)")
    source_code = (
        "def call(args, edges, out):\n"
        + "".join(line + "\n" for line in lines)
        + f"    return ({''.join(p + ', ' for p in parts)})\n"
    )
    scope: dict[str, Any] = {
        "Tensor": Tensor,
        "INFERENCE": INFERENCE,
        "refuse": refuse_inference,
        "name": op.name,
        "own": _own,
    }
    return generated(source_code, "save", f"<genesis saves {op.name}>", scope)


def _own(x: Tensor | None) -> Tensor | None:
    return wrap(copied(x._array)) if x is not None and isinstance(x._array, np.ndarray | DeviceArray) else x


def refuse_inference(name: str, saved: tuple[Any, ...]) -> None:
    """A tensor of inference mode has no count of writes, so backward could not trust it."""
    for value in saved:
        if getattr(value, "_counter", None) is INFERENCE:
            raise GraphError(
                message(name, "a tensor made in inference_mode cannot be saved for backward",
                        operands=[("saved", spec_of(value._array))],
                        hint="clone() it outside inference_mode, or use no_grad instead")
            )  # fmt: skip


def autocast_arguments(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments in the precision that autocast gives the op, where it is on."""
    mode = autocast.state()
    if mode is None:
        return args
    given, args = args, cast_for(op.autocast, args, mode)
    # the result's dtype was worked out from the tensor as it came
    if op.autocast == "float32" and "dtype" in op.signature.parameters:
        place = list(op.signature.parameters).index("dtype")
        if isinstance(given[0], Tensor) and given[place] == given[0]._array.dtype and args[0] is not given[0]:
            args = (*args[:place], F32, *args[place + 1 :])
    return args


# ---- out=


def write_out(name: str, result: Tensor, out: Tensor) -> Tensor:
    """Put a result into ``out=``, resized where its shape is another; the dtype must fit, and neither side may be
    recorded.
    """
    if not isinstance(out, Tensor):
        raise ArgumentError(message(name, f"out= must be a tensor, got {type(out).__name__}"))
    if grad_mode.get() and (result._node is not None or out._node is not None):
        raise GraphError(message(name, "out= does not support differentiation", hint="leave out= away, or use no_grad"))
    if not dtypes.can_cast(result.dtype, out.dtype):
        raise DTypeError(message(name, f"the result {result.dtype} cannot be cast to out's {out.dtype}"))
    same_device(name, out, result, "out is on {}, the result on {}")
    if tuple(out._array.shape) != tuple(result._array.shape):
        _resize(name, out, tuple(result._array.shape))
    out.copy_(result)
    return out


def _resize(name: str, out: Tensor, shape: tuple[int, ...]) -> None:
    """Other memory for ``out``: an empty tensor takes any shape, another with a warning, as in PyTorch."""
    if out._view is not None or isinstance(out._array, Virtual) or tracer.get() is not None:
        raise ShapeError(
            message(
                name,
                f"out has shape {list(out.shape)}, the result {list(shape)}",
                hint="a tensor of that shape, or an empty one",
            )
        )
    if out._array.size:
        text = message(
            name,
            f"out of shape {list(out.shape)} is resized to {list(shape)}, which is deprecated",
            hint="out.resize_(0), or a tensor of that shape",
        )
        warnings.warn(text, UserWarning, stacklevel=user_level())
    out._array = memory_of(out._array).empty(shape, out._array.dtype, out.device)
