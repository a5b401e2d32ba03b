"""Distances of all pairs of rows, and sums of rows at places: against float64, and against what the ops mean."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.core.call.kinds import case
from genesis.core.call.kinds.indexing import AT
from genesis.core.call.op import REGISTRY
from genesis.kernels.cpu import distance
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.llvm import loops
from genesis.ops.indexing.adding import add_at
from genesis.testing import check_kernel

rng = np.random.default_rng(0)


def rows(*shape, offset=0.0):
    return (rng.standard_normal(shape) + offset).astype(np.float32)


def exact(a, b):
    return np.sqrt(np.square(a[..., :, None, :].astype(float) - b[..., None, :, :]).sum(-1))


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("shape", [(60, 50, 8), (3, 40, 30, 5), (2, 9000, 2)])
def test_distances_are_those_of_float64_rounded(shape, offset):
    *batch, p, r, m = shape
    a, b = rows(*batch, p, m, offset=offset), rows(*batch, r, m, offset=offset)
    b[..., 0, :] = a[..., 1, :]  # the same row
    b[..., 1, :] = np.nextafter(a[..., 0, :], np.float32(np.inf))  # almost
    got = genesis.cdist(genesis.tensor(a), genesis.tensor(b)).numpy()
    np.testing.assert_allclose(got, exact(a, b), rtol=2e-7)
    assert (got[..., 1, 0] == 0).all()


def test_distances_with_gradients_of_every_order():
    a, b = (genesis.tensor(rows(2, n, 16, offset=3.0), requires_grad=True) for n in (30, 40))
    check_kernel(REGISTRY["cdist"], case(a, b))


@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_without_the_memory_of_differences(dtype, p, monkeypatch):
    monkeypatch.setattr(distance, "PART", 1000)  # several rows at a time, the last time fewer
    a, b = (genesis.tensor(rows(2, n, 16, offset=3.0).astype(dtype), requires_grad=True) for n in (31, 43))
    with genesis.no_grad():
        b[:, 3] = a[:, 2]
    check_kernel(REGISTRY["cdist"], case(a, b, p))
    whole = genesis.norm(a.unsqueeze(-2).double() - b.unsqueeze(-3), p, -1)
    np.testing.assert_allclose(
        genesis.cdist(a, b, p).detach().numpy(), whole.detach().numpy(), rtol=2e-7 if dtype is np.float32 else 1e-15
    )


@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 30, 16), (40, 16)),  # a batch of points, one table
        ((30, 16), (2, 40, 16)),
        ((2, 1, 30, 16), (1, 1, 40, 16)),
        ((30, 16), (1, 1, 40, 16)),
        ((2, 1, 30, 16), (3, 40, 16)),
        ((4, 1, 16), (1, 300, 16)),
    ],
)
def test_batches_of_rows_that_broadcast_take_no_memory_of_differences(shapes, dtype, p, monkeypatch):
    monkeypatch.setattr(distance, "PART", 1000)
    a, b = (genesis.tensor(rows(*shape, offset=3.0).astype(dtype), requires_grad=True) for shape in shapes)
    with genesis.no_grad():
        b[..., 0, :] = a.reshape(-1, 16)[0]
    assert distance._fits(a.detach().numpy(), b.detach().numpy(), p, "")
    if dtype is np.float64:  # of float32 the sums over a batch are more exact than the composition's
        check_kernel(REGISTRY["cdist"], case(a, b, p))
    whole = genesis.norm(a.unsqueeze(-2).double() - b.unsqueeze(-3), p, -1)
    got = genesis.cdist(a, b, p)
    assert got.shape == whole.shape
    np.testing.assert_allclose(
        got.detach().numpy(), whole.detach().numpy(), rtol=2e-7 if dtype is np.float32 else 1e-15
    )
    weight = genesis.randn(*got.shape, dtype=got.dtype)
    for mine, theirs in zip(
        genesis.autograd.grad(got, (a, b), weight), genesis.autograd.grad(whole, (a, b), weight.double()), strict=True
    ):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=3e-7, atol=2e-6)


def test_distances_of_batches_that_do_not_broadcast_are_refused():
    a, b = genesis.zeros(2, 300, 16), genesis.zeros(3, 300, 16)
    with pytest.raises(RuntimeError, match="cannot be broadcast|do not broadcast"):
        genesis.cdist(a, b)
    assert genesis.cdist(genesis.zeros(1, 300, 16), genesis.zeros(0, 300, 16)).shape == (0, 300, 300)


def test_a_row_has_no_gradient_from_itself():
    a = genesis.tensor(rows(150, 4), requires_grad=True)
    genesis.cdist(a, a).diagonal().sum().backward()
    assert not a.grad.any()


def test_distances_of_infinities_are_what_their_differences_are():
    a, b = rows(100, 4), rows(100, 4)
    a[0, 0], a[1, 1], b[0, 0], b[2] = np.inf, np.nan, np.inf, -np.inf
    got = genesis.cdist(genesis.tensor(a), genesis.tensor(b)).numpy()
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(got, exact(a, b), rtol=2e-7)


def test_large_and_small_numbers_do_not_overflow_or_vanish():
    for scale in (1e37, 1e-42):
        a, b = rows(100, 4) * np.float32(scale), rows(90, 4) * np.float32(scale)
        got = genesis.cdist(genesis.tensor(a), genesis.tensor(b)).numpy()
        np.testing.assert_allclose(got, exact(a, b), rtol=2e-7, atol=1e-45)


# ---- sums


@pytest.fixture
def compiled(monkeypatch):
    if not loops.available():
        pytest.skip("llvmlite is not installed")
    monkeypatch.setitem(LARGE, "elements", 1)


@pytest.mark.parametrize("width", [1, 3, 16, 37])
@pytest.mark.parametrize("count", [0, 1, 50])
def test_sums_of_rows_are_those_of_a_loop(compiled, width, count):
    index, values = rng.integers(-7, 7, (count, 2)), rows(count, 2, width)
    want = np.zeros((7, width), np.float32)
    for i, row in zip(index.reshape(-1), values.reshape(-1, width), strict=True):
        want[i] += row
    table = genesis.zeros(7, width, requires_grad=True)
    table[genesis.tensor(index)].backward(genesis.tensor(values))
    np.testing.assert_allclose(table.grad.numpy(), want, rtol=1e-6, atol=1e-6)
    flat = genesis.tensor(index.reshape(-1) % 7)
    added = genesis.zeros(7, width).index_add(0, flat, genesis.tensor(values.reshape(-1, width)))
    np.testing.assert_allclose(added.numpy(), want, rtol=1e-6, atol=1e-6)
    spread = flat[:, None].expand(-1, width)
    scattered = genesis.zeros(7, width).scatter_add(0, spread, genesis.tensor(values.reshape(-1, width)))
    np.testing.assert_allclose(scattered.numpy(), want, rtol=1e-6, atol=1e-6)


def test_rows_that_are_not_contiguous_and_broadcast_values(compiled):
    index = genesis.tensor(rng.integers(0, 5, 40))
    source = genesis.tensor(rows(12, 40)).T
    want = np.zeros((5, 12), np.float32)
    np.add.at(want, index.numpy(), source.numpy())
    np.testing.assert_allclose(genesis.zeros(5, 12).index_add(0, index, source).numpy(), want, rtol=1e-5, atol=1e-6)
    wide = genesis.ones(1, 1).expand(40, 12)
    counts = np.bincount(index.numpy(), minlength=5)
    np.testing.assert_array_equal(genesis.zeros(5, 12).index_add(0, index, wide).numpy(), counts[:, None] + 0 * want)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, np.int32])
@pytest.mark.parametrize("key", ["one", "two", "rows", "mixed"])
def test_every_way_to_add_at_places(dtype, key):
    shape = (5, 4, 3)
    i, j, k = (rng.integers(-n, n, 200) for n in shape)
    keys = {"one": (i,), "two": (i, j), "rows": (i, j, k), "mixed": (i, slice(None), k)}
    at = keys[key]
    out = (rng.standard_normal(shape) * 3).astype(dtype)
    values = (rng.standard_normal(out[at].shape) * 3).astype(dtype)
    wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    want = out.astype(wide)
    np.add.at(want, at, values.astype(wide))
    add_at(out, at, values)
    np.testing.assert_allclose(out.astype(wide), want, rtol=1e-3 if dtype is np.float16 else 1e-5, atol=1e-4)


def test_a_sum_of_many_float32_numbers_keeps_its_digits():
    values = genesis.full((1_000_000,), 0.1)
    total = genesis.zeros(2).scatter_add(0, genesis.zeros(1_000_000, dtype=genesis.int64), values)
    assert abs(total[0].item() - 100_000) < 0.01  # one after the other: off by 958


@pytest.mark.parametrize("reduce", ["prod", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_reductions_at_places_are_those_of_a_loop(reduce, include_self):
    index, src, own = rng.integers(0, 6, (50, 4)), rows(50, 4), rows(6, 4)
    src[3, 1], src[7, 2] = np.nan, np.inf
    combine = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}[reduce]
    want, hit = own.copy(), np.full(own.shape, include_self)
    for r, c in np.ndindex(src.shape):
        at = (index[r, c], c)
        want[at] = combine(want[at], src[r, c]) if hit[at] else src[r, c]
        hit[at] = True
    got = genesis.tensor(own).scatter_reduce(
        0, genesis.tensor(index), genesis.tensor(src), reduce, include_self=include_self
    )
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5)
    scalar = genesis.tensor(2.0).scatter_reduce(0, genesis.tensor(0), genesis.tensor(3.0), reduce)
    assert scalar.item() == combine(2.0, 3.0)


@pytest.mark.parametrize("reduce", ["prod", "amax", "amin"])
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("expanded", [False, True])
def test_what_is_combined_along_every_dimension(compiled, reduce, dim, expanded):
    """The values are those of the index's sizes, in any layout; an index may be one number for each row, expanded."""
    shape = tuple(7 if d == dim else n for d, n in enumerate((5, 6, 11)))
    sizes = tuple(9 if d == dim else n for d, n in enumerate(shape))
    one = tuple(n if d == dim else 1 for d, n in enumerate(sizes))
    index = np.broadcast_to(rng.integers(0, 7, one), sizes) if expanded else rng.integers(0, 7, sizes[::-1]).T
    own, values = rows(*shape), rows(*sizes)[:, ::-1]
    values[0, 1, 2], values[1, 1, 1], values[2, 0, 0] = np.nan, np.inf, -np.inf
    combine, want = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}[reduce], own.copy()
    for at in np.ndindex(*sizes):
        to = list(at)
        to[dim] = index[at]
        want[tuple(to)] = combine(want[tuple(to)], values[at])
    given = genesis.tensor(own), genesis.tensor(index.copy()), genesis.tensor(values)
    if expanded:
        given = given[0], genesis.tensor(index[tuple(slice(n) for n in one)].copy()).expand(sizes), given[2]
    calls = (lambda own, index, values: own.scatter_reduce(dim, index, values, reduce),)
    for call in (*calls, genesis.compile(*calls)):
        np.testing.assert_array_equal(call(*given).numpy(), want)


