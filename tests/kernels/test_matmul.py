"""Outer products and products of rows against NumPy, compiled and without llvmlite."""

import ml_dtypes
import numpy as np
import pytest

import genesis
from genesis.core.call.op import REGISTRY
from genesis.kernels.cpu import matmul as kernel
from genesis.kernels.llvm import native

RNG = np.random.default_rng(0)
SHAPES = [
    ((3, 5, 1), (3, 1, 7)),
    ((2, 16, 1), (2, 1, 784)),
    ((4, 3, 1), (4, 1, 1)),
    ((2, 1, 1), (2, 1, 129)),
    ((2, 3, 4, 1), (2, 3, 1, 33)),
    ((2, 1, 4, 1), (3, 1, 17)),
    ((1, 4, 1), (5, 1, 6)),
    ((4, 4, 6, 1), (4, 1, 9)),
]


@pytest.fixture(params=["compiled", "numpy"])
def form(request, monkeypatch):
    monkeypatch.setattr(kernel, "LARGE", 1)
    if request.param == "numpy":
        monkeypatch.setattr(kernel, "_compiled", lambda dtype: None)
    elif native.binding() is None:
        pytest.skip("llvmlite is not installed")
    return request.param


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_outer_products(form, shapes, dtype):
    a, b = ((RNG.normal(size=s) * 9).astype(dtype) for s in shapes)
    out = kernel.matmul(a, b)
    assert out.dtype == dtype and out.flags.c_contiguous
    np.testing.assert_array_equal(out, a * b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 3, 7, 8, 15, 16, 17, 31, 63, 64, 65, 200])
def test_every_alignment_of_rows(form, n, dtype):
    a, b = RNG.normal(size=(3, 9, 1)).astype(dtype), RNG.normal(size=(3, 1, n)).astype(dtype)
    np.testing.assert_array_equal(kernel.matmul(a, b), a * b)


def test_views_as_operands(form):
    a = RNG.normal(size=(4, 1, 6)).swapaxes(1, 2)[::-1, ::2]  # a transposed, negative and strided view
    b = np.broadcast_to(RNG.normal(size=(1, 1, 11)), (4, 1, 11))
    np.testing.assert_array_equal(kernel.matmul(a, b), a * b)


def test_infinities_and_nans(form):
    a, b = np.array([[[np.inf], [-0.0], [np.nan], [2.0]]]), np.array([[[0.0, 1.0, -1.0, np.inf]]])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(kernel.matmul(a, b), a * b)


def test_beyond_the_threshold_it_is_compiled(monkeypatch):
    calls = []
    original = kernel._compiled
    monkeypatch.setattr(kernel, "_compiled", lambda dtype: calls.append(dtype) or original(dtype))
    a, b = genesis.randn(32, 128, 1), genesis.randn(32, 1, 256)  # 2 ** 20 numbers
    np.testing.assert_array_equal((a @ b).numpy(), a.numpy() * b.numpy())
    assert calls == [np.float32]
    assert (a[:1] @ b[:1]).shape == (1, 128, 256) and len(calls) == 1


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_halves_are_rounded_once(form, dtype):
    a, b = (RNG.normal(size=s).astype(dtype) for s in ((2, 5, 1), (2, 1, 7)))
    np.testing.assert_array_equal(kernel.matmul(a, b), (a.astype(np.float32) * b.astype(np.float32)).astype(dtype))


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 2, 3, 4), (0, 3, 4), (2, 0, 4), (5, 1, 4)])
def test_batches_of_rows_times_a_matrix(shape):
    a, w = RNG.normal(size=shape), RNG.normal(size=(4, 5))
    for x in (a, a[..., ::-1], a.swapaxes(0, 1)):
        np.testing.assert_allclose(kernel.matmul(x, w), np.matmul(x, w), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(
            REGISTRY["linear"].kernel(x, w.T.copy(), w[0]), np.matmul(x, w) + w[0], rtol=1e-12, atol=1e-12
        )


def test_no_inner_size():
    assert (genesis.ones(2, 3, 0) @ genesis.ones(0, 5)).tolist() == [[[0.0] * 5] * 3] * 2


@pytest.mark.parametrize("shapes", [((2, 3, 1), (2, 2, 4)), ((2, 3, 1), (3, 1, 4)), ((2, 3, 4), (5, 2))])
def test_errors_are_those_of_matmul(form, shapes):
    with pytest.raises(RuntimeError, match="matmul: (inner|batch) sizes"):
        genesis.ones(shapes[0]) @ genesis.ones(shapes[1])
