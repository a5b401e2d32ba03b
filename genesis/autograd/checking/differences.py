"""Derivatives by differences, with error bars.

A central difference at two steps, ``D(h)`` and ``D(h/2)``, gives a value of fourth order, ``(4 D(h/2) - D(h)) / 3``,
and how far to trust it: the two agree where the function is smooth, and rounding is at most some units in the last
place of the values over h. (L. F. Richardson, "The approximate arithmetical solution by finite differences", 1911.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Values = Callable[[Sequence[Array]], Array]  # inputs -> all outputs as one flat array


@dataclass(frozen=True, slots=True)
class Precision:
    """How finely a function can be differenced: the first step, the last digit of its values, what may differ."""

    step: float
    digit: float
    rtol: float


DOUBLE = Precision(step=1e-4, digit=2.0**-52, rtol=1e-6)
SINGLE = Precision(step=2e-2, digit=2.0**-23, rtol=2e-3)  # a function that computes in float32 whatever it is given


def inner(w: Array, y: Array) -> Any:
    """Re <w, y>: the real number that a complex or real output is weighted to."""
    return (np.conj(w) * y).sum(-1).real


def slope(phi: Callable[[float], float], precision: Precision = DOUBLE, scale: float = 1.0) -> tuple[float, float]:
    """d phi / ds at 0 and its error bar; the step shrinks while the two differences disagree.

    >>> value, error = slope(lambda s: (1 + s) ** 3)
    >>> abs(value - 3) < 1e-9 and error < 1e-6
    True
    """
    best = (np.nan, np.inf)
    for shrink in (1, 0.1, 0.01, 0.001) if precision is DOUBLE else (1, 0.3):
        h = precision.step * shrink * scale
        far, near = [phi(h), phi(-h)], [phi(h / 2), phi(-h / 2)]
        coarse, fine = (far[0] - far[1]) / (2 * h), (near[0] - near[1]) / h
        noise = 4 * precision.digit * max(abs(v) for v in far) / h
        error = abs(fine - coarse) + noise
        if np.isfinite(error) and error < best[1]:
            best = ((4 * fine - coarse) / 3, error)
        if best[1] <= precision.rtol * abs(best[0]) * 0.1:
            break
    return best


@dataclass(slots=True)
class Column:
    """How all outputs change with some elements of one input."""

    chosen: Array  # (k,): which elements of the flat input
    along: Array  # (k, m): along the real axis
    turned: Array | None  # along the imaginary axis, for complex inputs
    shape: tuple[int, ...]

    def gradient(self, weights: Array) -> Array:
        """The gradient of the weighted outputs in the input's shape; nan at elements that were not chosen."""
        real = inner(weights, self.along)
        if self.turned is not None:
            real = real + 1j * inner(weights, self.turned)
        out = np.full(int(np.prod(self.shape)), np.nan, real.dtype)
        out[self.chosen] = real
        return out.reshape(self.shape)


def column(
    values: Values, arrays: Sequence[Array], number: int, precision: Precision = DOUBLE, most: int = 400
) -> Column:
    """The Jacobian's part of one input, element by element; of a large input, at most ``most`` elements spread over it."""
    x, width = arrays[number], max(values(arrays).size, 1)
    count = max(1, min(x.size, most, 4_000_000 // width))  # so that the rows take 64 MB at most
    chosen = np.unique(np.linspace(0, x.size - 1, count).astype(int)) if x.size else np.zeros(0, int)

    def rows(unit: Any) -> Array:
        differences = [_row(lambda s, i=i: values(moved(arrays, number, i, s * unit)), precision) for i in chosen]
        return np.stack(differences) if differences else np.zeros((0, width))

    return Column(chosen, rows(1.0), rows(1j) if x.dtype.kind == "c" else None, x.shape)


def _row(y: Callable[[float], Array], precision: Precision) -> Array:
    """Derivative of all outputs along one element; each output keeps its most trusted value."""
    best, bar = None, None
    for shrink in (1, 0.03, 0.001) if precision is DOUBLE else (1, 0.3):
        h = precision.step * shrink
        far, near = (y(h) - y(-h)) / (2 * h), (y(h / 2) - y(-h / 2)) / h
        error = np.abs(near - far) + 4 * precision.digit * (np.abs(y(h)) + 1e-30) / h
        error = np.where(np.isfinite(error), error, np.inf)
        value = (4 * near - far) / 3
        if best is None or bar is None:
            best, bar = value, error
        else:
            best, bar = np.where(error < bar, value, best), np.minimum(error, bar)
        if np.all(bar <= 1e-7 * np.abs(best) + 1e-10):
            break
    assert best is not None
    return best


def moved(arrays: Sequence[Array], number: int, element: int, by: Any) -> list[Array]:
    """The arrays with one element of one of them moved."""
    x = arrays[number].copy()
    x.reshape(-1)[element] += by
    return [x if k == number else a for k, a in enumerate(arrays)]


def one_sided(
    values: Values, arrays: Sequence[Array], number: int, element: int, weights: Array, precision: Precision = DOUBLE
) -> tuple[float, float]:
    """The slopes to the left and to the right of one element."""
    h = precision.step / 10
    y = lambda s: float(inner(weights, values(moved(arrays, number, element, s))))  # noqa: E731
    here = y(0.0)
    return (3 * here - 4 * y(-h) + y(-2 * h)) / (2 * h), (-3 * here + 4 * y(h) - y(2 * h)) / (2 * h)


def is_kink(left: float, right: float) -> bool:
    """Whether two one-sided slopes are those of two different branches."""
    if not (np.isfinite(left) and np.isfinite(right)):
        return True
    return abs(left - right) > 1e-3 * (abs(left) + abs(right)) + 1e-7
