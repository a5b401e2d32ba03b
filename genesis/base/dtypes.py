"""Element types, and PyTorch's rules for what happens when they meet."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Iterable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from genesis.base.errors import ArgumentError, DTypeError, message
from genesis.base.library import of_library

NpDtype = np.dtype[Any]


class dtype:  # noqa: N801, PyTorch's name
    """An element type, such as ``genesis.float32``; there is exactly one object of each.

    Attributes:
        name: "float32"; short: "f32", as specs print it; np: the NumPy dtype; itemsize: bytes per element
        category: 0 bool, 1 integer, 2 floating, 3 complex
        is_floating_point, is_complex, is_signed: as they say; bfloat16 is floating, which NumPy does not know

    >>> import genesis
    >>> genesis.bfloat16, genesis.bfloat16.itemsize, genesis.bfloat16.is_floating_point
    (genesis.bfloat16, 2, True)
    """

    # no dataclass: of those, functions of trees take the fields apart
    __slots__ = ("category", "is_complex", "is_floating_point", "is_signed", "itemsize", "name", "np", "short")

    name: str
    np: NpDtype
    short: str
    itemsize: builtins.int
    category: builtins.int
    is_floating_point: builtins.bool
    is_complex: builtins.bool
    is_signed: builtins.bool

    def __init__(
        self,
        name: str,
        np: NpDtype,
        short: str,
        itemsize: builtins.int,
        category: builtins.int,
        is_signed: builtins.bool,
    ) -> None:
        attributes = {"name": name, "np": np, "short": short, "itemsize": itemsize, "category": category}
        kinds = {"is_floating_point": category == 2, "is_complex": category == 3, "is_signed": is_signed}
        for key, value in (attributes | kinds).items():
            object.__setattr__(self, key, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{self}.{name} cannot be set: a dtype is what it is")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{self}.{name} cannot be deleted: a dtype is what it is")

    def to_complex(self) -> dtype:
        """The complex type of at least the same precision: complex64 for the 16-bit types.

        Raises:
            RuntimeError: it is bool or an integer
        """
        if self.category < 2:
            raise DTypeError(
                message("to_complex", f"{self} has no complex type", hint="to_complex of a floating dtype")
            )
        return self if self.is_complex else complex128 if self is float64 else complex64

    def to_real(self) -> dtype:
        """The real type of the same precision; real types are their own."""
        return _REAL.get(self, self)

    def __repr__(self) -> str:
        return of_library(self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)  # copies and pickles are the one object


def _of(scalar: Any, short: str, signed: builtins.bool = True) -> dtype:
    numpy = np.dtype(scalar)
    category = {"b": 0, "i": 1, "u": 1, "f": 2, "V": 2, "c": 3}[numpy.kind]  # bfloat16 is NumPy's "V"
    signed = signed and numpy.kind not in "bu"
    return dtype(numpy.name, numpy, short, numpy.itemsize, category, signed)


bool = _of(np.bool_, "bool")
uint8 = _of(np.uint8, "u8")
uint16 = _of(np.uint16, "u16")
uint32 = _of(np.uint32, "u32")
uint64 = _of(np.uint64, "u64")
int8 = _of(np.int8, "i8")
int16 = _of(np.int16, "i16")
int32 = _of(np.int32, "i32")
int64 = _of(np.int64, "i64")
float16 = _of(np.float16, "f16")
bfloat16 = _of(ml_dtypes.bfloat16, "bf16")
float32 = _of(np.float32, "f32")
float64 = _of(np.float64, "f64")
complex64 = _of(np.complex64, "c64")
complex128 = _of(np.complex128, "c128")

half, float, double = float16, float32, float64
short, int, long = int16, int32, int64
cfloat, cdouble = complex64, complex128

# only stored: `base/narrow.py` converts them, `core/layers/stored.py` says what else there is
float8_e4m3fn = _of(ml_dtypes.float8_e4m3fn, "f8e4m3fn")
float8_e4m3fnuz = _of(ml_dtypes.float8_e4m3fnuz, "f8e4m3fnuz")
float8_e5m2 = _of(ml_dtypes.float8_e5m2, "f8e5m2")
float8_e5m2fnuz = _of(ml_dtypes.float8_e5m2fnuz, "f8e5m2fnuz")
float8_e8m0fnu = _of(ml_dtypes.float8_e8m0fnu, "f8e8m0fnu", signed=False)
complex32 = dtype(
    "complex32", np.dtype([("real", np.float16), ("imag", np.float16)]), "c32", 4, 3, True
)  # NumPy has no such numbers
chalf = complex32
_REAL = {complex128: float64, complex64: float32, complex32: float16}

ALL = (
    bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64,
    float16, bfloat16, float32, float64, complex64, complex128,
)  # fmt: skip
STORED = (float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu, complex32)
_SIGNED_OVER = {uint8: int16, uint16: int32, uint32: int64}  # the smallest signed integer that holds each

_BY_NUMPY: dict[Any, dtype] = {kind.np: kind for kind in (*ALL, *STORED)}
_BY_NAME: dict[str, dtype] = {kind.name: kind for kind in (*ALL, *STORED)} | {
    "half": half, "float": float, "double": double, "short": short, "int": int, "long": long,
    "cfloat": cfloat, "cdouble": cdouble, "chalf": chalf,
}  # fmt: skip
# As in PyTorch, the *type* float names double precision; the *value* 1.0 takes the default dtype.
_BY_PYTHON: dict[Any, dtype] = {
    builtins.bool: bool, builtins.int: int64, builtins.float: float64, builtins.complex: complex128,
}  # fmt: skip
_default = float32


def from_numpy(numpy: NpDtype) -> dtype:
    """The dtype of a NumPy dtype.

    Raises:
        TypeError: it has no counterpart (strings, objects, dates, long double)
    """
    kind = _BY_NUMPY.get(numpy) or _BY_NUMPY.get(numpy.newbyteorder("="))  # both byte orders are one type
    if kind is None:
        hint = "convert to a number type with .astype(...)"
        raise ArgumentError(message("dtype", f"NumPy's {numpy} has no counterpart", hint=hint))
    return kind


def as_dtype(kind: Any) -> dtype:
    """The dtype of anything that names one: a dtype, its name, a NumPy dtype or scalar type, a Python type.

    >>> as_dtype("bfloat16"), as_dtype(np.int8), as_dtype(builtins.float)
    (genesis.bfloat16, genesis.int8, genesis.float64)

    Raises:
        TypeError: it names none
    """
    if isinstance(kind, dtype):
        return kind
    if isinstance(kind, str) and kind.removeprefix("genesis.") in _BY_NAME:
        return _BY_NAME[kind.removeprefix("genesis.")]
    try:
        return _BY_PYTHON[kind] if isinstance(kind, type) and kind in _BY_PYTHON else _of_numpy(kind)
    except (TypeError, ValueError, SyntaxError):  # np.dtype raises all three
        raise ArgumentError(
            message("dtype", f"{kind!r} is not a dtype", hint="genesis.float32, genesis.int64, ...")
        ) from None


def _of_numpy(kind: Any) -> dtype:
    if kind is None:
        raise TypeError  # np.dtype(None) is float64
    return from_numpy(np.dtype(kind))


def as_np(kind: Any) -> NpDtype:
    """The NumPy dtype of anything that names a dtype."""
    known = _BY_NUMPY.get(kind) if isinstance(kind, np.dtype) else None
    return as_dtype(kind).np if known is None else known.np


def get_default_dtype() -> dtype:
    """The dtype of Python floats, float32 unless set.

    >>> import genesis
    >>> genesis.get_default_dtype()
    genesis.float32
    """
    return _default


def set_default_dtype(kind: Any) -> None:
    """Set the dtype of Python floats, a floating one.

    >>> import genesis
    >>> genesis.set_default_dtype(genesis.float64); genesis.tensor(0.5).dtype
    genesis.float64
    >>> genesis.set_default_dtype(genesis.float32)

    Raises:
        TypeError: the dtype is not floating
    """
    global _default
    kind = as_dtype(kind)
    if not kind.is_floating_point or kind in STORED:
        raise ArgumentError(message("set_default_dtype", f"only floating dtypes can be the default, got {kind}"))
    _default = kind


# ---- promotion


def promote_types(type1: Any, type2: Any) -> dtype:
    """The dtype that two meet in: PyTorch's table, completed for uint16, uint32 and uint64 as in NumPy and the array
    API standard.

    (PyTorch has no rule for these three with bool, other integers or complex types.)

    >>> import genesis
    >>> genesis.promote_types(genesis.uint8, genesis.int8)
    genesis.int16
    >>> genesis.promote_types(genesis.int64, genesis.float16)
    genesis.float16
    >>> genesis.promote_types(genesis.uint16, genesis.int8)
    genesis.int32

    Raises:
        RuntimeError: uint64 meets a signed integer: no integer type holds both
    """
    return _promote(as_dtype(type1), as_dtype(type2))


@cache
def _promote(a: dtype, b: dtype) -> dtype:
    low, high = sorted((a, b), key=lambda kind: (kind.category, kind.itemsize))
    if low is high:
        return high
    if low in STORED or high in STORED:
        return _promote_stored(low, high)
    if high.is_floating_point:
        return float32 if {low, high} == {float16, bfloat16} else high
    if low.category == high.category == 1 and low.is_signed is not high.is_signed:
        unsigned, signed = (low, high) if high.is_signed else (high, low)
        if unsigned is uint64:
            raise DTypeError(
                message(
                    "promote_types",
                    f"no integer dtype holds both {a} and {b}",
                    hint="convert one of them with .to(dtype)",
                )
            )
        return signed if signed.itemsize > unsigned.itemsize else _SIGNED_OVER[unsigned]
    return complex128 if high.is_complex and low is float64 else high


def _promote_stored(low: dtype, high: dtype) -> dtype:
    """Half complex numbers meet others as complex numbers do; 8-bit floats meet none but themselves."""
    other = low if high is complex32 else high
    if complex32 not in (low, high) or other in STORED:
        raise DTypeError(
            message("promote_types", f"{low} and {high} do not promote", hint="convert one with .to(dtype)")
        )
    if other.category < 2 or other is float16:
        return complex32
    return other if other.is_complex else other.to_complex()


def result_np_dtype(operands: Iterable[Any]) -> NpDtype:
    """The NumPy dtype that arrays and Python numbers meet in.

    Arrays with dimensions decide. 0-d arrays count only if of a higher category (bool < integer < floating <
    complex) than those, Python numbers only if of a higher one than both. Where a floating dtype decides and
    something complex is met, the result is complex of the floating precision.

    Raises:
        TypeError: an operand is neither an array nor a number
        RuntimeError: two dtypes meet for which `promote_types` has no rule
    """
    dimensioned = scalar = number = None
    for x in operands:
        own = getattr(x, "dtype", None)
        if own is None:
            number = _join(number, _of_number(x))
        elif x.ndim:
            dimensioned = _join(dimensioned, _BY_NUMPY.get(own) or as_dtype(own))
        else:
            scalar = _join(scalar, _BY_NUMPY.get(own) or as_dtype(own))
    result = _outrank(dimensioned, _outrank(scalar, number))
    assert result is not None, "no operands"
    return result.np


def _join(a: dtype | None, b: dtype) -> dtype:
    return b if a is None or a is b else _promote(a, b)


def _outrank(strong: dtype | None, weak: dtype | None) -> dtype | None:
    """The dtype of two priorities: the strong one, unless the weak one is of a higher category."""
    if strong is None or weak is None:
        return strong or weak
    if weak.category <= strong.category:
        return strong
    if strong.category == 2:
        return strong.to_complex()
    return weak if strong.category else _promote(strong, weak)


def of_operand(x: Any) -> dtype:
    """The dtype of an array or a Python number."""
    own = getattr(x, "dtype", None)
    return _of_number(x) if own is None else _BY_NUMPY.get(own) or as_dtype(own)


def _of_number(value: Any) -> dtype:
    if isinstance(value, builtins.bool):
        return bool
    if isinstance(value, builtins.int):
        return int64
    if isinstance(value, builtins.float):
        return _default
    if isinstance(value, builtins.complex):
        return _default.to_complex()
    raise ArgumentError(message("result_type", f"expected a tensor or a number, got {type(value).__name__}"))


def result_type(tensor1: Any, tensor2: Any) -> dtype:
    """The dtype of an operation on two tensors or numbers.

    >>> import genesis
    >>> genesis.result_type(genesis.tensor([1, 2]), 1.0)
    genesis.float32

    Raises:
        TypeError: an operand is neither a tensor nor a number
        RuntimeError: `promote_types` has no rule for the two
    """
    # NumPy's scalars count as Python's: their dtype does not widen the result
    operands = [x.item() if isinstance(x, np.generic) else x for x in (tensor1, tensor2)]
    return from_numpy(result_np_dtype(operands))


def can_cast(from_: Any, to: Any) -> builtins.bool:
    """Whether a result may be written to `to`: not to a lower category (bool < integer < floating < complex).

    >>> import genesis
    >>> genesis.can_cast(genesis.float64, genesis.float32), genesis.can_cast(genesis.float32, genesis.int64)
    (True, False)
    """
    return as_dtype(from_).category <= as_dtype(to).category


# ---- limits


class finfo:  # noqa: N801
    """Limits of a floating dtype, and of the parts of a complex one; the default dtype's if none is given.

    Attributes:
        bits, dtype (its name), max, min, resolution; eps: from 1 to the next number
        tiny, smallest_normal: the smallest number of full precision

    >>> import genesis
    >>> genesis.finfo(genesis.float32).eps
    1.1920928955078125e-07

    Raises:
        TypeError: the dtype is bool or an integer
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: Any = None) -> None:
        kind = _default if type is None else as_dtype(type)
        if kind.category < 2:
            raise ArgumentError(message("finfo", f"{kind} is not a floating dtype", hint="iinfo"))
        info = ml_dtypes.finfo(kind.to_real().np)  # type: ignore[no-untyped-call]
        self.bits, self.dtype = builtins.int(info.bits), kind.to_real().name
        self.eps, self.max, self.min = map(builtins.float, (info.eps, info.max, info.min))
        self.smallest_normal = self.tiny = builtins.float(info.smallest_normal)
        self.resolution = builtins.float(f"1e-{info.precision if self.bits > 8 else 0}")

    def __eq__(self, other: object) -> builtins.bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> builtins.int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join(f'{name}={getattr(self, name):g}' for name in names)}, dtype={self.dtype})"


