"""The Python array API standard (2024.12) for tensors: what ``x.__array_namespace__()`` returns.

Where the standard and PyTorch mean different things by one name (``max``, ``sort``, ``std``, ``take``), `genesis`
follows PyTorch and this namespace the standard. So it does for dtypes: in its functions, 0-d arrays take part in
promotion like all others; operators, ``x + y``, follow PyTorch, where a 0-d tensor gives way. Everything is
differentiable, batched and traced as ever. Not there: the extensions ``linalg`` and ``fft``. The public test suite runs
with ``tests/array_api_xfails.txt``, which says what is left out and why.

>>> import genesis
>>> xp = genesis.ones(2).__array_namespace__()
>>> xp.sort(xp.asarray([3., 1.])), xp.std(xp.asarray([1., 3.]))
(tensor([1., 3.]), tensor(1.))
>>> xp.add(xp.asarray([1], dtype=xp.int8), xp.asarray(300)), xp.asarray([1], dtype=xp.int8) + xp.asarray(300)
(tensor([301]), tensor([45], dtype=genesis.int8))
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import genesis as _g
from genesis import bool, complex64, complex128, float64, int64, uint64
from genesis.base import dtypes as _dtypes
from genesis.base.device import default_device
from genesis.base.errors import ArgumentValueError, DTypeError, message
from genesis.core.graph.tensor import Tensor

__array_api_version__ = "2024.12"
e, inf, nan, pi, newaxis = math.e, math.inf, math.nan, math.pi, None

# What is the same in both
SAME = (
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bool",
    "ceil",
    "complex64",
    "complex128",
    "conj",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "float32",
    "float64",
    "floor",
    "from_dlpack",
    "imag",
    "int8",
    "int16",
    "int32",
    "int64",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log1p",
    "log2",
    "log10",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "negative",
    "positive",
    "real",
    "reciprocal",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
)
# What is the same once its operands are of one dtype
PROMOTED = (
    "add",
    "atan2",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "copysign",
    "divide",
    "floor_divide",
    "hypot",
    "logaddexp",
    "matmul",
    "maximum",
    "minimum",
    "multiply",
    "nextafter",
    "pow",
    "remainder",
    "subtract",
)
globals().update({name: getattr(_g, name) for name in SAME})

Axis = int | tuple[int, ...] | None
MISSING = ("linalg", "fft")  # extensions of the standard that are not there


# ---- promotion


def _promoted(*arrays: Any) -> tuple[Any, ...]:
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


def _on_promoted(name: str) -> Callable[..., Tensor]:
    call = getattr(_g, name)

    def function(x1: Any, x2: Any, /) -> Tensor:
        return call(*_promoted(x1, x2))  # type: ignore[no-any-return]

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`genesis.{name}` of operands that are promoted to one dtype first."
    return function


globals().update({name: _on_promoted(name) for name in PROMOTED})


# ---- making


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: builtins.bool | None = None) -> Tensor:
    """Anything that holds numbers, as a tensor."""
    return _g.asarray(obj, dtype=dtype, device=device, copy=copy)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Numbers from start up to, without, stop; none where the step does not lead there."""
    start, stop = (0, start) if stop is None else (start, stop)
    if (stop - start) * step < 0:
        stop = start + 0 * stop  # of the dtype of both
    return _g.arange(start, stop, step, dtype=dtype, device=device)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of any values."""
    return _g.empty(shape, dtype=dtype, device=device)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of zeros."""
    return _g.zeros(shape, dtype=dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of ones."""
    return _g.ones(shape, dtype=dtype, device=device)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of one value."""
    return _g.full((shape,) if isinstance(shape, int) else shape, fill_value, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """`empty` in the shape of another tensor."""
    return _g.empty_like(x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """`zeros` in the shape of another tensor."""
    return _g.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """`ones` in the shape of another tensor."""
    return _g.ones_like(x, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """`full` in the shape of another tensor."""
    return _g.full_like(x, fill_value, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones on diagonal number k, zeros elsewhere."""
    n_cols = n_rows if n_cols is None else n_cols
    k = builtins.max(-n_rows, builtins.min(k, n_cols))  # where there is none, and which int64 holds
    rows, columns = _g.arange(n_rows, device=device).unsqueeze(1), _g.arange(n_cols, device=device)
    return (columns - rows == k).to(_dtypes.get_default_dtype() if dtype is None else dtype)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: builtins.bool = True
) -> Tensor:
    """Evenly spaced numbers, with or without the last."""
    if endpoint:
        return _g.linspace(start, stop, num, dtype=dtype, device=device)
    return _g.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Coordinates of a grid from coordinates of its axes."""
    return list(_g.meshgrid(*arrays, indexing=indexing))


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangle."""
    return _g.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangle."""
    return _g.triu(x, k)


# ---- dtypes

_KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64", "float16", "bfloat16"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


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
        if kind not in _KINDS:
            raise ArgumentValueError(message("isdtype", f"there is no kind {kind!r}", hint=", ".join(_KINDS)))
        return dtype.name in _KINDS[kind]
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
    found = kinds[0]
    for kind in kinds[1:]:
        found = _dtypes.promote_types(found, kind)
    for number in arrays_and_dtypes:
        if isinstance(number, builtins.bool | int | float | complex):
            found = _g.result_type(_g.zeros(1, dtype=found), number)
    return found


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Tensors expanded to their common shape."""
    return list(_g.broadcast_tensors(*arrays))


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """A tensor expanded to a shape."""
    return _g.broadcast_to(x, shape)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that shapes broadcast to."""
    return tuple(_g.broadcast_shapes(*shapes))


# ---- elementwise, under the standard's names

equal, not_equal, greater, greater_equal, less, less_equal = (
    _on_promoted(name) for name in ("eq", "ne", "gt", "ge", "lt", "le")
)
bitwise_invert = _g.bitwise_not


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Numbers limited to a range; the dtype stays."""
    return x.clone() if min is None and max is None else _g.clamp(*_promoted(x, min, max)).to(x.dtype)


def round(x: Tensor, /) -> Tensor:
    """The nearest integers, halves to the even neighbour; of complex numbers, of both parts."""
    return _g.complex(_g.round(x.real), _g.round(x.imag)) if x.is_complex() else _g.round(x)


def sign(x: Tensor, /) -> Tensor:
    """Signs: -1, 0 or 1; of complex numbers z / |z|, and 0 of 0."""
    return _g.sgn(x)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """Elements of x1 where a condition holds, of x2 elsewhere."""
    return _g.where(condition, *_promoted(x1, x2))


# ---- shapes


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Tensors one after the other; flattened first for ``axis=None``."""
    return _g.cat([x.reshape(-1) for x in arrays], 0) if axis is None else _g.cat(list(arrays), axis)


def expand_dims(x: Tensor, /, axis: int) -> Tensor:
    """A new dimension of size 1."""
    return x.unsqueeze(axis)


def flip(x: Tensor, /, *, axis: Axis = None) -> Tensor:
    """Elements in reverse order."""
    return _g.flip(x, tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis)


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """Dimensions moved to other places."""
    return _g.movedim(x, source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Dimensions in another order."""
    return x.permute(axes)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two dimensions exchanged."""
    return x.mT


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Each element several times."""
    return _g.repeat_interleave(x, repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: builtins.bool | None = None) -> Tensor:
    """The same elements in another shape."""
    if copy is False:
        return x.view(shape)
    return x.clone().reshape(shape) if copy else x.reshape(shape)


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Elements moved along, those at the end to the beginning."""
    if isinstance(axis, tuple) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    return _g.roll(x, shift, axis)


def squeeze(x: Tensor, /, axis: Any) -> Tensor:
    """Without these dimensions of size 1; others are an error."""
    for d in (axis,) if isinstance(axis, int) else axis:
        if x.shape[d] != 1:
            raise ArgumentValueError(
                message("squeeze", f"dim {d} has size {x.shape[d]}, only size 1 can be removed", [("x", x._spec())])
            )
    return _g.squeeze(x, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Tensors along a new dimension."""
    return _g.stack(list(arrays), axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The tensor several times along each dimension."""
    return _g.tile(x, repetitions)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along a dimension."""
    return tuple(x.unbind(axis))


# ---- reductions


def _reduced(name: str) -> Callable[..., Tensor]:
    call = getattr(_g, name)

    def reduction(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
        return x.clone() if axis == () else call(x, axis, keepdims)

    reduction.__name__, reduction.__doc__ = name, f"`genesis.{name}` along an axis, several, or (None) all."
    return reduction


max, min = _reduced("amax"), _reduced("amin")


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """Averages."""
    return x.clone() if axis == () else _g.mean(x, axis, keepdims)


def all(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether all are not zero."""
    return x != 0 if axis == () else _g.all(x, axis, keepdims).to(bool)


def any(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether one is not zero."""
    return x != 0 if axis == () else _g.any(x, axis, keepdims).to(bool)


def _wide(x: Tensor, dtype: Any) -> Any:
    """Sums and products of small integers are in 64 bits."""
    if dtype is not None or x.is_floating_point() or x.is_complex():
        return dtype
    return uint64 if x.dtype.name.startswith("uint") else int64


def sum(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: builtins.bool = False) -> Tensor:
    """Sums; of integers in 64 bits."""
    kind = _wide(x, dtype)
    return x.to(kind or x.dtype, copy=True) if axis == () else _g.sum(x, axis, keepdims, dtype=kind)


def prod(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: builtins.bool = False) -> Tensor:
    """Products; of integers in 64 bits."""
    kind = _wide(x, dtype)
    return x.to(kind or x.dtype, copy=True) if axis == () else _g.prod(x, axis, keepdims, dtype=kind)


def std(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """Standard deviations, of the whole population unless corrected."""
    return _g.std(x, axis, correction=correction, keepdim=keepdims)


def var(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """Variances, of the whole population unless corrected."""
    return _g.var(x, axis, correction=correction, keepdim=keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Places of the largest elements."""
    return _g.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Places of the smallest elements."""
    return _g.argmin(x, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """How many are not zero."""
    return sum((x != 0).to(int64), axis=axis, keepdims=keepdims)


def _cumulative(
    x: Tensor, call: Any, first: int, axis: int | None, dtype: Any, include_initial: builtins.bool
) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ArgumentValueError(
                message(
                    f"cumulative_{'prod' if first else 'sum'}",
                    f"axis may be left out for one dimension only, x has {x.ndim}",
                    [("x", x._spec())],
                )
            )
        axis = 0
    kind = _wide(x, dtype) or x.dtype
    out = call(x.to(kind), axis, dtype=kind)
    if not include_initial:
        return out  # type: ignore[no-any-return]
    shape = [1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)]
    return _g.cat([out.new_full(shape, first), out], axis)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: builtins.bool = False
) -> Tensor:
    """Running sums; with ``include_initial`` a zero in front."""
    return _cumulative(x, _g.cumsum, 0, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: builtins.bool = False
) -> Tensor:
    """Running products; with ``include_initial`` a one in front."""
    return _cumulative(x, _g.cumprod, 1, axis, dtype, include_initial)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Differences of neighbours, n times."""
    parts = [p for p in (prepend, x, append) if p is not None]
    x = _g.cat(parts, axis) if len(parts) > 1 else x
    return _g.diff(x, n, axis)


# ---- order, sets, indices


def sort(x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    """Elements in order."""
    return _g.sort(x, axis, descending).values


def argsort(x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    """Places of the elements in order."""
    return _g.argsort(x, axis, descending, True)


def searchsorted(x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where elements belong in a sorted tensor."""
    return _g.searchsorted(x1 if sorter is None else x1[sorter], x2, side=side)


class UniqueAll(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAll:
    """Distinct elements, where each comes first, which each element is, and how often each comes."""
    values, inverse, counts = _g.unique(x, return_inverse=True, return_counts=True)
    flat = inverse.reshape(-1)
    places = _g.full((values.numel(),), flat.numel(), dtype=int64)
    first = _g.scatter_reduce(places.double(), 0, flat, _g.arange(flat.numel()).double(), "amin").to(int64)
    return UniqueAll(values, first, inverse.reshape(x.shape), counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Distinct elements, and how often each comes."""
    return UniqueCounts(*_g.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Distinct elements, and which of them each element is."""
    values, inverse = _g.unique(x, return_inverse=True)
    return UniqueInverse(values, inverse.reshape(x.shape))


def unique_values(x: Tensor, /) -> Tensor:
    """Distinct elements."""
    return _g.unique(x)


def isin(x1: Any, x2: Any, /, *, invert: builtins.bool = False) -> Tensor:
    """Whether elements are among others."""
    a, b = _g.as_tensor(x1), _g.as_tensor(x2)
    found = (a.unsqueeze(-1) == b.reshape(-1)).any(-1)
    return ~found if invert else found


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Places of the elements that are not zero, a tensor for each dimension."""
    if not x.ndim:
        raise ArgumentValueError(message("nonzero", "a 0-d array has no places"))
    return tuple(_g.nonzero(x, as_tuple=True))


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Slices named by a 1-d index."""
    if axis is None and x.ndim != 1:
        raise ArgumentValueError(
            message("take", f"axis may be left out for one dimension only, x has {x.ndim}", [("x", x._spec())])
        )
    axis = 0 if axis is None else axis
    return _g.index_select(x, axis, where(indices < 0, indices + x.shape[axis], indices))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Elements named along an axis."""
    return _g.take_along_dim(x, where(indices < 0, indices + x.shape[axis], indices), axis)


# ---- products


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """Products summed over axes of both."""
    return _g.tensordot(*_promoted(x1, x2), axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Dot products along an axis, the first operand conjugated."""
    if not -builtins.min(x1.ndim, x2.ndim) <= axis < 0:
        raise ArgumentValueError(message("vecdot", f"axis must count from the end, within both operands, got {axis}"))
    if x1.shape[axis] != x2.shape[axis]:
        raise ArgumentValueError(
            message(
                "vecdot",
                f"sizes along axis {axis} differ, {x1.shape[axis]} and {x2.shape[axis]}",
                [("x1", x1._spec()), ("x2", x2._spec())],
            )
        )
    x1, x2 = broadcast_arrays(*_promoted(x1, x2))
    return sum(x1.conj() * x2, axis=axis, dtype=x1.dtype)


# ---- about itself


class Info:
    """What there is here."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        return default_device()

    def devices(self) -> list[Any]:
        return [_g.device("cpu"), _g.device("meta")]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        default = _dtypes.get_default_dtype()
        return {
            "real floating": default,
            "complex floating": complex128 if default == float64 else complex64,
            "integral": int64,
            "indexing": int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        names = [n for group in ("bool", "numeric") for n in _KINDS[group] if n not in ("float16", "bfloat16")]
        return {n: globals()[n] for n in names if kind is None or isdtype(globals()[n], kind)}


def __array_namespace_info__() -> Info:  # noqa: N807
    """What there is here: devices, dtypes, capabilities."""
    return Info()


__all__ = [
    name
    for name in list(globals())
    if not name.startswith("_")
    and name
    not in (
        "Any",
        "Axis",
        "Callable",
        "NamedTuple",
        "Sequence",
        "Tensor",
        "annotations",
        "builtins",
        "math",
        "default_device",
        "ArgumentValueError",
        "message",
        "DTypeError",
        "Info",
        "MISSING",
        "PROMOTED",
        "SAME",
    )
]
