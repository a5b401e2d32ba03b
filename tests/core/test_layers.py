"""A class of layers that the core knows nothing of: its array, and three entries in tables."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.arrays.memory import copied
from genesis.arrays.protocol import Layer, fits, same_level
from genesis.core.call import computing, dispatch
from genesis.core.graph import boundary
from genesis.core.graph.levels import Level, opened
from genesis.core.graph.tensor import wrap
from genesis.core.layers import function_rules


class Pair(Layer):
    """A value and, maybe, another one that goes through the same computation."""

    __slots__ = ("other", "value")
    varying = "has a second value"

    def __init__(self, value, other, level, from_outside=False):
        self.value, self.other, self.level, self.from_outside = value, other, level, from_outside

    inner = property(lambda self: self.value)
    has_value = property(lambda self: True)
    varies = property(lambda self: self.other is not None)
    parts = property(lambda self: tuple([a for a in (self.value, self.other) if a is not None]))
    shape = property(lambda self: self.value.shape)

    def copy(self):
        return self.mapped(lambda a, _: copied(a))

    def without_tangents(self):
        return self.mapped(lambda a, _: a.without_tangents() if isinstance(a, Layer) else a)

    def mapped(self, f, dim=None):
        return Pair(f(self.value, dim), None if self.other is None else f(self.other, dim), self.level)

    def zipped(self, f, a, b):
        (p, other_p), (q, other_q) = self.of(a), self.of(b)
        if other_p is None and other_q is None:
            return Pair(f(p, q), None, self.level)
        return Pair(f(p, q), f(second(p, other_p), None if b is None else second(q, other_q)), self.level)

    def unzipped(self, f):
        (p, q), (other_p, other_q) = f(self.value), (None, None) if self.other is None else f(self.other)
        return Pair(p, other_p, self.level), None if q is None else Pair(q, other_q, self.level)

    def fits(self, source):
        value, other = self.of(source)
        return (other is None or (self.other is not None and fits(self.other, other))) and fits(self.value, value)

    def assign(self, source, assign):
        value, other = self.of(source)
        if self.other is not None:
            assign(self.other, second(value, other))
        assign(self.value, value)

    def grown(self, array, like, grow):
        (value, other), (wanted, varies) = self.of(array), self.of(like)
        return Pair(grow(value, wanted), grow(second(value, other), wanted if varies is None else varies), self.level)

    def of(self, array):
        return (array.value, array.other) if same_level(array, self) else (array, None)


def second(value, other):
    return value if other is None else other


def interpret(op, args, top):
    several = args[0] if op.variadic else [args[i] for i in op.tensors]
    pairs = [top.of(a) for a in several]

    def run(arrays):
        tensors = [wrap(a) if hasattr(a, "shape") else a for a in arrays]
        changed = list(args)
        if op.variadic:
            changed[0] = tensors
        else:
            for i, x in zip(op.tensors, tensors, strict=True):
                changed[i] = x
        out = dispatch.apply(op, tuple(changed))
        return out if isinstance(out, tuple | list) else (out,)

    values = run([v for v, _ in pairs])
    others = [None] * len(values)
    if any(w is not None for _, w in pairs):
        others = [y._array for y in run([second(v, w) for v, w in pairs])]
    results = [Pair(y._array, w, top.level) for y, w in zip(values, others, strict=True)]
    return results[0] if len(results) == 1 else tuple(results)


class Joined(boundary._Boundary):
    __slots__ = ()
    op_name = "into pairs"
    input_names = ("input",)

    def _pull(self, g):
        return (wrap(g._array.value) if isinstance(g._array, Pair) else g,)


@pytest.fixture
def paired(monkeypatch):
    """Inside of a transform that computes for two values at once: what makes a pair of tensors."""
    monkeypatch.setitem(computing.INTERPRETERS, Pair, interpret)
    joins = lambda x, layer: boundary._recorded(Joined, Pair(x._array, None, layer.level), (x,), ())  # noqa: E731
    monkeypatch.setitem(boundary.JOINS, Pair, joins)
    monkeypatch.setitem(function_rules.RULES, Pair, lambda call, layer: call.plain(call.cls, call.args, call.kwargs))
    with opened(Level("pairs")) as level:
        yield lambda x, y: wrap(Pair(x._array, y._array, level.number))


def both(x):
    """The two values of a tensor, under the layers of other transforms."""
    array = x._array
    while not isinstance(array, Pair):
        array = array.inner
    return wrap(array.value), wrap(array.other)


ONE, TWO, THREE = [genesis.tensor(v) for v in ([0.1, 0.2, 0.3], [3.0, 2.0, 1.0], [7.0, 8.0, 9.0])]


def same(pair, f, *others):
    """Whether a pair holds what ``f`` gives for each of the two values."""
    return all(got.tolist() == f(x).tolist() for got, x in zip(both(pair), others or (ONE, TWO), strict=True))


def test_ops(paired):
    f = lambda x: genesis.cat([x.exp(), THREE * x]).sum()  # noqa: E731
    assert same(f(paired(ONE, TWO)), f)
    softmax = lambda x: genesis.nn.functional.softmax(x, 0).argmax(0)  # noqa: E731
    assert same(softmax(paired(ONE, TWO)), softmax)


def test_writes(paired):
    x = THREE.clone()
    view = x[1:]
    view.mul_(paired(ONE, TWO)[:2])  # the base gets a second value
    assert [v.tolist() for v in both(x)] == [[7, *(THREE[1:] * y[:2]).tolist()] for y in (ONE, TWO)]
    x.fill_(7.0)
    assert [v.tolist() for v in both(view)] == [[7.0, 7.0]] * 2


def test_a_tensor_from_outside_is_not_written_to(monkeypatch):
    monkeypatch.setitem(computing.INTERPRETERS, Pair, interpret)
    outside = genesis.ones(2)
    with opened(Level("pairs")) as level:
        value = wrap(Pair(np.ones(2, np.float32), np.ones(2, np.float32), level.number))
        with pytest.raises(RuntimeError, match="made outside is written to, with a value that has a second value"):
            outside.add_(value)


def test_under_other_transforms(paired):
    x, rows = paired(ONE, TWO), genesis.ones(2, 3) * genesis.tensor([[1.0], [2.0]])
    f = lambda x: genesis.vmap(lambda row: (row * x).exp())(rows)  # noqa: E731
    assert same(f(x), f)
    f = lambda x: genesis.func.jvp(genesis.exp, (x,), (THREE,))[1]  # noqa: E731
    assert same(f(x), f)
    f = lambda x: genesis.func.jvp(genesis.exp, (THREE,), (x,))[1]  # noqa: E731
    assert same(f(x), f)
    f = lambda x: genesis.vmap(lambda row: genesis.func.jvp(genesis.exp, (row,), (x * row,))[1])(rows)  # noqa: E731
    assert same(f(x), f)
    f = genesis.func.jacfwd(lambda x: (x * x).cumsum(0))
    assert same(f(x), f)


def test_writes_under_other_transforms(paired):
    def f(x):
        y = x * 2
        y[0] = x[1]
        return y * y

    g = lambda x: genesis.func.jvp(f, (THREE,), (x,))[1]  # noqa: E731
    assert same(g(paired(ONE, TWO)), g)
    g = lambda x: genesis.vmap(lambda s: f(x * s))(THREE)  # noqa: E731
    assert same(g(paired(ONE, TWO)), g)


def test_gradients(paired):
    w = genesis.tensor([0.5, 0.25, 1.0], requires_grad=True)
    (w * paired(ONE, TWO)).sum().backward()
    assert w.grad.tolist() == ONE.tolist()  # what `Joined` gives


def test_functions(paired):
    class Double(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    assert same(Double.apply(paired(ONE, TWO)), lambda x: x * 2)
