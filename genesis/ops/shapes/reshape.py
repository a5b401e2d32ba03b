"""Other shapes for the same elements: views where memory allows.

View ops share the memory of their input; `core/call/views.py` makes writes through them differentiable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.stored import stored
from genesis.arrays.spec import Spec, strides_of
from genesis.base import dtypes
from genesis.base.errors import ShapeError, message
from genesis.core.call.kinds import case, composite, normalize_dim, normalize_dims, view
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.refusal import explain_all
from genesis.core.call.strides import reshaped
from genesis.core.graph.tensor import Tensor
from genesis.ops.shapes.expand import sizes_of, varargs

_ALL, _INTEGERS = "fcib", {int}


def resolve_shape(name: str, count: int, shape: tuple[int, ...], mine: Any) -> tuple[int, ...]:
    """Fill in the one -1 of a shape."""
    if math.prod(shape) == count and (not shape or min(shape) >= 0):
        return shape
    unknown = shape.count(-1)
    known = math.prod([n for n in shape if n != -1])
    fits = known == count if not unknown else unknown == 1 and known > 0 and count % known == 0
    if not fits or any(n < -1 for n in shape):
        problem = "only one dimension can be -1" if unknown > 1 else f"{count} elements do not fit shape {list(shape)}"
        raise ShapeError(message(name, problem, [("input", f"{list(mine)}")]))
    return tuple(count // known if n == -1 else n for n in shape)


def _reshaped(name: str) -> Any:
    def prepare(input: Tensor, shape: Any) -> tuple[Any, ...]:
        shape = tuple(shape) if shape.__class__ is not tuple else shape
        array = input._array
        count, whole = array.size, math.prod(shape)
        if whole == count and (not shape or min(shape) >= 0):  # as `resolve_shape` has it
            return input, shape
        if whole < 0 and min(shape) == -1 and shape.count(-1) == 1 and not count % whole:
            i = shape.index(-1)
            return input, (*shape[:i], count // -whole, *shape[i + 1 :])
        return input, resolve_shape(name, array.size, shape, array.shape)

    return prepare


_shapes = lambda t: [
    case(t(2, 6), (3, 4)),
    case(t(2, 3, 4), (-1, 4)),
    case(t(4), (2, 2)),
    case(t(1), ()),
    case(t(), (1, 1)),
    case(t(0, 3), (3, 0)),
]  # noqa: E501, E731


@view(
    {"input": lambda g, input_shape: g.reshape(input_shape)},
    infer=lambda input, shape: Spec(shape, input.dtype, input.device),
    prepare=_reshaped("reshape"),
    put=lambda whole, part, shape: part.reshape(whole.shape),
    strides=lambda input, shape: reshaped(input.shape, strides_of(input), shape),
    batch=lambda b, x, shape: b.run(x, (b.size, *shape)),
)
def reshape(input: Array, shape: Sequence[int]) -> Any:
    """The same elements, in row-major order, in another shape; one size may be -1. A view where memory allows.

    Raises:
        RuntimeError: the number of elements differs

    >>> import genesis
    >>> genesis.reshape(genesis.arange(4), (2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return input.reshape(shape)


samples(reshape, _shapes)

wrong_inputs(
    reshape,
    (lambda t: case(t(2, 3), (4, 2)), RuntimeError, "reshape: 6 elements do not fit shape [4, 2]"),
    (lambda t: case(t(2, 3), (-1, -1)), RuntimeError, "reshape: only one dimension can be -1"),
)


def _needs_copy(shape: Any) -> ShapeError:
    return ShapeError(
        message(
            "view",
            f"shape {list(shape)} needs a copy of this non-contiguous tensor",
            hint="reshape(), or contiguous().view()",
        )
    )


def _viewed(input: Any, shape: Any) -> Any:
    out = input.reshape(shape)
    owner = out.base
    same = owner is input or (owner is not None and owner is input.base)  # mostly; asking NumPy takes 0.5 us
    if not same and input.size and not np.may_share_memory(out, input):
        raise _needs_copy(shape)
    return out


def _view_strides(input: Spec, shape: Any) -> Any:
    strides = reshaped(input.shape, strides_of(input), shape)
    if strides is None:
        raise _needs_copy(shape)
    return strides


@view(
    {"input": lambda g, input_shape: g.reshape(input_shape)},
    infer=lambda input, shape: Spec(shape, input.dtype, input.device),
    prepare=_reshaped("view"),
    put=lambda whole, part, shape: part.reshape(whole.shape),
    strides=_view_strides,
    torch_name="Tensor.view",
    batch=lambda b, x, shape: b.run(x, (b.size, *shape)),
)
def view_shape(input: Array, shape: Sequence[int]) -> Any:
    """`reshape` that never copies; ``x.view(2, 3)``.

    Raises:
        RuntimeError: the number of elements differs, or the memory layout needs a copy

    >>> import genesis
    >>> genesis.arange(4).view(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    return _viewed(input, shape)


samples(view_shape, _shapes)

wrong_inputs(
    view_shape,
    (lambda t: case(t(2, 3).t(), (6,)), RuntimeError, "needs a copy of this non-contiguous tensor"),
)


@view(
    {},
    infer=lambda input, dtype: (
        Spec((*input.shape[:-1], input.shape[-1] * input.dtype.itemsize // dtype.itemsize), dtype, input.device)
        if input.shape
        else Spec((), dtype, input.device)
    ),
    torch_name="",
    method=False,
    put=lambda whole, part, dtype: view_dtype(part.contiguous(), whole._array.dtype),
    batch=lambda b, x, dtype: b.run(x.unsqueeze(1).contiguous(), dtype).squeeze(1),
)
def view_dtype(input: Array, dtype: Any) -> Any:
    """The same bytes as another dtype; ``x.view(dtype)``. Not differentiable.

    >>> import genesis
    >>> genesis.tensor([1.0]).view(genesis.int32)
    tensor([1065353216], dtype=genesis.int32)
    """
    return stored(input.view(dtype))


samples(view_dtype, lambda t: [case(t(2, 4), np.dtype(np.int16))])


def _view(self: Tensor, *shape: Any, dtype: Any = None, **named: Any) -> Tensor:
    if not named and dtype is None and {*map(type, shape)} == _INTEGERS:
        return view_shape(self, shape)
    if dtype is not None:
        shape = (*shape, dtype)
    if len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        return view_dtype(self, shape[0].np)
    return view_shape(self, sizes_of("view", "size", shape, named))


_view.__doc__ = view_shape.__doc__
varargs(reshape, "reshape", "shape")
Tensor.view = _view
Tensor.view_as = lambda self, other: view_shape(self, other.shape)
Tensor.reshape_as = lambda self, other: reshape(self, other.shape)


@composite(dtypes=_ALL)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merge the dimensions from ``start_dim`` to ``end_dim`` into one.

    >>> import genesis
    >>> genesis.flatten(genesis.zeros(2, 3, 4), 1).shape
    genesis.Size([2, 12])
    """
    start, end = normalize_dim("flatten", start_dim, input.ndim), normalize_dim("flatten", end_dim, input.ndim)
    if start > end:
        raise ShapeError(message("flatten", f"start_dim {start_dim} comes after end_dim {end_dim}"))
    shape = tuple(input._array.shape)
    if start == end and shape:
        return input  # itself, as PyTorch does, not a view
    return reshape(input, (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))


samples(flatten, lambda t: [case(t(2, 3, 4)), case(t(2, 3, 4), 1), case(t(2, 3, 4), 0, 1), case(t())])

wrong_inputs(flatten, (lambda t: case(t(2, 3), 1, 0), RuntimeError, "flatten: start_dim 1 comes after end_dim 0"))


@composite(dtypes=_ALL)
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Split one dimension into several; one size may be -1.

    >>> import genesis
    >>> genesis.unflatten(genesis.zeros(2, 6), 1, (2, 3)).shape
    genesis.Size([2, 2, 3])
    """
    d = normalize_dim("unflatten", dim, input.ndim)
    shape = tuple(input._array.shape)
    return reshape(input, (*shape[:d], *resolve_shape("unflatten", shape[d], tuple(sizes), shape), *shape[d + 1 :]))


samples(unflatten, lambda t: [case(t(2, 6), 1, (2, 3)), case(t(6), 0, (-1, 2))])


@composite(dtypes=_ALL)
def ravel(input: Tensor) -> Tensor:
    """The elements in one dimension.

    >>> import genesis
    >>> genesis.ravel(genesis.zeros(2, 3)).shape
    genesis.Size([6])
    """
    return reshape(input, (-1,))


samples(ravel, lambda t: [case(t(2, 3))])

# ---- dimensions of size one


@composite(dtypes=_ALL, inplace=False)
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Drop dimensions of size 1: all, or those named in ``dim``; a view.

    >>> import genesis
    >>> genesis.squeeze(genesis.zeros(2, 1, 3)).shape
    genesis.Size([2, 3])
    """
    shape = tuple(input._array.shape)
    dims = normalize_dims("squeeze", dim, len(shape)) if shape else ()
    return reshape(input, tuple([n for i, n in enumerate(shape) if n != 1 or i not in dims]))


samples(
    squeeze, lambda t: [case(t(2, 1, 3, 1)), case(t(2, 1), 1), case(t(1, 2, 1), (0, 2)), case(t(2, 3), 0), case(t())]
)


def _squeeze(self: Tensor, *dim: Any, **named: Any) -> Tensor:
    several = (dim,) if len(dim) > 1 else dim
    return squeeze(self, *several, **named)  # type: ignore[no-any-return]


_squeeze.__name__, _squeeze.__doc__ = "squeeze", squeeze.__doc__
Tensor.squeeze = _squeeze


@composite(dtypes=_ALL)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Add a dimension of size 1 at ``dim``; a view.

    Raises:
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.unsqueeze(genesis.zeros(3), 0).shape
    genesis.Size([1, 3])
    """
    shape = tuple(input._array.shape)
    d = normalize_dim("unsqueeze", dim, len(shape) + 1)
    return reshape(input, (*shape[:d], 1, *shape[d:]))


samples(unsqueeze, lambda t: [case(t(2, 3), 0), case(t(2, 3), -1), case(t(), 0), case(t(0), 1)])

wrong_inputs(unsqueeze, (lambda t: case(t(2, 3), 4), IndexError, "unsqueeze: dim 4 is out of range"))


def _atleast(n: int) -> Any:
    def atleast(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], list | tuple):
            tensors = tuple(tensors[0])
        out = []
        for x in tensors:
            if n == 3 and x.ndim == 2:
                x = unsqueeze(x, -1)
            elif n == 3 and x.ndim == 1:
                x = reshape(x, (1, -1, 1))
            while x.ndim < n:
                x = unsqueeze(x, 0)
            out.append(x)
        return out[0] if len(out) == 1 else tuple(out)

    atleast.__name__ = f"atleast_{n}d"
    atleast.__doc__ = f"Tensors with at least {n} dimensions, ones added where they are missing."
    return atleast


atleast_1d, atleast_2d, atleast_3d = _atleast(1), _atleast(2), _atleast(3)


explain_all(globals(), "atleast_1d", "atleast_2d", "atleast_3d")

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "flatten",
    "ravel",
    "reshape",
    "squeeze",
    "unflatten",
    "unsqueeze",
]
