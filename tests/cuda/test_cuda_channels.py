"""Batch norm on a GPU: eager and compiled, forward and backward, in both orders of memory."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_of import WAYS, emulated, machine_code, needs_triton, same, started

import genesis
from genesis import nn
from genesis.nn import functional as F
from genesis.ops.learning.norm import channel_moments, standardized_channels

FORMS = [genesis.contiguous_format, genesis.channels_last]
OVER = (0, 2, 3)


def tensors(form, dtype=genesis.float32):
    genesis.manual_seed(5)
    x = (genesis.randn(4, 6, 9, 7) * 2.0 + 3.0).to(dtype).to(memory_format=form)
    return [t.requires_grad_() for t in (x, *[genesis.randn(6).to(dtype) for _ in range(2)])]


def with_gradients(function):
    def run(*given):
        y = function(*given)
        (y * y.detach().sin()).sum().backward()
        return [y, *[t.grad for t in given if t.grad is not None]]

    return run


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", FORMS)
def test_values_and_gradients(form, way):
    with emulated(way):
        same(with_gradients(lambda x, w, b: standardized_channels(x, OVER, w, b, 1e-5)), *tensors(form), tolerance=2e-5)
        same(
            with_gradients(lambda x: standardized_channels(x, OVER, None, None, 1e-5)), tensors(form)[0], tolerance=2e-5
        )
        same(
            with_gradients(lambda x, w: standardized_channels(x, OVER, w, None, 0.1)),
            *tensors(form)[:2],
            tolerance=2e-5,
        )
        same(with_gradients(channel_moments), tensors(form)[0], tolerance=2e-5)


def test_16_bits():
    with emulated():
        given = tensors(genesis.contiguous_format, genesis.bfloat16)
        same(with_gradients(lambda x, w, b: standardized_channels(x, OVER, w, b, 1e-5)), *given, tolerance=2e-2)


def test_numbers_far_from_zero():
    """The variance is that about the mean, not what is left of two large sums."""
    with emulated():
        x = genesis.randn(4, 3, 8, 8) + 4096.0
        same(lambda x: standardized_channels(x, OVER, None, None, 1e-5), x, tolerance=2e-3)


def test_examples_of_which_each_is_normalized_are_others():
    with emulated():
        same(lambda x: F.instance_norm(x), genesis.randn(2, 3, 8, 8), tolerance=1e-5)


def model():
    genesis.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(3, 5, 3, bias=False), nn.BatchNorm2d(5), nn.ReLU(), nn.Conv2d(5, 4, 3), nn.BatchNorm2d(4)
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", FORMS)
def test_compiled_steps(form, way):
    """Three steps of training: parameters and running statistics are those of the CPU."""
    found = {}
    with emulated(way):
        for place in ("cpu", "cuda"):
            net = model().to(place).to(memory_format=form)
            optimizer = genesis.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

            def step(x, net=net, optimizer=optimizer):
                optimizer.zero_grad()
                loss = net(x).square().sin().mean()
                loss.backward()
                optimizer.step()
                return loss

            run = genesis.compile(step) if place == "cuda" else step
            genesis.manual_seed(2)
            losses = [run(genesis.randn(4, 3, 8, 8).to(place).to(memory_format=form)).item() for _ in range(3)]
            found[place] = [np.array(losses), *[v.cpu().numpy() for v in net.state_dict().values()]]
    for here, there in zip(found["cpu"], found["cuda"], strict=True):
        np.testing.assert_allclose(there, here, rtol=2e-4, atol=2e-5)


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_machine_code(form):
    def run():
        x = genesis.zeros(32, 64, 28, 28, dtype=genesis.bfloat16, device="cuda").to(memory_format=form).requires_grad_()
        w = genesis.ones(64, dtype=genesis.bfloat16, device="cuda", requires_grad=True)
        standardized_channels(x, OVER, w, w, 1e-5).backward(x.detach())

    made = started(run)
    texts = [machine_code(kernel, aligned) for kernel, aligned in {(k.source, a): (k, a) for k, a in made}.values()]
    assert sum(["LDG.E.128" in text or "LDG.E.64" in text for text in texts]) >= 3


def test_statistics_are_computed_once():
    """The running ones are those that the norm was computed with, and a batch that was written to since has its own."""
    x = tensors(FORMS[0])[0].detach()

    def trained(x):
        norm = nn.BatchNorm2d(6, device=x.device)
        norm(x)
        again = norm(x.mul(2.0))
        return again, norm.running_mean, norm.running_var, channel_moments(x)

    with emulated() as gpu:
        same(trained, x, tolerance=2e-5)
        there, norm = x.to("cuda"), nn.BatchNorm2d(6, device="cuda", track_running_stats=True)
        norm(there)
        launches = []
        for run in (lambda: norm(there), lambda: F.batch_norm(there, None, None, norm.weight, norm.bias, True)):
            before = gpu.calls["launch"]
            run()
            launches.append(gpu.calls["launch"] - before)
    assert launches == [9, 1]  # two means that move, and a count
