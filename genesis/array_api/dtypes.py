"""Data types, and operands of several: in the standard 0-d arrays count like all others."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import genesis as _g
from genesis.base import dtypes as _dtypes
from genesis.base.errors import ArgumentValueError, DTypeError, message
from genesis.core.graph.tensor import Tensor

Axis = int | tuple[int, ...] | None


# ---- promotion


def promoted(*arrays: Any) -> tuple[Any, ...]:
    """Arrays in the dtype that they promote to; in the standard 0-d arrays count like all others. Numbers and None stay
    as they are.
    """
    kinds = {x.dtype for x in arrays if isinstance(x, Tensor)}
    if len(kinds) < 2:
        return arrays
    try:
        kind = result_type(*kinds)
    except DTypeError:  # uint64 and signed integers: comparisons take them as they are, the others refuse them
        return arrays
    return tuple(x.to(kind) if isinstance(x, Tensor) else x for x in arrays)


def on_promoted(name: str) -> Callable[..., Tensor]:
    """`genesis`'s function of two operands, which are promoted first."""
    call = getattr(_g, name)

    def function(x1: Any, x2: Any, /) -> Tensor:
        return call(*promoted(x1, x2))  # type: ignore[no-any-return]

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`genesis.{name}` of operands that are promoted to one dtype first."
    return function


# ---- dtypes

KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64", "float16", "bfloat16"),
    "complex floating": ("complex64", "complex128"),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]


class finfo(_g.finfo):  # noqa: N801
    """Limits of a floating dtype, or that of an array; ``dtype`` is a dtype, in `genesis.finfo` it is a name."""

    __slots__ = ()

    def __init__(self, type: Any, /) -> None:
        super().__init__(type.dtype if isinstance(type, Tensor) else type)
        self.dtype = _dtypes.as_dtype(self.dtype)  # type: ignore[assignment]


class iinfo(_g.iinfo):  # noqa: N801
    """Limits of an integer dtype, or that of an array; ``dtype`` is a dtype, in `genesis.iinfo` it is a name."""

    __slots__ = ()

    def __init__(self, type: Any, /) -> None:
        super().__init__(type.dtype if isinstance(type, Tensor) else type)
        self.dtype = _dtypes.as_dtype(self.dtype)  # type: ignore[assignment]


def isdtype(dtype: Any, kind: Any) -> builtins.bool:
    """Whether a dtype is another one, or of a kind such as "real floating", or of one of several."""
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ArgumentValueError(message("isdtype", f"there is no kind {kind!r}", hint=", ".join(KINDS)))
        return dtype.name in KINDS[kind]
    return builtins.bool(dtype == kind)


def astype(x: Tensor, dtype: Any, /, *, copy: builtins.bool = True, device: Any = None) -> Tensor:
    """The same numbers in another dtype."""
    return x.to(dtype=dtype, device=device, copy=copy)


def can_cast(from_: Any, to: Any, /) -> builtins.bool:
    """Whether promotion leads from one dtype to another."""
    source = from_.dtype if isinstance(from_, Tensor) else from_
    try:
        return _dtypes.promote_types(source, to) is to
    except DTypeError:  # uint64 and signed integers
        return False


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype that these promote to."""
    kinds = [
        x.dtype if isinstance(x, Tensor) else x
        for x in arrays_and_dtypes
        if not isinstance(x, builtins.bool | int | float | complex)
    ]
    if not kinds:
        raise ArgumentValueError(message("result_type", "at least one array or dtype is needed"))
    result = kinds[0]
    for kind in kinds[1:]:
        result = _dtypes.promote_types(result, kind)
    for number in arrays_and_dtypes:
        if isinstance(number, builtins.bool | int | float | complex):
            result = _g.result_type(_g.zeros(1, dtype=result), number)
    return result


__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]
