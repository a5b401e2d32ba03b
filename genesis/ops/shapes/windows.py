"""Windows that slide along a dimension, as views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.base.dtypes import whole
from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.narrow import restrided
from genesis.base.errors import ArgumentError, ShapeError, message
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.kinds import case, normalize_dim, primitive, view
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.indexing.index import put_by
from genesis.ops.reductions.along import resized


def _checked(input: Tensor, dimension: Any, size: Any, step: Any) -> tuple[Any, ...]:
    dim = normalize_dim("unfold", dimension, input.ndim) if input.ndim else normalize_dim("unfold", dimension, 1)
    size, step = whole(size), whole(step)
    for what, value, least in (("size", size, 0), ("step", step, 1)):
        if not isinstance(value, int):
            raise ArgumentError(message("unfold", f"{what} must be an integer, got {type(value).__name__}"))
        if value < least:
            raise ShapeError(
                message("unfold", f"{what} is {value}, it must be at least {least}", [("input", input._spec())])
            )
    length = input._array.shape[dim] if input.ndim else 1
    if size > length:
        raise ShapeError(
            message(
                "unfold",
                f"a window of {size} does not fit dim {dimension} of size {length}",
                [("input", input._spec())],
            )
        )
    return input, dim, size, step


def _unfolded(shape: Sequence[int], dim: int, size: int, step: int) -> tuple[int, ...]:
    return (*shape[:dim], (shape[dim] - size) // step + 1, *shape[dim + 1 :], size) if shape else (size,)


def _elements(length: int, size: int, step: int) -> Any:
    """Which elements the windows have, a row for each."""
    return np.arange(0, length - size + 1, step)[:, None] + np.arange(size)


def _folded(g: Tensor, shape: Sequence[int], dim: int, size: int, step: int) -> Tensor:
    return fold_windows(g, shape[dim], dim, size, step) if shape else g.sum()  # type: ignore[no-any-return]


def _put_back(whole: Tensor, part: Tensor, dim: int, size: int, step: int) -> Tensor:
    """The whole with windows replaced that do not overlap."""
    if not whole.ndim:
        return part.reshape(whole.shape) if size else whole
    key = (*[slice(None)] * dim, _elements(whole.shape[dim], size, step))
    return put_by(whole, part.movedim(-1, dim + 1), key)  # type: ignore[attr-defined, no-any-return]


@primitive(
    "movement",
    {"input": lambda g, dimension, size, step: unfold(g, dimension, size, step)},
    infer=lambda input, length, dimension, size, step: Spec(
        resized(input.shape[:-1], dimension, length), input.dtype, input.device
    ),
    batch=lambda b, x, length, dimension, size, step: b.run(x, length, dimension + 1, size, step),
    dtypes="fc",
    method=False,
    torch_name="",
)
def fold_windows(input: Array, length: int, dimension: int, size: int, step: int) -> Any:
    """The sums of what windows have of each element along a dimension of this length: the transpose of `unfold`.

    >>> import genesis
    >>> from importlib import import_module
    >>> import_module("genesis.ops.shapes.windows").fold_windows(genesis.ones(3, 2), 4, 0, 2, 1)
    tensor([1., 2., 2., 1.])
    """
    out = np.zeros(resized(input.shape[:-1], dimension, length), F32 if input.dtype in HALVES else input.dtype)
    to, count = np.moveaxis(out, dimension, -1), input.shape[dimension]
    parts = np.moveaxis(input, dimension, -1)
    for i in range(size if count else 0):
        to[..., i : i + (count - 1) * step + 1 : step] += parts[..., i, :]
    return out.astype(input.dtype, copy=False)


samples(fold_windows, lambda t: [case(t(2, 3, 2), 4, 1, 2, 1), case(t(3, 2, 3), 7, 0, 3, 2), case(t(2, 2), 7, 0, 2, 4)])


def _of_samples(b: Any, x: Tensor, dim: int, size: int, step: int) -> Tensor:
    return b.run(x, dim + 1, size, step) if x.ndim > 1 else b.run(x.unsqueeze(1), 1, size, 1).squeeze(1)  # type: ignore[attr-defined, no-any-return]


@view(
    {
        "input": lambda g, input_shape, dimension, size, step: _folded(g, input_shape, dimension, size, step),
    },
    prepare=_checked,
    put=_put_back,
    torch_name="Tensor.unfold",
    infer=lambda input, dimension, size, step: Spec(
        _unfolded(input.shape, dimension, size, step), input.dtype, input.device
    ),
    batch=_of_samples,
)
def unfold(input: Array, dimension: int, size: int, step: int) -> Any:
    """All windows of ``size`` elements along a dimension, ``step`` apart, as a view: there are $\\lfloor (n - size) /
    step \\rfloor + 1$, their elements come last.

    Windows that overlap cannot be written to.

    Raises:
        RuntimeError: a window larger than the dimension, a negative size, a step below 1
        IndexError: a dimension out of range

    >>> import genesis
    >>> genesis.arange(5).unfold(0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    if not input.ndim:
        return input.reshape(1)[:size]
    shape = _unfolded(input.shape, dimension, size, step)
    strides = list(input.strides)
    between = strides[dimension] * step
    out = restrided(input, shape, [*strides[:dimension], between, *strides[dimension + 1 :], strides[dimension]])
    if step < size and shape[dimension] > 1:
        out.flags.writeable = False
    return out


samples(
    unfold,
    lambda t: [
        case(t(5), 0, 2, 1),
        case(t(2, 6), 1, 3, 2),
        case(t(4, 3), -2, 2, 2),
        case(t(), 0, 1, 1),
        case(t(3, 2), 0, 3, 4),
        case(t(0, 2), 0, 0, 1),
    ],
)

wrong_inputs(
    unfold,
    (lambda t: case(t(4), 0, 5, 1), RuntimeError, "unfold: a window of 5 does not fit dim 0 of size 4"),
    (lambda t: case(t(4), 0, 2, 0), RuntimeError, "unfold: step is 0, it must be at least 1"),
    (lambda t: case(t(4), 1, 2, 1), IndexError, "out of range"),
)

__all__ = ["unfold"]
