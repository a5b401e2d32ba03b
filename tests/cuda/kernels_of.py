"""What the tests of kernels share: both ways in which the emulated device runs them, machine code for Hopper, and steps."""

from __future__ import annotations

import os
import re
import warnings
from contextlib import contextmanager

import numpy as np
import pytest

from genesis.cuda.kernels.host import HostWarning, computed_on_host
from genesis.cuda.launch import triton
from genesis.cuda.launch.kernel import Launched
from genesis.cuda.runtime.connection import using
from genesis.cuda.runtime.emulated import Emulated

needs_triton = pytest.mark.skipif(not triton.available(), reason="Triton is not installed")
WAYS = ["loops", pytest.param("triton", marks=needs_triton)]


@contextmanager
def emulated(way="loops"):
    """An emulated device, on which the host computes nothing."""
    before = os.environ.get("GENESIS_CUDA_KERNELS")
    os.environ["GENESIS_CUDA_KERNELS"] = way
    computed_on_host.clear()  # what is there is not warned of again
    try:
        with using(Emulated(1)) as driver, warnings.catch_warnings():
            warnings.simplefilter("error", HostWarning)
            yield driver
    finally:
        if before is None:
            del os.environ["GENESIS_CUDA_KERNELS"]
        else:
            os.environ["GENESIS_CUDA_KERNELS"] = before


def results(value):
    return value if isinstance(value, tuple | list) else (value,)


def same(function, *tensors, tolerance=0.0):
    """A function gives on the GPU, without asking the host, what it gives on the CPU."""
    here = results(function(*tensors))
    there = results(function(*[t.detach().to("cuda").requires_grad_(t.requires_grad) for t in tensors]))
    assert len(here) == len(there)
    for x, y in zip(here, there, strict=True):
        assert y.device.type == "cuda" and (y.dtype, y.shape) == (x.dtype, x.shape)
        a, b = y.detach().cpu(), x.detach()
        if b.dtype.itemsize == 2 and b.dtype.is_floating_point:
            a, b = a.float(), b.float()
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=tolerance, atol=tolerance)


def training_step(optimizer, loss_of):
    """A step of training, of the arguments of what computes its loss."""

    def step(*args):
        optimizer.zero_grad()
        loss = loss_of(*args)
        loss.backward()
        optimizer.step()
        return loss

    return step


def started(function):
    """The kernels that a function starts on an emulated device, with which parameters are multiples of 16."""
    found = []
    load = Launched._load
    with pytest.MonkeyPatch.context() as patch, emulated():

        def noted(self, on, aligned):
            found.append((self, aligned))
            return load(self, on, aligned)

        patch.setattr(Launched, "_load", noted)
        function()
    return found


def machine_code(kernel, aligned, capability=90):
    """The assembler's listing; registers do not spill and fit the processor."""
    made = triton.compiled(kernel.source, kernel.signature, aligned, kernel.warps, capability, kernel.fused)
    text = triton.text_of(made)
    registers, stack = (int(n) for n in re.search(r"REG:(\d+) STACK:(\d+)", text).groups())
    assert stack == 0 and "LDL" not in text and "STL" not in text, f"registers spill: {registers}, stack {stack}"
    assert registers * 32 * kernel.warps <= 65536
    assert made.shared <= 227 << 10
    return text


def compiled(kernel, aligned):
    """The assembler's listing, which may have memory of each thread: reductions of large angles do."""
    return triton.text_of(triton.compiled(kernel.source, kernel.signature, aligned, kernel.warps, 90, kernel.fused))


def instructions(text):
    """How many there are in a listing."""
    return len(re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?!.*\bNOP\b)", text, re.MULTILINE))
