"""Turning tensors: backwards, around and by quarter turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.base.dtypes import whole
from genesis.arrays.protocol import Array
from genesis.base.errors import ShapeError, message
from genesis.core.call.kinds import case, composite, normalize_dims, primitive
from genesis.core.call.op import samples
from genesis.core.call.refusal import explain_all
from genesis.core.call.strides import packed
from genesis.core.graph.tensor import Tensor
from genesis.ops.shapes.reshape import reshape

_ALL = "fcib"


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


def _flip(self: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """`flip` of one sequence of dimensions, or of several dimensions."""
    return flip(self, dims if dims is not None else order[0] if len(order) == 1 else order)


Tensor.flip = _flip


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
    if len(shifts) == len(dims) == 1 and (size := input.shape[dims[0]]):  # a third of NumPy's time
        before, at = (slice(None),) * dims[0], -shifts[0] % size
        return packed(np.concatenate((input[(*before, slice(at, None))], input[(*before, slice(at))]), dims[0]))
    return packed(np.roll(input, tuple(shifts), tuple(dims)))


samples(roll_dims, lambda t: [case(t(2, 3), (1,), (0,)), case(t(2, 3), (1, 2), (0, 1))])


@composite(dtypes=_ALL)
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Slices moved on by ``shifts`` along ``dims`` (None: the flattened tensor), the last ones coming first.

    >>> import genesis
    >>> genesis.roll(genesis.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    shifts = whole(shifts)
    each = (shifts,) if isinstance(shifts, int) else tuple(map(whole, shifts))
    if dims is None:
        return roll_dims(reshape(input, (-1,)), each[:1], (0,)).reshape(input.shape)
    return roll_dims(input, each, normalize_dims("roll", dims, input.ndim))


samples(roll, lambda t: [case(t(2, 3), 1), case(t(2, 3), 1, 0), case(t(2, 3), (1, 2), (0, 1))])


@composite(dtypes=_ALL)
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Turned by ``k`` right angles in the plane of two dimensions.

    >>> import genesis
    >>> genesis.rot90(genesis.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    if len(dims) != 2:
        raise ShapeError(message("rot90", f"a plane has two dimensions, got {list(dims)}", [("input", input._spec())]))
    a, b = normalize_dims("rot90", dims, input.ndim)
    k %= 4
    if k == 0:
        return input.clone()
    if k == 2:
        return flip(input, (a, b))
    return flip(input, b).transpose(a, b) if k == 1 else flip(input.transpose(a, b), b)


samples(rot90, lambda t: [case(t(2, 3)), case(t(2, 3), 2), case(t(2, 3), -1, (1, 0))])


explain_all(globals(), "fliplr", "flipud")

Tensor.fliplr, Tensor.flipud = fliplr, flipud

__all__ = [
    "flip",
    "fliplr",
    "flipud",
    "roll",
    "rot90",
]
