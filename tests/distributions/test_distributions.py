"""Every distribution against PyTorch: what it says of itself, densities, divergences, and samples by their moments."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import genesis
from genesis import distributions as D

SPD = [[2.0, 0.3], [0.3, 1.0]]
# for each: (positional arguments, as nested lists of float64; a value of the support)
CASES = {
    "Bernoulli": [(([0.2, 0.7],), [0.0, 1.0])],
    "Beta": [(([2.0, 0.5], [1.5, 3.0]), [0.3, 0.6])],
    "Binomial": [((5, [0.2, 0.7]), [1.0, 4.0])],
    "Categorical": [(([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]],), [0, 2])],
    "Cauchy": [(([0.0, 1.0], [1.0, 2.0]), [0.5, -3.0])],
    "Chi2": [(([2.0, 5.0],), [0.5, 3.0])],
    "ContinuousBernoulli": [(([0.2, 0.5],), [0.3, 0.3])],
    "Dirichlet": [(([[2.0, 3.0, 1.5], [0.5, 1.0, 2.0]],), [[0.2, 0.3, 0.5], [0.5, 0.25, 0.25]])],
    "Exponential": [(([0.5, 2.0],), [0.5, 3.0])],
    "FisherSnedecor": [(([3.0, 8.0], [5.0, 9.0]), [0.5, 3.0])],
    "Gamma": [(([0.5, 3.0], [1.0, 2.0]), [0.5, 3.0])],
    "GeneralizedPareto": [(([0.0, 1.0], [1.0, 2.0], [0.2, 0.0]), [0.5, 3.0])],
    "Geometric": [(([0.2, 0.7],), [0.0, 3.0])],
    "Gumbel": [(([0.0, 1.0], [1.0, 2.0]), [0.5, -3.0])],
    "HalfCauchy": [(([1.0, 2.0],), [0.5, 3.0])],
    "HalfNormal": [(([1.0, 2.0],), [0.5, 3.0])],
    "InverseGamma": [(([3.0, 4.0], [1.0, 2.0]), [0.5, 3.0])],
    "Kumaraswamy": [(([2.0, 0.5], [1.5, 3.0]), [0.3, 0.6])],
    "LKJCholesky": [((3, [0.5, 2.0]), np.linalg.cholesky([[[1, 0.3, 0.1], [0.3, 1, 0.2], [0.1, 0.2, 1]]] * 2))],
    "Laplace": [(([0.0, 1.0], [1.0, 2.0]), [0.5, -3.0])],
    "LogNormal": [(([0.0, 1.0], [1.0, 0.5]), [0.5, 3.0])],
    "LogisticNormal": [(([[0.0, 1.0]], [[1.0, 0.5]]), [[0.2, 0.3, 0.5]])],
    "LowRankMultivariateNormal": [(([1.0, 2.0], [[1.0], [0.5]], [1.0, 2.0]), [0.5, 3.0])],
    "Multinomial": [((3, [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]), [[1.0, 1.0, 1.0], [0.0, 0.0, 3.0]])],
    "MultivariateNormal": [(([1.0, 2.0], SPD), [0.5, 3.0])],
    "NegativeBinomial": [(([3.0, 5.0], [0.2, 0.7]), [0.0, 3.0])],
    "Normal": [(([0.0, 1.0], [1.0, 2.0]), [0.5, -3.0])],
    "OneHotCategorical": [(([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]],), [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])],
    "OneHotCategoricalStraightThrough": [(([[0.2, 0.3, 0.5]],), [[0.0, 1.0, 0.0]])],
    "Pareto": [(([1.0, 2.0], [3.0, 4.0]), [1.5, 3.0])],
    "Poisson": [(([0.5, 4.0],), [0.0, 3.0])],
    "RelaxedBernoulli": [((0.5, [0.2, 0.7]), [0.3, 0.6])],
    "RelaxedOneHotCategorical": [((0.5, [[0.2, 0.3, 0.5]]), [[0.2, 0.3, 0.5]])],
    "StudentT": [(([3.0, 5.0], [0.0, 1.0], [1.0, 2.0]), [0.5, -3.0])],
    "Uniform": [(([0.0, 1.0], [1.0, 3.0]), [0.5, 2.0])],
    "VonMises": [(([0.0, 1.0], [1.0, 4.0]), [0.5, -3.0])],
    "Weibull": [(([1.0, 2.0], [1.5, 0.7]), [0.5, 3.0])],
    "Wishart": [((4.0, SPD), [[1.0, 0.2], [0.2, 2.0]])],
}
ALL = sorted(CASES)


def argument(module, a):
    if isinstance(a, int | float):
        return a if not isinstance(a, float) else module.tensor(a, dtype=module.float64)
    return module.tensor(np.asarray(a, np.float64))


def made(module, name, grad=False):
    args, value = CASES[name][0]
    args = [argument(module, a) for a in args]
    if grad:
        args = [a.requires_grad_() if hasattr(a, "requires_grad_") else a for a in args]
    value = module.tensor(np.asarray(value))
    return getattr(module.distributions, name)(*args), value, args


def numbers(x):
    return x.detach().numpy()


# PyTorch's Bessel functions here are polynomials good to 1.2e-7; Genesis' own are compared with mpmath below
WIDER = {("VonMises", "variance"), ("VonMises", "stddev")}
# PyTorch takes a root or a logarithm of negative numbers there and says nan; compared with the densities below
NAN_MODE = {("Weibull", "mode"), ("Kumaraswamy", "mode")}
# PyTorch compares a float64 parameter with a float32 zero there; compared in float32 below
RAISES = {("GeneralizedPareto", "log_prob"), ("GeneralizedPareto", "cdf")}


def answer(distribution, what, args=()):
    """What it says, or None where that is not implemented."""
    try:
        found = getattr(distribution, what)
        return found(*args) if callable(found) else found
    except NotImplementedError:
        return None


@pytest.mark.parity
@pytest.mark.parametrize("name", ALL)
def test_what_it_says_is_pytorchs(name):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here; pip install torch==2.13.0")
    (p, x, mine), (q, y, theirs) = made(genesis, name, True), made(torch, name, True)
    assert (tuple(p.batch_shape), tuple(p.event_shape)) == (tuple(q.batch_shape), tuple(q.event_shape))
    assert (p.has_rsample, p.has_enumerate_support) == (q.has_rsample, q.has_enumerate_support)
    for what in ("mean", "mode", "variance", "stddev"):
        found, expected = answer(p, what), answer(q, what)
        assert (found is None) == (expected is None), what
        if expected is None:
            continue
        found, expected = numbers(found), numbers(expected)
        if (name, what) in NAN_MODE:
            expected = np.where(np.isnan(expected), found, expected)
        rtol = 2e-7 if (name, what) in WIDER else 1e-7
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-9, err_msg=what)
    for what, args in (("log_prob", True), ("cdf", True), ("entropy", False), ("perplexity", False)):
        if (name, what) in RAISES:
            continue
        found, expected = answer(p, what, [x][: int(args)]), answer(q, what, [y][: int(args)])
        assert (found is None) == (expected is None), what
        if expected is None:
            continue
        np.testing.assert_allclose(numbers(found), numbers(expected), rtol=1e-7, atol=1e-9, err_msg=what)
        if not expected.requires_grad:
            continue
        pairs = [(a, b) for a, b in zip(mine, theirs, strict=True) if hasattr(a, "grad")]
        try:
            slopes = torch.autograd.grad(expected.sum(), [b for _, b in pairs], allow_unused=True, retain_graph=True)
        except RuntimeError:
            continue  # not differentiable there
        ours = genesis.autograd.grad(found.sum(), [a for a, _ in pairs], allow_unused=True, retain_graph=True)
        for a, b in zip(ours, slopes, strict=True):
            if b is not None:
                np.testing.assert_allclose(numbers(a), numbers(b), rtol=1e-5, atol=1e-8, err_msg=f"gradient of {what}")
    if q.has_enumerate_support:
        np.testing.assert_array_equal(numbers(p.enumerate_support()), numbers(q.enumerate_support()))


@pytest.mark.parity
def test_generalized_pareto_is_pytorchs_in_float32():
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here; pip install torch==2.13.0")
    parameters = ([0.0, 1.0, -1.0], [1.0, 2.0, 0.5], [0.2, 0.0, -0.3])
    p, q = (m.distributions.GeneralizedPareto(*[m.tensor(a) for a in parameters]) for m in (genesis, torch))
    for what in ("log_prob", "cdf"):
        found, expected = (getattr(d, what)(m.tensor([0.5, 3.0, -0.5])) for d, m in ((p, genesis), (q, torch)))
        np.testing.assert_allclose(numbers(found), numbers(expected), rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float64])
def test_the_circular_variance_has_no_cancellation(dtype):
    mpmath = pytest.importorskip("mpmath", reason="exact Bessel functions are taken from mpmath")
    for k in (0.25, 1.0, 4.0, 30.0, 1000.0, 1e6):
        with mpmath.workdps(40):
            expected = float(1 - mpmath.besseli(1, k) / mpmath.besseli(0, k))
        found = D.VonMises(0.0, genesis.tensor(k, dtype=dtype)).variance
        assert found.dtype is dtype
        np.testing.assert_allclose(float(found), expected, rtol=2e-7 if dtype is genesis.float32 else 1e-9)


def test_modes_are_where_the_density_is_largest():
    x = genesis.linspace(0.0001, 0.9999, 9999, dtype=genesis.float64)
    for p in (D.Kumaraswamy(2.0, 1.5), D.Kumaraswamy(3.0, 5.0), D.Weibull(0.5, 3.0), D.Weibull(0.5, 0.7)):
        assert abs(float(p.mode) - float(x[p.log_prob(x).argmax()])) < 2e-4
    assert D.Kumaraswamy(0.5, 0.5).mode.isnan()  # two ends of infinite density


def test_an_exponential_family_of_unknown_carrier_has_no_entropy():
    with pytest.raises(NotImplementedError, match="Poisson: the mean of its carrier measure is not there"):
        D.Poisson(4.0).entropy()


@pytest.mark.parametrize("name", ALL)
def test_icdf_is_the_inverse_of_cdf(name):
    p, x, _ = made(genesis, name)
    try:
        back = p.icdf(p.cdf(x))
    except NotImplementedError:
        return
    np.testing.assert_allclose(numbers(back), numbers(x), rtol=1e-9)


NO_MOMENTS = {"Cauchy", "HalfCauchy", "Categorical", "LKJCholesky", "VonMises", "FisherSnedecor"}


@pytest.mark.parametrize("name", ALL)
def test_samples_have_the_shape_and_the_moments(name):
    p, _, _ = made(genesis, name)
    genesis.manual_seed(3)
    n = 20_000
    x = p.sample((n,))
    assert tuple(x.shape) == (n, *p.batch_shape, *p.event_shape) and not x.requires_grad
    assert tuple(p.sample().shape) == (*p.batch_shape, *p.event_shape)
    p.log_prob(x[:100])  # inside of the support
    try:
        mean, variance = numbers(p.mean), numbers(p.variance)
    except NotImplementedError:
        return
    if name in NO_MOMENTS or not np.isfinite(variance).all():
        return
    bar = 6 * np.sqrt(variance / n)
    assert (np.abs(numbers(x).mean(0) - mean) <= bar + 1e-12).all()
    np.testing.assert_allclose(numbers(x).var(0), variance, rtol=0.25, atol=1e-9)


@pytest.mark.parametrize("name", [n for n in ALL if n not in ("VonMises",)])
def test_samples_follow_the_distribution_function(name):
    p, _, _ = made(genesis, name)
    genesis.manual_seed(4)
    x = p.sample((4000,))
    try:
        u = np.sort(numbers(p.cdf(x)), 0)
    except NotImplementedError:
        return
    steps = (np.arange(4000) + 0.5).reshape(-1, *[1] * (u.ndim - 1)) / 4000
    assert np.abs(u - steps).max() < 1.95 / math.sqrt(4000)  # Kolmogorov and Smirnov, 1 in 1000


RSAMPLE = ["Beta", "Chi2", "Dirichlet", "Exponential", "Gamma", "Gumbel", "InverseGamma", "Kumaraswamy", "Laplace",
           "LogNormal", "MultivariateNormal", "LowRankMultivariateNormal", "Normal", "StudentT", "Uniform", "Weibull", "Wishart"]  # fmt: skip


@pytest.mark.parametrize("name", RSAMPLE)
def test_gradients_of_samples_are_those_of_the_mean(name):
    """The mean of $\\partial x / \\partial \\theta$ is the derivative of the mean."""
    p, _, args = made(genesis, name, True)
    leaves = [a for a in args if hasattr(a, "grad")]
    genesis.manual_seed(5)
    n = 20_000
    found = genesis.autograd.grad(p.rsample((n,)).mean(0).sum(), leaves, allow_unused=True, retain_graph=True)
    expected = genesis.autograd.grad(p.mean.sum(), leaves, allow_unused=True)
    for a, b in zip(found, expected, strict=True):
        want = 0.0 if b is None else numbers(b)
        np.testing.assert_allclose(0.0 if a is None else numbers(a), want, rtol=0.15, atol=0.08)


@pytest.mark.parity
def test_the_gradient_of_gamma_numbers():
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    from genesis.distributions.utils import standard_gamma_grad

    a, x = np.meshgrid([0.1, 0.5, 1.0, 3.0, 20.0, 200.0], [0.01, 0.3, 1.0, 4.0, 18.0, 190.0])
    found = numbers(standard_gamma_grad(genesis.tensor(a), genesis.tensor(x)))
    expected = torch._standard_gamma_grad(torch.tensor(a), torch.tensor(x)).numpy()
    inside = np.abs(x - a) < 6 * np.sqrt(a) + 1
    np.testing.assert_allclose(found[inside], expected[inside], rtol=2e-3)


@pytest.mark.parity
def test_divergences_are_pytorchs():
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here; pip install torch==2.13.0")
    compared = 0
    others = {
        ("ContinuousBernoulli", "Uniform"),  # PyTorch says inf where both have the same ends
        ("Uniform", "ContinuousBernoulli"),
        ("Kumaraswamy", "Kumaraswamy"),  # no closed form; of equal parameters PyTorch says 0, and gives no gradients
    }
    for a, b in sorted(set(itertools.product(ALL, ALL)) - others):
        try:
            expected = torch.distributions.kl_divergence(made(torch, a)[0], made(torch, b)[0])
        except (NotImplementedError, RuntimeError, ValueError, AttributeError, TypeError):
            continue
        found = D.kl_divergence(made(genesis, a)[0], made(genesis, b)[0])
        np.testing.assert_allclose(numbers(found), numbers(expected), rtol=1e-7, atol=1e-9, err_msg=f"{a} and {b}")
        compared += 1
    assert compared >= 70


@pytest.mark.parametrize(
    ("p", "q", "end"),
    [
        (D.Weibull(2.0, 1.5), D.Weibull(1.0, 0.7), 30.0),
        (D.Weibull(1.0, 2.0), D.Weibull(3.0, 2.5), 30.0),
    ],
    ids=["narrower", "wider"],
)
def test_divergences_of_weibulls_are_their_integrals(p, q, end):
    """PyTorch answers for equal parameters only. The midpoint rule, in powers of a uniform grid."""
    n = 20_000
    u = (genesis.arange(n, dtype=genesis.float64) + 0.5) / n
    x = end * u**4
    log_p = p.log_prob(x)
    integral = (log_p.exp() * (log_p - q.log_prob(x)) * 4 * end * u**3).mean()
    np.testing.assert_allclose(float(D.kl_divergence(p, q)), float(integral), rtol=2e-5)
    assert float(D.kl_divergence(p, p)) == 0.0


def test_divergences_without_a_closed_form_are_refused():
    with pytest.raises(NotImplementedError, match="nothing is registered for Kumaraswamy and Kumaraswamy"):
        D.kl_divergence(D.Kumaraswamy(2.0, 1.5), D.Kumaraswamy(2.0, 1.5))


@pytest.mark.parametrize("name", ALL)
def test_expanded_distributions_are_the_same_for_each(name):
    p, x, _ = made(genesis, name)
    q = p.expand((3, *p.batch_shape))
    assert tuple(q.batch_shape) == (3, *p.batch_shape) and q.event_shape == p.event_shape
    np.testing.assert_allclose(numbers(q.log_prob(x)), np.broadcast_to(numbers(p.log_prob(x)), (3, *p.batch_shape)))
    assert tuple(q.sample((2,)).shape) == (2, 3, *p.batch_shape, *p.event_shape)


WRONG = {
    lambda: D.Normal(0.0, -1.0): "Normal: parameter scale of shape .* is not in GreaterThan",
    lambda: D.Normal(0.0, 1.0).log_prob(genesis.tensor(math.nan)): "Normal: a value is not in the support Real",
    lambda: D.Bernoulli(): "Bernoulli: either probs or logits must be given, and not both",
    lambda: D.Categorical(
        genesis.tensor(0.5)
    ): "Categorical: probs or logits must be a tensor of at least one dimension",
    lambda: D.Uniform(1.0, 0.0): "Uniform: low must be below high",
    lambda: D.MultivariateNormal(genesis.zeros(2)): "MultivariateNormal: exactly one of .* must be given, got 0",
    lambda: D.LKJCholesky(1): "LKJCholesky: dim must be an integer of at least 2, got 1",
    lambda: D.Independent(D.Normal(0.0, 1.0), 1): "Independent: 1 dimensions of the batch",
    lambda: D.Beta(1.0, 2.0).log_prob(genesis.tensor(2.0)): "Beta: a value is not in the support Interval",
    lambda: D.Dirichlet(genesis.tensor(1.0)): "Dirichlet: concentration must have at least one dimension",
    lambda: D.Geometric(0.0): "Geometric: probs must be greater than zero",
    lambda: D.Distribution.set_default_validate_args(3): "expected True or False, got 3",
}


@pytest.mark.parametrize("call", WRONG)
def test_wrong_parameters_are_refused(call):
    with pytest.raises(ValueError, match=WRONG[call]):
        call()


def test_validation_can_be_switched_off():
    D.Normal(0.0, -1.0, validate_args=False)
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)


TRANSFORMS = {
    "ExpTransform": ((), 3), "SigmoidTransform": ((), 3), "TanhTransform": ((), 3), "SoftplusTransform": ((), 3),
    "AffineTransform": ((1.0, 2.0), 3), "StickBreakingTransform": ((), 3), "CorrCholeskyTransform": ((), 3),
}  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_are_pytorchs(name):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here; pip install torch==2.13.0")
    args, n = TRANSFORMS[name]
    x = np.random.default_rng(0).normal(size=(4, n))
    mine, theirs = getattr(D, name)(*args), getattr(torch.distributions, name)(*args)
    a, b = genesis.tensor(x), torch.tensor(x)
    y, z = mine(a), theirs(b)
    np.testing.assert_allclose(numbers(y), numbers(z), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(numbers(mine.inv(y)), x, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        numbers(mine.log_abs_det_jacobian(a, y)), numbers(theirs.log_abs_det_jacobian(b, z)), rtol=1e-7, atol=1e-9
    )
    assert tuple(mine.forward_shape((4, n))) == tuple(theirs.forward_shape((4, n)))


def test_transforms_compose_and_invert():
    t = D.ComposeTransform([D.AffineTransform(1.0, 2.0), D.ExpTransform()])
    x = genesis.tensor([0.1, 0.7], dtype=genesis.float64)
    np.testing.assert_allclose(numbers(t.inv(t(x))), numbers(x))
    np.testing.assert_allclose(numbers(t.log_abs_det_jacobian(x, t(x))), math.log(2) + 1 + 2 * numbers(x))
    assert t.inv.inv is t and D.ExpTransform() == D.ExpTransform() and t.sign == 1
    cached = D.ExpTransform(cache_size=1)
    assert cached.inv(cached(x)) is x


class _Shift(D.Transform, genesis.nn.Module):
    """A transform that learns, as normalizing flows are written; it reads the pair that is kept."""

    bijective = True
    domain = codomain = D.constraints.real

    def __init__(self, cache_size=1):
        super().__init__(cache_size=cache_size)
        self.by = genesis.nn.Parameter(genesis.tensor(2.0))
        self.hits = 0

    def _call(self, x):
        return x + self.by

    def _inverse(self, y):
        return y - self.by

    def log_abs_det_jacobian(self, x, y):
        x_old, y_old = self._cached_x_y
        self.hits += x is x_old and y is y_old
        return genesis.zeros_like(x)


def test_a_transform_that_is_a_module_has_parameters_and_keeps_its_last_pair():
    shift, x = _Shift(), genesis.tensor([1.0, 2.0])
    assert [name for name, _ in shift.named_parameters()] == ["by"]
    y = shift(x)
    assert shift._inv_call(y) is x
    shift.log_abs_det_jacobian(x, y)
    assert shift.hits == 1
    again = shift.with_cache(0)
    assert again.by is shift.by  # and its other parameters are those of the module
    assert next(iter(again.parameters())) is shift.by
    assert not again._cache_size
    flow = D.TransformedDistribution(D.Normal(0.0, 1.0), [shift])
    flow.log_prob(genesis.tensor(3.0)).backward()
    assert shift.by.grad.item() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        _Shift(2)


def test_a_composition_that_is_a_list_of_modules():
    class Flow(D.ComposeTransform, genesis.nn.ModuleList):
        def __init__(self, parts):
            super().__init__(parts)
            self.extend(parts)

        __call__ = D.ComposeTransform.__call__

    flow = Flow([_Shift(), _Shift()])
    assert len(list(flow.parameters())) == 2
    assert flow(genesis.tensor(1.0)).item() == 5.0


def test_a_distribution_that_is_a_module_has_parameters():
    class Learned(D.Distribution, genesis.nn.Module):
        arg_constraints = {}

        def __init__(self):
            super().__init__()
            self.loc = genesis.nn.Parameter(genesis.zeros(()))

        def log_prob(self, value):
            return -((value - self.loc) ** 2)

    learned = Learned()
    learned.log_prob(genesis.tensor(3.0)).backward()
    assert [p.grad.item() for p in learned.parameters()] == [6.0]


@pytest.mark.parametrize(
    "constraint",
    [D.constraints.positive, D.constraints.unit_interval, D.constraints.simplex, D.constraints.interval(-1.0, 2.0),
     D.constraints.lower_cholesky, D.constraints.positive_definite, D.constraints.real, D.constraints.less_than(1.0),
     D.constraints.independent(D.constraints.positive, 1)],
    ids=repr,
)  # fmt: skip
def test_registered_transforms_reach_their_constraints(constraint):
    x = genesis.randn(4, 3, 3, dtype=genesis.float64)
    for registry in (D.biject_to, D.transform_to):
        assert constraint.check(registry(constraint)(x)).all()


def test_mixtures():
    parts = D.Normal(genesis.tensor([-1.0, 3.0]), genesis.tensor([1.0, 0.5]))
    p = D.MixtureSameFamily(D.Categorical(genesis.tensor([0.25, 0.75])), parts)
    genesis.manual_seed(0)
    x = p.sample((20_000,))
    assert abs(float(x.mean()) - float(p.mean)) < 0.05 and abs(float(x.var()) - float(p.variance)) < 0.1
    grid = genesis.linspace(-8, 8, 4001)
    np.testing.assert_allclose(float(genesis.trapezoid(p.log_prob(grid).exp(), grid)), 1.0, rtol=1e-5)
