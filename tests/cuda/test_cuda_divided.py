"""Reductions of few rows with many columns: columns are divided among programs, which are as many as a GPU has processors."""

from __future__ import annotations

import re

import pytest
from kernels_of import WAYS, emulated, machine_code, needs_triton, same, started

import genesis
from genesis.cuda.kernels.lowering import PROCESSORS
from genesis.ops.learning.standard import deviation, standardized

BATCH, WIDE, TALL = (8, 6, 96, 33), (2, 70001), (2500, 33)
OVER = (0, 2, 3)
CASES = {
    "sum of channels": (BATCH, lambda x: x.sum(OVER)),
    "sum and more": (BATCH, lambda x: x.mean(OVER, keepdim=True) * 2.0 + 1.0),
    "standardized channels": (BATCH, lambda x: standardized(x, OVER, 1e-5)),
    "deviation": (BATCH, lambda x: deviation(x, OVER, 1e-5)),
    "softmax of long rows": (WIDE, lambda x: x.softmax(1)),
    "logsumexp": (WIDE, lambda x: x.logsumexp(1)),
    "norm": (WIDE, lambda x: x.norm(dim=1)),
    "softmax down": (TALL, lambda x: x.softmax(0)),
    "variance down": (TALL, lambda x: x.var(0)),
    "largest": (TALL, lambda x: x.amax(0)),
    "where the largest is": (TALL, lambda x: x.argmax(0)),
    "product": (TALL, lambda x: (1.0 + x * 1e-3).prod(0)),
    "any": (TALL, lambda x: (x > 3.0).any(0)),
    "all of it": ((70001,), lambda x: x.sum()),
}


def tensor(shape, dtype=genesis.float32):
    genesis.manual_seed(3)
    return genesis.randn(*shape).to(dtype)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_values(name, way):
    shape, function = CASES[name]
    with emulated(way):
        same(function, tensor(shape), tolerance=2e-5)
        if len(shape) == 4:
            same(function, tensor(shape).to(memory_format=genesis.channels_last), tolerance=2e-5)


@pytest.mark.parametrize("dtype", [genesis.bfloat16, genesis.float64])
def test_dtypes(dtype):
    with emulated():
        for shape, function in (CASES[name] for name in ("sum of channels", "standardized channels", "variance down")):
            same(function, tensor(shape, dtype), tolerance=1e-2 if dtype == genesis.bfloat16 else 1e-12)


def test_missing_numbers_stay_missing():
    x = tensor(TALL)
    x[1700, 5] = float("nan")
    with emulated():
        same(lambda x: x.amax(0), x)


def programs(function):
    """How many programs each kernel that is started has."""
    return [kernel.code.grid(0) for kernel, _ in started(function)]


@pytest.mark.parametrize("form", [genesis.contiguous_format, genesis.channels_last])
def test_every_processor_has_a_program(form):
    def run():
        genesis.zeros(64, 64, 56, 56, device="cuda").to(memory_format=form).sum(OVER)

    assert max(programs(run)) >= PROCESSORS
    assert max(programs(lambda: genesis.zeros(4096, 768, device="cuda", dtype=genesis.float64).amax(0))) >= PROCESSORS


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("name", ["sum of channels", "standardized channels", "variance down"])
def test_machine_code(name):
    """Elements beside each other are loaded 16 bytes at a time, also by lanes that share a row; rounds that are under way
    by way of shared memory.
    """
    shape = (32, 64, 56, 56) if name != "variance down" else (4096, 768)
    made = started(lambda: CASES[name][1](genesis.zeros(*shape, device="cuda")))
    texts = [machine_code(kernel, aligned) for kernel, aligned in {(k.source, a): (k, a) for k, a in made}.values()]
    assert re.search(r"LDG\.E\.128|LDGSTS\S*\.128", texts[0])
