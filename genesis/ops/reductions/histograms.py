"""Histograms of one and of several variables."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from genesis.base.library import named_result
from genesis.base.errors import ShapeError, message
from genesis.core.call.out import takes_out
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.sequences import linspace
from genesis.ops.pointwise.choice import where
from genesis.ops.reductions.along import check_floating
from genesis.ops.reductions.search import searchsorted
from genesis.ops.shapes.join import stack


@named_result
class histogram_result(NamedTuple):  # noqa: N801  # named as PyTorch names it
    hist: Tensor
    bin_edges: Tensor


@named_result
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


def _bin_of(x: Tensor, edges: Tensor) -> Tensor:
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
    at = stack([_bin_of(points[:, i], edges[i]) for i in builtins.range(many)])
    shape = [len(e) - 1 for e in edges]
    inside = (at >= 0).all(0)
    flat = at.new_zeros(at.shape[1:])
    for n, column in zip(shape, at, strict=True):
        flat = flat * n + column
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
    result = histogramdd(input.reshape(-1, 1), [bins], range=range, weight=weight, density=density)
    return histogram_result(result.hist, result.bin_edges[0])


Tensor.histogram = histogram

explain_all(globals(), "histogram", "histogramdd")

__all__ = ["histogram", "histogramdd"]
