"""Ordering, counting and searching: what op records cannot say. Ties, nan, forms of results, edges of bins, errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import genesis
from genesis.autograd import grad

INF, NAN = math.inf, math.nan


def gradient(function, values):
    x = genesis.tensor(values, dtype=genesis.float64, requires_grad=True)
    return grad(function(x), x)[0].tolist()


# ---- sorting and ranks


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.bfloat16, genesis.int64])
@pytest.mark.parametrize("stable", [False, True])
def test_equals_keep_their_order(dtype, stable):
    x = genesis.tensor([2, 1, 2, 1, 2], dtype=dtype)
    assert x.sort(stable=stable).indices.tolist() == [1, 3, 0, 2, 4]
    assert x.sort(descending=True, stable=stable).indices.tolist() == [0, 2, 4, 1, 3]


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", [genesis.float32, genesis.bfloat16, genesis.int64, genesis.bool])
def test_topk_takes_the_first_of_equals(dim, largest, dtype):
    x = genesis.tensor([[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, 0]], dtype=dtype).t()[::-1]
    order = np.argsort(-x.int().numpy() if largest else x.int().numpy(), axis=dim, kind="stable")
    for k in range(4):
        values, indices = x.topk(k, dim, largest)
        np.testing.assert_array_equal(indices.numpy(), np.take(order, range(k), dim))
        assert genesis.equal(values, x.gather(dim, indices)) and indices.is_contiguous()


@pytest.mark.parametrize("dtype", [genesis.float64, genesis.bfloat16, genesis.float16])
def test_nan_is_the_largest(dtype):
    x = genesis.tensor([NAN, 2.0, INF, 1.0], dtype=dtype)
    assert x.argsort().tolist() == [3, 1, 2, 0]
    assert x.argsort(descending=True).tolist() == [0, 2, 1, 3]
    assert x.topk(2).indices.tolist() == [0, 2]
    assert x.topk(2, largest=False).indices.tolist() == [3, 1]
    assert x.kthvalue(3).values.item() == INF


def test_gradients_go_back_to_where_the_values_were():
    assert gradient(lambda t: (t.sort().values * genesis.arange(3)).sum(), [3.0, 1.0, 2.0]) == [2, 0, 1]
    assert gradient(lambda t: t.topk(2).values.sum(), [3.0, 1.0, 2.0]) == [1, 0, 1]
    assert gradient(lambda t: t.kthvalue(2, 0).values.sum(), [[3.0, 1.0], [4.0, 0.0]]) == [[0, 1], [1, 0]]
    assert gradient(lambda t: t.median(), [3.0, 1.0, 2.0, 9.0]) == [0, 0, 1, 0]
    assert gradient(lambda t: t.quantile(0.25), [4.0, 0.0, 2.0]) == [0, 0.5, 0.5]
    assert gradient(lambda t: t.mode().values, [4.0, 1.0, 4.0]) == [0, 0, 1]


@pytest.mark.parametrize("k", [0, 1, 3, 7, 50])
@pytest.mark.parametrize("largest", [True, False])
def test_topk_is_the_start_of_sort(k, largest):
    x = genesis.randn(3, 50)
    values, indices = x.topk(k, largest=largest)
    assert genesis.equal(values, x.sort(descending=largest).values[:, :k])
    assert genesis.equal(values, x.gather(1, indices))


def test_results_are_named():
    x = genesis.tensor([[3.0, 1.0]])
    for result in (x.sort(), x.topk(1), x.kthvalue(1), x.median(1), x.mode(1)):
        assert result._fields == ("values", "indices")
        assert result.values is result[0]


def test_median():
    x = genesis.tensor([[4.0, 1.0, NAN, 2.0], [4.0, 1.0, 3.0, 2.0]])
    values, indices = x.median(1)
    assert math.isnan(values[0].item())
    assert (values[1].item(), indices.tolist()) == (2, [2, 3])
    assert math.isnan(x.median().item())
    assert math.isnan(genesis.zeros(0).median().item())
    assert genesis.tensor([3, 1]).median().item() == 1


def test_mode_is_the_smallest_of_the_most_frequent_and_its_last_place():
    x = genesis.tensor([[5, 5, 2, 2, 1], [3, 1, 3, 1, 3]])
    values, indices = x.mode()
    assert (values.tolist(), indices.tolist()) == ([2, 3], [3, 4])
    assert x.mode(0).values.tolist() == [3, 1, 2, 1, 1]


# ---- quantiles


@pytest.mark.parametrize(
    ("interpolation", "expected"),
    [
        ("linear", [0, 0.3, 1.5, 1.8, 3]),
        ("lower", [0, 0, 1, 1, 3]),
        ("higher", [0, 1, 2, 2, 3]),
        ("midpoint", [0, 0.5, 1.5, 1.5, 3]),
        ("nearest", [0, 0, 2, 2, 3]),
    ],
)
def test_interpolation(interpolation, expected):
    x, q = genesis.tensor([2.0, 0.0, 3.0, 1.0]), [0.0, 0.1, 0.5, 0.6, 1.0]
    assert x.quantile(genesis.tensor(q), interpolation=interpolation).tolist() == pytest.approx(expected)
    assert [x.quantile(v, interpolation=interpolation).item() for v in q] == pytest.approx(expected)


def test_shapes_of_quantiles():
    x, q = genesis.randn(2, 3, 4), genesis.tensor([0.2, 0.8])
    assert x.quantile(q).shape == (2,)
    assert x.quantile(q, 1).shape == (2, 2, 4)
    assert x.quantile(q, -1, True).shape == (2, 2, 3, 1)
    assert x.quantile(0.5, keepdim=True).shape == (1, 1, 1)
    assert x.quantile(genesis.tensor(0.5), 0).shape == (3, 4)


def test_quantiles_of_nan_and_their_gradient_to_q():
    x = genesis.tensor([[1.0, NAN], [1.0, 2.0]]).quantile(0.5, 1)
    assert math.isnan(x[0].item())
    assert x[1].item() == 1.5
    q = genesis.tensor([0.3], requires_grad=True)
    (g,) = grad(genesis.tensor([0.0, 2.0, 8.0]).quantile(q).sum(), q)
    assert g.tolist() == [4]  # two steps of the index, each of size 2


# ---- distinct values and counts


def test_unique():
    x = genesis.tensor([[3, 1], [1, 3]])
    assert x.unique().tolist() == [1, 3]
    assert [t.tolist() for t in x.unique(return_inverse=True, return_counts=True)] == [[1, 3], [[1, 0], [0, 1]], [2, 2]]
    rows, inverse = genesis.tensor([[3, 1], [1, 3], [3, 1]]).unique(dim=0, return_inverse=True)
    assert (rows.tolist(), inverse.tolist()) == ([[1, 3], [3, 1]], [1, 0, 1])
    assert genesis.tensor(7).unique().tolist() == [7]
    values, inverse, counts = genesis.tensor([2 + 1j, 1 - 1j, 1 - 3j, 2 + 1j]).unique(
        return_inverse=True, return_counts=True
    )
    assert (
        values.tolist() == [1 - 3j, 1 - 1j, 2 + 1j]
        and inverse.tolist() == [2, 1, 0, 2]
        and counts.tolist() == [1, 1, 2]
    )
    assert len(genesis.tensor([complex(NAN, 0), 1j, complex(NAN, 0)]).unique()) == 3


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.bfloat16])
def test_each_nan_is_distinct(dtype):
    values, counts = genesis.tensor([NAN, 1.0, NAN, 1.0], dtype=dtype).unique(return_counts=True)
    assert values.dtype is dtype
    assert np.isnan(values.float().numpy()).tolist() == [False, True, True]
    assert counts.tolist() == [2, 1, 1]


def test_bincount():
    x = genesis.tensor([1, 2, 2])
    assert x.bincount(minlength=5).tolist() == [0, 1, 2, 0, 0]
    weighted = x.bincount(genesis.tensor([0.5, 1.0, 2.0]))
    assert (weighted.tolist(), weighted.dtype) == ([0, 0.5, 3], genesis.float32)
    assert x.bincount(genesis.tensor([1, 2, 3])).dtype is genesis.float64


def test_histc():
    x = genesis.tensor([1.0, 2.0, 1.0, 3.0, NAN, 9.0])
    assert x.histc(4, 0, 3).tolist() == [0, 2, 1, 1]  # the last bin includes its end; what is outside is left out
    assert genesis.tensor([1.0, 2.0, 1.0]).histc(4).tolist() == [2, 0, 0, 1]
    assert genesis.tensor([1.0, 1.0]).histc(4).tolist() == [0, 0, 2, 0]


# ---- searching


@pytest.mark.parametrize(
    ("options", "expected"), [({}, [0, 1, 3, 4]), ({"right": True}, [0, 3, 3, 5]), ({"side": "right"}, [0, 3, 3, 5])]
)
def test_sides_of_searchsorted(options, expected):
    found = genesis.searchsorted(genesis.tensor([1, 3, 3, 6, 8]), genesis.tensor([0, 3, 5, 8]), **options)
    assert (found.tolist(), found.dtype) == (expected, genesis.int64)


def test_searchsorted_in_rows_with_a_sorter_and_of_numbers():
    rows = genesis.tensor([[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]])
    assert genesis.searchsorted(rows, genesis.tensor([[3.0, 9.0], [3.0, 0.0]])).tolist() == [[1, 3], [1, 0]]
    assert genesis.searchsorted(rows[0], 4, out_int32=True).dtype is genesis.int32
    mixed = genesis.tensor([5.0, 1.0, 3.0])
    assert genesis.searchsorted(mixed, genesis.tensor([2.0]), sorter=mixed.argsort()).tolist() == [1]


def test_bucketize():
    edges = genesis.tensor([1.0, 3.0])
    assert genesis.bucketize(genesis.tensor([1.0, 2.0, 9.0]), edges).tolist() == [0, 1, 2]
    assert genesis.bucketize(genesis.tensor([1.0, 2.0, 9.0]), edges, right=True).tolist() == [1, 1, 2]
    assert genesis.bucketize(2.5, edges).item() == 1


# ---- errors


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: x.sort(2), IndexError, "sort: dim 2 is out of range for 1 dimensions"),
        (
            lambda x: genesis.tensor([1j]).sort(),
            RuntimeError,
            r"sort: genesis.complex64 has no order\n  input c64\[1\]\n  try: x.abs\(\).sort",
        ),
        (lambda x: x.topk(4), RuntimeError, r"topk: k=4 is not between 0 and the size 3 of dim -1\n  input f32\[3\]"),
        (lambda x: x.kthvalue(0), RuntimeError, "kthvalue: k=0 is not between 1 and the size 3"),
        (lambda x: genesis.zeros(0, 2).median(0), IndexError, "median: dim 0 has size 0"),
        (lambda x: genesis.zeros(0, dtype=genesis.int64).median(), IndexError, "median: dim 0 has size 0"),
        (lambda x: x.quantile(2), RuntimeError, "quantile: q must be between 0 and 1, got 2"),
        (
            lambda x: x.quantile(genesis.tensor([[0.5]])),
            RuntimeError,
            "quantile: q must be a number or have one dimension, it has 2",
        ),
        (lambda x: genesis.zeros(0).quantile(0.5), RuntimeError, "quantile: there is nothing to take a quantile of"),
        (lambda x: x.to("meta").unique(), NotImplementedError, "unique: the shape of the result depends on data"),
        (lambda x: genesis.tensor([-1]).bincount(), RuntimeError, "bincount: expected non-negative integers, got -1"),
        (
            lambda x: genesis.tensor([1.0, INF]).histc(3),
            RuntimeError,
            "histc: the range from 1.0 to inf is not finite\n  try: give min and max",
        ),
        (
            lambda x: genesis.searchsorted(x, x, side="up"),
            ValueError,
            "searchsorted: side must be 'left' or 'right', got 'up'",
        ),
        (
            lambda x: genesis.searchsorted(genesis.tensor(1.0), x),
            RuntimeError,
            "searchsorted: the sequence must be 1-d",
        ),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(genesis.zeros(3))


def _batches_to_search():
    rows, values, index = (
        genesis.randn(3, 5).sort().values,
        genesis.randn(3, 2, 4),
        genesis.arange(4, -1, -1).expand(3, 5),
    )
    plain, sorting = (
        (lambda s, v: genesis.searchsorted(s, v, right=True)),
        (lambda s, v, i: genesis.searchsorted(s, v, sorter=i)),
    )
    down = rows.flip(1)
    return {
        "both": (plain, (0, 0), (rows, values)),
        "sequences": (plain, (0, None), (rows, values[0])),
        "values": (plain, (None, 0), (rows[0], values)),
        "one value each": (plain, (0, 0), (rows, values[:, 0, 0])),
        "rows": (plain, (0, 0), (genesis.randn(3, 2, 5).sort().values, values)),
        "rows for all": (plain, (None, 0), (genesis.randn(2, 5).sort().values, values)),
        "no values": (plain, (0, 0), (rows, values[:, :0])),
        "sorters": (sorting, (0, 0, 0), (down, values, index)),
        "only sorters": (sorting, (None, None, 0), (down[0], values[0], index)),
    }


@pytest.mark.parametrize("name", _batches_to_search())
def test_batches_of_searchsorted(name):
    f, dims, args = _batches_to_search()[name]
    expected = genesis.stack(
        [f(*[a if d is None else a[i] for a, d in zip(args, dims, strict=True)]) for i in range(3)]
    )
    found = genesis.vmap(f, in_dims=dims)(*args)
    assert found.shape == expected.shape and (found == expected).all()


def _top_reference(x, k, largest):
    """By sorting; of equals the first."""
    order = np.argsort(-x if largest else x, axis=-1, kind="stable")
    return np.take(order, range(k), -1)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("shape", [(1, 5000), (3, 1000), (2, 3, 900)])
def test_topk_of_long_rows(shape, largest):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    for k in (1, 7, 20, 300):
        values, indices = genesis.tensor(x).topk(k, largest=largest)
        assert np.array_equal(indices.numpy(), _top_reference(x, k, largest))
        assert np.array_equal(values.numpy(), np.take_along_axis(x, indices.numpy(), -1))
        first = genesis.tensor(np.moveaxis(x, -1, 0)).topk(k, 0, largest)[1]
        assert first.is_contiguous() and np.array_equal(np.moveaxis(first.numpy(), 0, -1), indices.numpy())


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("position", [3, 999])  # 999 is in no group
def test_topk_of_long_rows_with_equals_nan_and_infinities(position, largest):
    x = np.zeros((2, 1000), np.float32)
    assert np.array_equal(genesis.tensor(x).topk(5, largest=largest).values.numpy(), x[:, :5])
    x[0] = np.random.default_rng(0).standard_normal(1000)
    x[0, position], x[1, 5] = np.nan, np.inf
    values, indices = (r.numpy() for r in genesis.tensor(x).topk(4, largest=largest))
    wanted = np.sort(x)[:, ::-1][:, :4] if largest else np.sort(x)[:, :4]
    assert np.array_equal(values, wanted, equal_nan=True)
    assert np.array_equal(np.take_along_axis(x, indices, 1), values, equal_nan=True)


def test_topk_of_long_rows_of_integers():
    x = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, (2, 3000))
    x[0, 17], x[1, 18] = 2**63 - 1, -(2**63)
    for largest in (True, False):
        assert np.array_equal(
            genesis.tensor(x).topk(9, largest=largest).values.numpy(), np.sort(x)[:, :: -1 if largest else 1][:, :9]
        )
