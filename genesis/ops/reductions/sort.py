"""Ordering: sorting, and the largest of many (`ranks.py`: the element of a rank; `search.py`: distinct values, counts,
and searching in order).

Values are differentiable, through the positions they came from. nan counts as the largest value. Sorting is always
stable.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from genesis.base.library import named_result
from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.errors import ShapeError, message
from genesis.core.call.kinds import case, composite, normalize_dim, primitive
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.strides import packed
from genesis.core.graph.tensor import Tensor
from genesis.ops.reductions.along import check_ordered, pick, resized, widened

_I64 = np.dtype(np.int64)
_out_of_range = (lambda t: case(t(2, 3), dim=2), IndexError, "dim 2 is out of range for 2 dimensions")


@named_result
class sort_result(NamedTuple):  # noqa: N801  # named as PyTorch names it
    values: Tensor
    indices: Tensor


@named_result
class topk_result(NamedTuple):  # noqa: N801
    values: Tensor
    indices: Tensor


# ---- sorting


_FEW = 64  # elements whose order takes no longer than to part them
_GROUPS, _EACH = 8, 4  # for the k best of many: groups for each of them, and elements in each group, at least


def _order(x: Any, dim: int, descending: bool, count: int | None = None) -> Any:
    """The first ``count`` positions of the elements in order, all unless given."""
    before = (slice(None),) * dim
    if not descending:
        return x.argsort(dim, "stable")[(*before, slice(count))]
    back = (*before, slice(None, None, -1))
    order = x[back].argsort(dim, "stable")[back]  # turned round twice, equals keep their order
    return np.subtract(x.shape[dim] - 1, order[(*before, slice(count))], order="C")


def _sorted_along(input: Tensor, dim: Any, descending: bool, stable: bool) -> tuple[Any, ...]:
    check_ordered("argsort", input)
    return input, normalize_dim("argsort", dim, input.ndim), bool(descending), True


@primitive(
    "sort",
    infer=lambda input, dim, descending, stable: Spec(input.shape, _I64, input.device),
    prepare=_sorted_along,
    dtypes="fib",
    quiet=True,
)
def argsort(input: Array, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Indices that sort along ``dim``; equals keep their order, nan comes last (first when descending).

    Raises:
        IndexError: a dim out of range
        RuntimeError: a complex tensor

    >>> import genesis
    >>> genesis.argsort(genesis.tensor([3., 1., 2.]))
    tensor([1, 2, 0])
    """
    return packed(_order(widened(input), dim, descending)) if input.ndim else np.zeros((), _I64)


samples(
    argsort,
    lambda t: [case(t(3, 4)), case(t(3, 4), 0), case(t(3, 4), 1, True), case(t()), case(t(0, 2)), case(t(2, 0))],
)

wrong_inputs(argsort, _out_of_range)


@composite(dtypes="fib", out=True)
def sort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Any:
    """Elements in order along ``dim`` and the indices they came from, as a named tuple ``(values, indices)``.

    Equals keep their order whether or not ``stable`` is asked for; nan comes last (first when descending).

    Raises:
        IndexError: a dim out of range
        RuntimeError: a complex tensor

    >>> import genesis
    >>> genesis.sort(genesis.tensor([3., 1., 2.])).values
    tensor([1., 2., 3.])
    """
    check_ordered("sort", input)
    d = normalize_dim("sort", dim, input.ndim)
    return sort_result(*pick(input, d, argsort(input, d, descending), True))


samples(sort, lambda t: [case(t(3, 4)), case(t(3, 4), 0), case(t(3, 4), 1, True), case(t()), case(t(0, 2))])

wrong_inputs(sort, _out_of_range)


@composite(dtypes="fib", out=True)
def msort(input: Tensor) -> Tensor:
    """Elements in order along dim 0.

    >>> import genesis
    >>> genesis.msort(genesis.tensor([3., 1., 2.]))
    tensor([1., 2., 3.])
    """
    return sort(input, 0).values


samples(msort, lambda t: [case(t(3, 4)), case(t(5))])


# ---- ranks


