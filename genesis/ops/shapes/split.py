"""Taking tensors apart: pieces along a dimension, as views that are the results of one node."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.base.dtypes import whole
from genesis.base.errors import ShapeError, message
from genesis.core.call.kinds import case, composite, normalize_dim
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.views import views_of
from genesis.core.graph.hooks import SPECIAL
from genesis.core.graph.modes import ACTIVE, LEVELS, grad_mode
from genesis.core.graph.node import Node, Output, recorded
from genesis.core.graph.saved import pack
from genesis.core.graph.tensor import Tensor
from genesis.ops.indexing.index import slice_view
from genesis.ops.shapes.join import cat, stack
from genesis.ops.shapes.narrow import narrow, pieces_of, select

_ALL = "fcib"


def split_sizes(name: str, size: int, split: Any) -> list[int]:
    """The sizes of the pieces, from one size or a list of them."""
    split = whole(split)
    if isinstance(split, int):
        if split < 0 or (split == 0 and size):
            raise ShapeError(message(name, f"the size of a piece must be positive, got {split}"))
        if not size:
            return [0]
        many, rest = divmod(size, split)
        return [split] * many + [rest] * (rest > 0)
    pieces = [int(n) for n in split]
    if sum(pieces) != size or any(n < 0 for n in pieces):
        raise ShapeError(message(name, f"pieces of {pieces} do not add up to size {size}"))
    return pieces


class SplitBackward(Node):
    """Pieces of one tensor: one gradient of all of them, instead of one of the whole size for each."""

    __slots__ = ("_outputs",)
    op_name = "split"
    input_names = ("input",)
    _frees = False

    def _pull(self, g: Any) -> Any:
        return (cat(list(g), self._saved[0]),)


class UnbindBackward(SplitBackward):
    __slots__ = ()
    op_name = "unbind"

    def _pull(self, g: Any) -> Any:
        return (stack(list(g), self._saved[0]),)


def _parts(input: Tensor, dim: int, items: Sequence[Any], kind: type[SplitBackward]) -> tuple[Tensor, ...]:
    """Views of the tensor at these integers or slices along ``dim``, as the results of one node."""
    if ACTIVE or LEVELS or input._array.__class__ is not np.ndarray:
        pieces = tuple([_part(input, dim, item) for item in items])
    else:
        input._shared_counter()  # a gradient that others may read gets memory of its own
        before, array = (slice(None),) * dim, input._array
        keys = [((*before, item),) for item in items]
        pieces = views_of(input, slice_view.op, keys, [array[(*key, ...)] for (key,) in keys])
    return _one_node(input, pieces, dim, kind)


def _part(input: Tensor, dim: int, item: Any) -> Tensor:
    """What traces have of one of them, and compiled code looks for."""
    return (
        narrow(input, dim, item.start, item.stop - item.start) if isinstance(item, slice) else select(input, dim, item)
    )


def _slices(sizes: Sequence[int]) -> list[slice]:
    ends = [*itertools.accumulate(sizes)]
    return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]


def _one_node(input: Tensor, pieces: tuple[Tensor, ...], dim: int, kind: type[SplitBackward]) -> tuple[Tensor, ...]:
    """Make views the results of one node (a write to one of them tells them apart again)."""
    if input._node is None or not pieces or not grad_mode.get():
        return pieces
    node = recorded(kind, (input._node,), pieces[0]._array, (dim,))
    node._hooks = SPECIAL
    node._outputs = [(tuple(piece._array.shape), piece._array.dtype) for piece in pieces]
    for i, piece in enumerate(pieces):
        piece._node = Output(node, i)
    if ACTIVE:
        pack(node)
    return pieces


@composite(dtypes=_ALL)
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of one size (the last may be smaller), or of the given sizes, along ``dim``; views.

    Raises:
        RuntimeError: the sizes do not add up

    >>> import genesis
    >>> [len(piece) for piece in genesis.split(genesis.arange(5), 2)]
    [2, 2, 1]
    """
    d = normalize_dim("split", dim, tensor.ndim)
    sizes = split_sizes("split", tensor._array.shape[d], split_size_or_sections)
    return _parts(tensor, d, _slices(sizes), SplitBackward)