class iinfo:  # noqa: N801
    """Limits of an integer dtype.

    Attributes:
        bits, dtype (its name), max, min

    >>> import genesis
    >>> genesis.iinfo(genesis.int8)
    iinfo(min=-128, max=127, dtype=int8)

    Raises:
        TypeError: the dtype is not an integer
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: Any) -> None:
        kind = as_dtype(type)
        if kind.category != 1:
            raise ArgumentError(message("iinfo", f"{kind} is not an integer dtype", hint="finfo"))
        info = np.iinfo(kind.np)
        self.bits, self.dtype = builtins.int(info.bits), kind.name
        self.max, self.min = builtins.int(info.max), builtins.int(info.min)

    def __eq__(self, other: object) -> builtins.bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> builtins.int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def is_integer(value: Any) -> builtins.bool:
    """Whether a value can stand for a Python integer, as those of NumPy and tensors of one integer can; True and False
    cannot.

    >>> is_integer(3), is_integer(3.0)
    (True, False)
    """
    try:
        operator.index(value)
    except (TypeError, RuntimeError):
        return False
    return not isinstance(value, builtins.bool)


def whole(value: Any) -> Any:
    """A value that can stand for a Python integer as that integer, any other as it is.

    >>> whole(np.int64(3)), whole([3])
    (3, [3])
    """
    if value.__class__ is builtins.int or not hasattr(value, "__index__"):
        return value
    try:
        return operator.index(value)
    except (TypeError, RuntimeError):  # an array of several numbers, or of fractions
        return value
