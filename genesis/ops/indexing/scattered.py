"""Elements put at places of the flattened tensor, and slices combined at places along a dimension."""

from __future__ import annotations

from typing import Any

from genesis.base.errors import ArgumentValueError, ShapeError, message
from genesis.core.call.kinds import case, composite, normalize_dim
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.refusal import explain_all
from genesis.core.call.inplace_methods import inplace_method
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.sequences import arange
from genesis.ops.indexing.scatter import scatter_reduce
from genesis.ops.shapes.join import stack

_ALL = "fcib"


@composite(dtypes=_ALL, method=False, torch_name="put")
def put_elements(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """``input`` with the elements at places of the flattened tensor replaced by those of ``source``, or added to.

    Raises:
        IndexError: a place out of range
        RuntimeError: ``index`` and ``source`` have not equally many elements

    >>> import genesis
    >>> genesis.put(genesis.zeros(2, 2), genesis.tensor([0, 3]), genesis.tensor([1., 2.]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    if index.numel() != source.numel():
        raise ShapeError(message("put", f"{index.numel()} places and {source.numel()} elements"))
    flat = input.reshape(-1).index_put((index.reshape(-1),), source.reshape(-1), accumulate)
    return flat.reshape(input.shape)  # type: ignore[no-any-return]


samples(
    put_elements,
    lambda t: [
        case(t(3, 4), t.int(1, low=0, high=12), t(1)),
        case(t(3, 4), t.int(2, 2, low=0, high=12), t(2, 2), True),
    ],
)

wrong_inputs(
    put_elements,
    (lambda t: case(t(3), t.int(2, low=0, high=3), t(1)), RuntimeError, "put: 2 places and 1 elements"),
)

put = Tensor.put = put_elements  # an op of indexing has the name already
Tensor.put_ = inplace_method(put_elements.op, "put_")


@composite(halves="wide", dtypes="f", inplace=True, out=True)
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Slices of ``source`` combined at the places of a 1-d index along ``dim``: "prod", "mean", "amax" or "amin".

    Raises:
        ValueError: an unknown ``reduce``
        RuntimeError: ``source`` has not one slice for each place

    >>> import genesis
    >>> genesis.index_reduce(genesis.ones(2), 0, genesis.tensor([1, 1]), genesis.tensor([3., 5.]), "amax")
    tensor([1., 5.])
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise ArgumentValueError(message("index_reduce", f"unknown reduce {reduce!r}", hint="prod, mean, amax or amin"))
    d = normalize_dim("index_reduce", dim, input.ndim)
    if index.numel() != (source.shape[d] if source.ndim else 1):
        raise ShapeError(message("index_reduce", f"{index.numel()} places for a source of shape {list(source.shape)}"))
    indices = index.reshape([-1 if i == d else 1 for i in range(source.ndim)]).expand(source.shape)
    return scatter_reduce(input, d, indices, source, reduce, include_self=include_self)  # type: ignore[no-any-return]


samples(
    index_reduce,
    lambda t: [
        case(t(3, 4), 0, t.int(2, low=0, high=3), t(2, 4), "prod"),
        case(t(3, 4), 1, t.int(2, low=0, high=4), t(3, 2), "mean", include_self=False),
        case(t(3, 4), 1, t.int(2, low=0, high=4), t(3, 2), "amax"),
    ],
)

wrong_inputs(
    index_reduce,
    (
        lambda t: case(t(3), 0, t.int(1, low=0, high=3), t(1), "sum"),
        ValueError,
        "index_reduce: unknown reduce 'sum'",
    ),
    (
        lambda t: case(t(3), 0, t.int(2, low=0, high=3), t(1), "prod"),
        RuntimeError,
        "index_reduce: 2 places for a source of shape [1]",
    ),
)


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates in a tensor of ``shape`` of places in the flattened one.

    >>> import genesis
    >>> genesis.unravel_index(genesis.tensor([5, 0]), (2, 3))
    (tensor([1, 0]), tensor([2, 0]))
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    left, coordinates = indices.long(), []
    for n in reversed(sizes):
        coordinates.append(left % n)
        left = left.floor_divide(n)
    return tuple(reversed(coordinates))


def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """`nonzero` with a fixed number of rows: cut off, or filled up.

    >>> import genesis
    >>> genesis.nonzero_static(genesis.tensor([0, 1, 1]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]])
    """
    hit = (input != 0).reshape(-1)
    rank = hit.cumsum(0) - 1
    out = rank.new_full((size + 1,), -1)
    kept = arange(input.numel(), device=input.device)
    at = rank.where(hit & (rank < size), size)
    flat = out.index_put((at,), kept)[:size]
    known = arange(size, device=input.device) < hit.sum()
    columns = unravel_index(flat.clamp(min=0), tuple(input.shape))
    if not columns:
        return flat.new_zeros(size, 0)
    return stack([c.where(known, fill_value) for c in columns], 1)  # type: ignore[no-any-return]


Tensor.nonzero_static = nonzero_static

explain_all(globals(), "unravel_index", "nonzero_static")

__all__ = ["index_reduce", "nonzero_static", "put", "unravel_index"]
