"""In which order of dimensions results lie in memory: as PyTorch's do, whatever the order of the input."""

from __future__ import annotations

import copy
from functools import partial

import numpy as np
import pytest

import genesis

# name: a shape, and what makes of a tensor in rows one in another order
LAYOUTS = {
    "rows": ((3, 4), lambda T, x: x),
    "transposed": ((4, 3), lambda T, x: x.t()),
    "permuted": ((3, 4, 5), lambda T, x: x.permute(2, 0, 1)),
    "last two exchanged": ((3, 4, 5), lambda T, x: x.transpose(1, 2)),
    "permuted, of four": ((2, 3, 4, 5), lambda T, x: x.permute(3, 1, 0, 2)),
    "channels last": ((2, 3, 4, 5), lambda T, x: x.contiguous(memory_format=T.channels_last)),
    "channels last, one": ((2, 1, 4, 5), lambda T, x: x.contiguous(memory_format=T.channels_last)),
    "channels last, 3d": ((2, 3, 2, 3, 2), lambda T, x: x.contiguous(memory_format=T.channels_last_3d)),
    "with gaps": ((6, 8), lambda T, x: x[::2, 1::3]),
    "transposed, with gaps": ((6, 8), lambda T, x: x.t()[::2, 1:4]),
    "a slice of permuted": ((3, 4, 5), lambda T, x: x.permute(2, 0, 1)[:, 1]),
    "columns": ((4, 6), lambda T, x: x[:, :4]),
    "every second": ((8,), lambda T, x: x[::2]),
    "a column repeated": ((3, 1), lambda T, x: x.expand(3, 4)),
    "a row repeated": ((4,), lambda T, x: x.expand(3, 4)),
    "size 1": ((3, 1, 4), lambda T, x: x.permute(2, 1, 0)),
    "size 1, twice": ((1, 4, 1), lambda T, x: x.permute(1, 2, 0)),
    "no dimensions": ((), lambda T, x: x),
}
PERMUTED_AND_REPEATED = {"permuted, and repeated": ((1, 3, 4), lambda T, x: x.expand(2, 3, 4).permute(2, 0, 1))}


def _four(f):
    return lambda T, x: f(T, x) if x.ndim == 4 else x


def _named(names, find):
    return {name: partial(lambda name, T, x: find(T, name)(x), name) for name in names.split()}


