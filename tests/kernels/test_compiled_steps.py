"""The compiled step of Adam, and loops of several results."""

import numpy as np
import pytest

import genesis
from genesis.kernels.cpu import optim as steps_on_cpu
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.llvm import loops

pytestmark = pytest.mark.skipif(not loops.available(), reason="no llvmlite, or no fused multiply-add here")


def _sum_and_product(x, y):
    return x + y, x * y


@pytest.fixture(scope="module")
def both():
    return loops.ufunc("sum_and_product", _sum_and_product, "float", operands=2, narrow=True, results=2)


@pytest.mark.parametrize("n", [0, 1, 3, 15, 16, 17, 100])
def test_a_loop_of_two_results(both, n):
    x, y = np.arange(n, dtype=np.float32), np.linspace(-1, 1, n, dtype=np.float32)
    total, product = both(x, y)
    np.testing.assert_array_equal(total, x + y)
    np.testing.assert_array_equal(product, x * y)


def test_layouts_and_overlap_of_two_results(both):
    x = np.arange(60, dtype=np.float32).reshape(3, 20)
    y = np.float32(3)
    for a in (x[:, ::2], x[::-1], x.T, x[:, ::-3], np.broadcast_to(x[:1], (3, 20))):
        total, product = both(a, y)
        np.testing.assert_array_equal(total, a + y)
        np.testing.assert_array_equal(product, a * y)
    wide = np.zeros((20, 6), np.float32)
    both(x[0], y, out=(wide[:, 1], wide[:, 4]))
    np.testing.assert_array_equal(wide[:, 1], x[0] + y)
    np.testing.assert_array_equal(wide[:, 4], x[0] * y)
    assert not wide[:, [0, 2, 3, 5]].any()
    z = x.copy()
    both(z[0, :-1], z[0, 1:], out=(z[1, :-1], z[0, :-1]))  # one of the results is where an operand is
    np.testing.assert_array_equal(z[1, :-1], x[0, :-1] + x[0, 1:])
    np.testing.assert_array_equal(z[0, :-1], x[0, :-1] * x[0, 1:])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(LARGE["elements"],), (97, 211), (LARGE["elements"] * 5 + 3,)])
def test_the_compiled_step_has_the_bits_of_the_blocks(dtype, shape):
    rng = np.random.default_rng(0)
    first = [rng.normal(size=shape).astype(dtype) for _ in range(3)] + [rng.random(shape).astype(dtype)]
    first[1].flat[:3] = np.nan, np.inf, 0
    compiled, blocks = [[a.copy() for a in first] for _ in range(2)]
    numbers = 0.9, 0.999, 0.0316, 1e-8, -0.01, 0.99
    with np.errstate(all="ignore"):
        for _ in range(3):
            p, g, m, v = compiled
            steps_on_cpu.adam_step.kernel(p, g, m, v, None, *numbers)
            steps_on_cpu._block(*blocks, np.empty(shape, dtype), *numbers)
    for a, b in zip(compiled, blocks, strict=True):
        np.testing.assert_array_equal(a, b)
    assert steps_on_cpu._compiled.cache_info().currsize


def test_many_small_steps_are_compiled_and_change_no_bit(monkeypatch):
    monkeypatch.setattr(steps_on_cpu, "OFTEN", 4)
    monkeypatch.setitem(steps_on_cpu._small, "steps", 0)
    calls = []
    block = steps_on_cpu._block
    monkeypatch.setattr(steps_on_cpu, "_block", lambda *a: (calls.append(len(a[0])), block(*a)))
    ends = []
    for often in (4, 1 << 62):
        steps_on_cpu._small["steps"] = 0
        monkeypatch.setattr(steps_on_cpu, "OFTEN", often)
        p = genesis.nn.Parameter(genesis.linspace(-1, 1, 7))
        optimizer = genesis.optim.AdamW([p], lr=0.1)
        for _ in range(6):
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()
        ends.append(p.detach())
    assert genesis.equal(*ends)
    assert calls == [7] * (3 + 6)


def test_a_large_parameter_is_trained_as_a_small_one():
    a = genesis.nn.Parameter(genesis.linspace(-1, 1, LARGE["elements"] + 5))
    b = genesis.nn.Parameter(a.detach()[:7].clone())
    for p in (a, b):
        optimizer = genesis.optim.AdamW([p], lr=0.1)
        for _ in range(5):
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()
    assert genesis.equal(a.detach()[:7], b.detach())
    assert a._version == 5


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float64])
@pytest.mark.parametrize("number", [float, np.float64, np.float32, int])
def test_numbers_of_numpy_are_options_as_pythons_are(number, dtype):
    found = []
    for size in (7, LARGE["elements"] + 1):
        p = genesis.nn.Parameter(genesis.ones(size, dtype=dtype))
        optimizer = genesis.optim.AdamW([p], lr=0.1, eps=1.0, weight_decay=0.0)
        optimizer.param_groups[0]["eps"] = number(1)
        optimizer.param_groups[0]["lr"] = number(1)
        (p * p).sum().backward()
        optimizer.step()
        found.append(p[0].item())
    assert found[0] == pytest.approx(1 - 2 / 3, rel=1e-6)
    assert found[1] == pytest.approx(found[0], rel=1e-6)
