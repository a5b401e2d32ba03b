"""Running reductions and triangles: values and gradients of the CPU's."""

from __future__ import annotations

import pytest
from kernels_of import WAYS, emulated, machine_code, needs_triton, same, started

import genesis


@pytest.fixture(params=WAYS)
def gpu(request):
    with emulated(request.param) as driver:
        yield driver


def graded(function):
    def both(x):
        x = x.detach().requires_grad_()
        out = function(x)
        out.float().sin().sum().backward()
        return out, x.grad

    return both


SCANS = {
    "sums": lambda x, d: x.cumsum(d),
    "products": lambda x, d: x.cumprod(d),
    "logarithms": lambda x, d: x.logcumsumexp(d),
    "maxima": lambda x, d: x.cummax(d).values,
}


@pytest.mark.parametrize("shape", [(3, 4), (2, 5, 3), (1, 1), (2, 70), (70, 2), (6,)], ids=str)
@pytest.mark.parametrize("name", SCANS)
def test_along_each_dimension(name, shape, gpu):
    for d in range(len(shape)):
        same(graded(lambda x, d=d: SCANS[name](x, d)), genesis.randn(*shape), tolerance=1e-5)


@pytest.mark.parametrize(
    "dtype", [genesis.float64, genesis.float16, genesis.bfloat16, genesis.int64, genesis.int32, genesis.bool]
)
def test_dtypes(dtype, gpu):
    x = (genesis.randn(3, 33) * 2).to(dtype)
    tolerance = {2: 0.3, 8: 1e-12}.get(dtype.itemsize, 0) if dtype.is_floating_point else 0
    same(lambda x: (x.cumsum(1), x.cumsum(0)), x, tolerance=tolerance)
    same(lambda x: (*x.cummax(1), *x.cummin(0)), x)
    same(lambda x: x.cumsum(1, dtype=genesis.float64), x, tolerance=1e-12)


def test_special_numbers(gpu):
    inf, nan = float("inf"), float("nan")
    x = genesis.tensor(
        [
            [1.0, 3.0, 3.0, nan, 5.0, nan, 7.0],
            [-inf, -inf, 2.0, inf, 1.0, -inf, 0.0],
            [2.0, 1.0, 2.0, 0.0, -0.0, 0.0, -1.0],
        ]
    )
    same(lambda x: (*x.cummax(1), *x.cummin(1), x.logcumsumexp(1), x.cumsum(1), x.cumprod(1)), x, tolerance=1e-6)


def test_none_and_layouts(gpu):
    same(lambda x: (x.cumsum(0), x.cumsum(1)), genesis.randn(0, 3))
    same(lambda x: (x.t().cumsum(0), x[:, ::2].cumsum(1)), genesis.randn(5, 8), tolerance=1e-6)


def test_triangles(gpu):
    for x in (genesis.randn(4, 5), genesis.randn(2, 3, 5, 4), genesis.randn(0, 3, 3), genesis.arange(9).reshape(3, 3)):
        same(lambda x: [f(d) for f in (x.tril, x.triu) for d in (-9, -1, 0, 2, 9)], x)
    same(graded(lambda x: x.mT.tril(1) + x.mT.triu()), genesis.randn(3, 3), tolerance=1e-6)


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("name", SCANS)
def test_machine_code(name):
    def function():
        SCANS[name](genesis.ones(64, 4096, device="cuda"), 1)
        SCANS[name](genesis.ones(64, 4096, device="cuda"), 0)

    made = [(kernel, aligned) for kernel, aligned in started(function) if type(kernel).__name__ == "Scan"]
    assert len(made) == 2
    for kernel, aligned in made:
        machine_code(kernel, aligned)