COPIES = {
    "clone": lambda T, x: x.clone(),
    "clone, preserved": lambda T, x: T.clone(x, memory_format=T.preserve_format),
    "clone, contiguous": lambda T, x: x.clone(memory_format=T.contiguous_format),
    "clone, channels last": _four(lambda T, x: x.clone(memory_format=T.channels_last)),
    "detach and clone": lambda T, x: x.detach().clone(),
    "contiguous": lambda T, x: x.contiguous(),
    "double": lambda T, x: x.double(),
    "int": lambda T, x: x.int(),
    "bool": lambda T, x: x.bool(),
    "bfloat16": lambda T, x: x.bfloat16(),
    "complex": lambda T, x: x.to(T.complex64),
    "to, a copy": lambda T, x: x.to(x.dtype, copy=True),
    "tensor": lambda T, x: T.tensor(x),
    "asarray": lambda T, x: T.asarray(x, copy=True),
    **_named("zeros_like ones_like", getattr),
    "empty_like": lambda T, x: T.empty_like(x).zero_(),
    "full_like": lambda T, x: T.full_like(x, 2),
    "rand_like": lambda T, x: T.rand_like(x) * 0,
    "randn_like": lambda T, x: T.randn_like(x) * 0,
    "randint_like": lambda T, x: T.randint_like(x, 5) * 0,
    "zeros_like, float64": lambda T, x: T.zeros_like(x, dtype=T.float64),
    "rand_like, float64": lambda T, x: T.rand_like(x, dtype=T.float64) * 0,
    "ones_like, contiguous": lambda T, x: T.ones_like(x, memory_format=T.contiguous_format),
    "rand_like, contiguous": lambda T, x: T.rand_like(x, memory_format=T.contiguous_format) * 0,
    "zeros_like, channels last": _four(lambda T, x: T.zeros_like(x, memory_format=T.channels_last)),
    "full_like, channels last": _four(lambda T, x: T.full_like(x, 3, memory_format=T.channels_last)),
    "randn_like, channels last": _four(lambda T, x: T.randn_like(x, memory_format=T.channels_last) * 0),
    "new_zeros": lambda T, x: x.new_zeros(x.shape),
    "dropout": lambda T, x: T.nn.functional.dropout(x, 0.5) * 0,
    "alpha_dropout": lambda T, x: T.nn.functional.alpha_dropout(x, 0.5, True) * 0,
    "silu": lambda T, x: T.nn.functional.silu(x),
}
IN_ROWS = {
    "masked_fill": lambda T, x: x.masked_fill(x > 0.5, 0.0),
    "masked_fill, a mask in rows": lambda T, x: x.masked_fill(x.contiguous() > 0.5, T.tensor(0.0)),
    "masked_fill, integers": lambda T, x: (x * 4).int().masked_fill(x > 0.5, 7),
    "masked_scatter": lambda T, x: x.masked_scatter(x > 0.5, T.zeros(200)),
    "cumsum": lambda T, x: x.cumsum(0),
    "cumsum, the last": lambda T, x: x.cumsum(-1),
    "cumsum, integers": lambda T, x: (x * 4).int().cumsum(0),
    "cumsum, float64": lambda T, x: x.cumsum(0, dtype=T.float64),
    "cumprod": lambda T, x: x.cumprod(0),
    "logcumsumexp": lambda T, x: x.logcumsumexp(0),
    "cummax": lambda T, x: x.cummax(0).values,
    "cummin, indices": lambda T, x: x.cummin(-1).indices,
    "scatter": lambda T, x: x.scatter(0, T.zeros_like(x, dtype=T.int64), 1.0),
    "softmax": lambda T, x: x.softmax(0),
    "tril": lambda T, x: x.tril() if x.ndim > 1 else x,
    "bernoulli": lambda T, x: T.bernoulli(x) * 0,
    "repeat": lambda T, x: x.repeat(*[2] * max(x.ndim, 1)),
    "take": lambda T, x: x.take(T.tensor([0])),
    "add to an index": lambda T, x: x.index_add(0, T.tensor([0]), x[:1]) if x.ndim else x,
    "index_copy": lambda T, x: x.index_copy(0, T.tensor([0]), x[:1]) if x.ndim else x,
    "index_select": lambda T, x: x.index_select(0, T.tensor([0, 1])) if x.ndim else x,
    "narrow_copy": lambda T, x: T.narrow_copy(x, 0, 0, 1) if x.ndim else x,
}
AS_THEIR_OPERANDS = {
    **_named(
        "abs neg exp log sqrt sin tanh sigmoid erf floor sign square reciprocal lgamma isnan logical_not", getattr
    ),
    **_named(
        "relu gelu elu leaky_relu softplus hardtanh hardswish mish softshrink", lambda T, n: getattr(T.nn.functional, n)
    ),
    "add a number": lambda T, x: x + 1,
    "subtract from a number": lambda T, x: 1 - x,
    "add a tensor without dimensions": lambda T, x: T.tensor(2.0) + x,
    "power": lambda T, x: x**2.5,
    "compare": lambda T, x: x > 0.5,
    "with itself": lambda T, x: x * x,
    "rows, and other": lambda T, x: x.contiguous() + x,
    "remainder": lambda T, x: x % 0.3,
    "clamp": lambda T, x: x.clamp(0.2, 0.7),
    "where": lambda T, x: T.where(x > 0.5, x, 0.0),
    "where, rows and other": lambda T, x: T.where(x.contiguous() > 0.5, x, x),
    "atan2": lambda T, x: T.atan2(x, x),
    "integers": lambda T, x: (x * 4).int() & 3,
    "a vector": lambda T, x: x + T.ones(x.shape[-1]) if x.ndim else x,
    "written in place": lambda T, x: x.clone().mul_(2),
    "filled": lambda T, x: x.clone().fill_(2),
    "filled by a mask": lambda T, x: x.clone().masked_fill_(x > 0.5, 0.0),
    "index_put": lambda T, x: x.index_put((T.tensor([0]),), T.tensor(1.0)) if x.ndim else x,
    "index_fill": lambda T, x: x.index_fill(0, T.tensor([0]), 1.0) if x.ndim else x,
}
EVERY = {**COPIES, **IN_ROWS, **AS_THEIR_OPERANDS}


def _result(T, call, layout):
    shape, change = {**LAYOUTS, **PERMUTED_AND_REPEATED}[layout]
    numbers = np.random.RandomState(0).rand(*shape) * 0.8 + 0.1
    return call(T, change(T, T.tensor(np.asarray(numbers, np.float32))))


