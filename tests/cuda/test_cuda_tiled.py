"""Small products of steps, and the loops at their ends."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_of import WAYS, emulated, machine_code, needs_triton, started, training_step

import genesis
from genesis import nn
from genesis.cuda.launch.mixed import Mixed
from genesis.cuda.steps.tiled import Tiled
from genesis.kernels.llvm import loops
from genesis.nn import functional as F

pytestmark = pytest.mark.skipif(not loops.available(), reason="functions are compiled where there is llvmlite")


def tensors(*shapes):
    genesis.manual_seed(3)
    return [genesis.randn(*shape) for shape in shapes]


def of_compiled(function, given, times=3):
    """What a compiled function gives on the device, and the kernels of the products of its step: of each whether there is a
    loop at its end, and whether it is stored itself.
    """
    run = genesis.compile(function)
    there = [x.to("cuda") for x in given]
    for _ in range(times):
        out = run(*there)
    (entry,) = run._recent
    kernels = [stage.kernel.kernel for phase in entry.step.phases for stage in phase.stages]
    products = [(k.loop is not None, k.stored) for k in kernels if isinstance(k, Tiled)]
    return [y.cpu().numpy() for y in (out if isinstance(out, tuple) else (out,))], products, len(entry.step.phases)


def summed(x, w):
    y = x @ w
    return F.relu(y), y.sum(0)


X, W, B = (20, 24), (40, 24), (40,)
AT_THE_END = {  # of functions of x, w, b: shapes, what is said of products, and launches
    "an activation": (lambda x, w, b: F.relu(F.linear(x, w, b)), [X, W, B], [(True, False)], 1),
    "one that needs more": (lambda x, w, b: F.gelu(F.linear(x, w, b)) * 2.0, [X, W, B], [(True, False)], 1),
    "in another order": (lambda x, w: F.relu((x @ w).t()), [X, (24, 40)], [(True, False)], 1),
    "what is added": (lambda x, w, h: h + F.linear(x, w), [X, W, (20, 40)], [(True, False)], 1),
    "of more dimensions": (lambda x, w, b: F.silu(F.linear(x, w, b)), [(4, 5, 24), W, B], [(True, False)], 1),
    "what is read besides": (summed, [X, (24, 40)], [(True, True)], 2),
    "a result itself": (lambda x, w, b: (y := F.linear(x, w, b), y.exp()), [X, W, B], [(True, True)], 1),
    "two": (lambda x, w, v: F.relu(F.relu(x @ w) @ v), [X, (24, 40), (40, 9)], [(True, False)] * 2, 2),
    "parts of operands": (lambda x, w: F.relu(x[:, 4:20] @ w[8:].t()), [X, (40, 16)], [(True, False)], 1),
    "of few programs": (lambda x, w, b: F.relu(F.linear(x, w, b)), [(20, 200), (10, 200), (10,)], [(True, False)], 1),
}
APART = {
    "numbers of columns": (lambda x, w, b: (x @ w) * b, [X, (24, 40), (40,)], [(False, True)], 2),
    "some elements": (lambda x, w: F.relu((x @ w)[:, 3:9]), [X, (24, 40)], [(False, True)], 2),
    "what comes later": (lambda x, w, h: (x @ w) * (h > 0), [X, (24, 40), (20, 40)], [(False, True)], 2),
    "a vector": (lambda x, w: F.relu(x @ w), [X, (24,)], [], 2),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [*AT_THE_END, *APART])
def test_loops_at_the_end_of_products(name, way):
    function, shapes, said, launches = {**AT_THE_END, **APART}[name]
    given = tensors(*shapes)
    with emulated(way):
        there, products, count = of_compiled(function, given)
    here = function(*given)
    for x, y in zip(there, here if isinstance(here, tuple) else (here,), strict=True):
        np.testing.assert_allclose(x, y.numpy(), rtol=2e-5, atol=2e-5)
    assert (products, count) == (said, launches)


def trained(place, compiled):
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10)).to(place)
    optimizer = genesis.optim.Adam(model.parameters(), lr=0.01)

    step = training_step(optimizer, lambda x, y: F.cross_entropy(model(x), y))

    run, x, y = genesis.compile(step) if compiled else step, *tensors((40, 24)), genesis.arange(40) % 10
    losses = [run(x.to(place), y.to(place)).item() for _ in range(5)]
    return losses, [p.detach().cpu().numpy() for p in model.parameters()], run


@pytest.mark.parametrize("way", WAYS)
def test_updates_are_made_where_gradients_of_weights_are(way):
    """Gates and updates are at the ends of products; those for the weights are one launch, with the biases' sums and updates."""
    with emulated(way):
        losses, parameters, run = trained("cuda", True)
        phases = run._recent[0].step.phases
    expected = trained("cpu", False)
    np.testing.assert_allclose(losses, expected[0], rtol=1e-5)
    for x, y in zip(parameters, expected[1], strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)
    ops = [tuple([call.op for call in phase.calls]) for phase in phases]
    assert ops.count(("matmul", "gate")) == 2 and len(phases) == 7
    assert sorted(ops[-1]) == ["fused.adam_step"] * 6 + ["matmul_tn"] * 3 + ["sum"] * 3
    assert [type(stage.kernel.kernel) for stage in phases[-1].stages].count(Tiled) == 3


