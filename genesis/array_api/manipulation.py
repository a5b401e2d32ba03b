"""Shapes and places."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import genesis as _g
from genesis.array_api.dtypes import Axis
from genesis.base.errors import ArgumentValueError, message
from genesis.base.layouts import contiguous_format
from genesis.core.graph.tensor import Tensor


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Tensors expanded to their common shape."""
    return list(_g.broadcast_tensors(*arrays))


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """A tensor expanded to a shape."""
    return _g.broadcast_to(x, shape)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that shapes broadcast to."""
    return tuple(_g.broadcast_shapes(*shapes))


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Tensors one after the other; flattened first for ``axis=None``."""
    return _g.cat([x.reshape(-1) for x in arrays], 0) if axis is None else _g.cat(list(arrays), axis)


def expand_dims(x: Tensor, /, axis: int) -> Tensor:
    """A new dimension of size 1."""
    return x.unsqueeze(axis)


def flip(x: Tensor, /, *, axis: Axis = None) -> Tensor:
    """Elements in reverse order."""
    return _g.flip(x, tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis)


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """Dimensions moved to other places."""
    return _g.movedim(x, source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Dimensions in another order."""
    return x.permute(axes)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two dimensions exchanged."""
    return x.mT


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Each element several times."""
    return _g.repeat_interleave(x, repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: builtins.bool | None = None) -> Tensor:
    """The same elements in another shape."""
    if copy is False:
        return x.view(shape)
    return x.clone(memory_format=contiguous_format).reshape(shape) if copy else x.reshape(shape)


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Elements moved along, those at the end to the beginning."""
    if isinstance(axis, tuple) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    return _g.roll(x, shift, axis)


def squeeze(x: Tensor, /, axis: Any) -> Tensor:
    """Without these dimensions of size 1; others are an error."""
    for d in (axis,) if isinstance(axis, int) else axis:
        if x.shape[d] != 1:
            raise ArgumentValueError(
                message("squeeze", f"dim {d} has size {x.shape[d]}, only size 1 can be removed", [("x", x._spec())])
            )
    return _g.squeeze(x, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Tensors along a new dimension."""
    return _g.stack(list(arrays), axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The tensor several times along each dimension."""
    return _g.tile(x, repetitions)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along a dimension."""
    return tuple(x.unbind(axis))


__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]
