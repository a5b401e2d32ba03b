"""Random programs of elementwise calls, views, reductions and products: machine code against calls."""

from __future__ import annotations

import random

import numpy as np
import pytest
from native_runs import check, traced

import genesis
from genesis.jit.lowering.step import Step
from genesis.kernels.llvm import loops

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")

SHAPES = [(6, 4, 10), (37, 45), (5, 1, 20), (3, 130), (2, 3, 4, 5)]


def program(seed):
    """A function that takes two tensors, chosen by a seed, and these."""
    rng = random.Random(seed)
    shape = rng.choice(SHAPES)
    source = np.random.default_rng(seed)
    inputs = [genesis.tensor(source.normal(size=s).astype(np.float32)) for s in (shape, shape[-1:])]
    steps = [_step(rng) for _ in range(rng.randint(2, 9))]

    def function(x, y):
        values, outs = [x, y], []
        for step in steps:
            new = step(values)
            if new is not None and new.numel() < 20_000:
                values.append(new.clamp(-50.0, 50.0))
        picked = rng_of_results.sample(values[2:], min(len(values) - 2, 3)) if len(values) > 2 else [x + 1]
        outs += picked
        return outs

    rng_of_results = random.Random(seed + 1)
    return function, inputs


def _step(rng):
    """One call: of the value that `pick` chooses from those that there are."""
    where = rng.random()

    def pick(values):
        return values[min(int(where * len(values)), len(values) - 1)]

    kind = rng.choice(["one", "two", "row", "view", "reduce", "product", "join"])
    index, dim, other = rng.randrange(1000), rng.randrange(4), rng.random()

    def partner(values, x):
        found = [v for v in values if _broadcast(v.shape, x.shape)]
        return found[int(other * len(found))]

    one = [lambda x: x.exp(), lambda x: x * 2 - 1, lambda x: x.abs().sqrt(), lambda x: x.relu(), lambda x: x.tanh(),
           lambda x: x.sigmoid(), lambda x: (x > 0).float(), lambda x: 1 / (x * x + 1), lambda x: x.sin()]  # fmt: skip
    two = [lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x - y, lambda x, y: genesis.where(x > y, x, y)]
    rows = [lambda x, d: x.softmax(d), lambda x, d: x - x.mean(d, keepdim=True), lambda x, d: x / (1 + x.abs().amax(d, keepdim=True)),
            lambda x, d: x.log_softmax(d), lambda x, d: (x - x.mean(d, keepdim=True)) * (x.var(d, keepdim=True) + 1).rsqrt()]  # fmt: skip
    reduce = [lambda x, d: x.sum(d), lambda x, d: x.mean(d), lambda x, d: x.amax(d), lambda x, d: x.norm(dim=d),
              lambda x, d: x.sum(), lambda x, d: x.sum(tuple(range(x.ndim - 1))), lambda x, d: (x > 0).any(d).float()]  # fmt: skip
    view = [lambda x, d: x.transpose(d, -1), lambda x, d: x.reshape(-1), lambda x, d: x.narrow(d, 0, (x.shape[d] + 1) // 2),
            lambda x, d: x.unsqueeze(d), lambda x, d: x.flatten(0, 1) if x.ndim > 1 else x, lambda x, d: x.flip(d),
            lambda x, d: x.transpose(d, 0).contiguous(), lambda x, d: x.reshape(x.shape[0], -1)]  # fmt: skip

    def run(values):
        x = pick(values)
        d = dim % max(x.ndim, 1)
        if kind == "one":
            return one[index % len(one)](x)
        if kind == "two":
            return two[index % len(two)](x, partner(values, x))
        if not x.ndim:
            return None
        if kind == "product":
            return x.reshape(-1, x.shape[-1]) @ x.reshape(-1, x.shape[-1]).t()
        if kind == "join":
            return genesis.cat([x, x * 2], d)
        table = {"row": rows, "view": view, "reduce": reduce}[kind]
        return table[index % len(table)](x, d)

    return run


def _broadcast(a, b):
    return all([m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False)])


def _close(actual, expected, what):
    """To a few units of float32 of the largest number: sums of random signs lose digits."""
    scale = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(actual, expected, rtol=2e-4, atol=2e-5 * float(scale), err_msg=what)


@pytest.mark.parametrize("seed", range(60))
def test_a_random_program(seed):
    function, inputs = program(seed)
    check(traced(function, *inputs), inputs, _close, f"program {seed}")


@pytest.mark.parametrize("seed", range(100, 104))
def test_the_bits_do_not_depend_on_the_number_of_threads(seed):
    x = genesis.tensor(np.random.default_rng(seed).normal(size=(300, 513)).astype(np.float32))

    def function(x):
        y = x.softmax(1) * x
        return y, y.sum(0), y.sum(), (x * x).mean(), x.t() @ y, y.norm()

    step, results = Step(traced(function, x).program), []
    before = genesis.get_num_threads()
    try:
        for threads in (1, 2, 3):
            genesis.set_num_threads(threads)
            results.append([a.tobytes() for a in step.run((x._array,))])
    finally:
        genesis.set_num_threads(before)
    assert results[0] == results[1] == results[2]
