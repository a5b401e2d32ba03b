"""Distributions of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

import genesis as g
from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.tensor import Tensor, known_values
from genesis.distributions import constraints as c
from genesis.distributions.distribution import Distribution, ExponentialFamily, derived
from genesis.distributions.interval import Beta
from genesis.distributions.positive import Chi2
from genesis.distributions.utils import log_gammas, simplex_mode, size, tiny


def _triangular(a: Tensor, b: Tensor) -> Tensor:
    return g.linalg.solve_triangular(a, b, upper=False)


def _log_diagonal(x: Tensor) -> Tensor:
    return x.diagonal(0, -2, -1).log().sum(-1)


def distance(factor: Tensor, away: Tensor) -> Tensor:
    """$d^T (LL^T)^{-1} d$."""
    shape = g.broadcast_shapes(tuple(factor.shape[:-2]), tuple(away.shape[:-1]))
    y = _triangular(factor.expand((*shape, *factor.shape[-2:])), away.expand((*shape, away.shape[-1])).unsqueeze(-1))
    return (y * y).sum((-2, -1))


class Dirichlet(ExponentialFamily):
    """Dirichlet's distribution of positive numbers with sum one, with density $\\prod_i x_i^{\\alpha_i - 1} /
    B(\\alpha)$.

    >>> import genesis
    >>> genesis.distributions.Dirichlet(genesis.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": c.independent(c.positive, 1)}
    _event_dims = {"concentration": 1}
    support = c.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ArgumentValueError(message("Dirichlet", "concentration must have at least one dimension"))
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    mean = property(lambda self: self.concentration / self.concentration.sum(-1, True))
    mode = property(lambda self: simplex_mode(self.concentration))

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return log_gammas(self.concentration.expand(self._extended_shape(sample_shape))).softmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        a = self.concentration
        return g.xlogy(a - 1, value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self) -> Tensor:
        a, k = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        norm = a.lgamma().sum(-1) - total.lgamma()
        return norm - (k - total) * total.digamma() - ((a - 1) * a.digamma()).sum(-1)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()


def _one_of(name: str, **given: Any) -> str:
    chosen = [k for k, v in given.items() if v is not None]
    if len(chosen) != 1:
        raise ArgumentValueError(message(name, f"exactly one of {', '.join(given)} must be given, got {len(chosen)}"))
    return chosen[0]


def _factor_of_inverse(p: Tensor) -> Tensor:
    """The lower factor of $P^{-1}$: of P with its rows and columns turned around, it is the inverse factor."""
    turned = g.linalg.cholesky(p.flip((-2, -1)))
    upper = turned.flip((-2, -1)).mT
    return _triangular(upper, g.eye(p.shape[-1], dtype=p.dtype, device=p.device).expand(p.shape))


class _WithMatrix(Distribution):
    """Distributions with a positive definite matrix, given as it is, inverted, or by its lower factor."""

    def _factor(self, covariance: Any, precision: Any, tril: Any) -> Tensor:
        if tril is not None:
            return tril  # type: ignore[no-any-return]
        return g.linalg.cholesky(covariance) if covariance is not None else _factor_of_inverse(precision)

    def _spread(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *matrix.shape[-2:]))

    @derived
    def scale_tril(self) -> Tensor:
        return self._spread(self._unbroadcasted_scale_tril)

    @derived
    def covariance_matrix(self) -> Tensor:
        return self._spread(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @derived
    def precision_matrix(self) -> Tensor:
        return self._spread(g.cholesky_inverse(self._unbroadcasted_scale_tril))


class MultivariateNormal(_WithMatrix):
    """The normal distribution of vectors, by its covariance, its inverse (precision), or the covariance's lower factor.

    >>> import genesis
    >>> from genesis.distributions import MultivariateNormal
    >>> MultivariateNormal(genesis.zeros(2), genesis.eye(2)).log_prob(genesis.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {
        "loc": c.real_vector,
        "covariance_matrix": c.positive_definite,
        "precision_matrix": c.positive_definite,
        "scale_tril": c.lower_cholesky,
    }
    _event_dims = {
        "loc": 1,
        "covariance_matrix": 2,
        "precision_matrix": 2,
        "scale_tril": 2,
        "_unbroadcasted_scale_tril": 2,
    }
    support = c.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            raise ArgumentValueError(message("MultivariateNormal", "loc must have at least one dimension"))
        given = {"covariance_matrix": covariance_matrix, "scale_tril": scale_tril, "precision_matrix": precision_matrix}
        name = _one_of("MultivariateNormal", **given)
        matrix = given[name]
        if matrix.ndim < 2:
            raise ArgumentValueError(message("MultivariateNormal", f"{name} must have at least two dimensions"))
        batch = g.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        self.loc = loc.expand((*batch, loc.shape[-1]))
        self.__dict__[name] = matrix.expand((*batch, *matrix.shape[-2:]))
        super().__init__(batch, loc.shape[-1:], validate_args)
        self._unbroadcasted_scale_tril = self._factor(covariance_matrix, precision_matrix, scale_tril)

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        return (self._unbroadcasted_scale_tril**2).sum(-1).expand(self.loc.shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        x = g.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self._unbroadcasted_scale_tril @ x.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        d, factor = self._event_shape[0], self._unbroadcasted_scale_tril
        return -0.5 * (d * math.log(2 * math.pi) + distance(factor, value - self.loc)) - _log_diagonal(factor)

    def entropy(self) -> Tensor:
        entropy = 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + _log_diagonal(
            self._unbroadcasted_scale_tril
        )
        return entropy.expand(self._batch_shape)


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of vectors with covariance $WW^T + \\text{diag}(D)$; inverses are taken of matrices as
    small as W is wide (Woodbury's identity).

    >>> import genesis
    >>> from genesis.distributions import LowRankMultivariateNormal
    >>> LowRankMultivariateNormal(genesis.zeros(2), genesis.ones(2, 1), genesis.ones(2)).variance
    tensor([2., 2.])
    """

    arg_constraints = {
        "loc": c.real_vector,
        "cov_factor": c.independent(c.real, 2),
        "cov_diag": c.independent(c.positive, 1),
    }
    _event_dims = {"loc": 1, "cov_factor": 2, "cov_diag": 1}
    support = c.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        name, n = "LowRankMultivariateNormal", loc.shape[-1] if loc.ndim else 0
        if loc.ndim < 1 or cov_factor.ndim < 2 or cov_factor.shape[-2] != n or cov_diag.shape[-1:] != (n,):
            raise ArgumentValueError(
                message(name, "loc (n), cov_factor (n, k) and cov_diag (n) do not fit", [
                    ("loc", loc._spec()), ("cov_factor", cov_factor._spec()), ("cov_diag", cov_diag._spec())])
            )  # fmt: skip
        batch = g.broadcast_shapes(tuple(loc.shape[:-1]), tuple(cov_factor.shape[:-2]), tuple(cov_diag.shape[:-1]))
        self.loc = loc.expand((*batch, n))
        self.cov_factor = cov_factor.expand((*batch, *cov_factor.shape[-2:]))
        self.cov_diag = cov_diag.expand((*batch, n))
        super().__init__(batch, (n,), validate_args)

    @property
    def _capacitance(self) -> Tensor:
        """The lower factor of $I + W^T D^{-1} W$."""
        w = self.cov_factor
        inner = (w / self.cov_diag.unsqueeze(-1)).mT @ w
        return g.linalg.cholesky(inner + g.eye(w.shape[-1], dtype=w.dtype, device=w.device))

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)
    variance = property(lambda self: (self.cov_factor**2).sum(-1) + self.cov_diag)
    covariance_matrix = property(lambda self: self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed())
    scale_tril = property(lambda self: g.linalg.cholesky(self.covariance_matrix))

    @property
    def precision_matrix(self) -> Tensor:
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        a = _triangular(self._capacitance, scaled)
        return (1 / self.cov_diag).diag_embed() - a.mT @ a

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        kind = {"dtype": self.loc.dtype, "device": self.loc.device}
        thin = g.randn((*shape[:-1], self.cov_factor.shape[-1]), **kind)
        wide = g.randn(shape, **kind)
        return self.loc + (self.cov_factor @ thin.unsqueeze(-1)).squeeze(-1) + self.cov_diag.sqrt() * wide

    def log_det(self) -> Tensor:
        """The logarithm of the covariance's determinant."""
        return 2 * _log_diagonal(self._capacitance) + self.cov_diag.log().sum(-1)

    def distance(self, away: Tensor) -> Tensor:
        """$d^T C^{-1} d$."""
        scaled = away / self.cov_diag
        inner = (self.cov_factor.mT @ scaled.unsqueeze(-1)).squeeze(-1)
        return (away * scaled).sum(-1) - distance(self._capacitance, inner)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + self.log_det() + self.distance(value - self.loc))

    def entropy(self) -> Tensor:
        return 0.5 * (self._event_shape[0] * (1 + math.log(2 * math.pi)) + self.log_det())


