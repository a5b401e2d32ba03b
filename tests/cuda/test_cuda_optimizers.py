"""Steps of many parameters by few launches."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_of import WAYS, emulated, machine_code, needs_triton, started

import genesis
from genesis import nn

SHAPES = [(3, 4), (5,), (64, 33), (7, 1)]


def stepped(place, many, **options):
    """Parameters after some steps, and how many launches the last one took."""
    genesis.manual_seed(0)
    params = [nn.Parameter(genesis.randn(*shape).to(place)) for shape in SHAPES * many]
    optimizer = genesis.optim.AdamW(params, lr=1e-2, **options)
    count = 0
    for _ in range(3):
        for p in params:
            p.grad = p.detach() * 0.5
        if place == "cuda":
            driver = params[0]._array.on.driver
            count = driver.calls["launch"]
        optimizer.step()
        if place == "cuda":
            count = driver.calls["launch"] - count
    return [p.detach().cpu().numpy() for p in params], count


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("options", [{}, {"amsgrad": True, "weight_decay": 0.1}])
def test_steps_of_many_parameters(way, options):
    with emulated(way):
        there, launches = stepped("cuda", 5, **options)
    here, _ = stepped("cpu", 5, **options)
    assert launches == 2  # of at most 16 parameters
    for x, y in zip(there, here, strict=True):
        np.testing.assert_allclose(x, y, rtol=3e-7)


def test_parameters_on_two_streams_and_of_other_layouts():
    with emulated():
        p = nn.Parameter(genesis.randn(6, 4).to("cuda"))
        q = nn.Parameter(genesis.randn(4, 6).to("cuda").t())
        optimizer = genesis.optim.AdamW([p, q], lr=0.1)
        before = q.detach().cpu()
        for x in (p, q):
            x.grad = genesis.ones_like(x)
        optimizer.step()
        np.testing.assert_allclose(
            q.detach().cpu().numpy(), before.numpy() * (1 - 0.1 * 0.01) - 0.1, rtol=1e-5, atol=1e-6
        )


def changing(place):
    """Steps between which gradients lie elsewhere and otherwise, numbers change, and a parameter has none."""
    genesis.manual_seed(0)
    params = [nn.Parameter(genesis.randn(4, 4).to(place)) for _ in range(3)]
    optimizer = genesis.optim.AdamW(params, lr=1e-2)
    seen = []
    for step in range(10):
        turned = step in (3, 4, 7)
        for p in params:
            p.grad = (p.detach().t() * 0.5).contiguous().t() if turned else p.detach().clone() * 0.5
        if step == 5:
            params[1].grad = None
        if step == 6:
            params[0].data = params[0].data.t().contiguous().t()
        if step == 8:
            optimizer.param_groups[0]["lr"] = 0.1
        versions = [p._version for p in params]
        optimizer.step()
        assert all((p._version > v) == (p.grad is not None) for p, v in zip(params, versions, strict=True))
        seen += [p.detach().cpu().numpy().copy() for p in params]
    return seen


def test_steps_that_are_not_like_the_ones_before():
    with emulated():
        there = changing("cuda")
    for x, y in zip(there, changing("cpu"), strict=True):
        np.testing.assert_allclose(x, y, rtol=3e-7)


def test_a_gradient_is_not_kept_by_the_step_that_read_it():
    with emulated():
        p = nn.Parameter(genesis.ones(1 << 12, device="cuda"))
        optimizer = genesis.optim.AdamW([p])
        for _ in range(3):
            p.grad = genesis.ones(1 << 12, device="cuda")
            optimizer.step()
        genesis.cuda.synchronize()
        before = genesis.cuda.memory_allocated()
        p.grad = None
        assert before - genesis.cuda.memory_allocated() == 4 << 12


def test_a_program_asks_few_times_which_parameter_is_its_own():
    """Four times of 16, and once it is done it has ended."""
    kernels = {k.count: k for k, _ in started(lambda: stepped("cuda", 5)) if type(k).__name__ == "Several"}
    lines = kernels[16].source.split("def kernel(")[1].splitlines()
    calls = [line for line in lines if line.lstrip().startswith("one_")]
    assert len(calls) == 16 and {len(line) - len(line.lstrip()) for line in calls} == {4 * 5}
    assert sum(["if pid < " in line for line in lines]) == 15


@needs_triton
@pytest.mark.slow
def test_machine_code():
    made = [
        (kernel, aligned)
        for kernel, aligned in started(lambda: stepped("cuda", 4))
        if type(kernel).__name__ == "Several"
    ]
    assert made
    for kernel, _ in made:
        assert "LDG.E.128" in machine_code(kernel, tuple(range(len(kernel.letters) - len(kernel.kernel.numbers))))


def steps_of_three_layers():
    """A compiled step of training, called twice, of parameters of one size, whose gradients are no tiles."""
    sizes = [(16, 4), (4, 16), (16, 4)]
    layers = [genesis.nn.Linear(n, m, bias=False, device="cuda") for n, m in sizes]
    optimizer = genesis.optim.AdamW([p for layer in layers for p in layer.parameters()])

    @genesis.compile
    def step(x):
        optimizer.zero_grad()
        for layer in layers:
            x = layer(x)
        x.square().mean().backward()
        optimizer.step()

    for _ in range(2):
        step(genesis.ones(4, 16, device="cuda"))
    return step


def test_parameters_of_one_size_are_a_loop_each_in_one_launch():
    """Numbers that all updates read do not make one loop of them, which would need a register for each value of each."""
    with emulated():
        (entry,) = steps_of_three_layers()._recent
        (updates,) = [p for p in entry.step.phases if any([call.op == "fused.adam_step" for call in p.calls])]
        assert len(updates.stages) == 3 and all([len(stage.operands) <= 14 for stage in updates.stages])


@needs_triton
@pytest.mark.slow
def test_machine_code_in_a_step_whose_numbers_lie_in_memory():
    """Those begin anywhere; all else is read and written 16 bytes at a time."""
    (several,) = [each for each in started(steps_of_three_layers) if type(each[0]).__name__ == "Several"]
    text = machine_code(*several)
    assert "LDG.E.128" in text and text.count("STG.E.128") == text.count("STG.E")
