"""Memory that is not in row-major order: writes through views of it, results of reductions, repeated tensors."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis import jit
from genesis.func import grad, jacfwd, jacrev, vmap

SHAPE = (2, 3, 4)


def _write(v, kind):
    if kind == "mul":
        v.mul_(3.0)
    elif kind == "item":
        v[0] = 7.0
    elif kind == "zero":
        v.zero_()
    else:
        v.copy_(v.clone().square())


VIEWS = {
    "reshape": lambda y: y.permute(2, 1, 0).reshape(-1),
    "view": lambda y: y.permute(2, 1, 0).view(-1),
    "flatten": lambda y: y.permute(2, 1, 0).flatten(1),
    "reversed": lambda y: y.permute(2, 1, 0)[::-1],
    "unflatten": lambda y: y.permute(2, 1, 0).unflatten(2, (2, 2))[1],
    "transposed": lambda y: y.transpose(0, 2)[0],
}


@pytest.mark.parametrize("kind", ["mul", "item", "zero", "square"])
@pytest.mark.parametrize("view", VIEWS)
def test_writes_through_views_of_a_base_that_is_not_contiguous(view, kind):
    weight = genesis.tensor(np.random.default_rng(0).normal(size=(4, 3, 2)))

    def f(x):
        y = x.permute(2, 1, 0) * 1.0  # laid out as x is, (4, 3, 2)
        _write(VIEWS[view](y), kind)
        return y * weight

    def out_of_place(x):
        y = x.permute(2, 1, 0).contiguous() * 1.0
        index = VIEWS[view](genesis.arange(24).reshape(SHAPE).permute(2, 1, 0) * 1)
        places = (genesis.arange(24).reshape(SHAPE).permute(2, 1, 0).reshape(-1, 1) == index.reshape(1, -1)).to(
            genesis.float64
        )
        old = places.T @ y.reshape(-1)
        new = old.clone()
        new = {
            "mul": lambda: old * 3,
            "zero": lambda: old * 0,
            "square": lambda: old * old,
            "item": lambda: genesis.cat([old[: index[0].numel()] * 0 + 7, old[index[0].numel() :]]),
        }[kind]()
        y = y.reshape(-1) * (1 - places.sum(1)) + places @ new
        return y.reshape(4, 3, 2) * weight

    x = genesis.tensor(np.random.default_rng(1).normal(size=SHAPE))
    expected, J = out_of_place(x), jacrev(out_of_place)(x)
    np.testing.assert_allclose(f(x).numpy(), expected.numpy())
    np.testing.assert_allclose(jacrev(f)(x).numpy(), J.numpy())
    np.testing.assert_allclose(jacfwd(f)(x).numpy(), J.numpy())
    each = vmap(grad(lambda v: (f(v) ** 2).sum()))(genesis.stack([x, x + 1]))
    for found, v in zip(each, (x, x + 1), strict=True):
        np.testing.assert_allclose(found.numpy(), grad(lambda v: (out_of_place(v) ** 2).sum())(v).numpy())
    assert genesis.autograd.gradcheck(f, x.clone().requires_grad_())


def test_a_transposed_use_after_a_write_through_view():
    x = genesis.ones(2, 3, requires_grad=True)
    y = x * 1
    y.view(-1)[0] = 0.0
    (y.t() * genesis.arange(6.0).reshape(3, 2)).sum().backward()
    assert x.grad.tolist() == [[0, 2, 4], [1, 3, 5]]


def test_view_is_never_a_copy_under_vmap():
    def f(x):
        y = x * 1
        y.view(-1).mul_(2)
        return y

    x = genesis.arange(12.0).reshape(2, 2, 3)
    assert (vmap(f)(x) == 2 * x).all()
    with pytest.raises(RuntimeError, match="needs a copy of this non-contiguous tensor"):
        vmap(f, in_dims=1)(x)


@pytest.mark.parametrize(
    "name", ["sum", "mean", "amax", "amin", "std", "logsumexp", "prod", "all", "argmax", "softmax"]
)
def test_results_of_reductions_are_contiguous(name):
    x = genesis.arange(24.0).reshape(4, 2, 3).transpose(0, 2)
    out = getattr(x, name)(-1)
    assert out.is_contiguous() and getattr(x.to("meta"), name)(-1).stride() == out.stride()

    def f(x):
        y = getattr(x.transpose(0, 2), name)(-1)
        y.reshape(-1).mul_(2)
        return y

    if out.dtype.is_floating_point:
        x = genesis.arange(24.0).reshape(4, 2, 3)
        assert (jit.trace(f, x).replay(x) == f(x)).all()


def test_products_of_strided_batches_are_contiguous():
    x = genesis.randn(3, 3, 4, 2).permute(1, 0, 3, 2)[..., :3]
    w = genesis.randn(5, 3)
    out = genesis.nn.functional.linear(x, w)
    assert out.is_contiguous() and (x @ w.T).is_contiguous()
    np.testing.assert_allclose(out.numpy(), x.numpy() @ w.numpy().T, rtol=1e-6, atol=1e-6)


def test_a_replay_refuses_another_layout_where_the_function_writes():
    def f(a):
        v = a.reshape(-1)
        v.mul_(2.0)
        return a * 1

    graph = jit.trace(f, genesis.ones(2, 3))
    assert graph.replay(genesis.ones(2, 3)).tolist() == [[2, 2, 2]] * 2
    with pytest.raises(
        RuntimeError, match=r"argument tensor 0 is laid out otherwise than when f was traced(.|\n)*contiguous\(\)"
    ):
        graph.replay(genesis.ones(3, 2).t())
    pure = jit.trace(lambda a: a.reshape(-1) * 2, genesis.ones(2, 3))
    assert pure.replay(genesis.arange(6.0).reshape(3, 2).t()).tolist() == [0, 4, 8, 2, 6, 10]


@pytest.mark.parametrize("counts", [(3, 1), (1, 1), (2,), (1,), (2, 1, 1)])
def test_repeated_tensors_have_memory_of_their_own(counts):
    x = genesis.tensor([1.0, 2.0])
    y = x.repeat(*counts)
    expected = np.tile(x.numpy().copy(), counts)
    x[0] = 100.0
    assert (y.numpy() == expected).all() and (
        genesis.tile(genesis.tensor([1.0, 2.0]), counts).numpy() == expected
    ).all()
    y += 1
    assert (y.numpy() == expected + 1).all() and x.tolist() == [100, 2]


def test_small_refusals():
    x = genesis.ones(2)
    for argnums in ((0, 0), (0, -2)):
        with pytest.raises(ValueError, match="argnums names an argument twice"):
            grad(lambda a, b: (a * b).sum(), argnums=argnums)(x, x)
    z = (genesis.ones(2, requires_grad=True) * 1j).sum()
    with pytest.raises(RuntimeError, match="only for a real output, it is genesis.complex64"):
        z.backward()
    z.backward(genesis.ones((), dtype=genesis.complex64))
    for call in (
        lambda: vmap(lambda w: genesis.multinomial(w, 6), randomness="different")(genesis.ones(2, 5)),
        lambda: genesis.multinomial(genesis.ones(3, 4, device="meta"), 6),
    ):
        with pytest.raises(RuntimeError, match="cannot draw 6 without replacement from"):
            call()
    with pytest.raises(RuntimeError, match="probabilities must be between 0 and 1"):
        vmap(genesis.bernoulli, randomness="different")(genesis.tensor([[2.0], [-1.0]]))


def _first(x):
    y = x * 1
    y.t()[0] = 5.0
    return y.view(-1)


def _several(x):
    y = x * 1
    v = y.view(-1)
    y.t()[...] = x.t() * 2
    v.mul_(2)
    return y, v, (y * 1).view(-1)


def _filled(x):
    y = x.t() * 1
    y.fill_(3.0)
    y.t().view(-1)[1] = 7.0
    return y, (y + 0).t().view(-1)


@pytest.mark.parametrize("f", [_first, _several, _filled])
def test_writes_keep_the_layout_in_traces(f):
    x = genesis.arange(6.0).reshape(2, 3)
    expected = f(x)
    for graph in (jit.trace(f, x), jit.optimized(jit.trace(f, x))):
        found = graph.verify().replay(x)
        for y, z in zip(expected, found, strict=True) if isinstance(expected, tuple) else [(expected, found)]:
            assert y.tolist() == z.tolist() and y.stride() == z.stride()
