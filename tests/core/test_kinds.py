"""A new op of each kind, declared here and nowhere else, has everything: the block and its kind are enough."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.core.call.kind import KINDS
from genesis.core.call.kinds import (
    binary,
    case,
    composite,
    contraction,
    elementwise,
    indexing,
    primitive,
    random,
    reduced_shape,
    reduction,
    unary,
    view,
)
from genesis.core.call.op import REGISTRY
from genesis.core.graph.tensor import Tensor
from genesis.core.layers import batches, duals
from genesis.ops.indexing.gather import scatter_sum
from genesis.ops.indexing.index import place, put
from genesis.ops.matrix import matrix
from genesis.ops.reductions.along import restore
from genesis.ops.shapes.expand import sum_to
from genesis.ops.shapes.narrow import pad_dim
from genesis.testing.make import Maker
from genesis.testing.opcheck import opcheck, samples_of
from genesis.testing.transform_checks import check_transforms

F64 = genesis.float64


def _declare():
    """One block for each kind: mathematics, and a line of documentation."""
    unary(
        "new_growth",
        lambda x: np.exp(x / 2),
        "Half of the growth.",
        "[0.] -> [1.]",
        vjp=lambda g, out: g * out / 2,
        dtypes="f",
        result="float",
    )
    binary(
        "new_grown",
        lambda x, y: x * np.exp(y),
        "Growth.",
        "[1.], [0.] -> [1.]",
        vjp=(lambda g, other: g * other.exp(), lambda g, out: g * out),
        dtypes="f",
        samples=lambda t: [case(t(2, 1), t(3))],
    )

    @elementwise(
        {"input": lambda g, low: g * low, "low": lambda g, input: g * input, "high": lambda g: g},
        samples=lambda t: [case(t(2, 3), t(3), t(3))],
    )
    def new_line(input: Array, low: Array, high: Array) -> Array:
        """A line."""
        return input * low + high

    @reduction(
        {"input": lambda g, input, dim: restore(g, input.shape, dim) * 2 * input},
        dtypes="f",
        samples=lambda t: [case(t(2, 3)), case(t(2, 3), 1), case(t(2, 3, 2), (0, -1), True), case(t())],
    )
    def new_energy(input: Array, dim: int | None = None, keepdim: bool = False) -> Array:
        """The sum of squares."""
        return np.add.reduce(input.astype(np.float64) ** 2, axis=dim, keepdims=keepdim).astype(input.dtype)

    def half(dim):
        return (*[slice(None)] * dim, slice(None, None, 2))

    @view(
        {"input": lambda g, input_shape, dim: place(g, None, input_shape, half(dim))},
        infer=lambda input, dim: Spec(
            tuple([(n + (i == dim)) // (1 + (i == dim)) for i, n in enumerate(input.shape)]), input.dtype
        ),
        put=lambda whole, part, dim: put(whole, part, None, half(dim)),
        samples=lambda t: [case(t(4, 3), 0), case(t(4, 3), 1)],
    )
    def new_half(input: Array, dim: int) -> Array:
        """Every second slice."""
        return input[half(dim)]

    @contraction(
        {"input": _conv_input, "weight": _conv_weight},
        core=(2, 3),
        infer=lambda input, weight: Spec(
            (
                *np.broadcast_shapes(input.shape[:-2], weight.shape[:-3]),
                weight.shape[-3],
                input.shape[-1] - weight.shape[-1] + 1,
            ),
            input.dtype,
        ),
        samples=lambda t: [case(t(2, 5), t(3, 2, 2)), case(t(4, 2, 3), t(1, 2, 3))],
    )
    def new_conv(input: Array, weight: Array) -> Array:
        """A convolution."""
        windows = np.lib.stride_tricks.sliding_window_view(input.astype(np.float64), weight.shape[-1], -1)
        return np.einsum("...ctk,...ock->...ot", windows, weight.astype(np.float64)).astype(input.dtype)

    @primitive(
        "movement",
        {"input": lambda g, dim: REGISTRY["new_swapped"].call(g, dim)},
        infer=lambda input, dim: input,
        samples=lambda t: [case(t(4, 2), 0), case(t(2, 2), 1)],
    )
    def new_swapped(input: Array, dim: int) -> Array:
        """The halves of a dimension exchanged."""
        return np.ascontiguousarray(np.roll(input, input.shape[dim] // 2, dim))

    @primitive(
        "scan",
        {"input": lambda g, dim: g.flip(dim).cumsum(dim).flip(dim) * 2},
        jvp="linear",
        infer=lambda input, dim: input,
        samples=lambda t: [case(t(4, 2), 0), case(t(2, 3), 1)],
    )
    def new_twice(input: Array, dim: int) -> Array:
        """Twice the running sum."""
        return (2 * np.cumsum(input.astype(np.float64), dim)).astype(input.dtype)

    @primitive("sort", infer=lambda input, dim: Spec(reduced_shape(input.shape, (dim,), False), np.dtype(np.int64)),
               samples=lambda t: [case(t(4, 2), 0), case(t(2, 3), 1)])  # fmt: skip
    def new_last(input: Array, dim: int) -> Array:
        """Where the last of the largest elements is."""
        return input.shape[dim] - 1 - np.argmax(np.flip(input, dim), dim)

    @indexing(
        {"input": lambda g, input_shape, dim, index: 2 * scatter_sum(g, input_shape, dim, index)},
        infer=lambda input, dim, index: Spec(index.shape, input.dtype),
        samples=lambda t: [case(t(3, 4), 1, t.int(3, 2, low=0, high=4)), case(t(3), 0, t.int(5, low=0, high=3))],
    )
    def new_doubled(input: Array, dim: int, index: Array) -> Array:
        """Twice the elements that an index names."""
        return 2 * np.take_along_axis(input, index, dim)

    @random("new_triangular")
    def new_triangular(stream, shape, dtype, low: float = 0.0):
        """The sum of two uniform numbers."""
        return low + stream.uniform(shape, np.float64) + stream.uniform(shape, np.float64)

    @composite(halves="wide", samples=lambda t: [case(t(2, 3))])
    def new_swish(input: Tensor) -> Tensor:
        """Swish."""
        return input * input.sigmoid()


def _conv_input(g, input_shape, weight):
    size, taps = input_shape[-1], weight.shape[-1]
    parts = [weight[..., k].mT @ g for k in range(taps)]
    return sum_to(sum(pad_dim(part, part.ndim - 1, k, size) for k, part in enumerate(parts)), input_shape)


def _conv_weight(g, input, weight_shape):
    size = g.shape[-1]
    return sum_to(genesis.stack([g @ input[..., k : k + size].mT for k in range(weight_shape[-1])], -1), weight_shape)


@pytest.fixture(scope="module", autouse=True)
def new_ops():
    before, methods = set(REGISTRY), set(vars(Tensor))
    _declare()
    yield
    for name in set(REGISTRY) - before:
        del REGISTRY[name]
    for name in set(vars(Tensor)) - methods:
        delattr(Tensor, name)


NAMES = [
    "new_growth", "new_grown", "new_line", "new_energy", "new_half", "new_conv", "new_swapped", "new_twice", "new_last", "new_swish",
    "new_doubled",
]  # fmt: skip


@pytest.mark.parametrize("name", [*NAMES, "random.new_triangular"])
def test_values_and_gradients_to_second_order(name):
    assert opcheck(REGISTRY[name])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", NAMES)
def test_transforms_and_traces(name):
    op = REGISTRY[name]
    check_transforms(op)
    assert samples_of(op, Maker(F64)) and batches.how(op) not in ("own rule", "one by one")
    assert duals.how(op) != "own rule"


@pytest.mark.parametrize("name", ["new_growth", "new_grown"])
def test_in_place_and_out(name):
    op = REGISTRY[name]
    args = [genesis.tensor([0.5, -1.0]) for _ in op.tensors]
    expected = op.call(*args)
    out = genesis.empty(2)
    assert op.call(*args, out=out) is out and genesis.equal(out, expected)
    leaf = args[0].clone().requires_grad_()
    x = leaf * 1
    assert getattr(x, name + "_")(*args[1:]) is x and genesis.equal(x, expected)
    x.sum().backward()
    again = args[0].clone().requires_grad_()
    op.call(again, *args[1:]).sum().backward()
    assert genesis.allclose(leaf.grad, again.grad)


def test_writes_through_a_new_view():
    def written(x):
        y = x * 1
        REGISTRY["new_half"].call(y, 0).mul_(3)
        return y

    x = genesis.randn(5, 2, requires_grad=True)
    y = written(x)
    y.sum().backward()
    assert genesis.equal(y[1::2], x[1::2]) and genesis.equal(x.grad[::2], genesis.full((3, 2), 3.0))
    with genesis.no_grad():
        assert genesis.equal(genesis.jit.trace(written, x.detach()).verify().replay(x.detach()), y)


def test_every_kind_has_a_new_op_here_or_a_reason():
    here = {REGISTRY[name].kind for name in [*NAMES, "random.new_triangular"]}
    assert set(KINDS) - here - {"own", "opaque", "fused", "collective"} == {
        "elementwise_cast",
        "factorization",
        "search",
        "transfer",
        "transform",
    }
    rows = {row["op"]: row for row in matrix()}
    assert {rows[name]["kind"] for name in NAMES} < here and rows["new_half"]["trace"] == "view"


def test_every_view_says_its_inverse():
    """`expand` sees elements several times."""
    without = {op.name for op in REGISTRY.values() if op.kind.views and op.put is None}
    assert without == {"expand"}
