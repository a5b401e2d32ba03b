"""Statistics: covariance, distances, medians and quantiles without nan."""

from __future__ import annotations

import builtins
import math
from typing import Any

from genesis.base import dtypes
from genesis.base.errors import DTypeError, ShapeError, message
from genesis.core.call.kinds import case, composite, normalize_dim
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.outside import as_tensor
from genesis.ops.pointwise.choice import where
from genesis.ops.reductions.along import pick
from genesis.ops.reductions.search import searchsorted
from genesis.ops.reductions.ranks import between, median, median_result, quantile
from genesis.ops.reductions.sort import sort
from genesis.ops.shapes.join import stack

_NAN = float("nan")


# ---- spread of several variables


@composite(halves="wide", dtypes="fci")
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariances of variables, of which each row has the observations: $\\sum_k w_k (x_{ik} - m_i)(x_{jk} - m_j)^* / c$.

    Args:
        correction: what is taken from the sum of weights in $c$
        fweights: how often each observation counts, integers
        aweights: how much each observation weighs

    Raises:
        RuntimeError: more than two dimensions, weights of another length, or bool

    >>> import genesis
    >>> genesis.cov(genesis.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input.ndim > 2:
        raise ShapeError(message("cov", f"expected at most 2 dimensions, got {input.ndim}"))
    if input.dtype is dtypes.bool:
        raise DTypeError(message("cov", "genesis.bool has no mean", hint="x.float()"))
    x = input if input.dtype.category > 1 else input.to(dtypes.get_default_dtype())
    x = x.reshape(1, -1) if x.ndim < 2 else x
    weights = None
    for given in (fweights, aweights):
        if given is not None:
            if given.shape != x.shape[1:]:
                raise ShapeError(message("cov", f"{given.numel()} weights for {x.shape[1]} observations"))
            weights = given if weights is None else weights * given
    if weights is None:
        total: Any = x.shape[1]
        centred = weighed = x - x.mean(1, True)
    else:
        total = weights.sum()
        centred = x - (x * weights).sum(1, True) / total
        weighed = centred * weights
    squares = total if aweights is None else (weights * aweights).sum() / total  # type: ignore[operator]
    left = total - correction * (squares if aweights is not None else 1)
    left = left.clamp(min=0) if isinstance(left, Tensor) else max(left, 0)
    product = weighed @ centred.mH
    result = product / left if isinstance(left, Tensor) or left else product * (_NAN if x.shape[1] < 2 else math.inf)
    return result.reshape(()) if x.shape[0] == 1 else result


samples(
    cov,
    lambda t: [
        case(t(3, 5)),
        case(t(5)),
        case(t(1, 5)),
        case(t(3, 5), correction=0),
        case(t(2, 4), fweights=t.int(4, low=1, high=3), aweights=t.int(4, low=1, high=3).double()),
    ],
)

wrong_inputs(
    cov,
    (lambda t: case(t(2, 2, 2)), RuntimeError, "cov: expected at most 2 dimensions, got 3"),
    (lambda t: case(t.bool(3)), RuntimeError, "cov: genesis.bool has no mean"),
)


@composite(halves="wide", dtypes="fci")
def corrcoef(input: Tensor) -> Tensor:
    """The correlations of variables, of which each row has the observations: covariances over $\\sigma_i \\sigma_j$.

    Raises:
        RuntimeError: more than two dimensions

    >>> import genesis
    >>> genesis.corrcoef(genesis.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    covariance = cov(input)
    if not covariance.ndim:
        return covariance / covariance
    spread = covariance.diagonal().real.sqrt()
    ratio = covariance / spread.unsqueeze(1) / spread.unsqueeze(0)
    if ratio.is_complex():
        from genesis.ops.creation.create import complex as complex_of

        return complex_of(ratio.real.clamp(-1, 1), ratio.imag.clamp(-1, 1))
    return ratio.clamp(-1, 1)


samples(corrcoef, lambda t: [case(t(3, 6)), case(t(1, 6))])

wrong_inputs(corrcoef, (lambda t: case(t(2, 2, 2)), RuntimeError, "cov: expected at most 2 dimensions, got 3"))


@composite(halves="wide", dtypes="fc", autocast="float32:gpu")
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The $p$-norm of a difference, of all elements.

    >>> import genesis
    >>> genesis.dist(genesis.tensor([3., 0.]), genesis.tensor([0., 4.]))
    tensor(5.)
    """
    return (input - other).norm(p)  # type: ignore[no-any-return]


samples(dist, lambda t: [case(t(2, 3), t(2, 3)), case(t(2, 3), t(3), 1), case(t(3), t(3), 3.0)])


@composite(halves="wide", dtypes="fc", inplace=True, out=True, autocast="float32:gpu")
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """``input`` with the slices along ``dim`` whose $p$-norm is above ``maxnorm`` scaled down to it.

    Raises:
        IndexError: a dim out of range
        RuntimeError: fewer than two dimensions, or a ``p`` or ``maxnorm`` that is not positive

    >>> import genesis
    >>> genesis.renorm(genesis.tensor([[3., 4.], [0.3, 0.4]]), 2, 0, 1.)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    d = normalize_dim("renorm", dim, input.ndim)
    if input.ndim < 2 or p <= 0 or maxnorm < 0:
        raise ShapeError(
            message("renorm", f"needs 2 dimensions, p > 0 and maxnorm >= 0, got {input.ndim}, {p}, {maxnorm}")
        )
    size = input.norm(p, [i for i in range(input.ndim) if i != d], True)
    return input * where(size > maxnorm, maxnorm / (size + 1e-7), 1.0).to(size.dtype)  # type: ignore[no-any-return]


samples(renorm, lambda t: [case(t(3, 4), 2, 0, 0.5), case(t(2, 3), 1, -1, 1.0)])

wrong_inputs(renorm, (lambda t: case(t(3), 2, 0, 1.0), RuntimeError, "renorm: needs 2 dimensions"))

# ---- order, without nan


@composite(dtypes="fi")
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """`median` of the elements that are not nan; nan where all are.

    Raises:
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.nanmedian(genesis.tensor([1., float("nan"), 3.]))
    tensor(1.)
    """
    if not input.is_floating_point() or not input.ndim:
        return median(input, dim, keepdim)
    if dim is None:
        flat = input.reshape(-1)
        return nanmedian(flat, 0).values if flat.numel() else median(input)
    d = normalize_dim("nanmedian", dim, input.ndim)
    order = sort(input.detach(), d).indices  # nan comes last
    known = input.isnan().logical_not().sum(d, True)
    at = (known - 1).clamp(min=0) // 2
    return median_result(*pick(input, d, order.gather(d, at), keepdim))


samples(nanmedian, lambda t: [case(t(3, 5)), case(t(3, 4), 1), case(t(3, 4), 0, True)])

wrong_inputs(nanmedian, (lambda t: case(t(3), 1), IndexError, "nanmedian: dim 1 is out of range"))


@composite(halves="wide", dtypes="f", out=True, autocast="float32:cpu")
def nanquantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """`quantile` of the elements that are not nan; nan where all are.

    Raises:
        RuntimeError: q outside [0, 1], or a tensor that is not floating
        ValueError: an unknown interpolation

    >>> import genesis
    >>> genesis.nanquantile(genesis.tensor([1., float("nan"), 3.]), 0.5)
    tensor(2.)
    """
    plain = quantile(where(input.isnan(), 0.0, input), q, dim, keepdim, interpolation=interpolation)  # it refuses
    d = None if dim is None else normalize_dim("nanquantile", dim, input.ndim)
    rows = input.reshape(-1) if d is None or not input.ndim else input.movedim(d, -1)
    part = as_tensor(q, dtype=input.dtype, device=input.device).reshape(-1, *[1] * rows.ndim)
    ordered, known = sort(rows).values, rows.isnan().logical_not().sum(-1, True)
    ordered = where(ordered.isnan(), 0.0, ordered).expand(part.shape[0], *rows.shape)
    position = part * (known - 1).clamp(min=0).to(ordered.dtype)
    result = between(lambda at: ordered.gather(-1, at), position, interpolation)
    return where(known > 0, result, _NAN).squeeze(-1).reshape(plain.shape)  # type: ignore[no-any-return]


samples(
    nanquantile,
    lambda t: [case(t(3, 5), 0.3), case(t(3, 5), 0.75, 1), case(t(3, 5), t(2, low=0.1, high=0.9), 0, True)],
)

wrong_inputs(nanquantile, (lambda t: case(t(3), 1.5), RuntimeError, "quantile: q must be between 0 and 1, got 1.5"))


# ---- powers


@composite(halves="wide", dtypes="fci", method=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:  # noqa: N803
    """The powers of the elements of a vector, as the rows of a matrix with ``N`` columns; the highest first.

    Of integers they are int64.

    Raises:
        RuntimeError: not one dimension, or a negative ``N``

    >>> import genesis
    >>> genesis.vander(genesis.tensor([2, 3]), 3)
    tensor([[4, 2, 1],
            [9, 3, 1]])
    """
    count = x.shape[0] if x.ndim == 1 and N is None else N
    if x.ndim != 1 or count is None or count < 0:
        raise ShapeError(message("vander", f"expected one dimension and N >= 0, got {x.ndim} and N={N}"))
    if not x.is_floating_point() and not x.is_complex():
        x = x.long()
    if count > 1_000_000:
        x.new_empty(x.shape[0], count)  # an error where there is no room for it, not a loop without end
    rows = [x.new_ones(x.shape)]
    for _ in builtins.range(count - 1):
        rows.append(rows[-1] * x)
    kept = rows[:count] if increasing else rows[:count][::-1]
    return stack(kept, 1) if kept else x.new_empty(x.shape[0], 0)  # type: ignore[no-any-return]


samples(vander, lambda t: [case(t(3)), case(t(3), 2), case(t(3), 4, True), case(t(2), 0)])

wrong_inputs(
    vander,
    (lambda t: case(t(2, 2)), RuntimeError, "vander: expected one dimension and N >= 0, got 2"),
    (lambda t: case(t(2), 10**30), MemoryError, "are asked for"),
)


@composite(dtypes="fi", method=False, out=True)
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each of ``elements`` is among ``test_elements``; with ``invert`` whether it is not.

    >>> import genesis
    >>> genesis.isin(genesis.tensor([1, 2, 3]), genesis.tensor([2, 5]))
    tensor([False,  True, False])
    """
    device = next((x.device for x in (elements, test_elements) if isinstance(x, Tensor)), None)
    x, known = (as_tensor(given, device=device).detach() for given in (elements, test_elements))
    known = known.reshape(-1)
    kind = dtypes.result_type(x, known)
    if kind is dtypes.bool:
        x, known, kind = x.to(dtypes.uint8), known.to(dtypes.uint8), dtypes.uint8
    x, known = x.to(kind), known.to(kind)
    if not known.numel():
        return x.new_full(x.shape, invert, dtype=dtypes.bool)
    ordered = sort(known).values
    at = searchsorted(ordered, x).clamp(max=ordered.shape[0] - 1)
    hit = ordered[at] == x
    return hit.logical_not() if invert else hit


samples(isin, lambda t: [case(t.int(2, 3, low=0, high=5), t.int(4, low=0, high=5)), case(t.int(3, low=0, high=3), 2)])


__all__ = ["corrcoef", "cov", "dist", "isin", "nanmedian", "nanquantile", "renorm", "vander"]