@primitive(
    "sort",
    infer=lambda input, k, dim, largest: Spec(resized(input.shape, dim, k), _I64, input.device),
    method=False,
    torch_name="",
    dtypes="fib",
    quiet=True,
)
def top_positions(input: Array, k: int, dim: int, largest: bool) -> Any:
    """Where along ``dim`` the ``k`` largest (or smallest) elements are, in order; what `topk` is made of.

    >>> import genesis
    >>> from genesis.ops.reductions.sort import top_positions
    >>> top_positions(genesis.tensor([1., 5., 3.]), 2, 0, True)
    tensor([1, 2])
    """
    if not input.ndim:
        return np.zeros((), _I64)
    x, size = widened(input), input.shape[dim]
    if not 0 < k < size or size <= _FEW:
        return packed(_order(x, dim, largest, k))
    few = _among_few(np.moveaxis(x, dim, -1).reshape(-1, size), k, largest)
    if few is not None:
        return np.ascontiguousarray(np.moveaxis(few.reshape(*x.shape[:dim], *x.shape[dim + 1 :], k), -1, dim))
    chosen = range(size - k, size) if largest else range(k)
    positions = np.sort(np.argpartition(x, size - k if largest else k - 1, dim).take(chosen, dim), dim)
    order = _order(np.take_along_axis(x, positions, dim), dim, largest)
    return np.take_along_axis(positions, order, dim)


def _among_few(x: Any, k: int, largest: bool) -> Any:
    """`top_positions` of rows by way of few candidates, or None where that does not pay: of ``count`` groups of elements
    the ``k`` best of the groups' best are a bound that at least ``k`` elements of a row reach, and mostly few more.
    """
    count = max(_GROUPS * k, 2 * _FEW)
    each = min(x.shape[1] // count, _FEW)
    if each < _EACH:
        return None
    count = x.shape[1] // each
    groups = x[:, : each * count].reshape(len(x), each, count)
    best = groups.max(1) if largest else groups.min(1)
    kth = count - k if largest else k - 1
    bound = np.partition(best, kth, 1)[:, kth, None]
    reach = ~(x < bound if largest else x > bound)  # nan does
    if np.count_nonzero(reach) * _EACH > x.size:  # many are equal
        return None
    rows, positions = np.nonzero(reach)
    values = x[rows, positions]
    if (values != values).any():
        return None
    order = np.lexsort((-positions if largest else positions, values, rows))
    ends = np.searchsorted(rows, np.arange(len(x) + 1))
    ranks = ends[1:, None] - 1 - np.arange(k) if largest else ends[:-1, None] + np.arange(k)
    return positions[order[ranks]]


samples(
    top_positions,
    lambda t: [case(t(3, 4), 2, 1, True), case(t(3, 4), 3, 0, False), case(t(3, 4), 0, 1, True), case(t(), 1, 0, True)],
)


@composite(dtypes="fi", out=True)
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The ``k`` largest (or smallest) elements along ``dim``, always in order, and their indices.

    Which of equal elements are among them is not said.

    Raises:
        RuntimeError: there are fewer than ``k``, or a complex tensor
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.topk(genesis.tensor([1., 5., 3.]), 2).values
    tensor([5., 3.])
    """
    check_ordered("topk", input)
    shape = input._array.shape
    d = normalize_dim("topk", dim, len(shape))
    size = shape[d] if shape else 1
    if not 0 <= k <= size:
        raise ShapeError(
            message("topk", f"k={k} is not between 0 and the size {size} of dim {dim}", [("input", input._spec())])
        )
    return topk_result(*pick(input, d, top_positions(input, int(k), d, bool(largest)), True))


samples(
    topk, lambda t: [case(t(3, 4), 2), case(t(3, 4), 2, 0, False), case(t(3, 4), 4), case(t(3, 4), 0), case(t(), 1)]
)

wrong_inputs(
    topk,
    (lambda t: case(t(3), 4), RuntimeError, "topk: k=4 is not between 0 and the size 3 of dim -1"),
    (lambda t: case(t(2, 3), 1, 2), IndexError, "topk: dim 2 is out of range"),
)


__all__ = ["argsort", "msort", "sort", "topk"]
