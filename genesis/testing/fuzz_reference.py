"""The reference of the fuzzer: memory as cells, derivatives carried forward. It knows nothing of graphs, versions or
rules.

Every cell holds a number and its derivatives with respect to all elements of all leaves. A tensor is an array of cell
numbers, so a view is another array with the same numbers, and a write changes cells: whoever looks at them later sees
it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

WIDTH = 24  # leaves have at most this many elements in all


class Ref(NamedTuple):
    """A tensor: the numbers of its cells."""

    cells: Any
    constant: bool = False  # a view made under no_grad: the values, without the derivatives

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.cells.shape)


class Dual(NamedTuple):
    """Values, and for each its derivatives (in a last axis)."""

    value: Any
    slope: Any


class Memory:
    """All cells, and the tensors by name."""

    def __init__(self, moved: dict[str, Any] | None = None) -> None:
        self.value = np.zeros(0)
        self.slope = np.zeros((0, WIDTH))
        self.refs: dict[str, Ref] = {}
        self.leaves: dict[str, tuple[int, tuple[int, ...]]] = {}
        self.width = 0
        # values that are no constants were taken for some, so differences say nothing of second derivatives
        self.constants = False
        self.moved = moved or {}  # what is added to leaves
        self.shares: Callable[[str, str], bool] = lambda v, x: True

    # ---- making tensors

    def keep(self, name: str, dual: Dual) -> None:
        """A tensor with memory of its own."""
        value = np.asarray(dual.value, float)
        first = len(self.value)
        self.value = np.concatenate([self.value, value.reshape(-1)])
        self.slope = np.concatenate([self.slope, np.broadcast_to(dual.slope, (*value.shape, WIDTH)).reshape(-1, WIDTH)])
        self.refs[name] = Ref(np.arange(first, first + value.size).reshape(value.shape))

    def leaf(self, name: str, values: Any, needs: bool) -> None:
        values = np.asarray(values, float) + self.moved.get(name, 0.0)
        slope = np.zeros((*values.shape, WIDTH))
        if needs:
            self.leaves[name] = (self.width, values.shape)
            flat = slope.reshape(-1, WIDTH)
            for i in range(values.size):
                flat[i, self.width + i] = 1
            self.width += values.size
        self.keep(name, Dual(values, slope))

    def constant(self, name: str, x: str) -> None:
        self.constants = True
        self.keep(name, Dual(self.values(self.refs[x]).copy(), np.zeros(WIDTH)))

    def view(
        self, name: str, x: str, index: Callable[[Any], Any], may_copy: bool, quiet: bool, by_function: bool = False
    ) -> None:
        """The same cells in another arrangement; `reshape` copies where memory cannot be arranged so."""
        cells = index(self.refs[x].cells)
        if may_copy and not self.shares(name, x):
            dual = Dual(self.value[cells], self.slope[cells] * (not quiet and not self.refs[x].constant))
            self.keep(name, dual)
        else:
            self.refs[name] = Ref(np.array(cells), quiet or self.refs[x].constant)
        self.constants = self.constants or quiet

    def compute(self, name: str, f: str, xs: Sequence[str], scale: float = 1.0) -> None:
        dual = self.result(f, xs)
        self.constants = self.constants or scale != 1.0  # a hook acts on second derivatives, too
        self.keep(name, Dual(dual.value, scale * dual.slope))

    def result(self, f: str, xs: Sequence[str]) -> Dual:
        """What an operation gives, not kept yet."""
        return self.value_of(f, [self.dual(x) for x in xs])

    # ---- writing

    def write(self, x: str, f: str, ys: Sequence[str], number: float | None, quiet: bool) -> None:
        ref = self.refs[x]
        old = self.dual(x)
        if f in ("zero", "fill"):
            new = Dual(np.full(ref.shape, 0.0 if f == "zero" else number), np.zeros((*ref.shape, WIDTH)))
        elif f == "copy":
            new = self.dual(ys[0])
        else:
            operands = [old, *[self.dual(y) for y in ys]]
            if not ys and f in ("mul", "add"):
                operands.append(Dual(np.asarray(float(number or 0.0)), np.zeros(WIDTH)))
            new = self.value_of(f, operands)
        self.store(ref.cells, new, quiet)

    def assign(self, x: str, index: Callable[[Any], Any], y: str | None, number: float | None) -> None:
        cells = index(self.refs[x].cells)
        new = Dual(np.asarray(number), np.zeros(WIDTH)) if y is None else self.dual(y)
        self.store(cells, new, False)

    def store(self, cells: Any, new: Dual, quiet: bool) -> None:
        self.constants = self.constants or quiet
        shape = np.shape(cells)
        self.value[cells] = np.broadcast_to(new.value, shape)
        if not quiet:  # under no_grad history, and so the derivatives, stay what they were
            slope = np.asarray(new.slope)
            self.slope[cells] = np.broadcast_to(slope, (*shape, WIDTH))

    # ---- reading

    def values(self, ref: Ref) -> Any:
        return self.value[ref.cells]

    def dual(self, x: str) -> Dual:
        cells, constant = self.refs[x]
        return Dual(self.value[cells].copy(), self.slope[cells] * (not constant))

    def gradient(self, ref: Ref, weights: Any, leaf: str) -> Any:
        """The derivative of sum(weights * tensor) with respect to a leaf."""
        first, shape = self.leaves[leaf]
        size = int(np.prod(shape))
        slopes = (self.slope[ref.cells] * (not ref.constant)).reshape(-1, WIDTH)[:, first : first + size]
        return (np.asarray(weights).reshape(-1) @ slopes).reshape(shape)

    def value_of(self, f: str, xs: Sequence[Dual]) -> Dual:
        return RULES[f](*xs)


def _unary(f: Callable[[Any], Any], slope: Callable[[Any], Any]) -> Callable[[Dual], Dual]:
    return lambda x: Dual(f(x.value), np.asarray(slope(x.value))[..., None] * x.slope)


def _widen(x: Dual, shape: tuple[int, ...]) -> Any:
    """Derivatives in the shape that broadcasting gives the values."""
    value = np.asarray(x.value)
    slope = np.broadcast_to(x.slope, (*value.shape, WIDTH))
    slope = slope.reshape((1,) * (len(shape) - value.ndim) + slope.shape)
    return np.broadcast_to(slope, (*shape, WIDTH))


def _binary(
    f: Callable[[Any, Any], Any], left: Callable[[Any, Any], Any], right: Callable[[Any, Any], Any]
) -> Callable[[Dual, Dual], Dual]:
    def rule(x: Dual, y: Dual) -> Dual:
        a, b = np.asarray(x.value), np.asarray(y.value)
        shape = np.broadcast_shapes(a.shape, b.shape)
        da, db = (np.broadcast_to(d(a, b), shape)[..., None] for d in (left, right))
        return Dual(np.broadcast_to(f(a, b), shape), da * _widen(x, shape) + db * _widen(y, shape))

    return rule


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


_one = np.ones_like
RULES: dict[str, Callable[..., Dual]] = {
    "sin": _unary(np.sin, np.cos),
    "cos": _unary(np.cos, lambda x: -np.sin(x)),
    "tanh": _unary(np.tanh, lambda x: 1 - np.tanh(x) ** 2),
    "sigmoid": _unary(_sigmoid, lambda x: _sigmoid(x) * (1 - _sigmoid(x))),
    "square": _unary(np.square, lambda x: 2 * x),
    "neg": _unary(np.negative, lambda x: -_one(x)),
    "clone": _unary(lambda x: x, _one),
    "exp": _unary(np.exp, np.exp),
    "double": _unary(lambda x: 2 * x, lambda x: 2 * _one(x)),
    "sin_times": _unary(lambda x: np.sin(x) * x, lambda x: np.cos(x) * x + np.sin(x)),
    "sixth": _unary(lambda x: x**6, lambda x: 6 * x**5),
    "mul": _binary(lambda a, b: a * b, lambda a, b: b, lambda a, b: a),
    "add": _binary(lambda a, b: a + b, lambda a, b: _one(a), lambda a, b: _one(b)),
    "sub": _binary(lambda a, b: a - b, lambda a, b: _one(a), lambda a, b: -_one(b)),
    "first_sin": lambda x, y: RULES["sin"](x),
    "sum": lambda x: Dual(x.value.sum(), x.slope.reshape(-1, WIDTH).sum(0)),
    "cat": lambda x, y: Dual(np.concatenate([x.value, y.value]), np.concatenate([x.slope, y.slope])),
    "stack": lambda x, y: Dual(np.stack([x.value, y.value]), np.stack([x.slope, y.slope])),
}