samples(split, lambda t: [case(t(5, 2), 2), case(t(2, 5), [1, 4], 1)])

wrong_inputs(split, (lambda t: case(t(5), [1, 2]), RuntimeError, "split: pieces of [1, 2] do not add up to size 5"))


Tensor.split = lambda self, split_size, dim=0: split(self, split_size, dim)
Tensor.split_with_sizes = lambda self, split_sizes, dim=0: split(self, split_sizes, dim)


@composite(dtypes=_ALL)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most ``chunks`` pieces of equal size along ``dim`` (the last may be smaller); views.

    >>> import genesis
    >>> [len(piece) for piece in genesis.chunk(genesis.arange(5), 2)]
    [3, 2]
    """
    chunks = whole(chunks)
    if chunks < 1:
        raise ShapeError(message("chunk", f"chunks must be positive, got {chunks}"))
    d = normalize_dim("chunk", dim, input.ndim)
    size = input._array.shape[d]
    each = -(-size // chunks)
    sizes = split_sizes("chunk", size, each) if size else [0] * chunks
    return _parts(input, d, _slices(sizes), SplitBackward)


samples(chunk, lambda t: [case(t(5, 2), 2), case(t(2, 6), 3, 1)])


_MOST = 10_000_000  # pieces: each is a tensor, however small


@composite(dtypes=_ALL)
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces as equal as possible, or cut at the given indices, along ``dim``; views.

    Raises:
        RuntimeError: no sections, or more than ten million

    >>> import genesis
    >>> [len(piece) for piece in genesis.tensor_split(genesis.arange(7), 3)]
    [3, 2, 2]
    """
    d = normalize_dim("tensor_split", dim, input.ndim)
    size = input._array.shape[d]
    indices_or_sections = whole(indices_or_sections)
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int):
        if not 0 < indices_or_sections <= _MOST:
            text = f"the number of sections must be from 1 to {_MOST:,}, got {indices_or_sections:,}"
            raise ShapeError(message("tensor_split", text))
        small, more = divmod(size, indices_or_sections)
        return pieces_of(input, [small + (i < more) for i in range(indices_or_sections)], d)
    cuts = [0, *[slice(0, int(i)).indices(size)[1] for i in indices_or_sections], size]
    return tuple(narrow(input, d, a, max(b - a, 0)) for a, b in itertools.pairwise(cuts))


samples(tensor_split, lambda t: [case(t(7, 2), 3), case(t(2, 6), (1, 4), 1)])


@composite(dtypes=_ALL)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """All slices along ``dim``, without that dimension; views.

    >>> import genesis
    >>> genesis.unbind(genesis.tensor([1., 2.]))
    (tensor(1.), tensor(2.))
    """
    d = normalize_dim("unbind", dim, input.ndim)
    return _parts(input, d, range(input._array.shape[d]), UnbindBackward)


samples(unbind, lambda t: [case(t(3, 2)), case(t(2, 3), 1)])


@composite(dtypes=_ALL)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """``input`` with the slice at ``index`` along ``dim`` replaced: what `select` is the inverse of.

    Raises:
        IndexError: the index is out of range
        RuntimeError: ``src`` has not the shape of the slice

    >>> import genesis
    >>> genesis.select_scatter(genesis.zeros(2, 2), genesis.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    part = select(input, dim, index)
    if src.shape != part.shape:
        raise ShapeError(message("select_scatter", f"src has shape {list(src.shape)}, the slice {list(part.shape)}"))
    out = input.clone()
    out[(*(slice(None),) * normalize_dim("select_scatter", dim, input.ndim), index)] = src
    return out


samples(select_scatter, lambda t: [case(t(3, 4), t(4), 0, 1), case(t(3, 4), t(3), -1, -1)])

wrong_inputs(
    select_scatter,
    (lambda t: case(t(3, 4), t(1, 4), 0, 1), RuntimeError, "select_scatter: src has shape [1, 4], the slice [4]"),
)

__all__ = [
    "chunk",
    "select_scatter",
    "split",
    "tensor_split",
    "unbind",
]
