"""Special functions, angles and shifts on the emulated device, by loops and by Triton's interpreter, and their machine code."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kernels_of import WAYS, compiled, emulated, needs_triton, same, started

import genesis
from genesis import special
from genesis.jit.lowering import triton_functions

INF, NAN = math.inf, math.nan
LINE = [
    -INF,
    -40.0,
    -12.5,
    -3.0,
    -2.7,
    -1.0,
    -0.3,
    -0.0,
    0.0,
    1e-3,
    0.2,
    0.99,
    1.0,
    1.7,
    3.0,
    7.3,
    24.9,
    25.1,
    80.0,
    INF,
    NAN,
]
UNARY = {
    "digamma": genesis.digamma,
    "trigamma": lambda x: genesis.polygamma(1, x),
    "polygamma": lambda x: genesis.polygamma(4, x),
    "logit": lambda x: genesis.logit(x),
    "i0": genesis.i0,
    **{name: getattr(special, name) for name in (
        "i0e", "i1", "i1e", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1",
        "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1",
        "spherical_bessel_j0", "erfcx", "log_ndtr", "ndtri")},
}  # fmt: skip
POLYNOMIALS = [
    *[f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"],
    "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
]  # fmt: skip
NEAR = {genesis.float32: 3e-7, genesis.float64: 3e-13}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name, way):
    with emulated(way):
        for dtype, tolerance in NEAR.items():
            same(UNARY[name], genesis.tensor(LINE, dtype=dtype), tolerance=tolerance)
        if way == "loops":
            same(UNARY[name], genesis.tensor(LINE, dtype=genesis.float16))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_of_any_degree(name, way):
    call = getattr(special, name)
    degrees = genesis.tensor([-1.0, 0.0, 1.0, 2.0, 3.5, 9.0, NAN])
    x = genesis.tensor([-2.0, -1.0, -0.4, 0.0, 0.7, 1.0, 1.5, NAN])
    with emulated(way):
        for dtype, tolerance in NEAR.items():
            same(call, x.to(dtype)[:, None], degrees.to(dtype), tolerance=tolerance)
        same(lambda x: call(x, 5), x, tolerance=NEAR[genesis.float32])


@pytest.mark.parametrize("way", WAYS)
def test_angles_and_neighbours(way):
    ends = [-INF, -2.0, -0.0, 0.0, 1e-30, 3.0, INF, NAN]
    for dtype, tolerance in NEAR.items():
        x, y = genesis.tensor(ends, dtype=dtype)[:, None], genesis.tensor(ends, dtype=dtype)
        with emulated(way):
            same(genesis.atan2, x, y, tolerance=tolerance)
            same(genesis.nextafter, x, y)
            same(genesis.angle, y)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [genesis.int64, genesis.int32, genesis.int8, genesis.uint8])
def test_shifts(dtype, way):
    """By as many bits as there are, and more, everything is gone."""
    x = genesis.tensor(
        [0, 1, 5, 100, 127, -1, -7, -128] if dtype != genesis.uint8 else [0, 1, 5, 100, 255], dtype=dtype
    )
    by = genesis.tensor([0, 1, 3, 7, 8, 31, 63, 100], dtype=dtype)
    with emulated(way):
        same(lambda x, y: x << y, x[:, None], by)
        same(lambda x, y: x >> y, x[:, None], by)


@pytest.mark.parametrize("way", WAYS)
def test_gradients(way):
    x = genesis.tensor([0.3, 1.2, 4.5], requires_grad=True)

    def slopes(x):
        y = (
            genesis.digamma(x)
            + genesis.atan2(x, x * 2.0)
            + special.bessel_j0(x.detach())
            + special.i0e(x)
            + genesis.i0(x)
        )
        return genesis.autograd.grad(y.sum(), x)

    with emulated(way):
        same(slopes, x, tolerance=1e-6)


def test_only_the_functions_that_are_called_stand_beside_a_kernel():
    lines = triton_functions.needed(["v1 = digamma(v0)"])
    assert [line for line in lines if line.startswith("def ")] == ["def _digamma_right(z):", "def digamma(given):"]
    assert triton_functions.needed(["v1 = libdevice.exp(v0)"]) == []


@needs_triton
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in UNARY])
def test_machine_code(name):
    for kernel, aligned in started(lambda: UNARY[name](genesis.ones(4096, device="cuda"))):
        text = compiled(kernel, aligned)
        assert "LDG.E" in text


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_machine_code_of_polynomials(name):
    x = np.ones(4096, np.float32)
    for kernel, aligned in started(
        lambda: getattr(special, name)(genesis.tensor(x, device="cuda"), genesis.tensor(x, device="cuda"))
    ):
        assert "LDG.E" in compiled(kernel, aligned)