def test_updates_come_behind_what_reads_the_weight():
    """... which is on the left, so that its gradient is computed first: no new weight is copied."""

    def trained(place, compiled):
        genesis.manual_seed(0)
        v, w = [nn.Parameter((genesis.randn(32, 32) * 0.1).to(place)) for _ in range(2)]
        optimizer = genesis.optim.Adam([v, w], lr=0.01)

        step = training_step(optimizer, lambda x: (w @ F.relu(v @ x)).square().mean())

        run, (x,) = genesis.compile(step) if compiled else step, tensors((32, 24))
        return [run(x.to(place)).item() for _ in range(5)], run

    with emulated():
        losses, run = trained("cuda", True)
        phases = run._recent[0].step.phases
    np.testing.assert_allclose(losses, trained("cpu", False)[0], rtol=1e-5)
    assert not any([phase.why == "what leaves the program is copied" for phase in phases])
    assert [call.op for call in phases[-1].calls].count("fused.adam_step") == 2


def test_launches_of_products_that_nothing_waits_for():
    """At most so many of them are one; no weight is computed over what another of a launch reads."""

    def trained(place, compiled):
        genesis.manual_seed(0)
        layers = [nn.Linear(16, 16, bias=False, device=place) for _ in range(5)]
        optimizer = genesis.optim.Adam([layer.weight for layer in layers], lr=0.01)

        def step(x, other):
            optimizer.zero_grad()
            nn.Sequential(*layers)(x).square().mean().backward()
            before = F.linear(other, layers[0].weight.detach())
            optimizer.step()
            return before

        run, given = genesis.compile(step) if compiled else step, [x.to(place) for x in tensors((24, 16), (8, 16))]
        return [run(*given).cpu().numpy() for _ in range(4)], run

    with emulated(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("genesis.cuda.steps.together.PARTS", 3)
        results, run = trained("cuda", True)
        phases = run._recent[0].step.phases
    np.testing.assert_allclose(results, trained("cpu", False)[0], rtol=1e-4, atol=1e-5)
    assert sorted([len(phase.stages) for phase in phases if len(phase.stages) > 1]) == [2, 3]
    assert not any([phase.why == "what leaves the program is copied" for phase in phases])


@needs_triton
def test_machine_code_of_loops_at_the_end_of_products():
    """Elements are read and written several at a time, as those of products are."""
    made = started(lambda: trained("cuda", True))
    tiled = {kernel.source: (kernel, aligned) for kernel, aligned in made if isinstance(kernel, Tiled | Mixed)}
    assert len(tiled) == 5
    for kernel, aligned in tiled.values():
        assert "LDGSTS" in machine_code(kernel, aligned)
