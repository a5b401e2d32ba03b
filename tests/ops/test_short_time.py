"""Spectra of pieces of signals, counts that are drawn, and approximations of low rank, against PyTorch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import genesis

# PyTorch warns of signals that are cut, of what it deprecates, and where there is no window
pytestmark = pytest.mark.filterwarnings("ignore:.*(window|length of signal|return_complex)")

RNG = np.random.default_rng(0)


def attempted(call, *args, **kwargs):
    """A result, or None for an error at run time."""
    try:
        return call(*args, **kwargs)
    except RuntimeError:
        return None


def same(mine, its):
    assert (mine is None) == (its is None)
    if its is not None:
        assert mine.shape == tuple(its.shape)
        np.testing.assert_allclose(mine.numpy(), its.numpy(), atol=1e-12)


SIZES = [(5, None, None), (8, 3, 4), (8, None, 6)]
FLAGS = list(itertools.product([True, False], [True, False], [None, True, False], [None, True, False]))


@pytest.mark.parity
@pytest.mark.parametrize(("n_fft", "hop_length", "win_length"), SIZES)
@pytest.mark.parametrize("kind", ["f8", "c16"])
def test_spectra_and_signals_of_every_combination(n_fft, hop_length, win_length, kind):
    torch = pytest.importorskip("torch")
    x = RNG.normal(size=(2, 21)).astype(kind)
    w = RNG.uniform(0.5, 1.5, win_length or n_fft)
    sizes = {"n_fft": n_fft, "hop_length": hop_length, "win_length": win_length}
    for center, normalized, onesided, return_complex in FLAGS:
        options = {**sizes, "center": center, "normalized": normalized, "onesided": onesided}
        its = attempted(torch.stft, torch.tensor(x), window=torch.tensor(w), return_complex=return_complex, **options)
        mine = attempted(
            genesis.stft, genesis.tensor(x), window=genesis.tensor(w), return_complex=return_complex, **options
        )
        same(mine, its)
        if its is None or return_complex is False:
            continue
        for length, whole in itertools.product([None, 7, 60], [True, False]):
            more = {**options, "length": length, "return_complex": whole}
            back = attempted(torch.istft, its, window=torch.tensor(w), **more)
            same(attempted(genesis.istft, mine, window=genesis.tensor(w), **more), back)


@pytest.mark.parity
@pytest.mark.parametrize("pad_mode", ["reflect", "constant", "replicate", "circular"])
def test_borders_and_windows_that_count_pieces(pad_mode):
    torch = pytest.importorskip("torch")
    x, w = RNG.normal(size=20), RNG.uniform(0.5, 1.5, 6)
    its = torch.stft(torch.tensor(x), 8, pad_mode=pad_mode, return_complex=True)
    same(genesis.tensor(x).stft(8, pad_mode=pad_mode, return_complex=True), its)
    for align in (None, False, True):
        options = {"win_length": 6, "center": False, "align_to_window": align, "return_complex": True}
        its = torch.stft(torch.tensor(x), 8, window=torch.tensor(w), **options)
        same(genesis.stft(genesis.tensor(x), 8, window=genesis.tensor(w), **options), its)


def test_gradients_go_to_signals_windows_and_spectra():
    x = genesis.tensor(RNG.normal(size=(2, 11)), requires_grad=True)
    w = genesis.tensor(RNG.uniform(0.5, 1.5, 4), requires_grad=True)
    assert genesis.autograd.gradcheck(lambda x, w: genesis.stft(x, 4, window=w, return_complex=True), (x, w))
    s = genesis.stft(x, 4, return_complex=True).detach().requires_grad_()
    assert genesis.autograd.gradcheck(lambda s, w: genesis.istft(s, 4, window=w, length=11), (s, w))
    flat = genesis.autograd.grad(genesis.istft(genesis.stft(x, 4, return_complex=True), 4, length=11).sum(), x)[0]
    np.testing.assert_allclose(flat.numpy(), 1.0)


def test_counts_have_the_moments_of_their_distributions():
    genesis.manual_seed(0)
    rates = genesis.tensor([0.0, 0.5, 30.0]).expand(20_000, 3)
    drawn = genesis.poisson(rates)
    assert drawn.dtype is genesis.float32
    np.testing.assert_allclose(drawn.mean(0).numpy(), [0, 0.5, 30], rtol=0.05)
    np.testing.assert_allclose(drawn.var(0).numpy(), [0, 0.5, 30], rtol=0.05)
    drawn = genesis.binomial(genesis.tensor([10.0, 50.0]).expand(20_000, 2), genesis.tensor([0.5, 0.1]))
    np.testing.assert_allclose(drawn.mean(0).numpy(), [5, 5], rtol=0.05)
    np.testing.assert_allclose(drawn.var(0).numpy(), [2.5, 4.5], rtol=0.05)
    again = [genesis.poisson(rates, generator=genesis.Generator().manual_seed(3)) for _ in range(2)]
    assert genesis.equal(*again)
    assert genesis.poisson(genesis.zeros(0, 2)).shape == (0, 2)
    assert genesis.poisson(genesis.tensor(4.0)).shape == ()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: genesis.poisson(genesis.tensor([-1.0])), RuntimeError, "rates must not be negative, got -1.0"),
        (lambda: genesis.poisson(genesis.tensor([float("nan")])), RuntimeError, "rates must not be negative, got nan"),
        (lambda: genesis.poisson(genesis.tensor([1])), NotImplementedError, "rates must be floating numbers"),
        (lambda: genesis.binomial(genesis.tensor([1]), genesis.tensor([0.5])), ValueError, "counts must be floating"),
        (lambda: genesis.binomial(genesis.ones(1), genesis.ones(1).double()), RuntimeError, "prob genesis.float64"),
        (lambda: genesis.binomial(genesis.ones(1), genesis.ones(1) * 2), ValueError, "between 0 and 1, got 2.0"),
        (lambda: genesis.binomial(-genesis.ones(1), genesis.ones(1)), ValueError, "must not be negative, got -1.0"),
        (lambda: genesis.svd_lowrank(genesis.ones(3)), RuntimeError, "A must have at least two dimensions, it has 1"),
        (lambda: genesis.pca_lowrank(genesis.ones(3, 4), 5), ValueError, "q must be between 0 and 3, got 5"),
        (lambda: genesis.pca_lowrank(genesis.ones(3, 4), niter=-1), ValueError, "niter must not be negative, got -1"),
        (lambda: genesis.svd_lowrank(genesis.arange(6).reshape(2, 3)), ValueError, "floating or complex numbers"),
    ],
)
def test_wrong_parameters_are_named(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parity
@pytest.mark.parametrize("shape", [(2, 7, 5), (5, 7), (6, 6)])
@pytest.mark.parametrize("kind", ["f8", "c16"])
def test_matrices_of_low_rank_are_found(shape, kind):
    torch = pytest.importorskip("torch")
    x = (RNG.normal(size=(*shape[:-1], 2)) @ RNG.normal(size=(*shape[:-2], 2, shape[-1]))).astype(kind)
    U, S, V = genesis.svd_lowrank(genesis.tensor(x), 2)
    np.testing.assert_allclose(((U * S.unsqueeze(-2)) @ V.mH).numpy(), x, atol=1e-10)
    for name, options in [("svd_lowrank", {}), ("pca_lowrank", {}), ("pca_lowrank", {"center": False})]:
        its = getattr(torch, name)(torch.tensor(x), 2, **options)
        mine = getattr(genesis, name)(genesis.tensor(x), 2, **options)
        np.testing.assert_allclose(mine[1].numpy(), its[1].numpy(), rtol=1e-10)
        assert [tuple(p.shape) for p in mine] == [tuple(p.shape) for p in its]
    M = np.broadcast_to(x.mean(-2, keepdims=True), x.shape).copy()
    its = torch.svd_lowrank(torch.tensor(x), 2, M=torch.tensor(M))
    np.testing.assert_allclose(
        genesis.svd_lowrank(genesis.tensor(x), 2, M=genesis.tensor(M))[1].numpy(), its[1].numpy(), rtol=1e-10
    )


def test_refinements_without_end_are_refused():
    for name in ("svd_lowrank", "pca_lowrank"):
        with pytest.raises(ValueError, match=r"niter must be at most 10000, got 1000000000000"):
            getattr(genesis, name)(genesis.ones(3, 2), 1, niter=10**12)


def test_singular_values_have_gradients():
    x = genesis.tensor(RNG.normal(size=(4, 2)) @ RNG.normal(size=(2, 3)), requires_grad=True)

    def values(x):
        genesis.manual_seed(0)
        return genesis.svd_lowrank(x, 2)[1]

    assert genesis.autograd.gradcheck(values, (x,))
