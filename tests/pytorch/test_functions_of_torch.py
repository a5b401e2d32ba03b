"""Functions that ``torch`` has besides those of its modules, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.pytorch.modules import find

RNG = np.random.default_rng(0)


def _calls():
    """(name, arguments as arrays and plain values, keywords)"""
    r = RNG.normal
    x, y, logits = r(size=(4, 3)), r(size=(4, 3)), r(size=(5, 2, 4))
    signs, image = np.sign(r(size=(4, 3))), r(size=(2, 3, 4, 4))
    positive = np.abs(y)
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    for reduction in (0, 1, 2):
        yield "binary_cross_entropy_with_logits", (x, (y > 0) * 1.0, None, positive[0], reduction), {}
        yield "binary_cross_entropy_with_logits", (x, (y > 0) * 1.0), {"weight": positive, "reduction": reduction}
        yield "kl_div", (x, positive, reduction), {}
        yield "kl_div", (x, y, reduction), {"log_target": True}
        yield "ctc_loss", (log_probs, np.array([[1, 2], [3, 1]]), np.array([5, 4]), np.array([2, 1]), 0, reduction), {}
        yield "hinge_embedding_loss", (x, signs, 0.5, reduction), {}
        yield "margin_ranking_loss", (x, y, signs, 0.3, reduction), {}
        yield "cosine_embedding_loss", (x, y, signs[:, 0], 0.2, reduction), {}
        yield "poisson_nll_loss", (x, positive, True, False, 1e-8, reduction), {}
        yield "poisson_nll_loss", (positive, positive * 3, False, True, 1e-3, reduction), {}
        yield "triplet_margin_loss", (x, y, x * y, 1.0, 2.0, 1e-6, True, reduction), {}
    for train in (True, False):
        stats = (np.zeros(3), np.ones(3)) if not train else (None, None)
        yield "instance_norm", (image, positive[0], y[0], *stats, train, 0.1, 1e-5, False), {}
        yield "native_batch_norm", (image, positive[0], y[0], np.zeros(3), np.ones(3), train, 0.1, 1e-5), {}
    yield "native_layer_norm", (image, [4, 4], r(size=(4, 4)), None, 1e-5), {}
    yield "native_group_norm", (image, positive[0], y[0], 2, 3, 16, 3, 1e-5), {}
    yield "batch_norm_update_stats", (image, np.zeros(3), np.ones(3), 0.1), {}
    for mode in (0, 1, 2):
        bag = (r(size=(6, 2)), np.array([1, 2, 2, 5, 0]), np.array([0, 2]), False, mode)
        yield "embedding_bag", bag, {}
    yield "affine_grid_generator", (r(size=(2, 2, 3)), [2, 3, 4, 5], False), {}
    for mode, padding, corners in ((0, 0, False), (1, 1, True), (2, 2, False)):
        yield "grid_sampler", (image, r(size=(2, 5, 5, 2)) * 0.7, mode, padding, corners), {}
        yield "grid_sampler_2d", (image, r(size=(2, 5, 5, 2)) * 0.7, mode, padding, corners), {}
    yield "grid_sampler_3d", (r(size=(1, 2, 3, 3, 3)), r(size=(1, 2, 2, 2, 3)), 0, 0, False), {}
    yield "embedding_renorm_", (r(size=(4, 3)) * 3, np.array([0, 2]), 1.0, 2.0), {}
    yield "max_pool1d_with_indices", (image[0], 2), {}
    yield "max_pool1d_with_indices", (image[0], 3, 1, 1), {}
    yield "frobenius_norm", (image, [1, 2]), {}
    yield "frobenius_norm", (image, [2], True), {}
    yield "nuclear_norm", (x,), {}
    yield "nuclear_norm", (image, [1, 2], True), {}
    for dim in (0, 1, -1):
        yield "norm_except_dim", (x, 2, dim), {}
    for reduce in ("sum", "mean", "max", "min", "prod"):
        yield "segment_reduce", (x, reduce), {"lengths": np.array([1, 0, 3])}
        yield "segment_reduce", (x, reduce), {"offsets": np.array([0, 2, 4])}
        yield "segment_reduce", (x, reduce), {"lengths": np.array([1, 0, 3]), "initial": 0.5}
        yield "segment_reduce", (x, reduce), {"lengths": np.array([[1, 2]] * 4), "axis": 1}
    for values in (x, x.astype(np.float32), np.array([1, -2, 3]), np.array([3, -7], np.int8), np.array([True, False])):
        yield "hash_tensor", (values,), {}
    yield "hash_tensor", (x, 0), {}
    yield "hash_tensor", (x, (0, 1)), {"keepdim": True}
    yield "alpha_dropout", (x, 0.5, False), {}
    yield "feature_dropout", (image, 0.5, False), {}
    yield "feature_alpha_dropout", (image, 0.5, False), {}


CALLS = list(_calls())


def _leaves(value):
    return [leaf for x in value for leaf in _leaves(x)] if isinstance(value, tuple | list) else [value]


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:at..")
@pytest.mark.parametrize("number", range(len(CALLS)), ids=lambda i: f"{CALLS[i][0]}-{i}")
def test_results(number):
    torch = pytest.importorskip("torch")
    name, args, kwargs = CALLS[number]
    results = []
    for lib, function in ((genesis, find("torch", name)), (torch, getattr(torch, name))):
        made = [lib.tensor(x.copy()) if isinstance(x, np.ndarray) else x for x in args]
        out = function(*made, **{k: lib.tensor(x) if isinstance(x, np.ndarray) else x for k, x in kwargs.items()})
        results.append(_leaves(out))
    for mine, theirs in zip(*results, strict=True):
        if name == "embedding_bag" and mine is not results[0][0]:
            continue  # what is kept for the backward is not the same
        assert (
            tuple(mine.shape) == tuple(theirs.shape)
            and str(mine.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
        )
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-6, atol=1e-9)


@pytest.mark.parity
@pytest.mark.parametrize("name", ["max_pool", "adaptive_max_pool", "fractional_max_pool"])
def test_pools_with_indices(name):
    torch = pytest.importorskip("torch")
    x = RNG.normal(size=(2, 3, 6, 6))
    options = {"output_size": 3, "_random_samples": np.full((2, 3, 2), 0.4)} if name.startswith("frac") else {}
    args = (2,) if options or name == "max_pool" else (3,)
    full, out = f"{name}2d_with_indices", []
    for lib, f in ((genesis, find("torch.nn.functional", full)), (torch, getattr(torch.nn.functional, full))):
        given = {k: lib.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        out.append([y.numpy() for y in f(lib.tensor(x), *args, **given)])
    for mine, theirs in zip(*out, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parity
def test_eigenvalues_of_lobpcg():
    torch = pytest.importorskip("torch")
    a = RNG.normal(size=(9, 9))
    a, b = a @ a.T, np.diag(RNG.uniform(1, 2, size=9))
    for largest in (True, False):
        for other in (None, b):
            numbers, vectors = find("torch", "lobpcg")(
                genesis.tensor(a), k=2, B=None if other is None else genesis.tensor(other), largest=largest
            )
            b_of = None if other is None else torch.tensor(other)
            theirs, _ = torch.lobpcg(torch.tensor(a), k=2, B=b_of, largest=largest, niter=-1, tol=1e-10)
            np.testing.assert_allclose(numbers.numpy(), theirs.numpy(), rtol=1e-5)
            right = (np.eye(9) if other is None else other) @ vectors.numpy() * numbers.numpy()
            np.testing.assert_allclose(a @ vectors.numpy(), right, atol=1e-8)


@pytest.mark.parity
def test_products_of_groups():
    torch = pytest.importorskip("torch")
    rows, stacked = RNG.normal(size=(8, 16)), RNG.normal(size=(2, 16, 8))
    for a, b, offs in ((rows, stacked, [3, 8]), (rows.T[None].repeat(2, 0).transpose(0, 2, 1), stacked, None)):
        out = []
        for lib, f in ((genesis, find("torch.nn.functional", "grouped_mm")), (torch, torch.nn.functional.grouped_mm)):
            given = [lib.tensor(np.ascontiguousarray(x)).bfloat16() for x in (a, b)]
            out.append(f(*given, offs=None if offs is None else lib.tensor(offs, dtype=lib.int32)).float().numpy())
        np.testing.assert_allclose(*out, rtol=2e-2, atol=2e-2)


def test_dropout_of_channels():
    genesis.manual_seed(0)
    x = genesis.ones(50, 40, 3, requires_grad=True)
    for name in ("feature_dropout", "feature_alpha_dropout", "alpha_dropout"):
        out = find("torch", name)(x, 0.5, True)
        kept = (out == out.max()).float().mean()
        assert 0.4 < float(kept) < 0.6
        if name != "alpha_dropout":
            assert genesis.equal(out.amin(2), out.amax(2))
    y = genesis.ones(50, 40, 3)
    assert find("torch", "feature_dropout_")(y, 0.5, True) is y and set(y.unique().tolist()) == {0.0, 2.0}
    out, mask = find("torch", "native_dropout")(x, 0.25, True)
    assert genesis.equal(out, mask / 0.75) and mask.dtype is genesis.bool


def test_switches_of_autocast():
    get, put, enabled = (
        find("torch", f"{w}_autocast_{k}") for w, k in (("get", "dtype"), ("set", "dtype"), ("set", "enabled"))
    )
    a = genesis.ones(2, 2)
    try:
        enabled("cpu", True)
        assert (a @ a).dtype is genesis.bfloat16 and find("torch", "is_autocast_enabled")("cpu")
        put("cpu", genesis.float16)
        assert (a @ a).dtype is genesis.float16 and get("cpu") is genesis.float16
        enabled("cpu", False)
        assert (a @ a).dtype is genesis.float32 and get("cpu") is genesis.float16
        with genesis.autocast():
            assert (a @ a).dtype is genesis.float16
    finally:
        put("cpu", genesis.bfloat16)
        enabled("cpu", False)


def test_numbers_of_a_file(tmp_path):
    path = tmp_path / "numbers"
    np.arange(6, dtype=np.float32).tofile(path)
    from_file = find("torch", "from_file")
    assert from_file(str(path), size=4).tolist() == [0, 1, 2, 3]
    shared = from_file(str(path), shared=True, size=6)
    shared[1] = 9.0
    assert np.fromfile(path, np.float32)[1] == 9 and from_file(str(path), shared=True, size=8).tolist()[6:] == [0, 0]


def test_batch_norm_into_memory_that_is_there():
    x, out = genesis.arange(6.0).reshape(3, 2), tuple(genesis.empty(0) for _ in range(3))
    with genesis.no_grad():
        results = find("torch", "native_batch_norm")(x, None, None, None, None, True, 0.1, 0.0, out=out)
    assert all(result is target for result, target in zip(results, out, strict=True))
    assert out[1].tolist() == [2, 3] and out[0][1].tolist() == [0, 0] and out[0].shape == (3, 2)


def test_what_was_removed_says_so():
    for name in ("eig", "symeig", "lstsq", "solve", "matrix_rank"):
        with pytest.raises(RuntimeError, match="removed"):
            find("torch", name)(genesis.eye(2))
    for name in ("eig", "symeig", "lstsq", "solve", "reinforce", "xpu", "ipu", "mtia"):
        with pytest.raises(RuntimeError):
            getattr(genesis.eye(2), name)()
