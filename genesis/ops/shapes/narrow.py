"""Parts of one dimension, as views, and the reverse: zeros around a part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.errors import DimError, ShapeError, message
from genesis.core.call.kinds import case, composite, normalize_dim, primitive, view
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.indexing.index import put
from genesis.ops.shapes.reshape import reshape

_ALL = "fcib"


def _narrowed(input: Tensor, dim: int, start: Any, length: int) -> tuple[Any, ...]:
    d = normalize_dim("narrow", dim, input.ndim)
    size = input._array.shape[d] if input.ndim else 0
    begin = int(start)
    begin = begin + size if begin < 0 else begin
    if not 0 <= begin <= size or length < 0 or begin + length > size:
        raise (ShapeError if 0 <= begin <= size else DimError)(
            message(
                "narrow",
                f"start {start} and length {length} do not fit size {size} of dim {dim}",
                [("input", input._spec())],
            )
        )
    return input, d, begin, int(length)


def _slices(dim: int, start: int, length: int) -> tuple[Any, ...]:
    return (*[slice(None)] * dim, slice(start, start + length), Ellipsis)


def resized_shape(shape: Sequence[int], dim: int, size: int) -> tuple[int, ...]:
    return (*shape[:dim], size, *shape[dim + 1 :])


@view(
    {"input": lambda g, input_shape, dim, start: pad_dim(g, dim, start, input_shape[dim])},
    prepare=_narrowed,
    put=lambda whole, part, dim, start, length: put(whole, part, None, _slices(dim, start, length)),
    infer=lambda input, dim, start, length: Spec(resized_shape(input.shape, dim, length), input.dtype, input.device),
)
def narrow(input: Array, dim: int, start: int, length: int) -> Any:
    """The part of ``length`` slices from ``start`` along ``dim``, as a view.

    Raises:
        IndexError: the start is out of range
        RuntimeError: there are not so many slices from there

    >>> import genesis
    >>> genesis.narrow(genesis.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    return input[_slices(dim, start, length)]


samples(narrow, lambda t: [case(t(4, 3), 0, 1, 2), case(t(2, 4), -1, 2, 2), case(t(3), 0, 0, 0)])

wrong_inputs(narrow, (lambda t: case(t(3), 0, 2, 2), RuntimeError, "narrow: start 2 and length 2 do not fit size 3"))


@primitive(
    "movement",
    {"input": lambda g, input_shape, dim, start: g.narrow(dim, start, input_shape[dim])},
    method=False,
    torch_name="",
    infer=lambda input, dim, start, size: Spec(resized_shape(input.shape, dim, size), input.dtype, input.device),
    dtypes=_ALL,
)
def pad_dim(input: Array, dim: int, start: int, size: int) -> Any:
    """Zeros of ``size`` along ``dim`` with the tensor at ``start``: the transpose of `narrow`.

    >>> import genesis
    >>> genesis.ops.shapes.narrow.pad_dim(genesis.ones(2), 0, 1, 4)
    tensor([0., 1., 1., 0.])
    """
    out = np.zeros(resized_shape(input.shape, dim, size), input.dtype)
    out[_slices(dim, start, input.shape[dim])] = input
    return out


samples(pad_dim, lambda t: [case(t(2, 3), 0, 1, 4)])


@composite(dtypes=_ALL)
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """The slice at ``index`` along ``dim``, without that dimension; a view.

    Raises:
        IndexError: the index is out of range

    >>> import genesis
    >>> genesis.select(genesis.tensor([[1., 2.], [3., 4.]]), 1, 0)
    tensor([1., 3.])
    """
    d = normalize_dim("select", dim, input.ndim)
    shape = tuple(input._array.shape)
    if not shape or not -shape[d] <= index < shape[d]:
        size = shape[d] if shape else 0
        raise DimError(
            message("select", f"index {index} is out of range for dim {dim} of size {size}", [("input", input._spec())])
        )
    return reshape(narrow(input, d, index, 1), shape[:d] + shape[d + 1 :])


samples(select, lambda t: [case(t(3, 4), 0, 1), case(t(3, 4), -1, -1)])

wrong_inputs(select, (lambda t: case(t(3), 0, 3), IndexError, "select: index 3 is out of range for dim 0 of size 3"))


def pieces_of(input: Tensor, lengths: Sequence[int], dim: int) -> tuple[Tensor, ...]:
    out, start = [], 0
    for n in lengths:
        out.append(narrow(input, dim, start, n))
        start += n
    return tuple(out)


__all__ = [
    "narrow",
    "select",
]
