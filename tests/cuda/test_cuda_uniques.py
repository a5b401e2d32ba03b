"""Distinct elements on a GPU: those of the CPU, in the same order, with where each went and how many there are."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_of import WAYS, emulated, machine_code, needs_triton, same, started

import genesis
from genesis.cuda.kernels.host import HostWarning
from genesis.cuda.kernels.uniques import COLUMNS

ALL = {"return_inverse": True, "return_counts": True}


def numbers(*shape, dtype=genesis.int64, top=6):
    return genesis.tensor(np.random.default_rng(1).integers(-top, top, shape)).to(dtype)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("function", [genesis.unique, genesis.unique_consecutive])
def test_elements(function, way):
    with emulated(way):
        for x in (numbers(40), numbers(5, 7), numbers(1), genesis.tensor(3), genesis.tensor([2, 2, 2])):
            same(lambda x: function(x, **ALL), x)
            same(lambda x: function(x), x)
        same(lambda x: function(x, return_counts=True), numbers(8, 9).t())


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "bool"])
def test_dtypes(dtype):
    with emulated():
        for function in (genesis.unique, genesis.unique_consecutive):
            same(lambda x, function=function: function(x, **ALL), numbers(50, dtype=getattr(genesis, dtype)))


def test_numbers_that_equal_none():
    x = genesis.tensor([3.0, float("nan"), -0.0, float("inf"), float("nan"), 0.0, -float("inf"), 3.0])
    with emulated():
        same(lambda x: genesis.unique(x, **ALL), x)
        same(lambda x: genesis.unique_consecutive(x, **ALL), x)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("function", [genesis.unique, genesis.unique_consecutive])
def test_slices(function, way):
    with emulated(way):
        for x, dim in (
            (numbers(30, 2, top=2), 0),
            (numbers(2, 30, top=2), 1),
            (numbers(3, 9, 2, top=1), 1),
            (numbers(9), 0),
        ):
            same(lambda x, dim=dim: function(x, **ALL, dim=dim), x)


def test_long_slices_go_by_way_of_the_cpu():
    with emulated(), pytest.warns(HostWarning, match="unique is computed by the CPU"):
        assert genesis.unique(genesis.zeros(3, COLUMNS + 1, device="cuda"), dim=0).shape == (1, COLUMNS + 1)


def test_one_number_is_asked_for():
    x = numbers(200)
    with emulated() as gpu:
        there = x.to("cuda")
        genesis.unique(there, **ALL)
        assert gpu.calls["copy_out"] == 1


@needs_triton
def test_machine_code_of_uniques():
    kernels = started(lambda: genesis.unique(numbers(300).to("cuda"), **ALL))
    names = {getattr(getattr(kernel, "code", None), "name", "") for kernel, _ in kernels}
    assert {"beginnings", "put back"} <= names
    for kernel, aligned in kernels:
        machine_code(kernel, aligned)
