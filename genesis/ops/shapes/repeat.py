"""Repeating tensors as a whole and element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import placed
from genesis.base.errors import DomainError, ShapeError, message
from genesis.base.layouts import contiguous_format
from genesis.core.call.kinds import case, composite, normalize_dim
from genesis.core.call.op import samples
from genesis.core.graph.switches import ACTIVE, LEVELS
from genesis.core.graph.tensor import Tensor, wrap
from genesis.ops.shapes.expand import never_negative, sizes_of
from genesis.ops.shapes.reshape import reshape

_ALL = "fcib"


@composite(dtypes=_ALL)
def tile(input: Tensor, dims: Sequence[int]) -> Tensor:
    """The tensor repeated like tiles; missing repeats and dimensions count as 1.

    >>> import genesis
    >>> genesis.tile(genesis.tensor([1., 2.]), (2,))
    tensor([1., 2., 1., 2.])
    """
    never_negative("tile", "counts", dims)  # reshape would read -1 as "what is left"
    counts = [1] * max(0, input.ndim - len(dims)) + [int(n) for n in dims]
    shape = [1] * (len(counts) - input.ndim) + list(input._array.shape)
    apart, spread = (
        [n for size in shape for n in (1, size)],
        [n for pair in zip(counts, shape, strict=True) for n in pair],
    )
    whole = [count * size for count, size in zip(counts, shape, strict=True)]
    array = input._array
    if array.__class__ is np.ndarray and input._node is None and not (ACTIVE or LEVELS):  # a tenth of the time
        out = np.empty(spread, array.dtype)
        out[...] = array.reshape(apart)
        return wrap(out.reshape(whole))
    x = reshape(input, apart)
    return reshape(x.expand(spread).clone(memory_format=contiguous_format), whole)


samples(tile, lambda t: [case(t(2, 3), (2, 2)), case(t(3), (2, 1, 2)), case(t(2, 3), (2,))])


Tensor.tile = lambda self, *dims, **named: tile(self, sizes_of("tile", "dims", dims, named))


def _repeat(self: Tensor, *repeats: Any, **named: Any) -> Tensor:
    """The tensor repeated like tiles, one count for each dimension.

    >>> import genesis
    >>> genesis.tensor([1., 2.]).repeat(2, 1).shape
    genesis.Size([2, 2])
    """
    counts = sizes_of("repeat", "repeats", repeats, named)
    if len(counts) < self.ndim:
        raise ShapeError(message("repeat", f"{len(counts)} repeats for {self.ndim} dimensions"))
    never_negative("repeat", "counts", counts)
    return tile(self, counts)


Tensor.repeat = _repeat


@composite(dtypes=_ALL)
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each slice repeated in place, the same or its own number of times.

    With one argument the indices that so many repeats give. ``output_size`` is found, if it is given or not.

    >>> import genesis
    >>> genesis.repeat_interleave(genesis.tensor([1., 2.]), 2)
    tensor([1., 1., 2., 2.])
    """
    if repeats is None:
        return repeat_interleave(_numbers(input), input)
    x, d = (reshape(input, (-1,)), 0) if dim is None else (input, normalize_dim("repeat_interleave", dim, input.ndim))
    if isinstance(repeats, int) and repeats >= 0 and x.ndim:  # no indices: the gradient is a sum
        many = x.unsqueeze(d + 1).expand([*x.shape[: d + 1], repeats, *x.shape[d + 1 :]])  # type: ignore[attr-defined]
        return reshape(
            many.clone(memory_format=contiguous_format), [*x.shape[:d], x.shape[d] * repeats, *x.shape[d + 1 :]]
        )
    counts = _counts(repeats, x.shape[d] if x.ndim else 1)
    return x.index_select(d, wrap(placed(np.repeat(np.arange(x.shape[d]), counts), x.device)))


def _counts(repeats: Any, size: int) -> Any:
    """How often each of ``size`` slices is repeated, or all of them."""
    counts = repeats.numpy_view() if isinstance(repeats, Tensor) else np.asarray(repeats)
    if counts.ndim > 1 or (counts.size not in (1, size)):
        shape = list(counts.shape)
        raise ShapeError(message("repeat_interleave", f"repeats of shape {shape} do not fit the size {size}"))
    if counts.dtype.kind in "iu" and counts.size and counts.min() < 0:
        raise DomainError(message("repeat_interleave", f"counts cannot be negative, got {counts.min()}"))
    return counts


def _numbers(x: Tensor) -> Tensor:
    """0, 1, 2, ... as many as x has elements."""
    return wrap(placed(np.arange(x.numel()), x.device))


samples(repeat_interleave, lambda t: [case(t(2, 3), 2), case(t(2, 3), 2, 1)])

__all__ = [
    "repeat_interleave",
    "tile",
]
