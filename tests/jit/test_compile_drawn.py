"""Random numbers of NumPy and Python in compiled functions: tensors that are made of them are arguments of the graph."""

from __future__ import annotations

import functools
import random
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.core.call import subclasses
from genesis.nn import functional as F
from genesis.utils.checkpoint import checkpoint

pytest.importorskip("llvmlite")

COMPILED, AS_IT_IS = {}, {}


def compiled(make):
    COMPILED[make.__name__] = make


def as_it_is(make):
    AS_IT_IS[make.__name__] = make


def noise(n):
    drawn = np.random.normal(0, 1, (n, 3))
    return genesis.from_numpy(drawn).float()


@compiled
def at_once():
    return lambda x, i: one(x)


def one(x):
    z = genesis.from_numpy(np.random.normal(0, 1, (x.shape[0], 3))).float()
    return (x * z).sum(0)


@compiled
def in_steps():
    def step(x, i):
        drawn = np.random.randn(x.shape[0], 3)
        drawn = drawn * 2 + 1
        z = genesis.tensor(drawn, dtype=genesis.float32)
        return x * z

    return step


@compiled
def several():
    def step(x, i):
        a, b = np.random.randn(3), np.random.randint(0, 3, x.size(0))
        z, k = genesis.tensor(a).float(), genesis.from_numpy(b)
        w = genesis.tensor([random.gauss(0, 1) for _ in range(3)])
        return (x * z).sum(0) + F.one_hot(k, 3).sum(0) + w

    return step


@compiled
def by_a_function():
    return lambda x, i: by_functions(x)


def by_functions(x):
    z = noise(x.size(0))
    w = noise(x.size(0))
    return x * z - w


@compiled
def in_a_loop():
    def step(x, i):
        for _ in range(3):
            z = genesis.from_numpy(np.random.rand(3)).float()
            x = x * z
        return x

    return step


@compiled
def decided_by():
    def step(x, i):
        z = genesis.from_numpy(np.random.randn(3)).float()
        y = (x * z).sum()
        if y > 0:
            return y * 2
        return y - 1

    return step


@compiled
def on_one_way():
    def step(x, i):
        if x.sum() > 10:
            z = genesis.from_numpy(np.random.rand(3)).float()
        else:
            z = genesis.from_numpy(np.random.rand(2, 3)).float().sum(0)
        return x * z

    return step


@compiled
def of_any_size():
    def step(x, i):
        z = genesis.from_numpy(np.random.rand(np.random.randint(1, 4), 3)).float()
        return x.sum(0) + z.sum(0)

    return step


@compiled
def of_what_changes():
    options = SimpleNamespace(sigma=1.0, kinds=[np.float32, np.float64])

    def step(x, i):
        z = genesis.from_numpy(np.random.normal(0, options.sigma, 3).astype(options.kinds[0]))
        return x * z

    def every(x, i):
        options.sigma += 0.5
        options.kinds = options.kinds[::-1] if i % 3 == 0 else options.kinds
        return every.step(x, i)

    every.step = genesis.compile(step)
    return every


@compiled
def indices_of_data():
    table, data = np.arange(15.0).reshape(5, 3), genesis.arange(15.0).reshape(5, 3)

    def step(x, i):
        k = np.random.randint(0, 5, x.shape[0])
        rows = genesis.from_numpy(table[k]).float()
        picked = genesis.from_numpy(np.random.permutation(5)[:2])
        return x * rows + data[picked].sum(0)

    def every(x, i):
        table[i % 5] += 1
        data[i % 5] += 1
        return every.step(x, i)

    every.step = genesis.compile(step)
    return every


@compiled
def behind_dropout():
    def step(x, i):
        y = F.dropout(x, 0.5)
        z = genesis.tensor(np.random.rand(3)).float()
        return y * z

    return step


