"""Parts of tensors: pieces, and tensors in which a part is replaced by another."""

from __future__ import annotations

from typing import Any

from genesis.base.errors import ShapeError, message
from genesis.base.layouts import contiguous_format
from genesis.core.call.kinds import case, composite, normalize_dim
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.ops.shapes.split import chunk, split, tensor_split
from genesis.ops.shapes.narrow import narrow
from genesis.ops.indexing.mask import diag_embed, put_on_diagonal
from genesis.ops.indexing.mask import diagonal as diagonal_of

_ALL = "fcib"

# ---- pieces


def _equal(name: str, input: Tensor, least: int, dim: int, pieces: Any) -> Any:
    """`tensor_split` along a dimension, into parts of one size if their number is given."""
    if input.ndim < least:
        raise ShapeError(message(name, f"expected at least {least} dimensions, got {input.ndim}"))
    if isinstance(pieces, int) and (pieces < 1 or input.shape[dim] % pieces):
        raise ShapeError(message(name, f"{pieces} pieces do not divide size {input.shape[dim]} of dim {dim}"))
    return tensor_split(input, pieces, dim)


@composite(dtypes=_ALL)
def hsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Pieces of one size, or cut at indices, along dim 1 (dim 0 of one dimension); views.

    Raises:
        RuntimeError: no dimensions, or a number of pieces that does not divide the size

    >>> import genesis
    >>> genesis.hsplit(genesis.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    return _equal("hsplit", input, 1, min(1, input.ndim - 1), indices_or_sections)  # type: ignore[no-any-return]


samples(hsplit, lambda t: [case(t(2, 4), 2), case(t(4), (1, 3))])

wrong_inputs(hsplit, (lambda t: case(t(2, 4), 3), RuntimeError, "hsplit: 3 pieces do not divide size 4 of dim 1"))


@composite(dtypes=_ALL)
def vsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Pieces of one size, or cut at indices, along dim 0 of at least two; views.

    Raises:
        RuntimeError: fewer than two dimensions, or a number of pieces that does not divide the size

    >>> import genesis
    >>> [len(piece) for piece in genesis.vsplit(genesis.ones(4, 3), [1])]
    [1, 3]
    """
    return _equal("vsplit", input, 2, 0, indices_or_sections)  # type: ignore[no-any-return]


samples(vsplit, lambda t: [case(t(4, 2), 2), case(t(4, 2), (1, 3))])

wrong_inputs(vsplit, (lambda t: case(t(4), 2), RuntimeError, "vsplit: expected at least 2 dimensions, got 1"))


@composite(dtypes=_ALL)
def dsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Pieces of one size, or cut at indices, along dim 2; views.

    Raises:
        RuntimeError: fewer than three dimensions, or a number of pieces that does not divide the size

    >>> import genesis
    >>> [piece.shape[2] for piece in genesis.dsplit(genesis.ones(1, 2, 4), 2)]
    [2, 2]
    """
    return _equal("dsplit", input, 3, 2, indices_or_sections)  # type: ignore[no-any-return]


samples(dsplit, lambda t: [case(t(2, 1, 4), 2), case(t(2, 1, 4), (1, 3))])

wrong_inputs(dsplit, (lambda t: case(t(4, 2), 2), RuntimeError, "dsplit: expected at least 3 dimensions, got 2"))


@composite(dtypes=_ALL)
def unsafe_split(tensor: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """`split`: what PyTorch does not check is right here.

    >>> import genesis
    >>> genesis.unsafe_split(genesis.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    return split(tensor, split_size, dim)  # type: ignore[no-any-return]


samples(unsafe_split, lambda t: [case(t(5, 2), 2)])


@composite(dtypes=_ALL)
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`chunk`: what PyTorch does not check is right here.

    >>> import genesis
    >>> genesis.unsafe_chunk(genesis.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    return chunk(input, chunks, dim)  # type: ignore[no-any-return]


samples(unsafe_chunk, lambda t: [case(t(5, 2), 2)])


@composite(dtypes=_ALL, out=True)
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`narrow`, as a copy.

    >>> import genesis
    >>> genesis.narrow_copy(genesis.arange(4), 0, 1, 2)
    tensor([1, 2])
    """
    return narrow(input, dim, start, length).clone(memory_format=contiguous_format)  # type: ignore[no-any-return]


samples(narrow_copy, lambda t: [case(t(4, 3), 0, 1, 2)])

# ---- parts replaced


def _check_part(name: str, part: Tensor, src: Tensor) -> None:
    if part.shape != src.shape:
        raise ShapeError(message(name, f"src has shape {list(src.shape)}, the part {list(part.shape)}"))


@composite(dtypes=_ALL, out=True)
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """``input`` with the slices from ``start`` to ``end`` along ``dim`` replaced.

    Raises:
        IndexError: a dim out of range
        RuntimeError: ``src`` has not the shape of these slices

    >>> import genesis
    >>> genesis.slice_scatter(genesis.zeros(4), genesis.ones(2), 0, 1, 4, 2)
    tensor([0., 1., 0., 1.])
    """
    key = (*(slice(None),) * normalize_dim("slice_scatter", dim, input.ndim), slice(start, end, step))
    _check_part("slice_scatter", input[key], src)
    out = input.clone()
    out[key] = src
    return out


samples(slice_scatter, lambda t: [case(t(4, 3), t(2, 3), 0, 1, 3), case(t(2, 6), t(2, 2), -1, 0, 4, 2)])

wrong_inputs(
    slice_scatter,
    (lambda t: case(t(4), t(3), 0, 1, 3), RuntimeError, "slice_scatter: src has shape [3], the part [2]"),
)


@composite(dtypes=_ALL)
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """``input`` with a diagonal replaced: what `diagonal` is the inverse of.

    Raises:
        RuntimeError: ``src`` has not the shape of the diagonal

    >>> import genesis
    >>> genesis.diagonal_scatter(genesis.zeros(2, 2), genesis.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    d1, d2 = normalize_dim("diagonal_scatter", dim1, input.ndim), normalize_dim("diagonal_scatter", dim2, input.ndim)
    _check_part("diagonal_scatter", diagonal_of(input, offset, d1, d2), src)
    return put_on_diagonal(input, src.to(input.dtype), offset, d1, d2)  # type: ignore[no-any-return]


samples(diagonal_scatter, lambda t: [case(t(3, 3), t(3)), case(t(2, 3, 4), t(3, 1), -1, 0, 2)])

wrong_inputs(
    diagonal_scatter,
    (lambda t: case(t(3, 3), t(2)), RuntimeError, "diagonal_scatter: src has shape [2], the part [3]"),
)


@composite(dtypes=_ALL)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The matrix with the elements, in one dimension, on its diagonal.

    >>> import genesis
    >>> genesis.diagflat(genesis.tensor([[1., 2.]]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    return diag_embed(input.reshape(-1), offset)  # type: ignore[no-any-return]


samples(diagflat, lambda t: [case(t(2, 2)), case(t(3), 1), case(t())])


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of ``r`` elements of a 1-d tensor in their order, as rows.

    Raises:
        RuntimeError: more dimensions, or a negative ``r``

    >>> import genesis
    >>> genesis.combinations(genesis.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    import itertools

    from genesis.ops.creation.outside import tensor

    if input.ndim != 1 or r < 0:
        raise ShapeError(message("combinations", f"expected one dimension and r >= 0, got {input.ndim} and r={r}"))
    if not r:
        return input.new_empty(0)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(input.shape[0]), r))
    return input[tensor(rows, device=input.device)] if rows else input[:0].unsqueeze(1).expand(0, r)


Tensor.unsafe_split = unsafe_split
Tensor.unsafe_split_with_sizes = lambda self, split_sizes, dim=0: split(self, split_sizes, dim)

explain_all(globals(), "combinations")

__all__ = [
    "combinations",
    "diagflat",
    "diagonal_scatter",
    "dsplit",
    "hsplit",
    "narrow_copy",
    "slice_scatter",
    "unsafe_chunk",
    "unsafe_split",
    "vsplit",
]
