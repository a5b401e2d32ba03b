"""Where values go in sorted sequences, and how often numbers occur, by kernels."""

from __future__ import annotations

import pytest
from kernels_of import WAYS, emulated, machine_code, needs_triton, same, started

import genesis

NAN = float("nan")


def sorted_rows(*shape, dtype=genesis.float32):
    genesis.manual_seed(7)
    return (genesis.randn(*shape) * 4.0).to(dtype).sort().values


@pytest.mark.parametrize("way", WAYS)
def test_values(way):
    x = genesis.tensor([-9.0, -1.0, 0.0, 2.5, 9.0, NAN])
    with emulated(way):
        for n in (1, 2, 7, 64):
            for right in (False, True):
                s = sorted_rows(n)
                same(lambda s, x, right=right: genesis.searchsorted(s, x, right=right), s, genesis.cat([x, s]))
        same(
            lambda s, x: genesis.searchsorted(s, x, side="right", out_int32=True),
            sorted_rows(2, 3, 5),
            sorted_rows(2, 3, 4),
        )
        same(lambda s, x: genesis.searchsorted(s, x.t()), sorted_rows(5), sorted_rows(3, 4))
        same(lambda s, x: genesis.bucketize(x, s), sorted_rows(5), sorted_rows(3, 4))


def test_numbers_that_are_missing_or_of_other_dtypes():
    s = genesis.tensor([1.0, 2.0, 2.0, NAN, NAN])
    x = genesis.tensor([2.0, 3.0, NAN])
    whole = genesis.tensor([-1, 2, 2, 1 << 60])
    with emulated():
        for right in (False, True):
            same(lambda s, x, right=right: genesis.searchsorted(s, x, right=right), s, x)
            same(lambda s, x, right=right: genesis.searchsorted(s, x, right=right), whole, genesis.tensor([2, 1 << 60]))
            same(lambda s, x, right=right: genesis.searchsorted(s, x, right=right), s.bfloat16(), x.bfloat16())
        same(lambda s: genesis.searchsorted(s, 2.0), s)
        same(lambda s, x: genesis.searchsorted(s, x), genesis.zeros(0), x)


@needs_triton
@pytest.mark.slow
def test_machine_code():
    s, x = sorted_rows(4096), sorted_rows(64, 64)
    for kernel, aligned in started(lambda: genesis.searchsorted(s.to("cuda"), x.to("cuda"))):
        machine_code(kernel, aligned)


@pytest.mark.parametrize("way", WAYS)
def test_counts(way):
    genesis.manual_seed(9)
    x, weights = genesis.randint(0, 9, (300,)), genesis.randn(300)
    with emulated(way):
        same(genesis.bincount, x)
        same(lambda x: genesis.bincount(x, minlength=20), x.int())
        same(lambda x, w: genesis.bincount(x, w, 4), x, weights, tolerance=1e-6)
        same(lambda x: genesis.histc(x, 7), weights)
        same(lambda x: genesis.histc(x, 5, -1.0, 1.0), weights.reshape(20, 15).t())


def test_counts_of_few_and_of_strange_numbers():
    x = genesis.tensor([0.0, 1.0, 3.0, 3.0, 3.5, -0.5, NAN])
    with emulated():
        for kind in (genesis.float32, genesis.float64, genesis.bfloat16):
            same(lambda x: genesis.histc(x, 3, 0.0, 3.0), x.to(kind))
        same(lambda x: genesis.histc(x, 4), genesis.ones(5))
        same(lambda x: genesis.histc(x, 4), genesis.zeros(0))
        same(lambda x: genesis.bincount(x, minlength=3), genesis.zeros(0, dtype=genesis.int64))
        same(lambda x, w: genesis.bincount(x, w), genesis.tensor([3, 3]), genesis.tensor([1.0, 2.0]).double())
