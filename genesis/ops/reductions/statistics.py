"""Statistics: covariance, quantiles without nan, histograms, areas under curves and slopes."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from genesis.base import dtypes
from genesis.base.errors import ArgumentError, ShapeError, message
from genesis.core.call.out import takes_out
from genesis.core.call.kinds import case, composite, normalize_dim, normalize_dims
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.ops.pointwise.choice import where
from genesis.ops.creation.outside import as_tensor
from genesis.ops.creation.sequences import linspace
from genesis.ops.shapes.join import cat, stack
from genesis.ops.reductions.sort import median, median_result, quantile, sort
from genesis.ops.reductions.along import check_floating, pick
from genesis.ops.reductions.search import searchsorted

_NAN = float("nan")


# ---- spread of several variables


@composite(halves="wide", dtypes="fc")
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariances of variables, of which each row has the observations: $\\sum_k w_k (x_{ik} - m_i)(x_{jk} - m_j)^* / c$.

    Args:
        correction: what is taken from the sum of weights in $c$
        fweights: how often each observation counts, integers
        aweights: how much each observation weighs

    Raises:
        RuntimeError: more than two dimensions, or weights of another length

    >>> import genesis
    >>> genesis.cov(genesis.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input.ndim > 2:
        raise ShapeError(message("cov", f"expected at most 2 dimensions, got {input.ndim}"))
    x = input.reshape(1, -1) if input.ndim < 2 else input
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
    found = product / left if isinstance(left, Tensor) or left else product * (_NAN if x.shape[1] < 2 else math.inf)
    return found.reshape(()) if input.ndim < 2 else found


samples(
    cov,
    lambda t: [
        case(t(3, 5)),
        case(t(5)),
        case(t(3, 5), correction=0),
        case(t(2, 4), fweights=t.int(4, low=1, high=3), aweights=t.int(4, low=1, high=3).double()),
    ],
)

wrong_inputs(cov, (lambda t: case(t(2, 2, 2)), RuntimeError, "cov: expected at most 2 dimensions, got 3"))


@composite(halves="wide", dtypes="fc")
def corrcoef(input: Tensor) -> Tensor:
    """The correlations of variables, of which each row has the observations: covariances over $\\sigma_i \\sigma_j$.

    Raises:
        RuntimeError: more than two dimensions

    >>> import genesis
    >>> genesis.corrcoef(genesis.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    found = cov(input)
    if not found.ndim:
        return found / found
    spread = found.diagonal().real.sqrt()
    ratio = found / spread.unsqueeze(1) / spread.unsqueeze(0)
    if ratio.is_complex():
        from genesis.ops.creation.create import complex as complex_of

        return complex_of(ratio.real.clamp(-1, 1), ratio.imag.clamp(-1, 1))
    return ratio.clamp(-1, 1)


samples(corrcoef, lambda t: [case(t(3, 6))])

wrong_inputs(corrcoef, (lambda t: case(t(2, 2, 2)), RuntimeError, "cov: expected at most 2 dimensions, got 3"))


@composite(halves="wide", dtypes="fc")
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The $p$-norm of a difference, of all elements.

    >>> import genesis
    >>> genesis.dist(genesis.tensor([3., 0.]), genesis.tensor([0., 4.]))
    tensor(5.)
    """
    return (input - other).norm(p)  # type: ignore[no-any-return]


samples(dist, lambda t: [case(t(2, 3), t(2, 3)), case(t(2, 3), t(3), 1), case(t(3), t(3), 3.0)])


@composite(halves="wide", dtypes="fc", inplace=True, out=True)
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


@composite(halves="wide", dtypes="f", out=True)
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
    found = _pick_between(ordered, known, part, interpolation)
    return where(known > 0, found, _NAN).squeeze(-1).reshape(plain.shape)  # type: ignore[no-any-return]


def _pick_between(ordered: Tensor, known: Tensor, fraction: Tensor, interpolation: str) -> Tensor:
    """The element of rows in order at a part of the elements that are known."""
    place = fraction * (known - 1).clamp(min=0).to(ordered.dtype)
    if interpolation == "nearest":
        place = place.round()
    low = place.detach().ceil() if interpolation == "higher" else place.detach().floor()
    below = ordered.gather(-1, low.long())
    if interpolation not in ("linear", "midpoint"):
        return below  # type: ignore[no-any-return]
    above = ordered.gather(-1, place.detach().ceil().long())
    return below.lerp(above, place - low if interpolation == "linear" else 0.5)  # type: ignore[no-any-return]


samples(
    nanquantile,
    lambda t: [case(t(3, 5), 0.3), case(t(3, 5), 0.75, 1), case(t(3, 5), t(2, low=0.1, high=0.9), 0, True)],
)

wrong_inputs(nanquantile, (lambda t: case(t(3), 1.5), RuntimeError, "quantile: q must be between 0 and 1, got 1.5"))

# ---- counts


class histogram_result(NamedTuple):  # noqa: N801  # named as PyTorch names it
    hist: Tensor
    bin_edges: Tensor


class histogramdd_result(NamedTuple):  # noqa: N801
    hist: Tensor
    bin_edges: tuple[Tensor, ...]


def _edges(name: str, x: Tensor, bins: Any, limits: Any) -> Tensor:
    """The edges of bins: given, or as many of one width between limits or the smallest and largest element."""
    if isinstance(bins, Tensor):
        return bins
    if limits is None:
        limits = (x.min().item(), x.max().item()) if x.numel() else (0.0, 1.0)
    low, high = limits
    if not (math.isfinite(low) and math.isfinite(high)) or low > high or bins < 1:
        raise ShapeError(message(name, f"{bins} bins between {low} and {high} cannot be"))
    if low == high:
        low, high = low - 0.5, high + 0.5
    return linspace(low, high, bins + 1, dtype=x.dtype, device=x.device)


def _places(x: Tensor, edges: Tensor) -> Tensor:
    """The bin of each element, and -1 of those outside; the last bin holds its right edge."""
    count = edges.shape[0] - 1
    at = searchsorted(edges, x, right=True) - 1
    at = where(x == edges[-1], count - 1, at)
    return where((x < edges[0]) | (x > edges[-1]) | x.isnan(), -1, at)  # type: ignore[no-any-return]


def _density(hist: Tensor, widths: Sequence[Tensor]) -> Tensor:
    total = hist.sum()
    for d, width in enumerate(widths):
        hist = hist / width.reshape([-1 if i == d else 1 for i in range(len(widths))])
    return hist / total


def histogramdd(
    input: Tensor,
    bins: Any,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """How many points, the last dimension of ``input``, are in each cell of a grid; and the edges of the grid.

    Args:
        bins: how many along each dimension, one number for all, or tensors of edges
        range: the lowest and highest edge of each dimension, one after the other
        weight: what each point counts for
        density: divide by the total and by the size of each cell

    >>> import genesis
    >>> genesis.histogramdd(genesis.tensor([[0., 0.], [1., 1.]]), bins=[2, 2]).hist
    tensor([[1., 0.],
            [0., 1.]])
    """
    check_floating("histogramdd", input, "floating")
    if input.ndim < 2:
        raise ShapeError(message("histogramdd", f"expected at least 2 dimensions, got {input.ndim}"))
    points = input.detach().reshape(-1, input.shape[-1])
    many = points.shape[1]
    each = [bins] * many if isinstance(bins, int) else list(bins)
    if len(each) != many:
        raise ShapeError(message("histogramdd", f"bins for {len(each)} dimensions, the points have {many}"))
    limits = [None] * many if range is None else [tuple(range[2 * i : 2 * i + 2]) for i in builtins.range(many)]
    edges = [_edges("histogramdd", points[:, i], each[i], limits[i]) for i in builtins.range(many)]
    at = stack([_places(points[:, i], edges[i]) for i in builtins.range(many)])
    shape = [len(e) - 1 for e in edges]
    inside = (at >= 0).all(0)
    flat = at.new_zeros(at.shape[1:])
    for n, place in zip(shape, at, strict=True):
        flat = flat * n + place
    ones = points.new_ones(points.shape[:1]) if weight is None else weight.reshape(-1).to(points.dtype)
    hist = points.new_zeros(math.prod(shape)).index_add(0, flat[inside], ones[inside]).reshape(shape)
    widths = [e.diff() for e in edges]
    return histogramdd_result(_density(hist, widths) if density else hist, tuple(edges))


@takes_out
def histogram(
    input: Tensor,
    bins: Any,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """How many elements are in each bin, and the edges of the bins; the last bin holds its right edge.

    Args:
        bins: how many of one width, or a tensor of edges
        range: the lowest and the highest edge; the smallest and the largest element for None
        weight: what each element counts for
        density: divide by the total and by the widths

    >>> import genesis
    >>> genesis.histogram(genesis.tensor([1., 2., 2.]), bins=2).hist
    tensor([1., 2.])
    """
    check_floating("histogram", input, "floating")
    found = histogramdd(input.reshape(-1, 1), [bins], range=range, weight=weight, density=density)
    return histogram_result(found.hist, found.bin_edges[0])


Tensor.histogram = histogram

# ---- areas and slopes


def _steps(name: str, y: Tensor, x: Any, dx: Any, d: int) -> Any:
    """The widths of the intervals along a dimension: a number, or a tensor that broadcasts to them."""
    if x is None:
        return 1 if dx is None else dx
    if x.ndim == 1 and x.shape[0] != y.shape[d]:
        raise ShapeError(message(name, f"{x.shape[0]} points for size {y.shape[d]} of dim {d}"))
    widths = x.diff(dim=-1 if x.ndim == 1 else d)
    return widths.reshape([-1 if i == d else 1 for i in builtins.range(y.ndim)]) if x.ndim == 1 else widths


def _areas(name: str, y: Tensor, x: Any, dx: Any, dim: int) -> tuple[Tensor, int]:
    d = normalize_dim(name, dim, y.ndim)
    if not y.ndim:
        raise ShapeError(message(name, "expected at least 1 dimension, got 0"))
    size = max(y.shape[d] - 1, 0)
    left, right = y.narrow(d, 0, size), y.narrow(d, y.shape[d] - size, size)
    return (left + right) * _steps(name, y, x, dx, d) / 2, d


@composite(halves="wide", dtypes="fc", method=False)
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The area under a curve along ``dim`` by the trapezoidal rule, $\\sum_i (x_{i+1} - x_i)(y_i + y_{i+1}) / 2$.

    Args:
        x: the points; ``dx`` is their distance where they are not given

    Raises:
        IndexError: a dim out of range
        RuntimeError: points that do not fit

    >>> import genesis
    >>> genesis.trapezoid(genesis.tensor([1., 2., 3.]))
    tensor(4.)
    """
    areas, d = _areas("trapezoid", y, x, dx, dim)
    return areas.sum(d)  # type: ignore[no-any-return]


samples(trapezoid, lambda t: [case(t(3, 4)), case(t(3, 4), t(4)), case(t(3, 4), dx=0.5, dim=0), case(t(3, 4), t(3, 4))])

wrong_inputs(trapezoid, (lambda t: case(t(4), t(3)), RuntimeError, "trapezoid: 3 points for size 4 of dim 0"))


@composite(halves="wide", dtypes="fc", method=False)
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The areas under a curve up to each of its points but the first, see `trapezoid`.

    Raises:
        IndexError: a dim out of range
        RuntimeError: points that do not fit

    >>> import genesis
    >>> genesis.cumulative_trapezoid(genesis.tensor([1., 2., 3.]))
    tensor([1.5000, 4.0000])
    """
    areas, d = _areas("cumulative_trapezoid", y, x, dx, dim)
    return areas.cumsum(d)  # type: ignore[no-any-return]


samples(cumulative_trapezoid, lambda t: [case(t(3, 4)), case(t(3, 4), t(4)), case(t(3, 4), dx=0.5, dim=0)])

wrong_inputs(
    cumulative_trapezoid,
    (lambda t: case(t(4), t(3)), RuntimeError, "cumulative_trapezoid: 3 points for size 4 of dim 0"),
)


def gradient(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> list[Tensor]:
    """The slopes along each of ``dim``, from the neighbours on both sides; at the edges from one side.

    Args:
        spacing: the distance of points: one number, one for each dimension, or for each a tensor of their places
        edge_order: 1 or 2, the order of the estimate at the edges

    Raises:
        RuntimeError: a dimension shorter than ``edge_order + 1``, or a spacing that does not fit

    >>> import genesis
    >>> genesis.gradient(genesis.tensor([1., 2., 4., 7.]))
    [tensor([1.0000, 1.5000, 2.5000, 3.0000])]
    """
    dims = normalize_dims("gradient", dim, input.ndim)
    each = list(spacing) if isinstance(spacing, list | tuple) else [1 if spacing is None else spacing] * len(dims)
    if len(each) != len(dims):
        raise ShapeError(message("gradient", f"{len(each)} spacings for {len(dims)} dimensions"))
    if edge_order not in (1, 2):
        raise ArgumentError(message("gradient", f"edge_order must be 1 or 2, got {edge_order}"))
    return [_slope(input, d, h, edge_order) for d, h in zip(dims, each, strict=True)]


def _slope(y: Tensor, d: int, h: Any, order: int) -> Tensor:
    n = y.shape[d]
    if n <= order:
        raise ShapeError(message("gradient", f"dim {d} has size {n}, edge_order {order} needs more than {order}"))
    if not isinstance(h, Tensor) or not h.ndim:
        widths = y.new_full((n - 1,), 1, dtype=(y * 1.0).dtype) * h
    else:
        widths = h.to((y * 1.0).dtype).diff()
    w = widths.reshape([-1 if i == d else 1 for i in builtins.range(y.ndim)])
    part = lambda x, a, b: x.narrow(d, a, b - a)
    rise = y.diff(dim=d) / w  # slopes of the intervals
    inner = []
    if n > 2:
        left, right = part(w, 0, n - 2), part(w, 1, n - 1)
        inner = [(part(rise, 0, n - 2) * right + part(rise, 1, n - 1) * left) / (left + right)]
    first, last = part(rise, 0, 1), part(rise, n - 2, n - 1)
    if order == 2:
        a, b = part(w, 0, 1), part(w, 1, 2)
        first = first + (first - part(rise, 1, 2)) * a / (a + b)
        a, b = part(w, n - 2, n - 1), part(w, n - 3, n - 2)
        last = last + (last - part(rise, n - 3, n - 2)) * a / (a + b)
    return cat([first, *inner, last], d)  # type: ignore[no-any-return]


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
    rows = [x.new_ones(x.shape)]
    for _ in builtins.range(count - 1):
        rows.append(rows[-1] * x)
    kept = rows[:count] if increasing else rows[:count][::-1]
    return stack(kept, 1) if kept else x.new_empty(x.shape[0], 0)  # type: ignore[no-any-return]


samples(vander, lambda t: [case(t(3)), case(t(3), 2), case(t(3), 4, True), case(t(2), 0)])

wrong_inputs(vander, (lambda t: case(t(2, 2)), RuntimeError, "vander: expected one dimension and N >= 0, got 2"))


@composite(dtypes="fi", method=False, out=True)
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each of ``elements`` is among ``test_elements``; with ``invert`` whether it is not.

    >>> import genesis
    >>> genesis.isin(genesis.tensor([1, 2, 3]), genesis.tensor([2, 5]))
    tensor([False,  True, False])
    """
    place = next((x.device for x in (elements, test_elements) if isinstance(x, Tensor)), None)
    x, known = (as_tensor(given, device=place).detach() for given in (elements, test_elements))
    known = known.reshape(-1)
    kind = dtypes.result_type(x, known)
    if kind is dtypes.bool:
        x, known, kind = x.to(dtypes.uint8), known.to(dtypes.uint8), dtypes.uint8
    x, known = x.to(kind), known.to(kind)
    if not known.numel():
        return x.new_full(x.shape, invert, dtype=dtypes.bool)
    ordered = sort(known).values
    at = searchsorted(ordered, x).clamp(max=ordered.shape[0] - 1)
    found = ordered[at] == x
    return found.logical_not() if invert else found


samples(isin, lambda t: [case(t.int(2, 3, low=0, high=5), t.int(4, low=0, high=5)), case(t.int(3, low=0, high=3), 2)])


explain_all(globals(), "histogram", "histogramdd", "gradient")

trapz = trapezoid

__all__ = [
    "corrcoef",
    "cov",
    "cumulative_trapezoid",
    "dist",
    "gradient",
    "histogram",
    "histogramdd",
    "isin",
    "nanmedian",
    "nanquantile",
    "renorm",
    "trapezoid",
    "trapz",
    "vander",
]
