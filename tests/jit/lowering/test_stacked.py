"""Products with the same second matrix as one: which are, and that nothing else changes, to the bit."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import genesis
from genesis import jit
from genesis.jit.lowering import stacked
from genesis.jit.lowering.step import Step
from genesis.kernels.llvm import native
from genesis.nn import functional as F

pytestmark = pytest.mark.skipif(native.host() is None, reason="there is no llvmlite")


def made(function, *args):
    """How many products there are in the end; results, and those of the program as it was."""
    program = jit.optimized(jit.trace(function, *args)).program
    new = stacked.stacked(program).verify()
    arrays = [x.numpy() for x in args]
    got, expected = Step(new, native=True).run(arrays), Step(program, list(_phases(program))).run(arrays)
    assert len(got) == len(expected) > 0
    for a, b in zip(got, expected, strict=True):
        assert a.tobytes() == b.tobytes()
    return new.count("linear") + new.count("matmul")


def _phases(program):
    from genesis.jit.lowering.regions import phases

    return phases(program)


def tensors(*shapes):
    genesis.manual_seed(0)
    return [genesis.randn(*shape) for shape in shapes]


def layers(x, w, b, v):
    """Two layers for each of several parts, whose results are read together."""
    each = [F.relu(F.linear(part, w, b)) for part in x]
    return genesis.cat([h @ v for h in each]), sum([h.sum() for h in each])


@pytest.mark.parametrize(("count", "rows"), [(2, 5), (4, 32), (3, 33), (4, 128), (2, 512)])
def test_layers_of_several_parts_are_computed_at_once(count, rows):
    assert made(layers, *tensors((count, rows, 40), (24, 40), (24,), (24, 9))) == 2


@pytest.mark.parametrize(
    ("rows", "inner", "outer", "count"),
    [(4, 24, 9, 6), (513, 24, 9, 6), (8, 3, 9, 6), (8, 24, 3, 4)],
)
def test_few_and_many_rows_and_narrow_matrices_stay_apart(rows, inner, outer, count):
    assert made(layers, *tensors((3, rows, 40), (inner, 40), (inner,), (inner, outer))) == count


def test_parts_of_more_dimensions():
    def several(x, w):
        return genesis.cat([F.gelu(F.linear(part, w)).mean(1) for part in x])

    assert made(several, *tensors((2, 3, 7, 40), (24, 40))) == 1


def test_products_that_need_each_other_are_not_one():
    def twice(x, y, w):
        return F.linear(F.linear(x, w), w) * F.linear(y, w)

    assert made(twice, *tensors((8, 16), (8, 16), (16, 16))) == 2  # the first of x, and that of y

    def crossed(x, y, v, w):
        return F.linear(F.linear(x, v), w) * F.linear(F.linear(y, w), v)

    assert made(crossed, *tensors((8, 16), (8, 16), (16, 16), (16, 16))) == 4


def test_the_same_product_of_operands_that_are_read_elsewhere_too():
    def read(x, y, w):
        a, b = x * 2, y * 3
        before = a.sum() + b.exp().sum()
        c, d = F.linear(a, w), F.linear(b, w)
        return before, c * a[:, :1] + d, b.sin(), a

    assert made(read, *tensors((8, 16), (8, 16), (12, 16))) == 1


def test_what_leaves_and_what_lies_otherwise_stays():
    def leaves(x, y, w):
        return F.linear(x, w), F.linear(y, w)

    def apart(x, y, w):
        return F.linear(x.mT, w) + F.linear(y.mT, w)

    def others(x, y, w):
        return F.linear(x, w) + F.linear(x, w.exp()) + F.linear(y[:6], w).sum()

    x, y, w = tensors((8, 16), (8, 16), (12, 16))
    assert made(leaves, x, y, w) == 2 and made(others, x, y, w) == 3
    assert made(apart, *tensors((16, 8), (16, 8), (12, 16))) == 2


def test_random_numbers_are_drawn_in_their_order():
    """Compiled, with dropout between the layers: the numbers are those of the program line by line."""

    def drawn(x, w, v):
        return genesis.cat([F.linear(F.dropout(F.linear(part, w), 0.5, True), v) for part in x])

    x, w, v = tensors((4, 16, 40), (24, 40), (24, 24))
    compiled = genesis.compile(drawn, fullgraph=True)
    results = []
    for function in (drawn, compiled, compiled):
        genesis.manual_seed(3)
        results.append(function(x, w, v).numpy())
    assert compiled._recent[0].step.program.count("linear") == 2
    for got in results[1:]:
        assert ((got == 0) == (results[0] == 0)).all()
        np.testing.assert_allclose(got, results[0], 1e-5, 1e-5)


def test_gradients_of_a_layer_called_several_times():
    layer = genesis.nn.Linear(40, 40)
    (x,) = tensors((4, 16, 40))

    def gradients(x):
        layer.zero_grad()
        sum([layer(F.relu(layer(part))).square().sum() for part in x]).backward()

    compiled = genesis.compile(gradients, fullgraph=True)
    compiled(x)
    got = [p.grad.clone() for p in layer.parameters()]
    assert compiled._recent[0].step.program.count("linear") == 2
    gradients(x)
    for a, p in zip(got, layer.parameters(), strict=True):
        np.testing.assert_allclose(a.numpy(), p.grad.numpy(), 1e-4, 1e-3)


LARGE = """
import hashlib
import warnings
import genesis
warnings.simplefilter("error")
genesis.manual_seed(0)
w, *parts = genesis.randn(64, 64), *[genesis.randn(500, 64) for _ in range(32)]
compiled = genesis.compile(lambda *parts: sum([(x.sin() @ w).exp().sin() * 0.1 for x in parts]), fullgraph=True)
compiled(*parts)
print(hashlib.sha256(compiled(*parts).numpy().tobytes()).hexdigest())
"""


def test_programs_of_many_values_out_of_files_of_others(tmp_path):
    """Whether it goes over a batch in rounds is asked before anything else of it is planned."""
    env = {**os.environ, "GENESIS_CACHE_DIR": str(tmp_path)}
    first, second = [
        subprocess.run([sys.executable, "-c", LARGE], env=env, capture_output=True, text=True) for _ in range(2)
    ]
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert first.stdout == second.stdout
