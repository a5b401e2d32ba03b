"""What is known about a gradient that may be wrong, and the vocabulary to speak of it: factors, regions, equality."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from genesis.autograd.checking.differences import Array, Column


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A kind (one word, for programs), what is wrong, and the likely repair."""

    kind: str
    words: str
    repair: str

    def __str__(self) -> str:
        return f"{self.words}; {self.repair}"


@dataclass(slots=True)
class Evidence:
    """Everything known about one input's gradient, for one random weighting of the outputs."""

    name: str
    x: Array
    numeric: Array  # nan where it was not computed
    analytic: Array | None  # None: nothing arrived
    returned: Array | None  # what backward returned in this place, whatever its shape
    column: Column
    weights: Array  # flat, for all outputs
    shapes: list[tuple[int, ...]]  # of the outputs
    inputs: list[tuple[str, Array, Array]]  # name, value, numerical gradient of every input
    outs: list[Array]
    position: int = 0
    error: bool = False  # whether backward, or what the engine thinks of its result, raised
    again: Array | None = None  # the gradient for the weights times -100
    nothing: Array | None = None  # the gradient for weights of zero
    # what backward returned, in its order, for arguments without gradients too
    everything: list[Any] = field(default_factory=list)
    # and the gradient after the repair
    repairs: list[tuple[Diagnosis, Callable[[], Array | None]]] = field(default_factory=list)

    def seeds(self, weights: Array) -> list[Array]:
        """Flat weights, output by output."""
        ends = np.cumsum([int(np.prod(s)) for s in self.shapes])[:-1]
        return [p.reshape(s) for p, s in zip(np.split(weights, ends), self.shapes, strict=True)]

    def weighed(self, change: Callable[[Array], Array]) -> Array | None:
        """The numerical gradient if each grad_output were changed; None where the change gives another shape."""
        parts = [change(s) for s in self.seeds(self.weights)]
        if any(p.shape != s for p, s in zip(parts, self.shapes, strict=True)):
            return None
        return self.column.gradient(np.concatenate([p.reshape(-1) for p in parts]))


def same(a: Array | None, g: Array | None, rtol: float = 1e-3) -> bool:
    """Whether two gradients are equal wherever both are known, and not merely both zero."""
    if a is None or g is None or a.shape != g.shape:
        return False
    known = ~(np.isnan(g) | np.isnan(a))
    top = np.abs(g[known]).max(initial=0.0)
    return bool(top > 1e-9 and np.allclose(a[known], g[known], rtol, 0.1 * rtol * top))


def wrong_elements(a: Array, g: Array, rtol: float = 1e-5) -> Array:
    """Where two gradients differ."""
    top = np.nanmax(np.abs(g), initial=0.0)
    return np.asarray(~np.isnan(g) & ~(np.abs(a - g) <= rtol * np.abs(g) + 1e-6 * top + 1e-9))


def ratio(a: Array | None, g: Array) -> float | None:
    """The number c with a = c g, if there is one."""
    if a is None or a.dtype.kind == "c":
        return None
    known = ~np.isnan(g)
    a, g = a[known], g[known]
    norm = float((g * g).sum())
    c = float((a * g).sum()) / norm if norm > 0 else 0.0
    return c if abs(c) > 1e-12 and same(a, c * g) else None


def factor_words(c: float, shape: tuple[int, ...], outs: list[tuple[int, ...]]) -> tuple[str, str, str]:
    """How to say that a gradient is c times what it should be: words, kind, repair."""
    sizes = {n: f"the size of axis {i}" for i, n in reversed(list(enumerate(shape)))}
    sizes = {
        int(np.prod(shape)): "the number of elements",
        **{n: f"the size of the output's axis {i}" for s in outs for i, n in enumerate(s)},
        **sizes,
    }
    near = lambda value: abs(c - value) < 1e-3 * abs(value)  # noqa: E731
    if near(-1):
        return "has the wrong sign", "sign", "negate it"
    if near(2):
        return "is twice too large", "factor", "look for a term counted twice, or a missing 1/2"
    if near(0.5):
        return "is half of what it should be", "factor", "look for a missing factor 2"
    for n, what in sizes.items():
        if n > 2 and near(1 / n):
            return (
                f"is too small by {n}, {what}: a mean where a sum belongs",
                "mean",
                "sum instead of averaging (or do not divide)",
            )
        if n > 2 and near(n):
            return f"is too large by {n}, {what}: a sum where a mean belongs", "sum", f"divide by {what}"
    if 0.9 < c < 1.1:
        return f"is {abs(c - 1) * 100:.3g} % too {'large' if c > 1 else 'small'}", "factor", f"divide it by {c:.6g}"
    sign = " and has the wrong sign" if c < 0 else ""
    size = abs(c)
    if size > 1:
        return f"is too large by a factor {size:.6g}{sign}", "factor", f"divide it by {c:.6g}"
    return f"is too small by a factor {1 / size:.6g}{sign}", "factor", f"multiply it by {1 / c:.6g}"


def region_words(name: str, x: Array, wrong: Array) -> str | None:
    """The condition on the values that tells wrong elements from right ones, of which there are some each."""
    bad, good = x[wrong], x[~wrong]
    if bad.max() <= 0 <= good.min():
        return f"where {name} < 0"
    if good.max() <= 0 <= bad.min():
        return f"where {name} > 0"
    if x.size < 3:  # any two numbers lie on two sides of something
        return None
    for value, words in ((np.abs, f"|{name}|"), (np.asarray, name)):
        b, r = value(bad), value(good)
        if r.max() < b.min():
            return f"where {words} > {(r.max() + b.min()) / 2:.3g}"
        if b.max() < r.min():
            return f"where {words} < {(b.max() + r.min()) / 2:.3g}"
    return None


def index_words(wrong: Array, known: Array) -> str | None:
    for axis in range(wrong.ndim):
        others = tuple(i for i in range(wrong.ndim) if i != axis)
        bad = np.flatnonzero(wrong.any(axis=others))
        all_of = np.flatnonzero((wrong | ~known).all(axis=others))
        if bad.size < wrong.shape[axis] and np.isin(bad, all_of).all():
            if list(bad) == [wrong.shape[axis] - 1]:
                return f"at the last index of axis {axis}"
            return f"at index {', '.join(map(str, bad))} of axis {axis}"
    return None
