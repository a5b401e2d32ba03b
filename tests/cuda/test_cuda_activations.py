"""GELU: one launch forward, one backward; the gradient of ReLU. Run by Python and by Triton's interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_of import WAYS, emulated, instructions, machine_code, needs_triton, results, same, started

import genesis
from genesis.cuda.kernels.lanes import LANES
from genesis.nn import functional as F

TOLERANCE = {"float32": 2e-6, "float64": 1e-14, "float16": 2e-3, "bfloat16": 2e-2}


def graded(approximate):
    def computed(x):
        x = x.detach().requires_grad_()
        out = F.gelu(x, approximate=approximate)
        (out if out.dtype == genesis.float64 else out.float()).sin().sum().backward()
        return out, x.grad

    return computed


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_results_and_gradients(approximate, dtype, way):
    if way == "triton" and dtype == "bfloat16":
        pytest.skip("the interpreter has no bfloat16")
    genesis.manual_seed(4)
    for x in (genesis.randn(5, 37) * 3, genesis.randn(2, 3, 4).transpose(0, 2), genesis.tensor(1.5)):
        with emulated(way):
            same(graded(approximate), x.to(getattr(genesis, dtype)), tolerance=TOLERANCE[dtype])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_what_is_laid_out_with_gaps_and_far_numbers(approximate, way):
    far = genesis.tensor([0.0, -0.0, 30.0, -30.0, 1e4, -1e4, float("inf"), float("-inf"), float("nan")])
    with emulated(way):
        same(graded(approximate), far, tolerance=1e-6)
        same(graded(approximate), genesis.randn(4, 10)[:, ::3], tolerance=2e-6)
        same(graded(approximate), genesis.randn(4, 1).expand(4, 3), tolerance=2e-6)
        same(lambda x: F.gelu(x, approximate=approximate), genesis.zeros(0, 3))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_in_steps(approximate, way):
    """There it is a function of a kernel of loops, with what is before and behind it."""
    with emulated(way):
        x = (genesis.randn(5, 37) * 3).to("cuda")
        run = genesis.compile(graded(approximate))
        for _ in range(2):
            for got, expected in zip(run(x), graded(approximate)(x.cpu()), strict=True):
                np.testing.assert_allclose(got.detach().cpu().numpy(), expected.detach().numpy(), rtol=2e-6, atol=2e-6)
        (entry,) = run._recent
        assert any(["gelu" in str(call) for phase in entry.step.phases if phase.stages for call in phase.calls])


def test_second_derivatives_are_those_of_the_composition():
    def twice(x):
        x = x.detach().requires_grad_()
        (g,) = genesis.autograd.grad(F.gelu(x).sum(), x, create_graph=True)
        return genesis.autograd.grad(g.square().sum(), x)

    with emulated():
        same(twice, genesis.randn(7), tolerance=1e-5)


def test_launches():
    with emulated() as driver:
        x = genesis.randn(64, dtype=genesis.bfloat16).to("cuda").requires_grad_()
        y = F.gelu(x)
        g = genesis.ones_like(y)
        before = driver.calls["launch"]
        y = F.gelu(x)
        assert driver.calls["launch"] == before + 1
        y.backward(g)
        assert driver.calls["launch"] <= before + 3  # its own, and what accumulates


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_machine_code(approximate):
    made = started(lambda: graded(approximate)(genesis.randn(1 << 16).bfloat16().to("cuda")))
    kernels = [(k, a) for k, a in made if type(k).__name__ == "Lanes" and "gelu" in k.code.name]
    assert len(kernels) == 2
    for kernel, aligned in kernels:
        text = machine_code(kernel, aligned)
        assert "LDG.E.128" in text or "LDG.E.64" in text
        assert instructions(text) <= 24 * LANES / 128, "of each element: what is done while an H200 reads and writes it"


@needs_triton
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_small_values_far_out_have_all_their_bits(dtype):
    """What is computed with powers of two and reciprocals is as exact, relative to itself, as its dtype."""
    far = genesis.linspace(-9 if dtype == "float32" else -3.5, -1.5, 200)
    functions = {"gelu": F.gelu, "silu": F.silu, "sigmoid": genesis.sigmoid, "slope": graded("none")}
    with emulated("triton"):
        for name, function in functions.items():
            got = results(function(far.to(getattr(genesis, dtype)).to("cuda")))[-1].detach().cpu().float().double()
            expected = results(function(far.to(getattr(genesis, dtype)).double()))[-1].detach()
            off = ((got - expected) / expected).abs().max().item()
            assert off < (2e-6 if dtype == "float32" else 1.2e-3), (name, off)


@needs_triton
def test_results_of_16_bits_are_as_if_rounded_once():
    """Of all numbers of float16: a shorter polynomial is right to a hundredth of their last bit."""
    bits = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    every = genesis.tensor(bits[np.isfinite(bits)])
    with emulated("triton"):
        got = F.gelu(every.to("cuda")).cpu().numpy()
    right = F.gelu(every.double()).numpy().astype(np.float16)
    apart = np.abs(got.view(np.int16).astype(int) - right.view(np.int16).astype(int))
    assert apart.max() <= 1 and (apart == 1).mean() < 0.01, (apart.max(), (apart == 1).mean())


# ---- elementwise ops written over their operand


UPDATES = {
    "another": lambda x, y: x.add_(y),
    "itself": lambda x, y: x.mul_(x),
    "a number": lambda x, y: x.mul_(0.75).sub_(1.5),
    "quotients": lambda x, y: x.div_(y),
    "an operator": lambda x, y: x.__imul__(y),
    "a part": lambda x, y: x[1:].mul_(y[:-1]),
    "every second": lambda x, y: x[:, ::2].add_(y[:, 1::2]),
    "overlapping": lambda x, y: x[1:].add_(x[:-1]),
    "turned": lambda x, y: x[:4, :4].add_(x[:4, :4].t()),
    "a row": lambda x, y: x.add_(y[0]),
    "scaled": lambda x, y: x.add_(y, alpha=0.5),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", UPDATES)
def test_what_is_written_over(name, dtype, way):
    genesis.manual_seed(4)
    x, y = (genesis.randn(6, 8).to(getattr(genesis, dtype)) for _ in range(2))

    def run(x, y):
        x = x.clone()
        UPDATES[name](x, y)
        return x

    with emulated(way):
        same(run, x, y, tolerance=1e-3 if dtype == "float16" else 1e-6)


def test_what_is_written_over_takes_one_launch_and_counts_as_a_write():
    with emulated() as driver:
        x, y = genesis.ones(64, device="cuda"), genesis.ones(64, device="cuda")
        x.add_(y)
        before, version = dict(driver.calls), x._version
        x.add_(y)
        x *= 0.5
        assert driver.calls["launch"] == before["launch"] + 2 and driver.calls.get("copy", 0) == before.get("copy", 0)
        assert x._version == version + 2 and x[0].item() == 1.5


def test_what_is_recorded_is_not_written_over_unseen():
    with emulated():
        x = genesis.ones(3, device="cuda", requires_grad=True)
        y = x * 2
        z = y * y
        y.add_(1.0)
        with pytest.raises(RuntimeError):
            z.sum().backward()
        with pytest.raises(RuntimeError):
            x.add_(1.0)
        with genesis.no_grad():
            x.add_(1.0)
        assert x.tolist() == [2, 2, 2]
        half = genesis.ones(3, device="cuda")
        view = half[:2]
        view.mul_(3.0)
        assert half.tolist() == [3, 3, 1]


def test_the_gradient_of_relu_is_one_launch_of_16_bits():
    """It is the gradient that came, or zero: nothing is widened for it."""
    with emulated() as gpu:
        x = genesis.randn(2, 3, 4, 5).to(genesis.bfloat16).to("cuda").to(memory_format=genesis.channels_last)
        x.requires_grad_()
        y, g = x.relu(), genesis.ones_like(x)
        genesis.autograd.grad(y, x, g, retain_graph=True)
        before = gpu.calls["launch"]
        genesis.autograd.grad(y, x, g, retain_graph=True)
        assert gpu.calls["launch"] - before == 1
