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
    "reciprocal of complex numbers": lambda T: T.view_as_real(
        T.reciprocal(
            T.tensor([0j, complex(0.0, -0.0), complex(INF, 0.0), complex(NAN, 0.0), 1 + 1j, complex(0.0, INF)])
        )
    ),
    "reciprocal": lambda T: T.reciprocal(line(T)),
    "adaptive pool of no channels": lambda T: T.nn.functional.adaptive_avg_pool1d(T.zeros(2, 0, 4), 2),
    "adaptive pool of no channels in 2d": lambda T: T.nn.functional.adaptive_avg_pool2d(T.zeros(2, 0, 4, 4), (2, 3)),
    "adaptive pool of nothing": lambda T: T.nn.functional.adaptive_avg_pool1d(T.zeros(0, 4), 2),
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
    "relu": lambda T, x: T.relu(x),
    "elu": lambda T, x: T.nn.functional.elu(x[1:]),
    "celu": lambda T, x: T.nn.functional.celu(x[1:], 0.5),
    "selu": lambda T, x: T.nn.functional.selu(x[1:]),
    "huber_loss": lambda T, x: T.nn.functional.huber_loss(x, T.ones(10, dtype=x.dtype), reduction="none"),
    "smooth_l1_loss": lambda T, x: T.nn.functional.smooth_l1_loss(
        x, T.ones(10, dtype=x.dtype), reduction="none", beta=2.0
    ),
    "xlogy of nothing": lambda T, x: T.xlogy(x, T.tensor([[0.0], [-1.0]])) * T.tensor([[0.0], [1.0]]),
    "xlog1py of nothing": lambda T, x: T.special.xlog1py(x, T.tensor([[-1.0], [-2.0]])) * T.tensor([[0.0], [1.0]]),
    "atan2": lambda T, x: T.atan2(x, x.flip(0)),
    "threshold": lambda T, x: T.nn.functional.threshold(x, 0.5, 7.0),
    "logit": lambda T, x: T.logit(x[5:]),
    "atan2 of squares that are zero": lambda T, x: T.atan2(x[3:] * 1e-30, x[3:].flip(0) * 1e-30),
    "atan2 of zero": lambda T, x: T.atan2(x[3:], x[3:].flip(0)) + T.atan2(x[3], x[4]),
    "maximum": lambda T, x: T.maximum(x, x.flip(0)),
    "minimum": lambda T, x: T.minimum(x, T.full((1,), NAN, dtype=x.dtype)),
    "fmax": lambda T, x: T.fmax(x, x.roll(1)),
    "clamp": lambda T, x: T.clamp(x, -1, 2),
    "logdet of a singular matrix": lambda T, x: T.logdet(T.ones(2, 2, dtype=T.float64) * x[5]),
    "slogdet of a singular matrix": lambda T, x: T.linalg.slogdet(T.ones(2, 2, dtype=T.float64) * x[8])[1],
}


@pytest.mark.parametrize("name", SLOPES)
def test_slopes(name):
    found = []
    for T in (genesis, torch):
        x = line(T, requires_grad=True, dtype=T.float64)
        y = SLOPES[name](T, x)
        found.append(T.autograd.grad(y.sum(), x)[0].tolist())
    assert found[0] == pytest.approx(found[1], rel=1e-6, nan_ok=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slopes_of_elu_far_below_zero_are_no_zero_and_of_nan_no_number(dtype):
    x = genesis.tensor([-30.0, -80.0], dtype=getattr(genesis, dtype), requires_grad=True)
    for y in (genesis.expm1(x), genesis.nn.functional.elu(x[1:]), genesis.nn.functional.celu(x)):
        assert genesis.autograd.grad(y.sum(), x)[0].tolist() == pytest.approx(np.exp([-30.0, -80.0]).tolist(), rel=1e-5)
    x = genesis.tensor([NAN], dtype=x.dtype, requires_grad=True)
    for name in ("elu", "celu", "selu"):
        y = getattr(genesis.nn.functional, name)(x)
        assert genesis.autograd.grad(y, x, genesis.ones(1, dtype=x.dtype))[0].isnan().all()


def test_lerp_ends_where_it_is_told():
    a, b = genesis.tensor([1e8, -1e8, 3.0]), genesis.tensor([1.0, 0.3, 7.0])
    for weight in (1, 1.0, genesis.tensor(1.0), genesis.ones(3)):
        assert genesis.lerp(a, b, weight).tolist() == b.tolist()
    for weight in (0.0, genesis.zeros(3)):
        assert genesis.lerp(a, b, weight).tolist() == a.tolist()


def test_no_number_is_no_zeta():
    x = genesis.tensor([NAN, 2.0, NAN])
    assert genesis.special.zeta(x, genesis.tensor([INF, NAN, 1.0])).isnan().all()


# of functions whose slope is a difference of what is about equal, or has an infinite part: (x, the second derivative)
SECOND = {
    "sinc": ([0.0, 1e-20, 1e-4, 0.07, 0.09],
             [-3.2898681336964529, -3.2898681336964529, -3.2898680362873624, -3.2422749054793574, -3.2113414495044175]),
    "special.erfcx": ([9.5, 10.5, 100.0, 1e10], [1.274067165953476e-3, 9.4907872213965777e-4, 1.1280407802288336e-6, 1.1283791671e-30]),
    "special.log_ndtr": ([-100.0, 0.5, 2.0, 50.0, 1e4], [-0.99990005995005174, -0.5138245643036329, -0.11354805168857645, 0.0, 0.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_where_digits_cancel(name):
    points, want = SECOND[name]
    x = genesis.tensor(points, dtype=genesis.float64, requires_grad=True)
    function = getattr(genesis.special, name.rpartition(".")[2])
    (slope,) = genesis.autograd.grad(function(x).sum(), x, create_graph=True)
    assert genesis.autograd.grad(slope.sum(), x)[0].tolist() == pytest.approx(want, rel=1e-6, abs=1e-300)


def test_the_angle_has_no_slope_at_the_origin():
    x = genesis.zeros(2, dtype=genesis.float64, requires_grad=True)
    (slope,) = genesis.autograd.grad(genesis.atan2(x[0], x[1]), x, create_graph=True)
    assert slope.tolist() == [0, 0] and genesis.autograd.grad(slope[0] + 2 * slope[1], x)[0].tolist() == [0, 0]


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
