"""Element types, and PyTorch's rules for what happens when they meet."""

from __future__ import annotations

import builtins
from typing import Any

import ml_dtypes
import numpy as np

from genesis.base.errors import ArgumentError, DTypeError, message

NpDtype = np.dtype[Any]


class dtype:
    """An element type, such as ``genesis.float32``; there is exactly one object of each.

    Attributes:
        name: "float32"; short: "f32", as specs print it; np: the NumPy dtype; itemsize: bytes per element
    """

    __slots__ = ("is_complex", "is_floating_point", "is_signed", "itemsize", "name", "np", "rank", "short")

    def __init__(self, name: str, numpy: Any, short: str, rank: int) -> None:
        self.name, self.np, self.short, self.rank = name, np.dtype(numpy), short, rank
        self.itemsize = self.np.itemsize
        self.is_floating_point = "float" in name
        self.is_complex = name.startswith("complex")
        self.is_signed = not (name.startswith("uint") or name == "bool")

    @property
    def category(self) -> int:
        """0 bool, 1 integer, 2 floating, 3 complex."""
        return 3 if self.is_complex else 2 if self.is_floating_point else 0 if self.name == "bool" else 1

    def to_complex(self) -> dtype:
        """The complex type of the same precision."""
        return self if self.is_complex else complex128 if self is float64 else complex64

    def to_real(self) -> dtype:
        """The real type of the same precision."""
        return float64 if self is complex128 else float32 if self is complex64 else self

    def __repr__(self) -> str:
        return f"genesis.{self.name}"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return _by_name, (self.name,)


bool = dtype("bool", np.bool_, "bool", 0)
uint8 = dtype("uint8", np.uint8, "u8", 1)
int8 = dtype("int8", np.int8, "i8", 1)
int16 = dtype("int16", np.int16, "i16", 2)
int32 = dtype("int32", np.int32, "i32", 3)
int64 = dtype("int64", np.int64, "i64", 4)
uint16 = dtype("uint16", np.uint16, "u16", 2)
uint32 = dtype("uint32", np.uint32, "u32", 3)
uint64 = dtype("uint64", np.uint64, "u64", 4)
float16 = dtype("float16", np.float16, "f16", 1)
bfloat16 = dtype("bfloat16", ml_dtypes.bfloat16, "bf16", 1)
float32 = dtype("float32", np.float32, "f32", 2)
float64 = dtype("float64", np.float64, "f64", 3)
complex64 = dtype("complex64", np.complex64, "c64", 2)
complex128 = dtype("complex128", np.complex128, "c128", 3)

half, float, double = float16, float32, float64
short, int, long = int16, int32, int64
cfloat, cdouble = complex64, complex128

ALL = (
    bool, uint8, int8, int16, int32, int64, uint16, uint32, uint64,
    float16, bfloat16, float32, float64, complex64, complex128,
)  # fmt: skip

_BY_NUMPY = {kind.np: kind for kind in ALL}
_BY_NAME = {kind.name: kind for kind in ALL} | {
    "float": float32, "double": float64, "half": float16, "int": int32, "long": int64, "short": int16,
}  # fmt: skip
_BY_PYTHON: dict[Any, dtype] = {builtins.bool: bool, builtins.int: int64, builtins.complex: complex64}
_default = float32


def _by_name(name: str) -> dtype:
    return _BY_NAME[name]


def from_numpy(numpy: NpDtype) -> dtype:
    """The dtype of a NumPy dtype.

    Raises:
        TypeError: it has no counterpart (strings, objects, dates, long double)
    """
    kind = _BY_NUMPY.get(numpy)
    if kind is None:
        kind = _BY_NUMPY.get(numpy.newbyteorder("="))  # other byte order: same type
        if kind is None:
            raise ArgumentError(
                message("dtype", f"NumPy's {numpy} has no counterpart", hint="convert to a number type with .astype(...)")
            )
    return kind


def as_dtype(kind: Any) -> dtype:
    """The dtype of anything that names one: a dtype, its name, a NumPy dtype or scalar type, a Python type."""
    if isinstance(kind, dtype):
        return kind
    if kind is builtins.float:
        return _default
    if isinstance(kind, str) and kind.removeprefix("genesis.") in _BY_NAME:
        return _BY_NAME[kind.removeprefix("genesis.")]
    try:
        return _BY_PYTHON[kind] if kind in _BY_PYTHON else from_numpy(np.dtype(kind))
    except TypeError:
        raise ArgumentError(
            message("dtype", f"{kind!r} is not a dtype", hint="genesis.float32, genesis.int64, ...")
        ) from None


def as_np(kind: Any) -> NpDtype:
    """The NumPy dtype of anything that names a dtype."""
    return kind.np if isinstance(kind, dtype) else as_dtype(kind).np


def get_default_dtype() -> dtype:
    """The dtype of Python floats, float32 unless set."""
    return _default


def set_default_dtype(kind: Any) -> None:
    """Set the dtype of Python floats; a floating one.

    Raises:
        TypeError: the dtype is not floating
    """
    global _default
    kind = as_dtype(kind)
    if not kind.is_floating_point:
        raise ArgumentError(message("set_default_dtype", f"only floating dtypes can be the default, got {kind}"))
    _default = kind


