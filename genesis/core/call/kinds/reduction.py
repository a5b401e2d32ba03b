"""Reductions: the kind brings ``dim`` into normal form, knows ``keepdim`` and NumPy's spellings, and infers the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.base.dtypes import whole
from genesis.base.errors import ArgumentError, DimError, DTypeError, ShapeError, message
from genesis.core.call import dispatch, operands
from genesis.core.call.generated import LateSignature
from genesis.core.call.halves import F32
from genesis.core.call.kind import Along
from genesis.core.call.kinds.declare import Rules, finish
from genesis.core.call.kinds.elementwise import check_kinds
from genesis.core.call.op import Op, positional, prepare_record, public_function
from genesis.core.call.out import write_out
from genesis.core.graph.tensor import Tensor


class Reduction(Along):
    """Over dimensions ``dim``: all of them for none named."""

    packed = True


REDUCTION = Reduction("reduction")
_INTEGERS = {int}
ALL_DIMS = [tuple(range(n)) for n in range(65)]  # NumPy arrays have at most 64 dimensions


def normalize_dims(name: str, dim: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions as non-negative integers; None stands for all of them."""
    if dim is None:
        return tuple(range(ndim))
    if dim.__class__ is int and -ndim <= dim < ndim:
        return (dim % ndim,)
    dim = whole(dim)
    dims = (dim,) if isinstance(dim, int) or not isinstance(dim, Iterable) else tuple(dim)
    if {*map(type, dims)} == _INTEGERS and min(dims) >= 0 and max(dims) < ndim:
        resolved = dims
    else:
        resolved = tuple([normalize_dim(name, d, ndim) for d in dims])
    if len(set(resolved)) != len(resolved):
        raise ShapeError(message(name, f"dim {resolved} names a dimension twice"))
    return resolved


def normalize_dim(name: str, dim: Any, ndim: int) -> int:
    """One dimension as a non-negative integer; a 0-d tensor has dims 0 and -1."""
    if dim.__class__ is int and -ndim <= dim < ndim:
        return dim % ndim
    span = max(ndim, 1)
    try:
        resolved = dim.__index__()
    except AttributeError:
        raise ArgumentError(message(name, f"dim must be an integer, got {type(dim).__name__}")) from None
    if not -span <= resolved < span:
        raise DimError(
            message(name, f"dim {dim} is out of range for {ndim} dimensions", hint=f"use {-span} to {span - 1}")
        )
    return int(resolved) % span


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
    "int64").
    ``empty=False``: reducing a dimension of size 0 is an error, there is no identity.
    """

    def declare(meaning: Callable[..., Any]) -> Callable[..., Any]:
        op = Op(meaning.__name__, REDUCTION, LateSignature(lambda: meaning), meaning, vjp=vjp or {}, result=result,
                dtypes=dtypes, **options)  # fmt: skip
        op.kernel = op.meaning = positional(meaning)
        op.infer = op.infer or _infer_reduction(op, empty)
        prepare_record(op)
        names = op.names
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
                  "tensor_needed": tensor_needed, "check_kinds": check_kinds, "check_empty": check_empty,
                  "write_out": write_out, "ALL": ALL_DIMS, "F32": F32}  # fmt: skip
        op.call = public_function(op, body, names_, extra)
        return finish(op)

    return declare


def tensor_needed(op: Op, value: Any) -> Tensor:
    operands.array_of(op, value)
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
