"""Where values go in sorted sequences, by a kernel."""

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
