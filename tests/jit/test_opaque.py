"""A Function that computes with other code is one call of a trace; a replay gives what eager gives."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis import jit
from genesis.core.call.op import REGISTRY


class Sine(genesis.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return genesis.from_numpy(np.sin(x.detach().numpy() * k))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * genesis.from_numpy(np.cos(x.detach().numpy() * ctx.k)) * ctx.k, None


class Branch(genesis.Function):
    """What is computed depends on the numbers."""

    @staticmethod
    def forward(ctx, x, *, above=0.0):
        ctx.factor = 2 if x.sum().item() > above else 3
        return x * ctx.factor, x.sum()

    @staticmethod
    def backward(ctx, g, h):
        return g * ctx.factor + h


class Both(genesis.Function):
    """Two inputs, one without a gradient; a tuple of one result."""

    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(index)
        ctx.size = x.shape[0]
        return (genesis.from_numpy(x.detach().numpy()[index.numpy()]),)

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        out = np.zeros(ctx.size, np.float32)
        np.add.at(out, index.numpy(), g.numpy())
        return genesis.from_numpy(out), None


def same(step, w, *points):
    """A replay gives the values and gradients of eager."""
    graph = jit.trace(step, points[0])
    for x in points:
        w.grad = None
        eager = step(x)
        gradient = w.grad
        w.grad = None
        replayed = graph.replay(x)
        assert replayed.tolist() == eager.tolist() and w.grad.tolist() == gradient.tolist()
    return graph


@pytest.fixture
def w():
    return genesis.tensor([0.5, -1.0, 2.0], requires_grad=True)


def test_numpy_inside(w):
    def step(x):
        y = Sine.apply(x * w, 2.0).sum()
        y.backward()
        return y

    graph = same(step, w, genesis.ones(3), genesis.tensor([3.0, 2.0, -1.0]))
    assert "Sine.forward" in str(graph) and "Sine.backward" in str(graph)


def test_a_branch_is_taken_anew(w):
    def step(x):
        a, b = Branch.apply(x * w, above=1.0)
        (a.sum() + b).backward()
        return a

    same(step, w, genesis.ones(3), -genesis.ones(3))


def test_inputs_without_gradients_and_a_tuple_of_one(w):
    def step(x):
        (y,) = Both.apply(w * x, genesis.tensor([2, 0, 2, 1]))
        (y * y).sum().backward()
        return y

    same(step, w, genesis.ones(3), genesis.tensor([1.0, 4.0, 9.0]))


def test_what_a_function_computes_with_ops_stays_visible(w):
    class Cube(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            return g * 3 * ctx.saved_tensors[0] ** 2

    graph = jit.trace(lambda x: Cube.apply(x * w).sum(), genesis.ones(3))
    assert "Cube" not in str(graph) and "pow" in str(graph)


def test_in_a_transform_inside_of_a_trace():
    with pytest.warns(UserWarning, match="one sample after the other"):
        graph = jit.trace(lambda x: genesis.func.vmap(lambda row: Sine.apply(row, 2.0))(x), genesis.ones(2, 3))
    x = genesis.randn(2, 3)
    np.testing.assert_allclose(graph.replay(x).numpy(), np.sin(x.numpy() * 2), rtol=1e-6)


def test_one_record_for_calls_of_one_form():
    def step(x):
        return Sine.apply(Sine.apply(x, 2.0), 2.0) + Sine.apply(x, 3.0) + Sine.apply(x, 3)

    jit.trace(step, genesis.ones(3))
    before = len(REGISTRY)
    jit.trace(step, genesis.ones(3))
    assert len(REGISTRY) == before


def test_second_derivatives_are_refused(w):
    def step(x):
        (g,) = genesis.autograd.grad(Sine.apply(w * x, 2.0).sum(), w, create_graph=True)
        g.sum().backward()
        return g

    with pytest.raises(RuntimeError, match="backward: the tensor does not require grad"):
        jit.trace(step, genesis.ones(3))


def test_a_write_to_an_argument_is_refused():
    class Doubled(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            x.detach().numpy()
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    with pytest.raises(
        RuntimeError, match="Doubled: uses values that a trace does not have, and writes to an argument"
    ):
        jit.trace(lambda x: Doubled.apply(x.clone()), genesis.ones(3))


def test_results_that_are_no_tensors_are_refused():
    class Count(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, int(x.sum().item())

        @staticmethod
        def backward(ctx, g, h):
            return g * 2

    with pytest.raises(NotImplementedError, match="Count: uses values .* and returns more than tensors"):
        jit.trace(lambda x: Count.apply(x), genesis.ones(3))