@pytest.mark.parametrize("width", [1, 3, 8, 37])
@pytest.mark.parametrize("shape", [(40,), (4, 10)])
def test_rows_that_are_named_are_taken_whole(compiled, width, shape):
    x, numbers = rows(9, width), rng.integers(-9, 9, shape)
    for kind in (np.int64, np.int32):
        got = genesis.tensor(x)[genesis.tensor(numbers.astype(kind))]
        np.testing.assert_array_equal(got.numpy(), x[numbers])
    index = numbers.reshape(-1) % 9
    for expanded in (True, False):
        where = genesis.tensor(index)[:, None].expand(-1, width)
        got = genesis.tensor(x).gather(0, where if expanded else where.clone())
        np.testing.assert_array_equal(got.numpy(), x[index])
    for wrong in (9, -10):
        numbers.flat[5] = wrong
        with pytest.raises(IndexError, match=f"index {wrong} is out of range for dim 0 of size 9"):
            genesis.tensor(x)[genesis.tensor(numbers)]


@pytest.mark.parametrize("number", [-1, 6])
def test_kernels_refuse_what_is_out_of_range(compiled, number):
    index = np.array([[0, 1, 2], [3, number, 5]])
    with pytest.raises(IndexError, match="of 6"):
        REGISTRY["scatter_sum"].kernel(rows(2, 3), (6, 3), 0, index)
    with pytest.raises(IndexError, match="of 6"):
        REGISTRY["scatter_sum"].kernel(rows(2, 3), (6, 3), 0, np.broadcast_to(index[1, 1:2, None], (2, 3)))
    if number > 0:
        with pytest.raises(IndexError, match="of 6"):
            REGISTRY["place"].kernel(rows(2, 3, 4), index, (6, 4), (AT,))


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("sizes", [(5, 4, 3), (5, 20, 3), (1, 4, 1)])
def test_sums_along_every_dimension(compiled, dim, sizes):
    """The index has the sizes of the output but along its dimension; the values may be larger, and in any layout."""
    shape = tuple(7 if d == dim % 3 else n for d, n in enumerate(sizes))
    index = rng.integers(0, 7, sizes[::-1]).T
    values = rows(*[n + 1 for n in sizes])[:, ::-1]
    want = np.zeros(shape)
    for at in np.ndindex(*sizes):
        to = list(at)
        to[dim] = index[at]
        want[tuple(to)] += values[at]
    got = genesis.zeros(shape).scatter_add(dim, genesis.tensor(index), genesis.tensor(values))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int16", "float16", "bfloat16", "int32", "float32", "int64", "complex64"]
)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_elements_of_any_size_are_taken_along_every_dimension(dtype, dim):
    x = genesis.tensor(rng.integers(-5, 5, (3, 4, 5))).to(getattr(genesis, dtype))
    index = rng.integers(0, x.shape[dim], [7 if d == dim else n for d, n in enumerate(x.shape)])
    for given in (x, x.transpose(0, 2).contiguous().transpose(0, 2)):  # of the same sizes, in another order
        values = genesis.gather(given, dim, genesis.tensor(index))
        want = np.take_along_axis(x.to(genesis.complex64).numpy(), index, dim)
        assert values.dtype is x.dtype and values.is_contiguous()
        np.testing.assert_array_equal(values.to(genesis.complex64).numpy(), want)


