"""Trainings that need Fourier transforms and factors of matrices, on the emulated device, where the host computes nothing."""

from __future__ import annotations

import pytest
from factors_stand_in import Cublas, Cusolver
from fourier_stand_in import Cufft
from kernels_of import emulated

import genesis
from genesis import distributions, fft, linalg, nn
from genesis.cuda.libraries import loading
from genesis.nn.utils import parametrizations


class Spectral(nn.Module):
    """A layer of a Fourier neural operator: weights of low frequencies."""

    def __init__(self, channels, modes):
        super().__init__()
        shape = channels, channels, modes, modes
        self.modes = modes
        self.low = nn.Parameter(genesis.randn(shape, dtype=genesis.complex64) / channels)
        self.high = nn.Parameter(genesis.randn(shape, dtype=genesis.complex64) / channels)

    def forward(self, x):
        m, known = self.modes, fft.rfft2(x)
        out = genesis.zeros(known.shape, dtype=known.dtype, device=x.device)
        out[:, :, :m, :m] = genesis.einsum("bixy,ioxy->boxy", known[:, :, :m, :m], self.low)
        out[:, :, -m:, :m] = genesis.einsum("bixy,ioxy->boxy", known[:, :, -m:, :m], self.high)
        return fft.irfft2(out, s=x.shape[-2:])


def operator(device):
    model = nn.Sequential(nn.Conv2d(1, 4, 1), Spectral(4, 3), nn.GELU(), nn.Conv2d(4, 1, 1)).to(device)
    optimizer = genesis.optim.Adam(model.parameters(), 1e-3)
    x = genesis.randn(2, 1, 8, 8).to(device)
    for _ in range(3):
        optimizer.zero_grad()
        loss = (model(x) - x).square().mean()
        loss.backward()
        optimizer.step()
    return loss


def sound(device):
    x = genesis.randn(2, 64).to(device).requires_grad_()
    window = genesis.hann_window(16).to(device)
    known = genesis.stft(x, 16, 4, window=window, return_complex=True)
    loss = (known.abs() + 1e-3).log().mean() + known.real.square().mean()
    loss.backward()
    return loss.detach() + x.grad.abs().sum() + genesis.istft(known.detach(), 16, 4, window=window).sum()


def state_space(device):
    rates = genesis.complex(-genesis.rand(4), genesis.randn(4)).to(device).requires_grad_()
    weights = genesis.randn(4, dtype=genesis.complex64).to(device).requires_grad_()
    powers = genesis.exp(rates[:, None] * genesis.arange(16, device=device))
    kernel = 2 * (powers * weights[:, None]).sum(0).real
    x = genesis.randn(3, 16).to(device)
    loss = fft.irfft(fft.rfft(x, n=32) * fft.rfft(kernel, n=32), n=32)[..., :16].square().mean()
    loss.backward()
    return loss.detach() + rates.grad.abs().sum() + weights.grad.abs().sum()


def orthogonal(device):
    total = 0.0
    for shape, how in (((4, 4), "matrix_exp"), ((4, 6), "cayley"), ((4, 6), "householder")):
        layer = parametrizations.orthogonal(nn.Linear(*shape), orthogonal_map=how).to(device)
        loss = (layer(genesis.ones(2, 4).to(device)) * genesis.arange(float(shape[1]), device=device)).square().sum()
        loss.backward()
        total = total + loss.detach() + sum([p.grad.square().sum() for p in layer.parameters()])
    return total


def gaussian(device):
    a = genesis.randn(3, 3).to(device)
    covariance = (a @ a.mT + genesis.eye(3, device=device)).requires_grad_()
    given = distributions.MultivariateNormal(genesis.zeros(3, device=device), covariance)
    loss = given.log_prob(genesis.ones(2, 3, device=device)).sum() + given.entropy()
    loss.backward()
    return loss.detach() + covariance.grad.sum()


def process(device):
    x, scale = genesis.rand(6, 2).to(device), genesis.tensor(0.5, device=device, requires_grad=True)
    k = genesis.exp(-(genesis.cdist(x, x) ** 2) / scale) + 0.1 * genesis.eye(6, device=device)
    factor, y = linalg.cholesky(k), genesis.ones(6, 1, device=device)
    loss = (y.mT @ genesis.cholesky_solve(y, factor)).sum() + genesis.logdet(k)
    loss.backward()
    return loss.detach() + scale.grad


def whitened(device):
    g = genesis.randn(6, 4).to(device).requires_grad_()
    values, vectors = linalg.eigh(genesis.eye(6, device=device) + g.detach() @ g.detach().mT)
    loss = ((vectors * values.pow(-0.25)) @ vectors.mT @ g).square().sum()
    loss.backward()
    return loss.detach() + g.grad.sum()


@pytest.mark.parametrize("training", [operator, sound, state_space, orthogonal, gaussian, process, whitened])
def test_what_it_reaches_is_what_the_cpu_does(training):
    reached = []
    for device in ("cpu", "cuda"):
        with emulated() as driver:
            made = {"cusolver": Cusolver(driver), "cublas": Cublas(driver), "cufft": Cufft(driver)}
            with loading.standing_in(**made):
                genesis.manual_seed(0)
                reached.append(training(device).item())
    assert reached[0] == pytest.approx(reached[1], rel=1e-3)
