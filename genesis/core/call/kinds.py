"""The kinds of ops: what every elementwise op, every reduction, every view has in common.

A kind turns an op's block into a record: it derives the public function, `infer`, the method and its
in-place form; the block itself carries only the mathematics. See `core/call/op.py` for what a block says.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.base.device import CPU
from genesis.base.errors import ArgumentError, DeviceError, DimError, DTypeError, ShapeError, message
from genesis.core.call import dispatch, views
from genesis.core.call.generated import passed
from genesis.core.call.halves import in_float32
from genesis.core.call.op import (
    Fail,
    Op,
    Samples,
    attach_methods,
    positional,
    prepare_record,
    public_function,
    register,
)
from genesis.core.call.op import case as case  # what the blocks of ops import from here
from genesis.core.graph.switches import ACTIVE
from genesis.core.graph.tensor import Tensor

Rules = Mapping[str, Callable[..., Any]]


def fails(*cases: tuple[Callable[[Any], Any], type[Exception], str]) -> tuple[Fail, ...]:
    """Wrong inputs: ``(lambda t: case(t(3), dim=3), IndexError, "dim 3 is out of range")``."""
    return tuple(Fail(*c) for c in cases)


def _module() -> str:
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return "" if frame is None else str(frame.f_globals.get("__name__"))


# ---- elementwise


def broadcast(name: str, specs: Sequence[Spec]) -> tuple[int, ...]:
    """The common shape of operands, or an error that names the sizes that do not fit."""
    shape: list[int] = []
    for spec in specs:
        mine = list(spec.shape)
        extra = len(mine) - len(shape)
        shape = [1] * extra + shape if extra > 0 else shape
        mine = [1] * -extra + mine if extra < 0 else mine
        for i, (m, n) in enumerate(zip(shape, mine, strict=True)):
            if m != n and 1 not in (m, n):
                raise ShapeError(
                    message(
                        name,
                        f"shapes cannot be broadcast together, sizes {m} and {n} differ in dim {i - len(shape)}",
                        operands=_operands(specs),
                        hint="unsqueeze, expand or transpose one of them",
                    )
                )
            shape[i] = n if m == 1 else m
    return tuple(shape)


def common_device(name: str, specs: Sequence[Spec]) -> Any:
    """The one device of the operands; 0-d CPU tensors go along with any."""
    place = CPU
    for spec in specs:
        if spec.device == CPU and not spec.shape:
            continue
        if spec.device != CPU:
            if place != CPU and place != spec.device:
                raise DeviceError(
                    message(name, f"operands are on {place} and {spec.device}", operands=_operands(specs))
                )
            place = spec.device
    if place != CPU and any(s.device == CPU and s.shape for s in specs):
        raise DeviceError(
            message(
                name, f"operands are on {CPU} and {place}", operands=_operands(specs), hint="move one with .to(device)"
            )
        )
    return place


def _operands(specs: Sequence[Spec]) -> list[tuple[str, Spec]]:
    names = ["input", "other", "third", "fourth"] if len(specs) <= 4 else [str(i) for i in range(len(specs))]
    return list(zip(names, specs, strict=False))


def _infer_elementwise(op: Op) -> Callable[..., Spec]:
    def infer(*operands: Any) -> Spec:
        specs = [x for x in operands if isinstance(x, Spec)]
        _check_kinds(op, operands)
        return Spec(broadcast(op.name, specs), result_dtype(op, operands), common_device(op.name, specs))

    return infer


def result_dtype(op: Op, operands: Sequence[Any]) -> Any:
    if callable(op.result):
        return op.result(operands, "result")
    if op.result == "bool":
        return np.dtype(np.bool_)
    dtype = dtypes.result_np_dtype([x for x in operands if x is not None])
    if op.result == "float" and dtype.kind in "biu":
        return dtypes.as_np(dtypes.get_default_dtype())
    return dtype


def _check_kinds(op: Op, operands: Sequence[Any]) -> None:
    """Refuse dtypes that the op has no meaning for; ``op.dtypes`` says which kinds it takes."""
    kind = max([dtypes.of_operand(x) for x in operands if x is not None], key=lambda kind: kind.category)
    if "bifc"[kind.category] not in op.dtypes:
        known = {"f": "floating", "c": "complex", "i": "integer", "b": "bool"}
        raise DTypeError(
            message(op.name, f"{kind} is not supported, it takes {', '.join(known[c] for c in op.dtypes)} tensors",
                    operands=_operands([x for x in operands if isinstance(x, Spec)]), hint="convert with .to(dtype)")
        )  # fmt: skip


def _signature(*names: str) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(name, kind, annotation="Array") for name in names])


def _elementwise_doc(name: str, doc: str, example: str, op_dtypes: str, result: Any, differentiable: bool) -> str:
    """The documentation that all elementwise ops share, around what an op says of itself."""
    known = {"f": "floating", "c": "complex", "i": "integer", "b": "bool"}
    note = {"float": "; integers give the default floating dtype", "bool": "; the result is bool"}
    kinds = ", ".join(known[c] for c in op_dtypes)
    text = (
        f"{doc}\n\nElement by element, on tensors that broadcast together; {kinds} dtypes{note.get(str(result), '')}."
    )
    if not differentiable:
        text += " Not differentiable: the result never requires grad."
    text += "\n\nRaises:\n    RuntimeError: shapes, dtypes or devices that do not fit\n"
    call, _, answer = example.partition(" -> ")
    call = re.sub(r"\[.*?\](?=, [-\d\[]|$)", lambda m: f"genesis.tensor({m.group()})", call)
    return text + f"\n>>> import genesis\n>>> genesis.{name}({call})\ntensor({answer})\n"


def unary(
    name: str,
    meaning: Callable[..., Any],
    doc: str,
    example: str,
    *,
    vjp: Callable[..., Any] | None = None,
    result: Any = "same",
    dtypes: str = "fcib",
    samples: Samples | None = None,
    fails: tuple[Fail, ...] = (),
    autocast: str = "promote",
    holomorphic: bool = True,
    operators: Iterable[str] = (),
    inplace: bool = True,
    torch_name: str | None = None,
    kernel: Callable[..., Any] | None = None,
    path: str | None = None,
) -> Callable[..., Any]:
    """Declare ``name(input, *, out=None)``, applied to each element.

    ``example`` is ``arguments -> result``, with lists standing for tensors.
    ``result`` says how the result's dtype follows: "same", "float" (integers become the default
    floating dtype) or "bool". ``vjp(g, ...)`` is the gradient, by the names `input` and `out`.
    ``path`` is where an op lives that is not a top-level name.
    """
    meaning_ = _documented(meaning, _elementwise_doc(path or name, doc, example, dtypes, result, vjp is not None))
    op = Op(
        name,
        "elementwise",
        _signature("input"),
        meaning_,
        vjp={} if vjp is None else {"input": vjp},
        samples=samples,
        fails=fails,
        dtypes=dtypes,
        autocast=autocast,
        holomorphic=holomorphic,
        result=result,
        torch_name=torch_name,
    )
    op.kernel = meaning if kernel is None else kernel
    op.infer = _infer_elementwise(op)
    prepare_record(op)
    fast = result == "same" or result == "float"
    op.call = dispatch.unary_path(op) if fast or result == "bool" else public_function(
        op, "    return elementwise(_op, ARGS, out)\n", {"elementwise": dispatch.elementwise}, "out=None"
    )  # fmt: skip
    return _finish(op, operators, inplace and result != "bool")


def binary(
    name: str,
    meaning: Callable[..., Any],
    doc: str,
    example: str,
    *,
    vjp: tuple[Callable[..., Any] | None, Callable[..., Any] | None] | None = None,
    result: Any = "same",
    dtypes: str = "fcib",
    samples: Samples | None = None,
    fails: tuple[Fail, ...] = (),
    autocast: str = "promote",
    holomorphic: bool = True,
    operators: Iterable[str] = (),
    reflected: str | None = None,
    commutes: bool = False,
    inplace: bool | None = None,
    inplace_operator: str | None = None,
    weak_scalars: bool | None = None,
    path: str | None = None,
    torch_name: str | None = None,
    kernel: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Declare ``name(input, other, *, out=None)``, applied to pairs of elements after broadcasting.

    ``vjp`` holds one rule for each operand, by the names `input`, `other` and `out`; a rule gives the
    gradient in the result's shape, summing it back over broadcast axes is the engine's work.
    ``weak_scalars``: the kernel may get a Python number as it is (true of ufuncs: the array's dtype wins).
    """
    rules = {} if vjp is None else {n: r for n, r in zip(("input", "other"), vjp, strict=True) if r is not None}
    meaning_ = _documented(meaning, _elementwise_doc(path or name, doc, example, dtypes, result, vjp is not None))
    op = Op(
        name,
        "elementwise",
        _signature("input", "other"),
        meaning_,
        vjp=rules,
        samples=samples,
        fails=fails,
        dtypes=dtypes,
        autocast=autocast,
        holomorphic=holomorphic,
        result=result,
        torch_name=torch_name,
    )
    op.kernel = meaning if kernel is None else kernel
    op.infer = _infer_elementwise(op)
    prepare_record(op)
    weak = isinstance(op.kernel, np.ufunc) if weak_scalars is None else weak_scalars
    op.call = dispatch.binary_path(op, weak)
    call = _finish(op, operators, result != "bool" if inplace is None else inplace)
    if reflected is not None:
        setattr(Tensor, reflected, call.operator if commutes else dispatch.reversed_path(op, call))  # type: ignore[attr-defined]
    if inplace_operator is not None:
        setattr(Tensor, inplace_operator, views.inplace_operator(op, getattr(Tensor, name + "_")))
    return call


