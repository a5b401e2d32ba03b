"""Products through BLAS: NumPy's values for any shapes and number of threads, and BLAS is left as it was."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import genesis
from genesis.base import blas

SHAPES = [
    ((300,), (300,)),
    ((1, 300), (300, 1)),
    ((40, 300), (300,)),
    ((300,), (300, 40)),
    ((40, 50), (50, 60)),
    ((70, 50), (50, 33)),
    ((5, 300), (300, 200)),
    ((6, 20, 30), (6, 30, 20)),
    ((6, 20, 30), (30, 20)),
    ((20, 30), (6, 30, 20)),
    ((1, 20, 30), (6, 30, 20)),
    ((6, 20, 30), (1, 30, 20)),
    ((1, 90, 30), (1, 30, 90)),
    ((2, 3, 20, 30), (3, 30, 20)),
    ((3, 20, 30), (2, 1, 30, 20)),
    ((0, 300), (300, 20)),
    ((20, 0), (0, 30)),
    ((0, 20, 30), (0, 30, 20)),
    ((1, 500), (500, 60)),
    ((60, 500), (500, 1)),
]


@pytest.fixture(params=[1, 2, 3])
def slices(request, monkeypatch):
    """Products are large from 1000 multiplications on, and go to so many threads."""
    before = genesis.get_num_threads()
    monkeypatch.setattr(blas, "ALONE", 100)
    monkeypatch.setattr(blas, "ALONE_MATRICES", 1000)
    monkeypatch.setattr(blas, "PART", 3000)
    genesis.set_num_threads(request.param)
    yield request.param
    genesis.set_num_threads(before)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int32", "float16"])
@pytest.mark.parametrize("shapes", SHAPES)
def test_values(slices, shapes, dtype):
    rng = np.random.default_rng(0)
    # so small that every order of summation is exact
    a, b = (rng.integers(-5, 6, shape).astype(dtype) for shape in shapes)
    for x, y in [(a, b), (np.asfortranarray(a), b), (a[..., ::-1], b), (a, np.asfortranarray(b))]:
        np.testing.assert_array_equal(blas.product(x, y), np.matmul(x, y), strict=True)


@pytest.mark.parametrize(
    "shapes", [((40, 50), (51, 60)), ((2, 40, 50), (3, 50, 60)), ((500,), (501,)), ((), (3,)), ((50, 60), ())]
)
def test_shapes_that_do_not_fit(slices, shapes):
    before = blas.blas_threads()
    with pytest.raises(RuntimeError, match="matmul"):
        genesis.matmul(genesis.ones(shapes[0]), genesis.ones(shapes[1]))
    assert blas.blas_threads() == before


def test_not_a_number_and_infinity_go_their_way(slices):
    a = np.ones((40, 50), np.float32)
    a[3, 4], a[30, 2] = np.inf, np.nan
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            blas.product(a, -np.ones((50, 60), np.float32)), np.matmul(a, -np.ones((50, 60), np.float32))
        )


needs_openblas = pytest.mark.skipif(blas._openblas() is None, reason="NumPy uses another BLAS")


@pytest.fixture
def three_threads():
    get, put = blas._openblas()
    before = get()
    put(3)
    yield
    put(before)


@needs_openblas
def test_blas_has_one_thread_inside_and_as_many_as_before_outside(three_threads):
    assert blas.blas_threads() == 3
    with blas.one_thread():
        assert blas.blas_threads() == 1
        with blas.one_thread():
            assert blas.blas_threads() == 1
        assert blas.blas_threads() == 1
    assert blas.blas_threads() == 3
    with pytest.raises(KeyError), blas.one_thread():
        raise KeyError
    assert blas.blas_threads() == 3


@needs_openblas
def test_large_products_see_one_thread(three_threads, monkeypatch, slices):
    seen = []

    class Array(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, out=(), **kwargs):
            seen.append(blas.blas_threads())
            return getattr(ufunc, method)(
                *[np.asarray(x) for x in inputs],
                **kwargs,
                **({"out": tuple(np.asarray(x) for x in out)} if out else {}),
            )

    blas.product(np.ones((4, 5)).view(Array), np.ones((5, 4)))
    blas.product(np.ones((40, 50)).view(Array), np.ones((50, 60)))
    assert seen[0] == 3
    assert set(seen[1:]) == {1}
    assert blas.blas_threads() == 3


@needs_openblas
def test_products_in_many_threads_leave_blas_as_it_was(three_threads, slices):
    a = np.ones((40, 50), np.float32)
    with ThreadPoolExecutor(8) as pool:
        assert all((y == 50).all() for y in pool.map(lambda _: blas.product(a, a.T), range(200)))
    assert blas.blas_threads() == 3
    assert blas._inside[0] == 0


@needs_openblas
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_was_forked_during_a_product_has_its_threads(three_threads):
    blas._enter()
    child = os.fork()
    if child == 0:
        os._exit(0 if blas.blas_threads() == 3 and blas._inside[0] == 0 else 1)
    blas._leave()
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_large_products_of_few_terms_use_memory_again(dtype):
    # so small that every order of summation is exact
    a, b = (np.random.default_rng(i).integers(-5, 6, (600, 8)).astype(dtype) for i in range(2))
    first = blas.product(a, b.T)
    np.testing.assert_array_equal(first, np.matmul(a, b.T))
    address = first.ctypes.data
    del first
    assert blas.product(a, b.T).ctypes.data == address
    with pytest.raises(ValueError, match="mismatch"):
        blas.product(a, b)
