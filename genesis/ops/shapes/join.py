"""Joining tensors: along a dimension, along a new one, and in grids and blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.base.errors import ArgumentError, ShapeError, message
from genesis.base.quiet import unnamed
from genesis.core.call.out import takes_out
from genesis.core.call.kinds import case, composite, normalize_dim, primitive
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.refusal import explain_all
from genesis.core.call.strides import packed
from genesis.core.graph.modes import ACTIVE, LEVELS
from genesis.core.graph.tensor import Tensor, wrap
from genesis.ops.shapes.narrow import pad_dim, pieces_of, resized_shape
from genesis.ops.shapes.reshape import atleast_1d, atleast_2d, atleast_3d, reshape, unsqueeze

_ALL, _TENSORS = "fcib", {Tensor}


def _sequence(name: str, tensors: Any) -> list[Tensor]:
    """At least one tensor, and nothing else."""
    plain = tensors.__class__ is list or tensors.__class__ is tuple
    if not plain and (isinstance(tensors, Tensor | str) or not isinstance(tensors, Iterable)):
        raise ArgumentError(
            message(name, f"expected a list of tensors, got {type(tensors).__name__}", hint=f"{name}([x, y])")
        )
    tensors = list(tensors)
    if not tensors:
        raise ArgumentError(message(name, "expected at least one tensor, got none"))
    for x in () if {*map(type, tensors)} == _TENSORS else tensors:
        if not isinstance(x, Tensor):
            i = [each is x for each in tensors].index(True)
            text = f"expected tensors, got {type(x).__name__}"
            raise ArgumentError(message(name, text, [(f"tensors[{i}]", repr(x)[:60])], "genesis.tensor(...)"))
    return tensors


def _joined(tensors: Any, dim: Any) -> tuple[Any, ...]:
    tensors = _sequence("cat", tensors)
    kinds, shapes = [], []
    for x in tensors:
        array = x._array
        kinds.append(array.dtype)
        shapes.append(array.shape)
    if kinds.count(kinds[0]) != len(kinds):
        kind = dtypes.result_np_dtype([x._array for x in tensors])
        tensors = [x.to(kind) for x in tensors]
    if shapes[0] and shapes[0] != (0,) and shapes.count(shapes[0]) == len(shapes):  # most of all calls
        return tensors, normalize_dim("cat", dim, len(shapes[0]))
    first = next((x for x in tensors if x._array.shape != (0,)), tensors[0])
    if not first.ndim:
        raise ShapeError(message("cat", "0-d tensors cannot be concatenated", hint="stack"))
    d = normalize_dim("cat", dim, first.ndim)
    if first.ndim > 1:  # an empty 1-d tensor fits anything; its dtype and its history count
        tensors = [
            reshape(x, resized_shape(first._array.shape, d, 0)) if x._array.shape == (0,) else x for x in tensors
        ]
    for i, x in enumerate(tensors):
        mine, theirs = list(first._array.shape), list(x._array.shape)
        if len(mine) != len(theirs) or mine[:d] + mine[d + 1 :] != theirs[:d] + theirs[d + 1 :]:
            raise ShapeError(
                message("cat", f"sizes of tensors must match except in dim {d}, {mine} and {theirs}",
                        [("tensors[0]", first._spec()), (f"tensors[{i}]", x._spec())])
            )  # fmt: skip
    return tensors, d


def _infer_cat(tensors: Sequence[Spec], dim: int) -> Spec:
    first = tensors[0]
    return Spec(resized_shape(first.shape, dim, sum(x.shape[dim] for x in tensors)), first.dtype, first.device)


def _cat_rule(g: Any, tensors_shapes: Any, dim: int) -> Any:
    return pieces_of(g, [shape[dim] for shape in tensors_shapes], dim)


@primitive(
    "movement",
    {"tensors": _cat_rule},
    infer=_infer_cat,
    prepare=_joined,
    dtypes=_ALL,
    out=True,
    batch=lambda b, tensors, dim: b.run([b.spread(x, f) for x, f in zip(tensors, b.batched, strict=True)], dim + 1),
)
@unnamed
def cat(tensors: Sequence[Array], dim: int = 0) -> Any:
    """Tensors one after the other along ``dim``; other sizes must be equal, dtypes are promoted.

    Raises:
        TypeError: no tensors, or something else among them
        RuntimeError: sizes that do not match

    >>> import genesis
    >>> genesis.cat([genesis.zeros(1), genesis.ones(2)])
    tensor([0., 1., 1.])
    """
    joined = np.concatenate(tensors, dim)
    return joined if joined.flags.c_contiguous else joined.copy()  # NumPy keeps the order of others


samples(cat, lambda t: [case([t(2, 3), t(1, 3)]), case([t(2, 3), t(2, 2)], -1), case([t(0, 3), t(2, 3)])])

wrong_inputs(
    cat,
    (lambda t: case([t(2, 3), t(2, 4)]), RuntimeError, "cat: sizes of tensors must match except in dim 0"),
    (lambda t: case([]), TypeError, "cat: expected at least one tensor"),
)


concat = concatenate = cat


@composite(dtypes=_ALL, method=False, out=True)
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
    arrays = [x._array for x in tensors]
    shapes = [a.shape for a in arrays]
    first, shape = tensors[0], shapes[0]
    if shapes.count(shape) != len(shapes):
        i = [each == shape for each in shapes].index(False)
        raise ShapeError(
            message(
                "stack",
                f"all tensors must have one shape, {list(shape)} and {list(tensors[i].shape)}",
                [("tensors[0]", first._spec()), (f"tensors[{i}]", tensors[i]._spec())],
            )
        )
    d = normalize_dim("stack", dim, len(shape) + 1)
    whole = (*shape[:d], len(tensors), *shape[d:])
    if not (ACTIVE or LEVELS) and _are_plain(tensors, first._array.dtype):  # half of the time, of numbers a tenth
        if not shape:
            return wrap(np.array(arrays, arrays[0].dtype))
        if d < len(shape):
            return wrap(packed(np.concatenate(arrays, d)).reshape(whole))
    if d == len(shape):
        return cat([unsqueeze(x, d) for x in tensors], d)
    joined, shape = cat(tensors, d), whole
    out = reshape(joined, shape)  # one view, not one of each tensor
    out._view = None  # of what nobody else has: it is no view for those who write to it
    return out


def _are_plain(tensors: Sequence[Tensor], dtype: Any) -> bool:
    """Whether tensors are arrays of NumPy's of one of its dtypes, without history."""
    for x in tensors:
        a = x._array
        if x._node is not None or a.__class__ is not np.ndarray or a.dtype is not dtype:
            return False
    return dtype.kind in "fciub"


