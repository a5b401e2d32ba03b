"""Areas under curves that are known at points, and slopes of them."""

from __future__ import annotations

import builtins
from typing import Any

from genesis.base.errors import ArgumentError, ShapeError, message
from genesis.core.call.kinds import case, composite, normalize_dim, normalize_dims
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.ops.shapes.join import cat


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


@composite(halves="wide", dtypes="fc", method=False, autocast="float32:gpu")
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


@composite(halves="wide", dtypes="fc", method=False, autocast="float32:gpu")
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


trapz = trapezoid
explain_all(globals(), "gradient")


__all__ = ["cumulative_trapezoid", "gradient", "trapezoid", "trapz"]