class Wishart(_WithMatrix, ExponentialFamily):
    """Wishart's distribution of positive definite matrices, of sums of squares of normal vectors.

    Samples are by Bartlett's decomposition (Sawyer 2007).

    >>> import genesis
    >>> from genesis.distributions import Wishart
    >>> Wishart(genesis.tensor(3.0), genesis.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    arg_constraints = {
        "covariance_matrix": c.positive_definite,
        "precision_matrix": c.positive_definite,
        "scale_tril": c.lower_cholesky,
        "df": c.greater_than(0),
    }
    _event_dims = {"covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2, "df": 0}
    support = c.positive_definite
    has_rsample = True

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        given = {"covariance_matrix": covariance_matrix, "scale_tril": scale_tril, "precision_matrix": precision_matrix}
        name = _one_of("Wishart", **given)
        matrix = given[name]
        if matrix.ndim < 2:
            raise ArgumentValueError(message("Wishart", f"{name} must have at least two dimensions"))
        df = df if isinstance(df, Tensor) else matrix.new_tensor(float(df))
        batch = g.broadcast_shapes(tuple(df.shape), tuple(matrix.shape[:-2]))
        self.df = df.expand(batch)
        low = known_values((self.df <= matrix.shape[-1] - 1).detach())
        if low is not None and low.any():
            raise ArgumentValueError(
                message("Wishart", f"df must be greater than {matrix.shape[-1] - 1}", [("df", df)])
            )
        self.__dict__[name] = matrix.expand((*batch, *matrix.shape[-2:]))
        super().__init__(batch, matrix.shape[-2:], validate_args)
        self._unbroadcasted_scale_tril = self._factor(covariance_matrix, precision_matrix, scale_tril)

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._event_shape[-1] - 1
        factor = g.where(factor > 0, factor, math.nan)
        return factor[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        d = v.diagonal(0, -2, -1)
        return self.df[..., None, None] * (v**2 + d.unsqueeze(-1) * d.unsqueeze(-2))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        p, shape = self._event_shape[-1], self._extended_shape(sample_shape)
        steps = g.arange(p, dtype=self.df.dtype, device=self.df.device)
        squares = Chi2(self.df.unsqueeze(-1) - steps, validate_args=False).rsample(size(sample_shape))
        noise = g.randn(tuple(shape), dtype=self.df.dtype, device=self.df.device).tril(-1)
        chol = self._unbroadcasted_scale_tril @ (noise + squares.clamp(min=tiny(squares)).sqrt().diag_embed())
        return chol @ chol.mT

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        n, p, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        norm = n * (p / 2 * math.log(2) + _log_diagonal(factor)) + g.special.multigammaln(n / 2, p)
        trace = g.cholesky_solve(value, factor).diagonal(0, -2, -1).sum(-1)
        return (n - p - 1) / 2 * g.linalg.slogdet(value).logabsdet - trace / 2 - norm

    def entropy(self) -> Tensor:
        n, p, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        steps = g.arange(p, dtype=n.dtype, device=n.device)
        psi = (0.5 * (n.unsqueeze(-1) - steps)).digamma().sum(-1)
        volume = (p + 1) * (_log_diagonal(factor) + 0.5 * p * math.log(2)) + g.special.multigammaln(0.5 * n, p)
        return volume - 0.5 * (n - p - 1) * psi + 0.5 * n * p


class LKJCholesky(Distribution):
    """The distribution of Cholesky's factors of correlation matrices M with density proportional to $\\det(M)^{\\eta - 1}$
    (Lewandowski, Kurowicka and Joe 2009, by the onion method).

    >>> import genesis
    >>> genesis.distributions.LKJCholesky(3, 0.5).sample().shape
    genesis.Size([3, 3])
    """

    arg_constraints = {"concentration": c.positive}
    support = c.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if isinstance(dim, bool) or not isinstance(dim, int) or dim < 2:
            raise ArgumentValueError(message("LKJCholesky", f"dim must be an integer of at least 2, got {dim!r}"))
        self.dim = dim
        self.concentration = concentration if isinstance(concentration, Tensor) else g.tensor(float(concentration))
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def _rows(self) -> Beta:
        """The squared length of each row below the diagonal; the first has none, whatever is drawn for it."""
        row = g.arange(self.dim, dtype=self.concentration.dtype, device=self.concentration.device).clamp(min=1)
        second = self.concentration.unsqueeze(-1) + 0.5 * (self.dim - 1 - row)
        return Beta(0.5 * row, second, validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with g.no_grad():
            n, shape = self.dim, self._extended_shape(sample_shape)
            lengths = self._rows().sample(sample_shape).unsqueeze(-1)
            noise = g.randn(tuple(shape), dtype=lengths.dtype, device=lengths.device).tril(-1)
            norm = (noise * noise).sum(-1, True).sqrt()
            direction = noise / norm.clamp(min=tiny(norm))
            first = (g.arange(n, device=lengths.device) == 0).unsqueeze(-1)
            lengths = g.where(first, 0.0, lengths)
            low = lengths.sqrt() * direction
            diagonal = (1 - (low * low).sum(-1)).clamp(min=tiny(norm)).sqrt()
            return low + diagonal.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        """Section 3 of the paper, with the determinant of the map from a triangle to its square."""
        self._check_value(value)
        n, eta = self.dim, self.concentration
        order = g.arange(2, n + 1, dtype=eta.dtype, device=eta.device)
        powers = 2 * (eta - 1).unsqueeze(-1) + n - order
        density = (powers * value.diagonal(0, -2, -1)[..., 1:].log()).sum(-1)
        alpha = eta + 0.5 * (n - 1)
        norm = 0.5 * (n - 1) * math.log(math.pi) + g.special.multigammaln(alpha - 0.5, n - 1) - (n - 1) * alpha.lgamma()
        return density - norm


__all__ = ["Dirichlet", "LKJCholesky", "LowRankMultivariateNormal", "MultivariateNormal", "Wishart"]
