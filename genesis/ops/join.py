"""Joining tensors, taking them apart, repeating and turning them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import placed
from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.base.errors import ArgumentError, DimError, ShapeError, message
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.dispatch import write_out
from genesis.core.graph.hooks import SPECIAL
from genesis.core.call.strides import packed
from genesis.core.call.kinds import case, composite, normalize_dim, normalize_dims, primitive, view
from genesis.core.graph.modes import ACTIVE, grad_mode
from genesis.core.graph.node import Node, Output, recorded
from genesis.core.call.refusal import explain_all
from genesis.core.graph.saved import pack
from genesis.core.graph.tensor import Tensor
from genesis.ops.index import put
from genesis.ops.shape import atleast_1d, atleast_2d, atleast_3d, reshape, sizes, unsqueeze
import itertools

_ALL = "fcib"


# ---- parts, as views


def _narrowed(input: Tensor, dim: int, start: Any, length: int) -> tuple[Any, ...]:
    d = normalize_dim("narrow", dim, input.ndim)
    size = input._array.shape[d] if input.ndim else 0
    begin = int(start)
    begin = begin + size if begin < 0 else begin
    if not 0 <= begin <= size or length < 0 or begin + length > size:
        raise DimError(
            message(
                "narrow",
                f"start {start} and length {length} do not fit size {size} of dim {dim}",
                [("input", input._spec())],
            )
        )
    return input, d, begin, int(length)


def _slices(dim: int, start: int, length: int) -> tuple[Any, ...]:
    return (*[slice(None)] * dim, slice(start, start + length), Ellipsis)


def _sized(shape: Sequence[int], dim: int, size: int) -> tuple[int, ...]:
    return (*shape[:dim], size, *shape[dim + 1 :])


@view(
    {"input": lambda g, input_shape, dim, start: pad_dim(g, dim, start, input_shape[dim])},
    prepare=_narrowed,
    put=lambda whole, part, dim, start, length: put(whole, part, None, _slices(dim, start, length)),
    infer=lambda input, dim, start, length: Spec(_sized(input.shape, dim, length), input.dtype, input.device),
)
def narrow(input: Array, dim: int, start: int, length: int) -> Any:
    """The part of ``length`` slices from ``start`` along ``dim``, as a view.

    Raises:
        IndexError: it does not fit

    >>> import genesis
    >>> genesis.narrow(genesis.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    return input[_slices(dim, start, length)]


samples(narrow, lambda t: [case(t(4, 3), 0, 1, 2), case(t(2, 4), -1, 2, 2), case(t(3), 0, 0, 0)])

wrong_inputs(narrow, (lambda t: case(t(3), 0, 2, 2), IndexError, "narrow: start 2 and length 2 do not fit size 3"))


@primitive(
    "movement",
    {"input": lambda g, input_shape, dim, start: g.narrow(dim, start, input_shape[dim])},
    method=False,
    torch_name="",
    infer=lambda input, dim, start, size: Spec(_sized(input.shape, dim, size), input.dtype, input.device),
    dtypes=_ALL,
)
def pad_dim(input: Array, dim: int, start: int, size: int) -> Any:
    """Zeros of ``size`` along ``dim`` with the tensor at ``start``: the transpose of `narrow`.

    >>> import genesis
    >>> genesis.ops.join.pad_dim(genesis.ones(2), 0, 1, 4)
    tensor([0., 1., 1., 0.])
    """
    out = np.zeros(_sized(input.shape, dim, size), input.dtype)
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


def split_sizes(name: str, size: int, split: Any) -> list[int]:
    """The sizes of the pieces, from one size or a list of them."""
    if isinstance(split, int):
        if split < 0 or (split == 0 and size):
            raise ShapeError(message(name, f"the size of a piece must be positive, got {split}"))
        return [min(split, size - i) for i in range(0, size, split)] if size else [0]
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


def _one_node(input: Tensor, pieces: tuple[Tensor, ...], dim: int, kind: type[SplitBackward]) -> tuple[Tensor, ...]:
    """Make views that were taken one by one the results of one node (a write to one of them tells them apart again)."""
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


def _pieces(input: Tensor, lengths: Sequence[int], dim: int) -> tuple[Tensor, ...]:
    out, start = [], 0
    for n in lengths:
        out.append(narrow(input, dim, start, n))
        start += n
    return tuple(out)


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
    return _one_node(
        tensor,
        _pieces(tensor, split_sizes("split", tensor._array.shape[d], split_size_or_sections), d),
        d,
        SplitBackward,
    )


samples(split, lambda t: [case(t(5, 2), 2), case(t(2, 5), [1, 4], 1)])

wrong_inputs(split, (lambda t: case(t(5), [1, 2]), RuntimeError, "split: pieces of [1, 2] do not add up to size 5"))


Tensor.split = lambda self, split_size, dim=0: split(self, split_size, dim)
split_with_sizes = split
Tensor.split_with_sizes = Tensor.split


@composite(dtypes=_ALL)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most ``chunks`` pieces of equal size along ``dim`` (the last may be smaller); views.

    >>> import genesis
    >>> [len(piece) for piece in genesis.chunk(genesis.arange(5), 2)]
    [3, 2]
    """
    if chunks < 1:
        raise ShapeError(message("chunk", f"chunks must be positive, got {chunks}"))
    d = normalize_dim("chunk", dim, input.ndim)
    size = input._array.shape[d]
    each = -(-size // chunks)
    return _one_node(
        input, _pieces(input, split_sizes("chunk", size, each) if size else [0] * chunks, d), d, SplitBackward
    )


samples(chunk, lambda t: [case(t(5, 2), 2), case(t(2, 6), 3, 1)])


@composite(dtypes=_ALL)
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces as equal as possible, or cut at the given indices, along ``dim``; views.

    >>> import genesis
    >>> [len(piece) for piece in genesis.tensor_split(genesis.arange(7), 3)]
    [3, 2, 2]
    """
    d = normalize_dim("tensor_split", dim, input.ndim)
    size = input._array.shape[d]
    if isinstance(indices_or_sections, int):
        small, more = divmod(size, indices_or_sections)
        return _pieces(input, [small + (i < more) for i in range(indices_or_sections)], d)
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
    return _one_node(input, tuple([select(input, d, i) for i in range(input._array.shape[d])]), d, UnbindBackward)


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


# ---- joining


def _sequence(name: str, tensors: Any) -> list[Tensor]:
    """At least one tensor, and nothing else."""
    if isinstance(tensors, Tensor | str) or not isinstance(tensors, Iterable):
        raise ArgumentError(
            message(name, f"expected a list of tensors, got {type(tensors).__name__}", hint=f"{name}([x, y])")
        )
    tensors = list(tensors)
    if not tensors:
        raise ArgumentError(message(name, "expected at least one tensor, got none"))
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise ArgumentError(
                message(
                    name,
                    f"expected tensors, got {type(x).__name__}",
                    [(f"tensors[{i}]", repr(x)[:60])],
                    "genesis.tensor(...)",
                )
            )
    return tensors


def _joined(tensors: Any, dim: Any) -> tuple[Any, ...]:
    tensors = _sequence("cat", tensors)
    kind = tensors[0]._array.dtype
    if any(x._array.dtype is not kind for x in tensors):
        kind = dtypes.result_np_dtype([x._array for x in tensors])
        tensors = [x.to(kind) for x in tensors]
    first = next((x for x in tensors if x._array.shape != (0,)), tensors[0])
    if not first.ndim:
        raise ShapeError(message("cat", "0-d tensors cannot be concatenated", hint="stack"))
    d = normalize_dim("cat", dim, first.ndim)
    if first.ndim > 1:  # an empty 1-d tensor fits anything; its dtype and its history count
        tensors = [reshape(x, _sized(first._array.shape, d, 0)) if x._array.shape == (0,) else x for x in tensors]
    for i, x in enumerate(tensors):
        mine, its = list(first._array.shape), list(x._array.shape)
        if len(mine) != len(its) or mine[:d] + mine[d + 1 :] != its[:d] + its[d + 1 :]:
            raise ShapeError(
                message("cat", f"sizes of tensors must match except in dim {d}, {mine} and {its}",
                        [("tensors[0]", first._spec()), (f"tensors[{i}]", x._spec())])
            )  # fmt: skip
    return tensors, d


def _infer_cat(tensors: Sequence[Spec], dim: int) -> Spec:
    first = tensors[0]
    return Spec(_sized(first.shape, dim, sum(x.shape[dim] for x in tensors)), first.dtype, first.device)


def _cat_rule(g: Any, tensors_shapes: Any, dim: int) -> Any:
    return _pieces(g, [shape[dim] for shape in tensors_shapes], dim)


@primitive(
    "movement",
    {"tensors": _cat_rule},
    infer=_infer_cat,
    prepare=_joined,
    dtypes=_ALL,
    batch=lambda b, tensors, dim: b.run([b.spread(x, f) for x, f in zip(tensors, b.batched, strict=True)], dim + 1),
)
def cat(tensors: Sequence[Array], dim: int = 0) -> Any:
    """Tensors one after the other along ``dim``; other sizes must be equal, dtypes are promoted.

    Raises:
        TypeError: no tensors, or something else among them
        RuntimeError: sizes that do not match

    >>> import genesis
    >>> genesis.cat([genesis.zeros(1), genesis.ones(2)])
    tensor([0., 1., 1.])
    """
    return packed(np.concatenate(tensors, dim))


samples(cat, lambda t: [case([t(2, 3), t(1, 3)]), case([t(2, 3), t(2, 2)], -1), case([t(0, 3), t(2, 3)])])

wrong_inputs(
    cat,
    (lambda t: case([t(2, 3), t(2, 4)]), RuntimeError, "cat: sizes of tensors must match except in dim 0"),
    (lambda t: case([]), TypeError, "cat: expected at least one tensor"),
)


def _with_out(plain: Any) -> Any:
    def cat(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
        result: Tensor = plain(tensors, dim)
        return result if out is None else write_out("cat", result, out)

    cat.__qualname__, cat.__module__, cat.__doc__ = "cat", __name__, plain.__doc__
    cat.op, plain.op.call = plain.op, cat  # type: ignore[attr-defined]
    return cat


concat = concatenate = cat = _with_out(cat)


@composite(dtypes=_ALL, method=False)
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape, along a new dimension.

    Raises:
        RuntimeError: the shapes differ

    >>> import genesis
    >>> genesis.stack([genesis.zeros(2), genesis.ones(2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
    tensors = _sequence("stack", tensors)
    first = tensors[0]
    for i, x in enumerate(tensors):
        if x.shape != first.shape:
            raise ShapeError(
                message(
                    "stack",
                    f"all tensors must have one shape, {list(first.shape)} and {list(x.shape)}",
                    [("tensors[0]", first._spec()), (f"tensors[{i}]", x._spec())],
                )
            )
    d = normalize_dim("stack", dim, first.ndim + 1)
    return cat([unsqueeze(x, d) for x in tensors], d)


samples(stack, lambda t: [case([t(2, 3), t(2, 3)]), case([t(3), t(3)], -1), case([t(), t()])])

wrong_inputs(stack, (lambda t: case([t(2), t(3)]), RuntimeError, "stack: all tensors must have one shape, [2] and [3]"))


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors side by side: along dim 1, or dim 0 for 1-d.

    >>> import genesis
    >>> genesis.hstack([genesis.zeros(1), genesis.ones(1)])
    tensor([0., 1.])
    """
    parts = [atleast_1d(x) for x in _sequence("hstack", tensors)]
    return cat(parts, 0 if parts[0].ndim == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors on top of each other, along dim 0.

    >>> import genesis
    >>> genesis.vstack([genesis.zeros(2), genesis.ones(2)]).shape
    genesis.Size([2, 2])
    """
    return cat([atleast_2d(x) for x in _sequence("vstack", tensors)], 0)


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors behind each other, along dim 2."""
    return cat([atleast_3d(x) for x in _sequence("dstack", tensors)], 2)


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """1-d tensors as the columns of a matrix."""
    return cat([reshape(x, (x.numel(), 1)) if x.ndim <= 1 else x for x in _sequence("column_stack", tensors)], 1)


# ---- repeating and turning


@composite(dtypes=_ALL)
def tile(input: Tensor, dims: Sequence[int]) -> Tensor:
    """The tensor repeated like tiles; missing repeats and dimensions count as 1.

    >>> import genesis
    >>> genesis.tile(genesis.tensor([1., 2.]), (2,))
    tensor([1., 2., 1., 2.])
    """
    counts = [1] * max(0, input.ndim - len(dims)) + [int(n) for n in dims]
    shape = [1] * (len(counts) - input.ndim) + list(input._array.shape)
    x = reshape(input, [n for size in shape for n in (1, size)])
    x = x.expand([n for count, size in zip(counts, shape, strict=True) for n in (count, size)])
    return reshape(x.clone(), [count * size for count, size in zip(counts, shape, strict=True)])


samples(tile, lambda t: [case(t(2, 3), (2, 2)), case(t(3), (2, 1, 2)), case(t(2, 3), (2,))])


Tensor.tile = lambda self, *dims: tile(self, sizes(dims))


def _repeat(self: Tensor, *repeats: Any) -> Tensor:
    """The tensor repeated like tiles, one count for each dimension.

    >>> import genesis
    >>> genesis.tensor([1., 2.]).repeat(2, 1).shape
    genesis.Size([2, 2])
    """
    counts = sizes(repeats)
    if len(counts) < self.ndim:
        raise ShapeError(message("repeat", f"{len(counts)} repeats for {self.ndim} dimensions"))
    return tile(self, counts)


Tensor.repeat = _repeat


@composite(dtypes=_ALL)
def repeat_interleave(input: Tensor, repeats: Any, dim: int | None = None) -> Tensor:
    """Each slice repeated in place, the same or its own number of times.

    >>> import genesis
    >>> genesis.repeat_interleave(genesis.tensor([1., 2.]), 2)
    tensor([1., 1., 2., 2.])
    """
    x, d = (reshape(input, (-1,)), 0) if dim is None else (input, normalize_dim("repeat_interleave", dim, input.ndim))
    counts = repeats.numpy_view() if isinstance(repeats, Tensor) else np.asarray(repeats)
    from genesis.core.graph.tensor import wrap

    return x.index_select(d, wrap(placed(np.repeat(np.arange(x.shape[d]), counts), x.device)))


samples(repeat_interleave, lambda t: [case(t(2, 3), 2), case(t(2, 3), 2, 1)])


def _flip_dims(input: Tensor, dims: Any) -> tuple[Any, ...]:
    return input, normalize_dims("flip", dims, input.ndim)


@primitive(
    "movement",
    {"input": lambda g, dims: g.flip(dims)},
    prepare=_flip_dims,
    dtypes=_ALL,
    infer=lambda input, dims: input,
)
def flip(input: Array, dims: Sequence[int]) -> Any:
    """A copy in reverse order along ``dims``.

    >>> import genesis
    >>> genesis.flip(genesis.tensor([1., 2., 3.]), (0,))
    tensor([3., 2., 1.])
    """
    return np.flip(input, dims).copy() if input.ndim else input.copy()


samples(flip, lambda t: [case(t(2, 3), (0,)), case(t(2, 3), (0, -1)), case(t(), ())])


Tensor.flip = lambda self, *dims: flip(self, dims[0] if len(dims) == 1 else dims)


def fliplr(input: Tensor) -> Tensor:
    """Columns in reverse order."""
    return flip(input, 1)


def flipud(input: Tensor) -> Tensor:
    """Rows in reverse order."""
    return flip(input, 0)


@primitive(
    "movement",
    {"input": lambda g, shifts, dims: g.roll([-s for s in shifts], dims)},
    dtypes=_ALL,
    method=False,
    torch_name="",
    infer=lambda input, shifts, dims: input,
)
def roll_dims(input: Array, shifts: Sequence[int], dims: Sequence[int]) -> Any:
    """Slices moved on along dimensions, the last ones coming first; what `roll` calls.

    >>> import genesis
    >>> genesis.roll(genesis.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    return packed(np.roll(input, tuple(shifts), tuple(dims)))


samples(roll_dims, lambda t: [case(t(2, 3), (1,), (0,)), case(t(2, 3), (1, 2), (0, 1))])


@composite(dtypes=_ALL)
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Slices moved on by ``shifts`` along ``dims`` (None: the flattened tensor), the last ones coming first.

    >>> import genesis
    >>> genesis.roll(genesis.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    if dims is None:
        return roll_dims(reshape(input, (-1,)), (int(shifts if isinstance(shifts, int) else shifts[0]),), (0,)).reshape(
            input.shape
        )
    where = (
        normalize_dims("roll", dims, input.ndim)
        if not isinstance(dims, int)
        else (normalize_dim("roll", dims, input.ndim),)
    )
    return roll_dims(input, (shifts,) if isinstance(shifts, int) else tuple(shifts), where)


samples(roll, lambda t: [case(t(2, 3), 1), case(t(2, 3), 1, 0), case(t(2, 3), (1, 2), (0, 1))])


@composite(dtypes=_ALL)
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Turned by ``k`` right angles in the plane of two dimensions.

    >>> import genesis
    >>> genesis.rot90(genesis.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    a, b = normalize_dims("rot90", dims, input.ndim)
    k %= 4
    if k == 0:
        return input.clone()
    if k == 2:
        return flip(input, (a, b))
    return flip(input, b).transpose(a, b) if k == 1 else flip(input.transpose(a, b), b)


samples(rot90, lambda t: [case(t(2, 3)), case(t(2, 3), 2), case(t(2, 3), -1, (1, 0))])


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinate grids of 1-d tensors, with "ij" (matrix) or "xy" (Cartesian) indexing; views.

    >>> import genesis
    >>> a, b = genesis.meshgrid(genesis.arange(2), genesis.arange(3), indexing="ij")
    >>> b
    tensor([[0, 1, 2],
            [0, 1, 2]])
    """
    parts = list(tensors[0]) if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else list(tensors)
    if indexing not in ("ij", "xy"):
        raise ShapeError(message("meshgrid", f"indexing must be 'ij' or 'xy', got {indexing!r}"))
    swap = indexing == "xy" and len(parts) > 1
    if swap:
        parts[0], parts[1] = parts[1], parts[0]
    shape = [x.numel() for x in parts]
    grids = [reshape(x, [-1 if i == j else 1 for j in range(len(parts))]).expand(shape) for i, x in enumerate(parts)]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of the elements of 1-d tensors, as rows."""
    if len(tensors) == 1:
        return tensors[0]
    return stack([reshape(g, (-1,)) for g in meshgrid(*tensors)], 1)


def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices along the diagonal of a larger one.

    >>> import genesis
    >>> genesis.block_diag(genesis.ones(1, 1), genesis.ones(1, 2))
    tensor([[1., 0., 0.],
            [0., 1., 1.]])
    """
    parts = [atleast_2d(x) for x in tensors]
    width, rows, left = sum(p.shape[1] for p in parts), [], 0
    for p in parts:
        rows.append(pad_dim(p, 1, left, width))
        left += p.shape[1]
    return cat(rows, 0)


explain_all(
    globals(),
    "hstack",
    "vstack",
    "dstack",
    "column_stack",
    "fliplr",
    "flipud",
    "block_diag",
    "cartesian_prod",
    "meshgrid",
)
row_stack = vstack

__all__ = [
    "block_diag",
    "cartesian_prod",
    "cat",
    "chunk",
    "column_stack",
    "concat",
    "concatenate",
    "dstack",
    "flip",
    "fliplr",
    "flipud",
    "hstack",
    "meshgrid",
    "narrow",
    "repeat_interleave",
    "roll",
    "rot90",
    "row_stack",
    "select",
    "select_scatter",
    "split",
    "stack",
    "tensor_split",
    "tile",
    "unbind",
    "vstack",
]
