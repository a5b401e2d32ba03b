"""At nan, infinities, zeros of either sign and degenerate inputs, values and gradients are PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

import genesis

torch = pytest.importorskip("torch", reason="PyTorch is the reference here; pip install torch==2.13.0")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]

NAN, INF = float("nan"), float("inf")
LINE = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.25, 3.0, -8.0]


def line(T, **more):
    return T.tensor(LINE, **more)


VALUES = {
    "threshold": lambda T: T.nn.functional.threshold(line(T), 0.5, 7.0),
    "angle": lambda T: T.angle(line(T)),
    "angle of integers": lambda T: T.angle(T.tensor([-1, 0, 2])),
    "ldexp": lambda T: T.ldexp(line(T), T.tensor([[INF], [-INF], [3.0], [-0.5]])),
    "zeta": lambda T: T.special.zeta(T.tensor([INF, INF]), T.tensor([1.0, 0.5])),
    "cov of one variable": lambda T: T.cov(T.tensor([[1.0, 2.0, 5.0]])),
    "cov of one observation": lambda T: T.cov(T.tensor([[1.0], [2.0]])),
    "cov of one of one": lambda T: T.cov(T.tensor([[1.0]])),
    "cov of weighted": lambda T: T.cov(T.tensor([[1.0, 2.0, 5.0]]), fweights=T.tensor([1, 2, 1])),
    "corrcoef of one variable": lambda T: T.corrcoef(T.tensor([[1.0, 2.0, 5.0]])),
    "lp_pool of infinity": lambda T: T.nn.functional.lp_pool1d(
        T.tensor([[-3.0, 1.0, 2.0, -5.0, 0.5]]), INF, 2, 1, True
    ),
    "lp_pool of -infinity": lambda T: T.nn.functional.lp_pool1d(T.tensor([[-3.0, 1.0, 2.0, -5.0]]), -INF, 2),
    "add of unsigned": lambda T: T.add(line(T).bfloat16(), T.tensor([[2], [3]], dtype=T.uint8), alpha=-1),
    "sub of unsigned": lambda T: T.sub(T.tensor([[2], [3]], dtype=T.uint8), line(T).half(), alpha=-1.5),
    "add_ of unsigned": lambda T: T.ones(3).bfloat16().add_(T.tensor(2, dtype=T.uint8), alpha=-3),
    "add of unsigned integers": lambda T: T.add(T.tensor([-5]), T.tensor([2, 3], dtype=T.uint8), alpha=-1),
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    mine, its = VALUES[name](genesis), VALUES[name](torch)
    assert mine.dtype.name == str(its.dtype).removeprefix("torch.") and tuple(mine.shape) == tuple(its.shape)
    assert mine.double().flatten().tolist() == pytest.approx(its.double().flatten().tolist(), rel=1e-6, nan_ok=True)


SLOPES = {
    "relu": lambda T, x: T.relu(x[1:]),
    "threshold": lambda T, x: T.nn.functional.threshold(x, 0.5, 7.0),
    "logit": lambda T, x: T.logit(x[5:]),
    "atan2 of zero": lambda T, x: T.atan2(x[3:], x[3:].flip(0)) + T.atan2(x[3], x[4]),
    "maximum": lambda T, x: T.maximum(x, x.flip(0)),
    "minimum": lambda T, x: T.minimum(x, T.full((1,), NAN)),
    "fmax": lambda T, x: T.fmax(x, x.roll(1)),
    "clamp": lambda T, x: T.clamp(x, -1, 2),
    "logdet of a singular matrix": lambda T, x: T.logdet(T.ones(2, 2) * x[5]),
    "slogdet of a singular matrix": lambda T, x: T.linalg.slogdet(T.ones(2, 2) * x[8])[1],
}


@pytest.mark.parametrize("name", SLOPES)
def test_slopes(name):
    found = []
    for T in (genesis, torch):
        x = line(T, requires_grad=True)
        y = SLOPES[name](T, x)
        found.append(T.autograd.grad(y.sum(), x)[0].tolist())
    assert found[0] == pytest.approx(found[1], rel=1e-6, nan_ok=True)


def test_degrees_out_of_reach_are_no_number():
    x, n = genesis.full((4,), 0.3), genesis.tensor([NAN, INF, 200_000.0, -INF])
    for name in ("chebyshev_polynomial_t", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"):
        assert getattr(genesis.special, name)(x, n).isnan().tolist() == [True, True, True, False]


@pytest.mark.parametrize("sections", [0, -2, 10**30])
def test_sections_that_nobody_can_have(sections):
    with pytest.raises(RuntimeError, match="tensor_split: the number of sections must be from 1 to 10,000,000"):
        genesis.tensor_split(genesis.arange(7), sections)


EQUAL = {
    "scatter_reduce amax": lambda T, x: x.scatter_reduce(
        0, T.tensor([0, 0, 1]), T.tensor([1.0, 1.0, INF]) + 0 * x, "amax"
    ),
    "scatter_reduce of others": lambda T, x: x.detach().scatter_reduce(
        0, T.tensor([0, 0, 0]), x * 0.5, "amin", include_self=False
    ),
    "index_reduce amin": lambda T, x: x.index_reduce(0, T.tensor([2, 2, 2, 0]), T.tensor([1.0, 1.0, 1.0, 3.0]), "amin"),
    "margin_ranking_loss": lambda T, x: T.nn.functional.margin_ranking_loss(x, x.detach(), T.tensor([1.0, -1.0, 1.0])),
    "hinge_embedding_loss": lambda T, x: T.nn.functional.hinge_embedding_loss(x, T.tensor([-1.0, -1.0, 1.0])),
    "maximum": lambda T, x: T.maximum(x, x.detach()),
    "clamp": lambda T, x: T.clamp(x, 1, 1),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equals(name):
    """Gradients where several are equal, or on the edge."""
    found = []
    for T in (genesis, torch):
        x = T.ones(3, requires_grad=True)
        y = EQUAL[name](T, x)
        weights = T.tensor([1.0, 2.0, 4.0]) if y.ndim else T.tensor(1.0)
        found.append([y.tolist(), T.autograd.grad(y, x, weights)[0].tolist()])
    assert np.allclose(*[np.concatenate([np.ravel(v) for v in f]) for f in found], equal_nan=True), found
