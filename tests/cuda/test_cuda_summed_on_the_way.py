"""What loops of a compiled step write is summed on the way, where it is read again for that: gradients of biases."""

from __future__ import annotations

import re

import numpy as np
import pytest
from kernels_of import WAYS, emulated, machine_code, needs_triton, training_step

import genesis
from genesis import jit, nn
from genesis.jit.lowering.step import step_of
from genesis.nn import functional as F

OVER = (0, 2, 3)
CASES = {  # shapes, what is summed over, and whether it is one loop
    "rows of a matrix": ((3000, 130), (0,), True),
    "rows of a small one": ((64, 10), (0,), True),
    "narrow rows": ((3000, 33), (0,), False),
    "leading dimensions": ((30, 100, 128), (0, 1), True),
    "channels": ((8, 16, 24, 33), OVER, True),
    "few channels": ((8, 6, 96, 33), OVER, False),
    "channels of small pictures": ((300, 6, 7, 7), OVER, False),
    "all": ((200, 130), (0, 1), False),
}


def changed(x, g):
    return g * F.gelu(x) + 0.125


def traced(function, *args):
    return step_of(jit.optimized(jit.trace(function, *args)).program)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_values(name, way):
    shape, dims, joined = CASES[name]
    genesis.manual_seed(1)
    x, g = genesis.randn(*shape), genesis.randn(*shape)

    def function(x, g):
        y = changed(x, g)
        return y, y.sum(dims) * 2

    with emulated(way):
        args = x.to("cuda"), g.to("cuda")
        made, run = traced(function, *args), genesis.compile(function)
        for got, expected in zip(run(*args), function(x, g), strict=True):
            np.testing.assert_allclose(got.cpu().numpy(), expected.numpy(), rtol=2e-5, atol=1e-3)
    first = made.phases[0]
    assert ({"gelu", "sum"} <= {re.sub(r"fused\.|\.CudaArray", "", call.op) for call in first.calls}) == joined


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [genesis.bfloat16, genesis.float16])
def test_sums_of_16_bits_are_rounded_once(dtype, way):
    """... of what was computed in float32: as near to the sums in float64 as the dtype is. What is stored with 16 bits is
    computed with fewer instructions, and its sums are of that.
    """
    genesis.manual_seed(2)
    x, g = genesis.randn(4000, 128).to(dtype), genesis.randn(4000, 128).to(dtype)

    def function(x, g):
        y = F.gelu(x) * g
        return y, y.sum(0)

    with emulated(way):
        args = x.to("cuda"), g.to("cuda")
        y, sums = genesis.compile(function)(*args)
        sources = [phase.stages[0].kernel.kernel.source for phase in traced(function, *args).phases]
        alone = (
            traced(lambda x, g: (F.gelu(x) * g).sum(0, dtype=genesis.float32), *args).phases[0].stages[0].kernel.kernel
        )
    x, g = x.double(), g.double()
    exact = (F.gelu(x) * g).sum(0).numpy()
    assert y.dtype is sums.dtype is dtype
    assert "EXACT = tl.constexpr(False)" in sources[0] and "EXACT = tl.constexpr(True)" in alone.source
    np.testing.assert_allclose(sums.cpu().double().numpy(), exact, rtol=1.1 * genesis.finfo(dtype).eps / 2, atol=1e-3)


@pytest.mark.parametrize("way", WAYS)
def test_last_sums_of_several_biases_are_one_launch(way):
    """... with the updates of the biases, which nothing waits for."""

    def trained(place):
        genesis.manual_seed(3)
        layers = [nn.Linear(128, 128) for _ in range(3)]
        model = nn.Sequential(layers[0], nn.GELU(), layers[1], nn.GELU(), layers[2], nn.LayerNorm(128)).to(place)
        optimizer = genesis.optim.AdamW(model.parameters(), lr=0.01)
        x = genesis.randn(1500, 128).to(place)

        step = training_step(optimizer, lambda x: model(x)[:, :64].square().mean())

        run = genesis.compile(step) if place == "cuda" else step
        return [run(x).item() for _ in range(3)], [p.detach().cpu().numpy() for p in model.parameters()], run

    expected = trained("cpu")
    with emulated(way), pytest.MonkeyPatch.context() as patch:
        patch.setattr("genesis.cuda.launch.mixed.MOST", 2)  # two have one kernel, and the third one of its own
        losses, parameters, run = trained("cuda")
    np.testing.assert_allclose(losses, expected[0], rtol=1e-5)
    for got, wanted in zip(parameters, expected[1], strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=3e-4)
    phases = run._recent[0].step.phases
    (last,) = [p for p in phases if [call.op for call in p.calls].count("sum") >= 3]
    sums = [s.kernel.kernel for s in last.stages if any([v.spec.shape == (128,) for v in s.operands])]
    assert (
        len(sums) == 4 and len({kernel.source for kernel in sums}) == 2
    )  # of biases, and of the norm's weight and bias


@needs_triton
@pytest.mark.slow
def test_machine_code():
    """16 bytes are read, and written, at a time."""
    shape = 16384, 3072
    with emulated():
        x, g = (genesis.zeros(*shape, device="cuda", dtype=genesis.bfloat16) for _ in range(2))
        made = traced(lambda x, g: (y := changed(x, g), y.sum(0)), x, g)
    kernel = made.phases[0].stages[0].kernel.kernel
    text = machine_code(kernel, tuple(range(len(kernel.letters))))
    copies = re.findall(r"LDGSTS\S*", text)  # rounds that are under way lie in shared memory
    assert copies and all([copy.endswith(".128") for copy in copies])
    assert text.count("STG.E.128") == 2 and "LDG.E.U16" not in text


@pytest.mark.parametrize(
    ("given", "result", "lanes"),
    [("bfloat16", "bfloat16", 2048), ("bfloat16", "float32", 1024), ("float32", "float32", 1024)],
)
def test_loops_of_16_bits_have_twice_as_many_lanes(given, result, lanes):
    """As many bytes are under way then."""
    with emulated():
        x = genesis.randn(5000).to(getattr(genesis, given)).to("cuda")
        (phase,) = traced(lambda x: F.gelu(x).to(getattr(genesis, result)), x).phases
        assert phase.stages[0].kernel.kernel.code.lanes == lanes