def _order(x):
    """The steps along dimensions that have more than one element: those along others say nothing."""
    return [step for step, n in zip(x.stride(), x.shape, strict=True) if n > 1]


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")
@pytest.mark.parametrize("name", EVERY)
def test_results_lie_as_pytorchs(name):
    torch = pytest.importorskip("torch")
    layouts = [*LAYOUTS, *(PERMUTED_AND_REPEATED if name in COPIES or name in IN_ROWS else [])]
    for layout in layouts:
        mine, theirs = (_result(T, EVERY[name], layout) for T in (genesis, torch))
        assert _order(mine) == _order(theirs), layout
        assert mine.dtype.name == str(theirs.dtype).removeprefix("torch."), layout
        np.testing.assert_allclose(
            mine.to(genesis.complex128).numpy(), theirs.to(torch.complex128).numpy(), 1e-5, 1e-6, err_msg=layout
        )


@pytest.mark.parity
def test_copies_of_objects_and_of_arrays_of_numpy_lie_as_pytorchs():
    torch = pytest.importorskip("torch")
    rows = []
    for T in (genesis, torch):
        layer = copy.deepcopy(T.nn.Conv2d(2, 3, 3).to(memory_format=T.channels_last))
        array = np.asfortranarray(np.ones((3, 4)))
        made = [T.tensor(array), T.tensor(array, dtype=T.float32), T.asarray(array, copy=True), T.as_tensor(array)]
        rows.append([x.stride() for x in [layer.weight, copy.deepcopy(T.ones(3, 4).t()), *made]])
    assert rows[0] == rows[1]


@pytest.mark.parity
def test_tensors_without_elements_have_strides():
    torch = pytest.importorskip("torch")
    for shape in [(0,), (0, 3), (3, 0), (4, 0, 3)]:
        for make in ("zeros", "empty"):
            assert getattr(genesis, make)(shape).stride() == getattr(torch, make)(shape).stride()
        assert (
            (genesis.zeros(shape) + 1).stride() == genesis.zeros(shape).clone().stride() == torch.zeros(shape).stride()
        )
    assert genesis.ones(()).expand(2, 3).stride() == (0, 0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_random_numbers_do_not_depend_on_the_order(layout):
    """The same seed gives the same element at the same index."""
    for call in (
        lambda T, x: T.rand_like(x),
        lambda T, x: T.randint_like(x, 1000),
        lambda T, x: T.nn.functional.dropout(T.ones_like(x), 0.5),
    ):
        both = []
        for rows in (True, False):
            genesis.manual_seed(7)
            both.append(_result(genesis, lambda T, x: call(T, x.contiguous() if rows else x), layout))  # noqa: B023
        assert both[0].equal(both[1])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies_are_no_views_and_have_gradients(layout):
    shape, change = LAYOUTS[layout]
    x = genesis.rand(shape, dtype=genesis.float64, requires_grad=True)
    y = change(genesis, x)
    z = y.clone()
    assert z._view is None and z.equal(y)
    z.mul_(3)
    assert z.equal(3 * y)
    (z * z).sum().backward()
    for made in (genesis.zeros_like(y), genesis.rand_like(y), genesis.full_like(y, 2, requires_grad=True)):
        assert made._view is None and made.is_leaf
    assert genesis.autograd.gradcheck(lambda x: change(genesis, x).clone() ** 2, (x.detach().requires_grad_(),))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_traces_give_the_same_order(layout):
    shape, change = LAYOUTS[layout]
    x = change(genesis, genesis.rand(shape))

    def f(x):
        return [x.clone(), genesis.zeros_like(x) + x, x.cumsum(0), x.masked_fill(x > 0.5, 0.0), x.clone().mul_(2)]

    for eager, compiled, traced in zip(f(x), genesis.compile(f)(x), genesis.jit.trace(f, x)(x), strict=True):
        assert eager.equal(compiled) and eager.equal(traced)
        assert _order(eager) == _order(compiled) == _order(traced)


def test_meta_tensors_have_the_same_order():
    for shape, change in LAYOUTS.values():
        x = change(genesis, genesis.rand(shape))
        m = change(genesis, genesis.empty(shape, device="meta"))
        for call in (lambda y: y.clone(), genesis.zeros_like, genesis.rand_like, lambda y: genesis.full_like(y, 2)):
            assert _order(call(m)) == _order(call(x)) and call(m).is_meta
        assert _order(genesis.zeros_like(x, device="meta")) == _order(genesis.zeros_like(x))