@compiled
def two_players():
    genesis.manual_seed(0)
    g = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
    d = nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    of_g, of_d = genesis.optim.Adam(g.parameters(), lr=0.01), genesis.optim.Adam(d.parameters(), lr=0.01)
    losses = []

    def penalty(real, fake):
        alpha = genesis.tensor(np.random.random((real.size(0), 1))).float()
        between = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
        out = d(between)
        (slope,) = genesis.autograd.grad(out, between, genesis.ones_like(out), create_graph=True)
        return ((slope.norm(2, dim=1) - 1) ** 2).mean()

    def step(x, i):
        for _ in range(2):
            of_d.zero_grad()
            z = genesis.tensor(np.random.normal(0, 1, (x.shape[0], 5))).float()
            made = g(z).detach()
            loss = d(made).mean() - d(x).mean() + 10 * penalty(x.data, made.data)
            loss.backward()
            of_d.step()
        of_g.zero_grad()
        z = genesis.tensor(np.random.normal(0, 1, (x.shape[0], 5))).float()
        of = -d(g(z)).mean()
        of.backward()
        of_g.step()
        losses.append(of.item())
        return loss.detach(), of.detach(), genesis.tensor(losses[-1:])

    return step


@compiled
def gradients_outside():
    genesis.manual_seed(0)
    layer = nn.Linear(3, 3)

    @genesis.compile
    def noisy(x):
        h = layer(x)
        z = genesis.tensor(np.random.randn(x.size(0), 3), dtype=genesis.float32)
        return h * z

    def step(x, i):  # two calls are open at once
        a, b = noisy(x), noisy(x * 2)
        layer.zero_grad()
        (a.sum() + (b**2).sum()).backward()
        (slope,) = genesis.autograd.grad((noisy(x) ** 2).sum(), layer.weight, create_graph=True)
        (second,) = genesis.autograd.grad(slope.square().sum(), layer.weight)
        return layer.weight.grad.clone(), second

    step.step = noisy
    return step


@as_it_is
def written_to():
    def step(x, i):
        z = genesis.tensor(np.random.rand(3)).float()
        z.mul_(2)
        z[0] = 5
        return x + z

    return step


@as_it_is
def memory_of_an_array():
    def step(x, i):
        drawn = np.random.rand(3).astype(np.float32)
        z = genesis.from_numpy(drawn)
        y = x * z
        drawn *= 2
        return y + z

    return step


@as_it_is
def a_row_of_an_array():
    table = np.ones((5, 3), np.float32)

    def step(x, i):
        z = genesis.from_numpy(table[np.random.randint(5)])
        y = x * z
        z.add_(1)
        return y, genesis.tensor(table)

    return step


@as_it_is
def a_tensor_from_outside():
    pool = [genesis.ones(3), genesis.zeros(3)]

    def step(x, i):
        z = random.choice(pool)
        pool[0].add_(1)
        pool[1].add_(1)
        return x * z

    return step


@as_it_is
def shuffled_in_place():
    order = np.arange(6)

    def step(x, i):
        np.random.shuffle(order)
        z = genesis.from_numpy(order[:3].copy()).float()
        return x * z

    return step


@as_it_is
def into_what_is_there():
    array, tensor = np.zeros(3), genesis.zeros(3)

    def step(x, i):
        z = genesis.from_numpy(np.add(np.random.rand(3), 1, out=array)).float()
        w = genesis.add(genesis.from_numpy(np.random.rand(3)).float(), 1, out=tensor)
        return x * z + w, genesis.tensor(array), tensor.clone()

    return step


@as_it_is
def seeded():
    def step(x, i):
        np.random.seed(i % 3)
        z = genesis.from_numpy(np.random.rand(3)).float()
        return x * z

    return step


@as_it_is
def by_a_partial_function():
    draw = functools.partial(np.random.normal, 0, 1)

    def step(x, i):
        z = genesis.from_numpy(draw(3)).float()
        return x * z

    return step


@as_it_is
def behind_what_is_counted():
    counts = SimpleNamespace(calls=0)

    def step(x, i):
        counts.calls += 1
        z = genesis.from_numpy(np.random.rand(np.random.randint(1, 3), 3)).float()
        return x.sum(0) + z.sum(0) + counts.calls

    return step


@as_it_is
def in_a_backward():
    layer = nn.Linear(3, 3)

    def block(x):
        h = layer(x)
        z = genesis.from_numpy(np.random.rand(3)).float()
        return (h * z).tanh()

    @genesis.compile
    def outer(x):
        return checkpoint(block, x, use_reentrant=False).sum()

    def step(x, i):
        layer.zero_grad()
        y = outer(x)
        y.backward()
        return y.detach(), layer.weight.grad.clone()

    step.step = outer
    return step