def elementwise(
    vjp: Rules | None = None, *, result: Any = "same", dtypes: str = "f", inplace: bool = True, **options: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare an elementwise op of any number of operands; the decorated function is its NumPy meaning."""

    def declare(meaning: Callable[..., Any]) -> Callable[..., Any]:
        op = Op(meaning.__name__, "elementwise", inspect.signature(meaning), meaning, vjp=vjp or {}, result=result,
                dtypes=dtypes, **options)  # fmt: skip
        op.kernel = op.meaning = positional(meaning)
        op.infer = op.infer or _infer_elementwise(op)
        prepare_record(op)
        body = "    return elementwise(_op, ARGS, out)\n"
        op.call = public_function(op, body, {"elementwise": dispatch.elementwise}, "out=None")
        return _finish(op, (), inplace)

    return declare


def _documented(meaning: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """The meaning with the op's own documentation (NumPy's functions keep theirs)."""

    def documented(*arrays: Any, **options: Any) -> Any:
        return meaning(*arrays, **options)

    documented.__doc__ = doc
    documented.__wrapped__ = meaning  # type: ignore[attr-defined]
    return documented


def _finish(op: Op, operators: Iterable[str], inplace: bool) -> Callable[..., Any]:
    call = op.call
    call.__name__ = call.__qualname__ = op.name
    call.__module__ = _module()
    call.__doc__ = op.meaning.__doc__
    call.op = op  # type: ignore[attr-defined]
    attach_methods(op, call, operators, views.inplace_method(op) if inplace else None)
    register(op, call.__module__)
    return call


# ---- reductions


ALL_DIMS = [tuple(range(n)) for n in range(65)]  # NumPy arrays have at most 64 dimensions


def normalize_dims(name: str, dim: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions as non-negative integers; None stands for all of them."""
    if dim is None:
        return tuple(range(ndim))
    if dim.__class__ is int and 0 <= dim < ndim:
        return (dim,)
    dims = (dim,) if isinstance(dim, int | np.integer) or not isinstance(dim, Iterable) else tuple(dim)
    found = tuple(normalize_dim(name, d, ndim) for d in dims)
    if len(set(found)) != len(found):
        raise ShapeError(message(name, f"dim {found} names a dimension twice"))
    return found


