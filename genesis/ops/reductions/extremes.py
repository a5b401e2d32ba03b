"""The largest and smallest elements, and where they are.

Equal maxima share the gradient evenly; ``max(x, dim)`` sends it to the index it returns.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from genesis.base.library import named_result
from genesis.arrays.protocol import Array
from genesis.base.errors import ArgumentError, message
from genesis.core.call.kinds import (
    case,
    check_empty,
    composite,
    normalize_dim,
    reduction,
)
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.switches import ACTIVE, LEVELS
from genesis.core.graph.tensor import Tensor, wrap
from genesis.ops.pointwise.choice import maximum, minimum
from genesis.ops.pointwise.choice import gate
from genesis.ops.reductions.along import axes, pick, restore, widened
from genesis.ops.reductions.reduce import Dims, some_dims

_one_dim = lambda t: [
    case(t(3, 4)),
    case(t(3, 4), -1),
    case(t(2, 3), 0, True),
    case(t()),
    case(t(), 0),
    case(t(0, 3), 1),
]
_out_of_range = (lambda t: case(t(2, 3), 2), IndexError, "dim 2 is out of range for 2 dimensions")
_no_identity = (lambda t: case(t(0, 3), 0), IndexError, "dim 0 has size 0 and this reduction has no identity")


def shared_evenly(g: Tensor, input: Tensor, out: Tensor, dim: Any, keepdim: bool) -> Tensor:
    at = (input == restore(out, input.shape, dim)).to(g.dtype)
    return gate(restore(g, input.shape, dim), at) / restore(at.sum(dim, keepdim), input.shape, dim)


@reduction({"input": shared_evenly}, empty=False, dtypes="fib")
def amax(input: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    """Largest element over ``dim`` (None: all); nan if there is one. Equal maxima share the gradient evenly.

    Raises:
        IndexError: a dim out of range, or of size 0

    >>> import genesis
    >>> genesis.amax(genesis.tensor([[1., 5.], [7., 2.]]), dim=1)
    tensor([5., 7.])
    """
    return np.maximum.reduce(input, axes(input, dim), None, None, keepdim)


samples(amax, some_dims)

wrong_inputs(amax, _out_of_range, _no_identity)


@reduction({"input": shared_evenly}, empty=False, dtypes="fib")
def amin(input: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    """Smallest element over ``dim`` (None: all); nan if there is one. Equal minima share the gradient evenly.

    Raises:
        IndexError: a dim out of range, or of size 0

    >>> import genesis
    >>> genesis.amin(genesis.tensor([[1., 5.], [7., 2.]]), dim=1)
    tensor([1., 2.])
    """
    return np.minimum.reduce(input, axes(input, dim), None, None, keepdim)


samples(amin, some_dims)

wrong_inputs(amin, _out_of_range, _no_identity)


def _position_batch(b: Any, x: Any, dim: Any, keepdim: bool) -> Any:
    """Positions in all of a sample are positions in its rows put end to end."""
    n = x.ndim - 1
    if not n:
        return b.run(x.unsqueeze(1), (1,), False)
    if len(dim) == 1:
        return b.run(x, (dim[0] + 1,), keepdim)
    positions = b.run(x.reshape(b.size, math.prod(x.shape[1:])), (1,), False)
    return positions.reshape(b.size, *[1] * n) if keepdim else positions


def _position(find: Any, x: Any, dim: Any, keepdim: bool) -> Any:
    if 1 < len(dim) < x.ndim:
        raise ArgumentError(
            message(find.__name__, f"dim must be one integer or None, got {dim}", hint="flatten these dimensions first")
        )
    # as methods: np.argmax takes 1 us more
    return find(widened(x), None if len(dim) >= x.ndim else dim[0], keepdims=keepdim)


@reduction(result="int64", empty=False, dtypes="fib", batch=_position_batch, quiet=True)
def argmax(input: Array, dim: int | None = None, keepdim: bool = False) -> Any:
    """Index of the largest element along ``dim``, or in the flattened tensor for None; the first of equals.

    Raises:
        IndexError: a dim out of range, or of size 0
        TypeError: several dims

    >>> import genesis
    >>> genesis.argmax(genesis.tensor([[1., 5.], [7., 2.]]), dim=1)
    tensor([1, 0])
    """
    return _position(np.ndarray.argmax, input, dim, keepdim)


samples(argmax, _one_dim)

wrong_inputs(argmax, _out_of_range, _no_identity)


@reduction(result="int64", empty=False, dtypes="fib", batch=_position_batch, quiet=True)
def argmin(input: Array, dim: int | None = None, keepdim: bool = False) -> Any:
    """Index of the smallest element along ``dim``, or in the flattened tensor for None; the first of equals.

    Raises:
        IndexError: a dim out of range, or of size 0
        TypeError: several dims

    >>> import genesis
    >>> genesis.argmin(genesis.tensor([[1., 5.], [7., 2.]]), dim=1)
    tensor([0, 1])
    """
    return _position(np.ndarray.argmin, input, dim, keepdim)


samples(argmin, _one_dim)

wrong_inputs(argmin, _out_of_range, _no_identity)


@named_result
class max_result(NamedTuple):  # noqa: N801  # named as PyTorch names it
    values: Tensor
    indices: Tensor


@named_result
class min_result(NamedTuple):  # noqa: N801
    values: Tensor
    indices: Tensor


@named_result
class aminmax_result(NamedTuple):  # noqa: N801
    min: Tensor
    max: Tensor


def _along(name: str, find: Any, input: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    array = input._array
    dim = normalize_dim(name, dim, array.ndim)
    check_empty(name, array.shape, (dim,))
    if input._node is None and not (ACTIVE or LEVELS) and array.__class__ is np.ndarray and array.ndim:  # as in `pick`
        return pick(input, dim, wrap(find.op.kernel(array, (dim,), True)), keepdim)
    return pick(input, dim, find(input, dim, True), keepdim)


@composite(dtypes="fib", out=True)
def max(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    axis: int | None = None,
    keepdims: bool | None = None,
    other: Tensor | None = None,
) -> Any:
    """Largest element: of all, along ``dim`` with its indices, or of two tensors.

    ``max(x)`` gives one value; ``max(x, dim)`` a named tuple ``(values, indices)``, the gradient going to that index;
    ``max(x, other)`` is `maximum`.

    Raises:
        IndexError: a dim out of range, or of size 0

    >>> import genesis
    >>> genesis.max(genesis.tensor([[1., 5.], [7., 2.]]), dim=1).indices
    tensor([1, 0])
    """
    dim = dim if other is None else other
    dim, keepdim = (dim if axis is None else axis), (keepdim if keepdims is None else keepdims)
    if dim is None:
        return amax(input)
    return maximum(input, dim) if isinstance(dim, Tensor) else max_result(*_along("max", argmax, input, dim, keepdim))


samples(max, lambda t: [*_one_dim(t), case(t(3, 4), axis=1, keepdims=True), case(t(2, 3), t(3))])

wrong_inputs(max, _out_of_range, _no_identity)


@composite(dtypes="fib", out=True)
def min(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    axis: int | None = None,
    keepdims: bool | None = None,
    other: Tensor | None = None,
) -> Any:
    """Smallest element: of all, along ``dim`` with its indices, or of two tensors; see `max`.

    >>> import genesis
    >>> genesis.min(genesis.tensor([[1., 5.], [7., 2.]]), dim=1).values
    tensor([1., 2.])
    """
    dim = dim if other is None else other
    dim, keepdim = (dim if axis is None else axis), (keepdim if keepdims is None else keepdims)
    if dim is None:
        return amin(input)
    return minimum(input, dim) if isinstance(dim, Tensor) else min_result(*_along("min", argmin, input, dim, keepdim))


samples(min, lambda t: [*_one_dim(t), case(t(3, 4), axis=1, keepdims=True), case(t(2, 3), t(3))])

wrong_inputs(min, _out_of_range, _no_identity)


@composite(dtypes="fib", out=True)
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """Smallest and largest element over ``dim`` (None: all), as a named tuple ``(min, max)``.

    >>> import genesis
    >>> genesis.aminmax(genesis.tensor([1., 5., 2.])).max
    tensor(5.)
    """
    return aminmax_result(amin(input, dim, keepdim), amax(input, dim, keepdim))


samples(aminmax, lambda t: [case(t(3, 4)), case(t(3, 4), dim=1), case(t(2, 3), dim=-1, keepdim=True), case(t(), dim=0)])

__all__ = [
    "amax",
    "amin",
    "aminmax",
    "argmax",
    "argmin",
    "max",
    "min",
]
