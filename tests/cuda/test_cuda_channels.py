"""Batch norm on a GPU: eager and compiled, forward and backward, in both orders of memory."""

from __future__ import annotations

import re

import numpy as np
import pytest
from kernels_of import WAYS, emulated, machine_code, needs_triton, same, started, training_step

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

            step = training_step(optimizer, lambda x, net=net: net(x).square().sin().mean())

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


def rounds(source):
    """The lines of the loops of a kernel, a text for each."""
    out = []
    for line in source.partition("def kernel")[2].splitlines():
        if line.startswith("    for "):
            out.append("")
        elif line.startswith("        ") and out:
            out[-1] += line + "\n"
    return out


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.bfloat16])
def test_what_is_the_same_in_all_rounds_is_computed_before_them(dtype):
    """Channels that lie last: their numbers are read once, not in every round, and so are roots and quotients of them."""

    def run():
        x = genesis.zeros(32, 64, 28, 28, dtype=dtype, device="cuda").to(memory_format=FORMS[1]).requires_grad_()
        w = genesis.ones(64, dtype=dtype, device="cuda", requires_grad=True)
        standardized_channels(x, OVER, w, w, 1e-5).backward(x.detach())

    sources = {kernel.source for kernel, _ in started(run) if " tl.range(" in kernel.source}
    loops = [text for source in sources for text in rounds(source)]
    assert len(sources) >= 5 and sum(["tl.load" in text for text in loops]) >= 8
    of_channels = re.compile(r"tl\.load\(p\d+ \+ \(v\d+\)")  # at the number of a channel alone
    assert any([of_channels.search(source) for source in sources])
    assert any(["root(v" in source.partition("def kernel")[2] for source in sources])
    for text in loops:
        assert not of_channels.search(text) and "divided(" not in text and "root(" not in text, text


def test_few_programs_have_asked_for_much_before_they_need_it():
    """Two programs for each processor: as many bytes are under way as memory takes to answer."""

    def run():
        x = genesis.zeros(64, 64, 56, 56, dtype=genesis.bfloat16, device="cuda").to(memory_format=FORMS[1])
        standardized_channels(x, OVER, None, None, 1e-5)

    few = [k for k, _ in started(run) if k.code.programs <= 264 and " tl.range(" in k.source and k.warps == 8]
    assert len(few) == 3
    for kernel in few:
        rows, stages = (
            int(n) for n in re.findall(r"tl\.range\(v\d+, v\d+, (\d+), num_stages=(\d)\)", kernel.source)[-1]
        )
        assert rows * 64 * 2 * (stages - 1) >= 32 << 10


def test_autocast_leaves_its_dtype():
    """As PyTorch's: what convolutions gave with 16 bits goes on with 16 bits, in the model and in its step's memory."""
    with emulated():
        x = tensors(FORMS[1], genesis.bfloat16)[0].detach().to("cuda")
        for norm in (nn.BatchNorm2d(6), nn.BatchNorm2d(6).eval(), nn.InstanceNorm2d(6, affine=True)):
            norm.to("cuda")
            with genesis.autocast("cuda", genesis.bfloat16):
                assert (norm(x).dtype, norm(x.float()).dtype) == (genesis.bfloat16, genesis.float32)


def test_16_bits_with_parameters_of_32():
    """As a model that is trained under autocast has them: read as they are, computed in float32, rounded once."""
    genesis.manual_seed(6)
    x = (genesis.randn(4, 6, 5, 5) * 2.0 + 1.0).to(genesis.bfloat16)

    def trained(x):
        norm = nn.BatchNorm2d(6, device=x.device)
        x = x.detach().requires_grad_()
        y = norm(x)
        y.backward(y.detach().float().sin().to(y.dtype))
        return y, x.grad, norm.weight.grad, norm.bias.grad, norm.running_mean, norm.running_var

    exact = trained(x.float())
    with emulated() as gpu:
        for reference, value in zip(exact, trained(x.to("cuda")), strict=True):
            np.testing.assert_allclose(
                value.detach().float().cpu().numpy(), reference.detach().numpy(), rtol=2e-2, atol=3e-2
            )
        norm, there = nn.BatchNorm2d(6, device="cuda"), x.to("cuda")
        launches = []
        for given in (there.float(), there):
            norm(given)
            before = gpu.calls["launch"]
            norm(given)
            launches.append(gpu.calls["launch"] - before)
    for reference, value in zip(exact[4:], trained(x)[4:], strict=True):  # statistics are not rounded to 16 bits
        np.testing.assert_allclose(value.numpy(), reference.numpy(), rtol=1e-6)
    assert launches[0] == launches[1]


BACKWARDS = {
    "batch norm": lambda x: F.batch_norm(x, None, None, training=True),
    "layer norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "max pooling": lambda x: F.max_pool2d(x, 1),
    "average pooling": lambda x: F.avg_pool2d(x, 1),
}


@pytest.mark.parametrize("name", BACKWARDS)
def test_gradients_that_go_backwards_through_memory(name):
    with emulated():
        x, g = genesis.randn(2, 4, 6, 6).requires_grad_(), genesis.randn(2, 4, 6, 6)
        same(lambda x, g: genesis.autograd.grad(BACKWARDS[name](x), x, g[..., ::-1]), x, g, tolerance=1e-5)