@as_it_is
def on_some_calls():
    def step(x, i):
        z = genesis.from_numpy(np.random.rand(3)).float() if random.random() < 0.8 else genesis.rand(3)
        return x * z + genesis.rand(3)

    return step


@as_it_is
def of_weights_behind_a_write():
    w = genesis.ones(3)
    array = w.numpy()

    def step(x, i):
        w.add_(1)
        z = genesis.tensor(np.random.normal(array, 1)).float()
        y = genesis.tensor(np.random.normal(w.sum().item(), 1, 3)).float()
        return x * z + y

    return step


def run(make, compile):
    random.seed(0), np.random.seed(0), genesis.manual_seed(0)
    step = make()
    known = getattr(step, "step", None)
    if known is None:
        step = known = genesis.compile(step)
    known.enabled = compile
    told = []
    for i in range(16):
        out = step(genesis.ones(4 if i != 3 else 2, 3) * (i + 1), i % 2)
        told += [(y.dtype, y.shape, y.tolist()) for y in (out if isinstance(out, tuple) else (out,))]
    return told, (random.random(), np.random.rand(), genesis.rand(1).item()), known


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("name", [*COMPILED, *AS_IT_IS])
def test_results_and_random_numbers_are_those_of_eager_calls(name):
    make = (COMPILED | AS_IT_IS)[name]
    (actual, numbers, function), (expected, eager, _) = run(make, True), run(make, False)
    assert [kind[:2] for kind in actual] == [kind[:2] for kind in expected]
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a[2], b[2], rtol=2e-4, atol=1e-5)
    assert numbers == eager
    assert bool(function._recent) or name in AS_IT_IS, str(function.explain())


@pytest.mark.filterwarnings("ignore:compile")
def test_an_error_of_a_draw_is_raised_behind_what_comes_before_it():
    def attempts(compile):
        np.random.seed(0), random.seed(0)
        w, told, options = genesis.zeros(3), [], SimpleNamespace(sigma=1.0)

        def step(x):
            z = genesis.tensor([random.random() for _ in range(3)])
            w.add_(x.sum(0) * z)
            y = genesis.tensor(np.random.normal(0, options.sigma, 3)).float()
            return x * y

        function = genesis.compile(step) if compile else step
        for i in range(9):
            options.sigma = -1.0 if i % 4 == 3 else 1.0 + i
            try:
                told.append(function(genesis.ones(4, 3)).sum().item())
            except ValueError:
                told.append(-1.0)
            told += [*w.tolist(), np.random.rand(), random.random()]
        return told, function

    (actual, function), (expected, _) = attempts(True), attempts(False)
    assert actual == pytest.approx(expected, rel=1e-5) and -1.0 in actual and function._recent


@pytest.mark.filterwarnings("ignore:compile")
def test_an_error_behind_draws_leaves_them_as_an_eager_call_does():
    def step(x):
        z = genesis.tensor(np.random.rand(3)).float()
        k = genesis.tensor(np.random.randint(0, 5, 2))
        return (x * z)[k]

    def attempts(function):
        np.random.seed(0)
        told = []
        for _ in range(20):
            try:
                told.append(function(genesis.ones(4, 3)).sum().item())
            except IndexError:
                told.append(None)
        return told, np.random.rand()

    function = genesis.compile(step)
    (actual, after), (expected, eager) = attempts(function), attempts(step)
    assert actual == pytest.approx(expected) and None in actual and after == eager and function._recent


def test_numpy_begins_to_draw_in_the_first_trace():
    program = """
import numpy as np, genesis
function = genesis.compile(lambda x: x * float(np.random.rand()))
print(len({function(genesis.ones(1)).item() for _ in range(4)}))
"""
    assert (
        subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True).stdout == "4\n"
    )


class Asked:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


def test_functions_that_ask_classes_first_make_tensors_as_others(classes_of_its_own):
    subclasses.add_kind(Asked, everywhere=True)
    test_results_and_random_numbers_are_those_of_eager_calls("several")