def normalize_dim(name: str, dim: Any, ndim: int) -> int:
    """One dimension as a non-negative integer; a 0-d tensor has dims 0 and -1."""
    span = max(ndim, 1)
    try:
        found = dim.__index__()
    except AttributeError:
        raise ArgumentError(message(name, f"dim must be an integer, got {type(dim).__name__}")) from None
    if not -span <= found < span:
        raise DimError(
            message(name, f"dim {dim} is out of range for {ndim} dimensions", hint=f"use {-span} to {span - 1}")
        )
    return int(found) % span


def reduced_shape(shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> tuple[int, ...]:
    if keepdim:
        return tuple(1 if i in dims else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in dims)


def reduction(
    vjp: Rules | None = None, *, result: Any = "same", dtypes: str = "fcib", empty: bool = True, **options: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a reduction: the decorated function is its NumPy meaning on normalised arguments.

    Its parameters begin with ``input, dim, keepdim`` (``dim`` arrives as a tuple of non-negative integers, all of them
    for None or none named); a ``dtype`` parameter arrives as a NumPy dtype: the one asked for, or the one that
    ``result`` gives ("same", "sum": integers and bool become int64, "float", "bool", "flag": bool, or uint8 of uint8,
    "int64"). ``empty=False``: reducing a dimension of size 0 is an error, there is no identity.
    """

    def declare(meaning: Callable[..., Any]) -> Callable[..., Any]:
        op = Op(meaning.__name__, "reduction", inspect.signature(meaning), meaning, vjp=vjp or {}, result=result,
                dtypes=dtypes, **options)  # fmt: skip
        op.kernel = op.meaning = positional(meaning)
        op.infer = op.infer or _infer_reduction(op, empty)
        prepare_record(op)
        names = list(op.signature.parameters)
        wide = "dtype" in names
        extra = "axis=None, keepdims=None, out=None"
        rest = ", ".join(["input", "dim", "keepdim"] + ["dtype" if n == "dtype" else n for n in names[3:]])
        body = (
            "    if axis is not None: dim = axis\n    if keepdims is not None: keepdim = keepdims\n"
            "    if not isinstance(input, Tensor): input = tensor_needed(_op, input)\n"
            "    ndim = input._array.ndim\n    dim = ALL[ndim] if dim is None else dims(_op.name, dim, ndim) or "
            "ALL[ndim]\n"
            + ("" if "c" in dtypes else "    if input._array.dtype.kind == 'c': check_kinds(_op, (input._spec(),))\n")
            + (
                "    dtype = F32 if dtype is None and input._array.dtype is F32 else result_of(_op, "
                "input._array.dtype, dtype)\n"
                if wide
                else ""
            )
            + ("" if empty else "    check_empty(_op.name, input._array.shape, dim)\n")
            + f"    result = run(_op, ({rest},))\n    return result if out is None else write_out(_op.name, result, "
            "out)\n"
        )
        op.run = dispatch.path_of(op)
        names_ = {"run": op.run, "Tensor": Tensor, "dims": normalize_dims, "result_of": reduction_dtype,
                  "tensor_needed": tensor_needed, "check_kinds": _check_kinds, "check_empty": check_empty,
                  "write_out": dispatch.write_out, "ALL": ALL_DIMS, "F32": dispatch.F32}  # fmt: skip
        op.call = public_function(op, body, names_, extra)
        return _finish(op, (), False)

    return declare


def tensor_needed(op: Op, value: Any) -> Tensor:
    dispatch._array(op, value)
    return value  # type: ignore[no-any-return]


def check_empty(name: str, shape: Sequence[int], dims: Sequence[int]) -> None:
    for d in dims:
        if d < len(shape) and shape[d] == 0:
            raise DimError(
                message(name, f"dim {d} has size 0 and this reduction has no identity",
                        operands=[("shape", list(shape))], hint="reduce another dimension")
            )  # fmt: skip


def reduction_dtype(op: Op, mine: Any, asked: Any) -> Any:
    """The NumPy dtype of a reduction's result."""
    result = mine if asked is None else dtypes.as_np(asked)
    if op.result == "sum" and asked is None and mine.kind in "biu":
        return np.dtype(np.int64)
    if op.result == "float" and result.kind in "biu":
        raise DTypeError(
            message(
                op.name,
                f"the {'dtype' if asked else 'input'} must be floating or complex, it is {dtypes.from_numpy(result)}",
                hint=f"x.float().{op.name}(...)",
            )
        )
    return result


def _infer_reduction(op: Op, empty: bool) -> Callable[..., Spec]:
    fixed = {"bool": np.dtype(np.bool_), "int64": np.dtype(np.int64)}

    def infer(input: Spec, dim: tuple[int, ...], keepdim: bool, dtype: Any = None, *rest: Any) -> Spec:
        wide = "dtype" in op.signature.parameters
        flag = op.result == "flag" and input.dtype != np.uint8
        kind = fixed["bool"] if flag else fixed.get(op.result) or (dtype if wide else input.dtype)  # type: ignore[arg-type]
        return Spec(reduced_shape(input.shape, dim, keepdim), kind, input.device)

    return infer


# ---- views and everything else


def primitive(
    kind: str,
    vjp: Rules | None = None,
    *,
    infer: Callable[..., Any],
    prepare: Callable[..., tuple[Any, ...]] | None = None,
    method: bool = True,
    operators: Iterable[str] = (),
    inplace: bool = False,
    out: bool = False,
    **options: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare any other primitive; the decorated function is its NumPy meaning.

    Annotate tensor parameters ``Array``, ``Array | None``, or (first parameter only) ``Sequence[Array]``.
    ``prepare`` gets the arguments of a call and returns them normalised (it may raise); they are what
    the meaning, `infer` and the rules see.
    """

    def declare(meaning: Callable[..., Any]) -> Callable[..., Any]:
        op = Op(meaning.__name__, kind, inspect.signature(meaning), meaning, infer=infer, vjp=vjp or {}, **options)
        op.kernel = op.meaning = positional(meaning)
        prepare_record(op)
        arguments = "ARGS" if prepare is None else "prepare(*ARGS)"
        body = f"    return run(_op, {arguments})\n"
        if out:
            body = f"    r = run(_op, {arguments})\n    return r if out is None else write_out(_op.name, r, out)\n"
        op.run = dispatch.path_of(op)
        names = {"run": op.run, "prepare": prepare, "write_out": dispatch.write_out}
        op.call = public_function(op, body, names, "out=None" if out else "")
        if not method:
            op.call.op = op  # type: ignore[attr-defined]
        return _finish(op, operators, inplace) if method else _finish_function(op)

    return declare


def _finish_function(op: Op) -> Callable[..., Any]:
    call = op.call
    call.__name__ = call.__qualname__ = op.name
    call.__module__ = _module()
    register(op, call.__module__)
    return call


def view(vjp: Rules, *, infer: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Declare an op whose result may share the input's memory (`core/call/views.py`)."""
    options.setdefault("dtypes", "fcib")
    return primitive("view", vjp, infer=infer, **options)


def composite(
    *, method: bool = True, inplace: bool = False, operators: Iterable[str] = (), dtypes: str = "f", **options: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a function of other ops: everything about it is derived from them.

    The function itself is what users call, so its signature and documentation are theirs. (Where autocast is to cast
    all of its arguments, a step before it looks whether a mode is open.) With ``inplace=True`` there is an in-place
    form; a parameter ``inplace`` of the function asks for it, and never reaches the function. One that computes, and
    does not only move elements, says ``halves="wide"``: 16-bit floats are then computed in float32 and rounded once,
    see `core/call/halves.py`.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        op = Op(function.__name__, "composite", inspect.signature(function), function, dtypes=dtypes, **options)
        op.kernel = op.call = call = function
        many = sum("Tensor" in str(p.annotation) for p in op.signature.parameters.values()) > 2
        steps = _steps_before(op, op.autocast == "float32" or (op.autocast == "low" and many))
        steps += "    if fused is not None:\n        r = fused(*ARGS)\n        if r is not NotImplemented: return r\n"
        names = {
            "fused": None,
            "cast": dispatch.autocast_arguments,
            "ACTIVE": ACTIVE,
            "function": function,
            "Tensor": Tensor,
            "in_float32": in_float32,
        }
        steps += f"    return function({passed(op.signature.parameters.values())})\n"
        op.call = call = _in_front_of(function, op, steps, names)
        if inplace and "inplace" in op.signature.parameters:
            first, *others = [p for p in op.signature.parameters if p != "inplace"]
            body = f"    if inplace: return write(name, computed, {first}, ({', '.join([*others, ''])}), {{}})\n"
            op.call = call = _in_front_of(
                function, op, body + steps, {**names, "write": views.inplace, "name": op.name + "_", "computed": call}
            )
        call.op = op  # type: ignore[attr-defined]
        if method:
            attach_methods(op, call, operators, views.inplace_method(op) if inplace else None)
        register(op, function.__module__)
        return call

    return declare


def _in_front_of(function: Callable[..., Any], op: Op, body: str, names: Mapping[str, Any]) -> Callable[..., Any]:
    """The public function of a composite, with the steps before it."""
    call = public_function(op, body, names)
    call.__qualname__, call.__module__, call.__wrapped__ = op.name, function.__module__, function  # type: ignore[attr-defined]
    return call


def _steps_before(op: Op, casts: bool) -> str:
    """The steps before a composite's function: the casts of autocast, and the look for 16-bit operands (60 ns each)."""
    parameters = op.signature.parameters.values()
    body = f"    {', '.join(op.signature.parameters)}, = cast(_op, ARGS) if ACTIVE else ARGS\n" if casts else ""
    if op.halves:
        size = "isinstance({0}, Tensor) and {0}._array.dtype.itemsize == 2"
        looks = [
            f"any([{size.format('x')} for x in {p.name}])" if p.kind is p.VAR_POSITIONAL else size.format(p.name)
            for p in parameters
            if p.name != "out" and ("Tensor" in str(p.annotation) or p.kind is p.VAR_POSITIONAL)
        ]
        body += f"    if {' or '.join(looks)}: return in_float32(_op, function, ARGS)\n"
    return body


def alias(name: str, call: Callable[..., Any], *, method: bool = True, inplace: bool = False) -> Callable[..., Any]:
    """Another name of an op (``absolute`` for ``abs``), as function and as method."""
    if method:
        setattr(Tensor, name, call)
    if inplace:
        setattr(Tensor, name + "_", getattr(Tensor, call.op.name + "_"))  # type: ignore[attr-defined]
    return call