samples(stack, lambda t: [case([t(2, 3), t(2, 3)]), case([t(3), t(3)], -1), case([t(), t()])])

wrong_inputs(stack, (lambda t: case([t(2), t(3)]), RuntimeError, "stack: all tensors must have one shape, [2] and [3]"))


@takes_out
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors side by side: along dim 1, or dim 0 for 1-d.

    >>> import genesis
    >>> genesis.hstack([genesis.zeros(1), genesis.ones(1)])
    tensor([0., 1.])
    """
    parts = [atleast_1d(x) for x in _sequence("hstack", tensors)]
    return cat(parts, 0 if parts[0].ndim == 1 else 1)


@takes_out
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors on top of each other, along dim 0.

    >>> import genesis
    >>> genesis.vstack([genesis.zeros(2), genesis.ones(2)]).shape
    genesis.Size([2, 2])
    """
    return cat([atleast_2d(x) for x in _sequence("vstack", tensors)], 0)


@takes_out
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors behind each other, along dim 2."""
    return cat([atleast_3d(x) for x in _sequence("dstack", tensors)], 2)


@takes_out
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """1-d tensors as the columns of a matrix."""
    return cat([reshape(x, (x.numel(), 1)) if x.ndim <= 1 else x for x in _sequence("column_stack", tensors)], 1)


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
    """Matrices along the diagonal of a larger one; of none a matrix without elements.

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
    return cat(rows, 0) if rows else wrap(np.empty((1, 0), dtypes.get_default_dtype().np))


explain_all(globals(), "hstack", "vstack", "dstack", "column_stack", "block_diag", "cartesian_prod", "meshgrid")
row_stack = vstack

__all__ = [
    "block_diag",
    "cartesian_prod",
    "cat",
    "column_stack",
    "concat",
    "concatenate",
    "dstack",
    "hstack",
    "meshgrid",
    "row_stack",
    "stack",
    "vstack",
]