@pytest.mark.parametrize("wrong", [-1, 4, 2**62])
@pytest.mark.parametrize("size", [6, 20_000, 300_000])
def test_an_index_that_is_none_is_refused_in_arrays_of_any_size(wrong, size):
    x, index = np.ones((size, 4), np.float32), np.zeros((size, 2), np.int64)
    kernel = REGISTRY["gather_at"].kernel
    assert (kernel(x, 1, index) == 1).all()
    index[-1, 1] = wrong
    if loops.available():
        with pytest.raises(IndexError):
            kernel(x, 1, index)
    with pytest.raises(IndexError, match=f"index {wrong} is out of range for dim 1 of size 4"):
        genesis.gather(genesis.tensor(x), 1, genesis.tensor(index))


def test_slices_that_are_named_are_the_same_with_and_without_a_history():
    x, index = genesis.randn(3, 4, 5), genesis.tensor([2, 0, 0, 1])
    for dim in (0, 1, 2, -1):
        plain, recorded = x.index_select(dim, index), x.clone().requires_grad_().index_select(dim, index)
        assert genesis.equal(plain, recorded) and plain.stride() == recorded.stride()
        assert genesis.equal(
            x.transpose(0, 2).index_select(dim, index), x.transpose(0, 2).contiguous().index_select(dim, index)
        )
    with pytest.raises(IndexError, match="index_select: index 3 is out of range for dim 0 of size 3"):
        x.index_select(0, genesis.tensor([0, 3]))
    with pytest.raises(IndexError, match="index_select: index -1 is out of range"):
        x.index_select(0, genesis.tensor([-1]))


def test_repeats_are_the_same_with_and_without_a_history():
    x = genesis.randn(2, 3).t()
    for counts in ((2, 1), (1, 2, 3), (0, 2), (1, 1)):
        plain, recorded = x.repeat(*counts), x.clone().requires_grad_().repeat(*counts)
        assert genesis.equal(plain, recorded) and plain.stride() == recorded.stride()
        assert plain._base is None and plain.is_contiguous()
