"""Reductions and scans: what op records cannot say. Special values, ties, zeros, 16-bit floats, other spellings,
errors.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import genesis
from genesis.autograd import grad
from genesis.autograd.checking.gradcheck import gradcheck, gradgradcheck

INF, NAN = math.inf, math.nan
REDUCTIONS = (
    "sum",
    "prod",
    "mean",
    "amax",
    "amin",
    "any",
    "all",
    "var",
    "std",
    "norm",
    "logsumexp",
    "nansum",
    "nanmean",
)


def tensor(values, dtype=genesis.float64, requires_grad=False):
    return genesis.tensor(values, dtype=dtype, requires_grad=requires_grad)


def gradient(function, values):
    x = tensor(values, requires_grad=True)
    return grad(function(x), x)[0].tolist()


# ---- dtypes and accumulation


@pytest.mark.parametrize("name", ["sum", "prod", "nansum", "cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", [genesis.bool, genesis.uint8, genesis.int32])
def test_integers_accumulate_as_int64(name, dtype):
    x = genesis.ones(300, dtype=dtype)
    result = getattr(x, name)(dim=0)
    assert result.dtype is genesis.int64
    assert result.reshape(-1)[-1].item() == (300 if "sum" in name else 1)


@pytest.mark.parametrize("dtype", [genesis.float16, genesis.bfloat16])
@pytest.mark.parametrize("name", ["sum", "nansum", "mean", "cumsum", "var", "norm", "logsumexp"])
def test_sixteen_bit_floats_accumulate_in_float32(name, dtype):
    x = (genesis.arange(4096) % 5).to(dtype)  # in bfloat16, 256 + 1 is 256
    args = (0,) if name in ("cumsum", "logsumexp") else ()
    result, exact = getattr(x, name)(*args), getattr(x.double(), name)(*args)
    assert result.dtype is dtype
    assert result.tolist() == exact.to(dtype).tolist()


def test_a_sum_of_halves_may_be_larger_than_any_half_on_the_way():
    x = genesis.full((100_000,), 2.0, dtype=genesis.float16)
    assert x.mean().item() == 2.0
    assert x.sum().item() == INF


def test_sums_of_float32_are_pairwise():
    x = genesis.full((1_000_000,), 0.1)
    assert x.sum().item() == pytest.approx(100_000, rel=2e-7)


def test_dtype_converts_before_the_reduction():
    x = genesis.full((2,), 200, dtype=genesis.uint8)
    assert x.sum(dtype=genesis.uint8).item() == 400 - 256
    assert x.mean(dtype=genesis.float32).item() == 200
    assert genesis.tensor([0.5, 0.5]).sum(dtype=genesis.float64).dtype is genesis.float64


def test_integers_in_logsumexp_are_floats():
    assert genesis.tensor([0, 0]).logsumexp(0).item() == pytest.approx(math.log(2))


# ---- forms of the arguments


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dims", [(0, 2), (-3, -1), [2, 0]])
def test_several_dims(name, dims):
    x = genesis.randn(2, 3, 4, dtype=genesis.float64)
    flat = x.movedim(1, 0).reshape(3, 8)
    np.testing.assert_allclose(getattr(x, name)(dim=dims).numpy(), getattr(flat, name)(dim=1).numpy(), rtol=1e-12)
    assert getattr(x, name)(dim=dims, keepdim=True).shape == (1, 3, 1)


@pytest.mark.parametrize(
    "name", ["sum", "mean", "prod", "amax", "argmin", "any", "var", "std", "max", "min", "logsumexp"]
)
def test_spellings_of_numpy(name):
    x = genesis.randn(2, 3)
    for plain, other in [({"dim": 1}, {"axis": 1}), ({"dim": 0, "keepdim": True}, {"axis": 0, "keepdims": True})]:
        a, b = getattr(x, name)(**plain), getattr(x, name)(**other)
        a, b = (a, b) if isinstance(a, genesis.Tensor) else (a.indices, b.indices)
        assert genesis.equal(a, b)
        assert a.shape == b.shape


def test_out():
    out = genesis.empty(2)
    assert genesis.sum(genesis.ones(2, 3), 1, out=out) is out
    assert out.tolist() == [3, 3]


def test_old_forms_of_unbiased():
    x = genesis.tensor([[1.0, 3.0], [1.0, 5.0]])
    assert x.var(1, False).tolist() == x.var(1, unbiased=False).tolist() == x.var(1, correction=0).tolist() == [1, 4]
    assert x.var(False).item() == x.var(correction=0).item()
    assert [t.tolist() for t in genesis.var_mean(x, 1, keepdim=True)] == [[[2], [8]], [[2], [3]]]
    assert [t.item() for t in genesis.std_mean(x, False)] == [x.std(correction=0).item(), 2.5]


def test_three_forms_of_max():
    x = genesis.tensor([[1.0, 5.0], [7.0, 2.0]])
    assert x.max().item() == 7
    values, indices = x.max(1)
    assert (values.tolist(), indices.tolist()) == ([5, 7], [1, 0])
    assert x.min(0, keepdim=True).values.tolist() == [[1, 2]]
    assert genesis.max(x, genesis.tensor([4.0, 4.0])).tolist() == [[4, 5], [7, 4]]
    assert genesis.aminmax(x, dim=0).min.tolist() == [1, 2]


@pytest.mark.parametrize("dim", [None, 0, -1])
def test_a_number_is_its_own_extreme(dim):
    x = genesis.tensor(3.0)
    assert (x.amax(dim).item(), x.argmax(dim).item(), x.sum(dim, keepdim=True).shape) == (3, 0, ())
    if dim is not None:
        assert tuple(t.item() for t in x.max(dim)) == (3, 0)


# ---- nothing, nan and infinity


def test_reductions_of_nothing():
    x = genesis.zeros(0, 3)
    assert (x.sum().item(), x.prod().item(), x.any().item(), x.all().item(), x.norm().item()) == (0, 1, False, True, 0)
    assert x.logsumexp((0, 1)).item() == -INF
    assert x.sum(0).tolist() == [0, 0, 0]
    assert x.amax(1).shape == (0,)
    assert math.isnan(x.mean().item())
    assert math.isnan(x.var().item())


@pytest.mark.parametrize("name", ["amax", "amin", "argmax", "argmin", "max", "min"])
def test_extremes_of_nothing_are_errors(name):
    with pytest.raises(
        IndexError, match=rf"^{name}: dim 0 has size 0 and this reduction has no identity\n  shape \[0, 3\]\n  try: "
    ):
        getattr(genesis.zeros(0, 3), name)(0)


def test_nan():
    x = genesis.tensor([[1.0, NAN, 3.0], [4.0, 5.0, 6.0]])
    assert math.isnan(x.sum().item())
    assert x.amax(1)[1].item() == 6
    assert math.isnan(x.amax(1)[0].item())
    assert (x.argmax(1).tolist(), x.min(1).indices.tolist()) == ([1, 2], [1, 0])
    assert (x.nansum(1).tolist(), x.nanmean(1).tolist()) == ([4, 15], [2, 5])
    assert gradient(lambda t: t.nanmean(), [1.0, NAN, 3.0]) == [0.5, 0, 0.5]


def test_logsumexp_of_infinities():
    x = genesis.tensor([[-INF, -INF], [INF, 1.0], [-INF, 2.0], [1e4, 1e4]])
    assert x.logsumexp(1).tolist() == pytest.approx([-INF, INF, 2, 1e4 + math.log(2)])
    assert gradient(lambda t: t.logsumexp(0), [-INF, 0.0, 0.0]) == pytest.approx([0, 0.5, 0.5])


@pytest.mark.parametrize(("correction", "n"), [(1, 1), (2, 2), (5, 3)])
def test_no_degrees_of_freedom(correction, n):
    result = genesis.arange(n).float().var(correction=correction).item()
    assert math.isnan(result) if n == 1 else result == INF


# ---- gradients at special points


@pytest.mark.parametrize("name", ["amax", "max"])
def test_equal_maxima_share_the_gradient(name):
    assert gradient(lambda t: getattr(t, name)(), [3.0, 1.0, 3.0, 3.0]) == pytest.approx([1 / 3, 0, 1 / 3, 1 / 3])
    assert gradient(lambda t: t.amin(1).sum(), [[2.0, 2.0], [1.0, 5.0]]) == [[0.5, 0.5], [1, 0]]


def test_max_along_a_dim_sends_the_gradient_to_its_index():
    assert gradient(lambda t: t.max(1).values.sum(), [[3.0, 3.0], [1.0, 2.0]]) == [[1, 0], [0, 1]]


@pytest.mark.parametrize("zeros", [[], [1], [0, 2], [0, 1, 3]])
@pytest.mark.parametrize(
    "op", [lambda t: t.prod(), lambda t: t.prod(0), lambda t: t.cumprod(0)], ids=["prod", "prod dim", "cumprod"]
)
def test_products_with_zeros(op, zeros):
    x = tensor([1.5, -2.0, 0.5, 3.0])
    x[zeros] = 0.0
    x.requires_grad_()
    assert gradcheck(op, (x,))
    assert gradgradcheck(op, (x,))


def test_a_product_that_underflows_has_a_gradient():
    assert gradient(lambda t: t.prod(), [1e-200, 1e-200, 1e200]) == pytest.approx([1, 1, 0])
    assert gradient(lambda t: t.cumprod(0)[-1], [1e-200, 1e-200, 1e200]) == pytest.approx([1, 1, 0])


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, INF])
def test_the_gradient_of_a_zero_norm_is_zero(p):
    x = tensor([0.0, 0.0], requires_grad=True)
    (g,) = grad(x.norm(p), x, create_graph=True)
    assert g.tolist() == [0, 0]
    (h,) = grad((g * x).sum(), x)
    assert h.tolist() == [0, 0]


@pytest.mark.parametrize("p", [-1, 0.5, 1, 1.5, 2, 2.5, INF])
def test_norms_with_some_zeros_have_finite_gradients(p):
    g = np.array(gradient(lambda t: t.norm(p), [0.0, -2.0, 1.0]))
    assert np.isfinite(g).all()
    assert (g[0], p == -1 or g[1] != 0) == (0, True)


@pytest.mark.parametrize(
    ("p", "expected"), [(0, 2), (1, 7), (2, 5), ("fro", 5), (None, 5), (3, 91 ** (1 / 3)), (INF, 4), (-INF, 0), (-1, 0)]
)
def test_norms(p, expected):
    assert tensor([3.0, 0.0, -4.0]).norm(p).item() == pytest.approx(expected)
    assert tensor([3j, 0.0, -4.0], genesis.complex128).norm(p).item() == pytest.approx(expected)


def test_the_gradient_of_a_zero_standard_deviation_is_zero():
    x = tensor([[2.0, 2.0], [1.0, 3.0]], requires_grad=True)
    (g,) = grad(x.std(1).sum(), x, create_graph=True)
    assert g[0].tolist() == [0, 0]
    (h,) = grad(g.pow(2).sum(), x)
    assert h[0].tolist() == [0, 0]


def test_variance_of_complex_numbers_is_real():
    x = genesis.tensor([1 + 1j, -1 - 1j])
    assert (x.var(correction=0).item(), x.var().dtype) == (2, genesis.float32)


@pytest.mark.parametrize("dim", [0, 1, -1, (0, 1), (1, 2), None])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_means_and_spreads_are_those_of_float64(dim, turned, dtype):
    numbers = np.random.default_rng(0).normal(size=(5, 6, 7)) + 100 + (1j if dtype is np.complex64 else 0)
    x = genesis.tensor(numbers.astype(dtype))
    x = x.permute(2, 0, 1) if turned else x
    exact = x.numpy().astype(np.complex128 if dtype is np.complex64 else np.float64)
    near = {"rtol": 1e-6 if dtype is not np.float64 else 1e-14}
    np.testing.assert_allclose(x.mean(dim).numpy(), exact.mean(dim), **near)
    for correction in (0, 1, 2):
        ours = [x.var(dim, correction=correction), x.std(dim, correction=correction, keepdim=True)]
        np.testing.assert_allclose(ours[0].numpy(), exact.var(dim, ddof=correction), **near)
        np.testing.assert_allclose(ours[1].numpy(), exact.std(dim, ddof=correction, keepdims=True), **near)


@pytest.mark.parametrize("dim", [0, 1, (0, 1), None])
def test_equal_numbers_have_no_spread(dim):
    x = genesis.full((7, 3), 0.1)
    assert x.std(dim).abs().max() == 0 and (x.mean(dim) == 0.1).all()
    mixed = x.clone()
    mixed[:, 1] = genesis.arange(7.0)
    assert mixed.std(0).tolist()[::2] == [0.0, 0.0] and mixed.mean(0)[0] == x[0, 0]


# ---- scans


def test_running_extremes_take_the_last_of_equals():
    x = genesis.tensor([1.0, 2.0, 2.0, 1.0])
    assert (x.cummax(0).indices.tolist(), x.cummin(0).indices.tolist()) == ([0, 1, 2, 2], [0, 0, 0, 3])
    values, indices = genesis.tensor([1.0, NAN, 2.0, NAN]).cummin(0)
    assert (np.isnan(values.numpy()).tolist(), indices.tolist()) == ([False, True, True, True], [0, 1, 1, 3])
    assert gradient(lambda t: t.cummax(0).values.sum(), [1.0, 3.0, 2.0]) == [1, 2, 0]


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_running_extremes_one_after_the_other(name, dtype, dim):
    rng = np.random.default_rng(0)
    x = genesis.tensor(rng.integers(-2, 3, (5, 4, 3))).to(getattr(genesis, dtype))
    if dtype in ("float32", "bfloat16"):
        x[2, 1, 1], x[3, 2, 0], x[4, 2, 0] = NAN, NAN, NAN
    rows = x.movedim(dim, 0).double().numpy()
    values, indices = getattr(x, name)(dim)
    best, at = rows[0].copy(), np.zeros(rows.shape[1:], np.int64)
    for i, row in enumerate(rows):
        further = ~(row < best if name == "cummax" else row > best) & ~np.isnan(best) | np.isnan(row)
        best, at = np.where(further, row, best), np.where(further, i, at)
        np.testing.assert_array_equal(values.movedim(dim, 0)[i].double().numpy(), best)
        np.testing.assert_array_equal(indices.movedim(dim, 0)[i].numpy(), at)


def test_logcumsumexp_far_apart():
    x = [-1000.0, 0.0, 1000.0, -INF, 5.0]
    assert tensor(x).logcumsumexp(0).tolist() == [-1000, 0, 1000, 1000, 1000]
    assert gradient(lambda t: t.logcumsumexp(0).sum(), x) == pytest.approx([1, 1, 3, 0, 0])
    assert gradient(lambda t: t.logcumsumexp(0)[2], [-INF, -INF, 0.0]) == [0, 0, 1]


def test_diff():
    assert genesis.tensor([True, False, False]).diff().tolist() == [True, False]
    x = genesis.tensor([1, 4, 9])
    assert x.diff(prepend=genesis.tensor([0]), append=genesis.tensor([16])).tolist() == [1, 3, 5, 7]
    assert x.diff(n=2).tolist() == [2]
    assert x.diff(n=7).shape == (0,)


# ---- errors


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: x.sum(3), IndexError, "sum: dim 3 is out of range for 2 dimensions\n  try: use -2 to 1"),
        (lambda x: x.sum((0, -2)), RuntimeError, r"sum: dim \(0, 0\) names a dimension twice"),
        (
            lambda x: x.long().mean(),
            RuntimeError,
            r"mean: the input must be floating or complex, it is genesis.int64\n  try: x.float\(\).mean",
        ),
        (
            lambda x: genesis.zeros(2, 2, 2).argmax((0, 1)),
            TypeError,
            r"argmax: dim must be one integer or None, got \(0, 1\)",
        ),
        (lambda x: x.long().std(), RuntimeError, "std: the input must be floating or complex"),
        (
            lambda x: x.var(unbiased=True, correction=1),
            TypeError,
            "var: unbiased=True and correction=1 were both given",
        ),
        (lambda x: genesis.ones(2, 2, 2).norm("nuc"), ValueError, "linalg.matrix_norm: dim must be two dimensions"),
        (lambda x: x.norm(INF, 0), IndexError, "norm: dim 0 has size 0"),
        (lambda x: x.max((0, 1)), TypeError, "max: dim must be an integer, got tuple"),
        (lambda x: genesis.tensor([1j]).cummax(0), RuntimeError, "cummax: genesis.complex64 has no order"),
        (lambda x: genesis.sum([1.0]), TypeError, "sum: expected a tensor, got list"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(genesis.zeros(0, 3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "dim"), [((10000,), None), ((7, 1001), 1), ((3, 50, 130), (1, 2)), ((64, 65), -1)])
def test_products_of_long_rows(shape, dim, dtype):
    x = np.random.default_rng(0).uniform(0.99, 1.01, shape).astype(dtype)
    found = (
        genesis.tensor(x).prod(dim)
        if dim.__class__ is int
        else genesis.tensor(x).prod()
        if dim is None
        else genesis.prod(genesis.tensor(x), dim)
    )
    wanted = np.prod(x, dim, np.longdouble)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=40 * np.finfo(dtype).eps)
    x[..., 5] = 0
    assert not genesis.tensor(x).prod(-1, keepdim=True).numpy().any()


@pytest.mark.parametrize("shape", [(100, 8, 64), (700, 7, 7), (9, 500, 1024), (5, 3, 400), (4, 5, 6, 70)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_sums_of_short_rows_are_those_of_float64(shape, keepdim):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    for dim in [(1,), (2,), (1, 2), (0, 2), *([(2, 3), (1, 2, 3)] if len(shape) > 3 else [])]:
        wanted = x.astype(np.float64).sum(dim, keepdims=keepdim)
        size = np.abs(x).astype(np.float64).sum(dim, keepdims=keepdim)
        for name, exact in (("sum", wanted), ("mean", wanted / np.prod([shape[d] for d in dim]))):
            found = getattr(genesis.tensor(x), name)(dim, keepdim).numpy()
            assert found.shape == exact.shape
            assert (np.abs(found - exact) <= 4 * np.finfo(np.float32).eps * size).all()
