"""Discrete Fourier transforms, by NumPy's pocketfft; float32 stays in 32 bits.

Three ops compute them without a factor of their own, over several dimensions: complex to complex, real to half a
spectrum, and half a spectrum to real numbers. All are linear, and the adjoint of a transform is one.
``genesis.fft`` is the table of contents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from genesis.base import dtypes
from genesis.base.errors import ArgumentError, DTypeError, ShapeError, message
from genesis.core.call.casts import as_autocast
from genesis.core.call.kinds import case, composite, normalize_dim, normalize_dims
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.out import write_out
from genesis.core.graph.tensor import Tensor
from genesis.ops.fourier.spectra import COMPLEX, fourier, from_half_spectrum, half_spectrum
from genesis.ops.reductions.along import resized
from genesis.ops.shapes.join import cat

# ---- arguments


def _number(name: str, x: Tensor, real: bool = False) -> Tensor:
    """The operand in a dtype that is transformed."""
    if not isinstance(x, Tensor):
        raise ArgumentError(message(name, f"expected a tensor, got {type(x).__name__}"))
    if real and x.is_complex():
        raise DTypeError(message(name, f"the input must be real, it is {x.dtype}", [("input", x._spec())]))
    (x,) = as_autocast("float32:cpu", x)
    if x.dtype.category < 2:
        return x.to(dtypes.get_default_dtype())
    if x.dtype.itemsize == 2:
        raise DTypeError(message(name, f"{x.dtype} is not transformed", [("input", x._spec())], "x.float()"))
    return x


def _spectrum(x: Tensor) -> Tensor:
    return x if x.is_complex() else x.to(dtypes.from_numpy(COMPLEX[x._array.dtype.itemsize]))


def length(name: str, n: Any) -> int:
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise ArgumentError(message(name, f"sizes must be integers, got {n!r}"))
    if n < 1:
        raise ShapeError(message(name, f"a transform needs at least one point, got {n}"))
    return int(n)


def _resize(name: str, x: Tensor, sizes: Sequence[int | None], dims: Sequence[int]) -> Tensor:
    """Cut, or filled with zeros, along dimensions."""
    for n, d in zip(sizes, dims, strict=True):
        have = x.shape[d]
        length(name, have if n is None else n)
        if n is not None and n < have:
            x = x.narrow(d, 0, n)
        elif n is not None and n > have:
            x = cat([x, x.new_zeros(resized(x.shape, d, n - have))], d)
    return x


def _scale(name: str, norm: str | None, count: int, forward: bool) -> float:
    if norm not in (None, "forward", "backward", "ortho"):
        raise ShapeError(message(name, f'norm must be "forward", "backward" or "ortho", got {norm!r}'))
    if norm == "ortho":
        return 1 / math.sqrt(count)
    return 1 / count if forward == (norm == "forward") else 1.0


def _shape_and_dims(name: str, x: Tensor, s: Any, dim: Any) -> tuple[list[int | None], tuple[int, ...]]:
    """The sizes (None: as they are) and the dimensions of a transform over several."""
    sizes = None if s is None else [s] if isinstance(s, int) else list(s)
    if dim is None and sizes is not None:
        if len(sizes) > x.ndim:
            raise ShapeError(message(name, f"{len(sizes)} sizes for {x.ndim} dimensions", [("input", x._spec())]))
        dims = tuple(range(x.ndim - len(sizes), x.ndim))
    else:
        dims = normalize_dims(name, dim, x.ndim)
    if sizes is not None and len(sizes) != len(dims):
        raise ShapeError(message(name, f"{len(sizes)} sizes for {len(dims)} dimensions", [("input", x._spec())]))
    if sizes is None:
        return [None] * len(dims), dims
    return [None if n == -1 else length(name, n) for n in sizes], dims


def _one(name: str, x: Tensor, n: Any, dim: Any) -> tuple[list[int | None], tuple[int, ...]]:
    if not x.ndim:
        raise ShapeError(message(name, "the input must have at least one dimension, it is 0-d"))
    return [None if n is None else length(name, n)], (normalize_dim(name, dim, x.ndim),)


# ---- the transforms, by what they take and give


def _to_complex(forward: bool) -> Callable[..., Tensor]:
    def transform(name: str, x: Tensor, sizes: Any, dims: Any, norm: Any) -> Tensor:
        x = _resize(name, _spectrum(_number(name, x)), sizes, dims)
        count = math.prod([x.shape[d] for d in dims])
        return fourier(x, tuple(dims), forward, _scale(name, norm, count, forward))  # type: ignore[no-any-return]

    return transform


def _of_real(forward: bool) -> Callable[..., Tensor]:
    """Half the spectrum of real numbers; of the inverse, conjugated."""

    def transform(name: str, x: Tensor, sizes: Any, dims: Any, norm: Any) -> Tensor:
        x = _resize(name, _number(name, x, True), sizes, dims)
        if not dims:
            raise ShapeError(message(name, "at least one dimension must be transformed"))
        scale = _scale(name, norm, math.prod([x.shape[d] for d in dims]), forward)
        result = half_spectrum(x, tuple(dims), scale)
        return result if forward else result.conj()  # type: ignore[no-any-return]

    return transform


def _to_real(forward: bool) -> Callable[..., Tensor]:
    """Real numbers from half a spectrum; forward, from half a spectrum conjugated."""

    def transform(name: str, x: Tensor, sizes: Any, dims: Any, norm: Any) -> Tensor:
        x = _spectrum(_number(name, x))
        if not dims:
            raise ShapeError(message(name, "at least one dimension must be transformed"))
        last = 2 * (x.shape[dims[-1]] - 1) if sizes[-1] is None else sizes[-1]
        n = length(name, last)
        x = _resize(name, x, [*sizes[:-1], n // 2 + 1], dims)
        count = math.prod([x.shape[d] for d in dims[:-1]]) * n
        x = x.conj() if forward else x
        return from_half_spectrum(x, tuple(dims), n, _scale(name, norm, count, forward))  # type: ignore[no-any-return]

    return transform


_WORDS = {
    "fft": ("The discrete Fourier transform, $\\sum_n x_n e^{-2 \\pi i k n / N}$", _to_complex(True), "Fci"),
    "ifft": ("The inverse of `fft.fft`, $\\frac{1}{N} \\sum_k x_k e^{2 \\pi i k n / N}$", _to_complex(False), "Fci"),
    "rfft": (
        "The first half of the spectrum of real numbers (over the last of several dimensions)",
        _of_real(True),
        "Fi",
    ),
    "irfft": (
        "The inverse of `fft.rfft`: real numbers from half a spectrum, $2 (n - 1)$ of them unless a size is given",
        _to_real(False),
        "Fci",
    ),
    "hfft": (
        "The spectrum, which is real, of a signal of which the first half is given, the other being its mirror image "
        "conjugated",
        _to_real(True),
        "Fci",
    ),
    "ihfft": ("The inverse of `fft.hfft`, the first half of the signal", _of_real(False), "Fi"),
}
_TAIL = """

    Args:
        {args}
        norm: a factor of 1/n: "backward" (None) on the inverse transform, "forward" on the other, "ortho" its root on
            both

    Raises:
        RuntimeError: {errors}; another norm; no points; 16-bit floats
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.fft.{name}({example}).shape
    genesis.Size({shape})
    """
_REAL_ERRORS = {True: "complex numbers", False: "sizes and dimensions of different number"}
_TO = {"fft": lambda n: n, "rfft": lambda n: n // 2 + 1, "irfft": lambda n: 2 * (n - 1)}
_TO |= {"ifft": _TO["fft"], "ihfft": _TO["rfft"], "hfft": _TO["irfft"]}


def _documented(function: Any, base: str, several: int) -> Any:
    name = base + {0: "", 2: "2", 3: "n"}[several]
    over = "along a dimension" if not several else "over two dimensions" if several == 2 else "over dimensions"
    n_words = (
        "the size before (cut, or filled with zeros); None: as it is"
        if base not in ("irfft", "hfft")
        else ("the size of the result")
    )
    args = f"n: {n_words}" if not several else "s: sizes, one for each dimension (-1: as it is)"
    shape = [_TO[base](4)] if not several else [3, _TO[base](4)]
    function.__name__ = function.__qualname__ = f"fft_{name}"
    function.__doc__ = f"{_WORDS[base][0]}, {over}." + _TAIL.format(
        args=args,
        errors=_REAL_ERRORS["i" in _WORDS[base][2] and "c" not in _WORDS[base][2]],
        name=name,
        example="genesis.ones(4)" if not several else "genesis.ones(3, 4)",
        shape=shape,
    )
    return function


def _declare(base: str) -> dict[str, Any]:
    _, transform, kinds = _WORDS[base]

    def one(input: Tensor, n: Any = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Tensor:
        x = _number(f"fft.{base}", input)
        result = transform(f"fft.{base}", input, *_one(f"fft.{base}", x, n, dim), norm)
        return result if out is None else write_out(f"fft.{base}", result, out)

    def two(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Tensor:
        return several(f"fft.{base}2", input, s, dim, norm, out)

    def many(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Tensor:
        return several(f"fft.{base}n", input, s, dim, norm, out)

    def several(name: str, input: Tensor, s: Any, dim: Any, norm: Any, out: Any) -> Tensor:
        x = _number(name, input)
        result = transform(name, input, *_shape_and_dims(name, x, s, dim), norm)
        return result if out is None else write_out(name, result, out)

    made = {}
    for count, function in ((0, one), (2, two), (3, many)):
        name = base + {0: "", 2: "2", 3: "n"}[count]
        call = composite(method=False, dtypes=kinds, torch_name=f"fft.{name}")(_documented(function, base, count))
        made[name] = call
        _sampled(call, base, count)
    return made


def _sampled(call: Any, base: str, several: int) -> None:
    name = call.op.torch_name
    no_points = (lambda t: case(t(4), 0), RuntimeError, f"{name}: a transform needs at least one point, got 0")
    if not several:
        samples(
            call,
            lambda t: [
                case(t(5)),
                case(t(2, 4), 6, 0),
                case(t(3, 4), 3, -1, "ortho"),
                case(t(2, 3), norm="forward"),
            ],
        )
        wrong_inputs(
            call,
            no_points,
            (lambda t: case(t()), RuntimeError, f"{name}: the input must have at least one dimension, it is 0-d"),
            (lambda t: case(t(4), None, 1), IndexError, f"{name}: dim 1 is out of range"),
            (lambda t: case(t(4), norm="x"), RuntimeError, f'{name}: norm must be "forward", "backward" or'),
            (lambda t: case(t(4).half()), RuntimeError, f"{name}: genesis.float16 is not transformed"),
        )
        return
    samples(
        call,
        lambda t: [
            case(t(3, 4)),
            case(t(2, 3, 4), (4, -1), (0, 1)),
            case(t(3, 4), norm="ortho"),
            case(t(2, 3, 2), None, (2, 0), "forward"),
        ],
    )
    wrong_inputs(
        call,
        (lambda t: case(t(3, 4), (0, 2)), RuntimeError, f"{name}: a transform needs at least one point, got 0"),
        (lambda t: case(t(3, 4), (2,), (0, 1)), RuntimeError, f"{name}: 1 sizes for 2 dimensions"),
    )


FUNCTIONS = {name: call for base in _WORDS for name, call in _declare(base).items()}

__all__: list[str] = []