_WIDER = {1: int16, 2: int32, 3: int64}


def promote_types(a: Any, b: Any) -> dtype:
    """The smallest dtype to which both can be converted, by PyTorch's rules.

    >>> promote_types(int32, float16)
    genesis.float16

    Raises:
        RuntimeError: a signed integer meets uint16, uint32 or uint64, for which there is no rule
    """
    a, b = as_dtype(a), as_dtype(b)
    if a is b:
        return a
    if a.category != b.category:
        low, high = (a, b) if a.category < b.category else (b, a)
        if high.is_complex and low.is_floating_point:
            return complex128 if low is float64 else high
        return high
    if a.category == 1:
        return _promote_integers(a, b)
    if {a, b} == {float16, bfloat16}:
        return float32
    return a if a.rank > b.rank else b


def _promote_integers(a: dtype, b: dtype) -> dtype:
    if a.is_signed == b.is_signed:
        return a if a.rank > b.rank else b
    signed, unsigned = (a, b) if a.is_signed else (b, a)
    if unsigned is not uint8:
        raise DTypeError(
            message("promote_types", f"promotion of {unsigned} with {signed} is not defined", hint="convert one of them")
        )
    return signed if signed.rank > 1 else int16


def _of_scalar(value: Any) -> dtype:
    if isinstance(value, builtins.bool):
        return bool
    if isinstance(value, builtins.int):
        return int64
    return _default.to_complex() if isinstance(value, complex) else _default


def result_np_dtype(operands: Any) -> NpDtype:
    """The dtype that arrays and Python numbers meet in.

    Arrays with dimensions decide; 0-d arrays count only when they are of a higher category (bool < integer <
    floating < complex), Python numbers only when they are of a higher one still.
    """
    ranks: list[dtype | None] = [None, None, None]  # with dimensions, 0-d, Python numbers
    for x in operands:
        numpy = getattr(x, "dtype", None)
        level, kind = (2, _of_scalar(x)) if numpy is None else (1 if not x.ndim else 0, from_numpy(numpy))
        before = ranks[level]
        ranks[level] = kind if before is None or before is kind else promote_types(before, kind)
    result: dtype | None = None
    for kind in ranks:  # type: ignore[assignment]
        if kind is not None:
            result = kind if result is None else _meet(result, kind)
    assert result is not None
    return result.np


def _meet(strong: dtype, weak: dtype) -> dtype:
    """A higher category wins; a complex one takes its precision from the floating type it meets."""
    if weak.category <= strong.category:
        return strong
    if weak.is_complex and strong.is_floating_point:
        return strong.to_complex()
    return weak


def result_type(a: Any, b: Any) -> dtype:
    """The dtype of an operation on two tensors or Python numbers.

    >>> import genesis
    >>> genesis.result_type(genesis.tensor([1, 2]), 1.0)
    genesis.float32
    """
    return from_numpy(result_np_dtype([getattr(a, "_array", a), getattr(b, "_array", b)]))


def can_cast(from_: Any, to: Any) -> builtins.bool:
    """Whether a conversion is allowed in place: never to a lower category, nor from negative to unsigned.

    >>> import genesis
    >>> genesis.can_cast(genesis.float64, genesis.float32), genesis.can_cast(genesis.float32, genesis.int64)
    (True, False)
    """
    from_, to = as_dtype(from_), as_dtype(to)
    return builtins.bool(from_.category <= to.category)


class finfo:
    """Limits of a floating dtype: bits, eps, max, min, tiny, smallest_normal, resolution.

    >>> import genesis
    >>> genesis.finfo(genesis.float32).eps
    1.1920928955078125e-07
    """

    def __init__(self, type: Any = None) -> None:
        kind = _default if type is None else as_dtype(type)
        if kind.category < 2:
            raise ArgumentError(message("finfo", f"{kind} is not a floating dtype", hint="iinfo"))
        info = ml_dtypes.finfo(kind.to_real().np)
        self.dtype = kind.to_real().name
        self.bits = builtins.int(info.bits)
        self.eps, self.max, self.min = builtins.float(info.eps), builtins.float(info.max), builtins.float(info.min)
        self.tiny = self.smallest_normal = builtins.float(info.smallest_normal)
        self.resolution = builtins.float(f"1e-{info.precision}")

    def __repr__(self) -> str:
        return f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, dtype={self.dtype})"


class iinfo:
    """Limits of an integer dtype: bits, max, min.

    >>> import genesis
    >>> genesis.iinfo(genesis.int8).max
    127
    """

    def __init__(self, type: Any) -> None:
        kind = as_dtype(type)
        if kind.category != 1:
            raise ArgumentError(message("iinfo", f"{kind} is not an integer dtype", hint="finfo"))
        info = np.iinfo(kind.np)
        self.dtype, self.bits = kind.name, builtins.int(info.bits)
        self.max, self.min = builtins.int(info.max), builtins.int(info.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
