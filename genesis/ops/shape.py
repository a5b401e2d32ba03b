"""Changes of shape: views where memory allows.

View ops share the memory of their input; `core/call/views.py` makes writes through them differentiable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec, strides_of
from genesis.base import dtypes
from genesis.base.errors import ArgumentError, ShapeError, message
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.kinds import alias, case, composite, normalize_dim, normalize_dims, view
from genesis.core.call.refusal import explain_all
from genesis.core.call.strides import reshaped
from genesis.core.graph.tensor import Tensor

_ALL = "fcib"


def sizes(args: tuple[Any, ...]) -> tuple[int, ...]:
    """Varargs or one sequence of integers: ``(2, 3)`` or ``((2, 3),)``."""
    if (
        len(args) == 1
        and not isinstance(args[0], int | np.integer)
        and not (isinstance(args[0], Tensor) and not args[0].ndim)
    ):
        if isinstance(args[0], str | bytes) or not hasattr(args[0], "__iter__"):
            raise ArgumentError(message("size", f"sizes must be integers, got {type(args[0]).__name__}"))
        args = tuple(args[0])
    try:
        return tuple([n.__index__() for n in args])
    except AttributeError:
        bad = next(n for n in args if not hasattr(n, "__index__"))
        raise ArgumentError(message("size", f"sizes must be integers, got {type(bad).__name__}")) from None


def _varargs(call: Any, name: str) -> Any:
    """The method form ``x.reshape(2, 3)`` of ``reshape(x, (2, 3))``."""

    def method(self: Tensor, *shape: Any) -> Tensor:
        return call(self, sizes(shape))

    method.__name__, method.__doc__ = name, call.__doc__
    setattr(Tensor, name, method)
    return call


# ---- expand and reshape


def _expand(x: Any, size: tuple[int, ...]) -> Any:
    if not x.ndim and x.dtype.kind != "V":
        out = np.ndarray(size, x.dtype, x, 0, (0,) * len(size))  # broadcast_to costs 2 us more
        out.flags.writeable = False
        return out
    return np.broadcast_to(x, size)


def _expanded(input: Tensor, size: Any) -> tuple[Any, ...]:
    shape = input._array.shape
    size = tuple(size) if size.__class__ is not tuple else size
    if -1 in size or len(size) < len(shape):
        extra = len(size) - len(shape)
        if extra < 0:
            raise ShapeError(
                message("expand", f"{len(size)} sizes for {len(shape)} dimensions", [("input", input._spec())])
            )
        if -1 in size[:extra]:
            raise ShapeError(message("expand", "-1 is not allowed for a new leading dimension"))
        size = tuple(shape[i - extra] if n == -1 else n for i, n in enumerate(size))
    return input, size


def _infer_expand(input: Spec, size: tuple[int, ...]) -> Spec:
    extra = len(size) - len(input.shape)
    for i, n in enumerate(input.shape):
        if n not in (1, size[i + extra]):
            raise ShapeError(
                message(
                    "expand",
                    f"dim {i} has size {n}, it cannot be expanded to {size[i + extra]}",
                    [("input", input)],
                    hint="only dimensions of size 1 can be expanded, repeat copies others",
                )
            )
    return Spec(size, input.dtype, input.device)


def sum_to(g: Tensor, shape: Sequence[int]) -> Tensor:
    """Sum over the axes that broadcasting added or stretched."""
    extra = g.ndim - len(shape)
    dims = [*range(extra), *(i + extra for i, n in enumerate(shape) if n == 1 != g.shape[i + extra])]
    return (g.sum(dims) if dims else g).reshape(shape)


@view(
    {"input": lambda g, input_shape: sum_to(g, input_shape)},
    infer=_infer_expand,
    prepare=_expanded,
    torch_name="Tensor.expand",
    batch=lambda b, x, size: b.run(b.padded(x, True, len(size)), (b.size, *size)),
)
def expand(input: Array, size: Sequence[int]) -> Any:
    """The same elements seen in a larger shape, without copying: dimensions of size 1 are stretched, -1 keeps one.

    Raises:
        RuntimeError: a dimension of another size is to change

    >>> import genesis
    >>> genesis.tensor([[1.], [2.]]).expand(2, 3)
    tensor([[1., 1., 1.],
            [2., 2., 2.]])
    """
    return _expand(input, size)


samples(expand, lambda t: [case(t(3, 1), (2, 3, 4)), case(t(1, 3), (-1, 3)), case(t(), (2, 3)), case(t(0, 1), (0, 4))])

wrong_inputs(
    expand, (lambda t: case(t(2, 3), (4, 3)), RuntimeError, "expand: dim 0 has size 2, it cannot be expanded to 4")
)


_varargs(expand, "expand")


@composite(dtypes=_ALL)
def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """The tensor in a shape it broadcasts to, as a view.

    >>> import genesis
    >>> genesis.broadcast_to(genesis.tensor([1., 2.]), (2, 2))
    tensor([[1., 2.],
            [1., 2.]])
    """
    return expand(input, size)


samples(broadcast_to, lambda t: [case(t(3, 1), (2, 3, 4)), case(t(), (2,))])


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Tensors expanded to their common shape.

    >>> import genesis
    >>> a, b = genesis.broadcast_tensors(genesis.ones(3, 1), genesis.ones(4))
    >>> a.shape, b.shape
    (genesis.Size([3, 4]), genesis.Size([3, 4]))
    """
    shape = broadcast_shapes(*[x.shape for x in tensors])
    return tuple(x if x.shape == shape else expand(x, shape) for x in tensors)


def broadcast_shapes(*shapes: Sequence[int]) -> Any:
    """The shape that shapes broadcast to.

    >>> import genesis
    >>> genesis.broadcast_shapes((3, 1), (4,))
    genesis.Size([3, 4])
    """
    from genesis.core.call.kinds import broadcast
    from genesis.core.graph.tensor import Size

    kind = np.dtype(np.float32)
    return Size(broadcast("broadcast_shapes", [Spec((s,) if isinstance(s, int) else tuple(s), kind) for s in shapes]))


Tensor.expand_as = lambda self, other: expand(self, other._array.shape)


def resolve_shape(name: str, count: int, shape: tuple[int, ...], mine: Any) -> tuple[int, ...]:
    """Fill in the one -1 of a shape."""
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
    if input.size and not np.may_share_memory(out, input):
        raise _needs_copy(shape)
    return out


def _view_strides(input: Spec, shape: Any) -> Any:
    found = reshaped(input.shape, strides_of(input), shape)
    if found is None:
        raise _needs_copy(shape)
    return found


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
    return input.view(dtype)


samples(view_dtype, lambda t: [case(t(2, 4), np.dtype(np.int16))])


def _view(self: Tensor, *shape: Any) -> Tensor:
    if len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        return view_dtype(self, shape[0].np)
    return view_shape(self, sizes(shape))


_view.__doc__ = view_shape.__doc__
_varargs(reshape, "reshape")
Tensor.view = _view
Tensor.view_as = lambda self, other: view_shape(self, other._array.shape)
Tensor.reshape_as = lambda self, other: reshape(self, other._array.shape)


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


# ---- order of dimensions


def _permuted(input: Tensor, dims: Any) -> tuple[Any, ...]:
    found = tuple([normalize_dim("permute", d, input.ndim) for d in dims])
    if sorted(found) != list(range(input.ndim)):
        raise ShapeError(
            message(
                "permute", f"dims {list(dims)} are not an order of {input.ndim} dimensions", [("input", input._spec())]
            )
        )
    return input, found


@view(
    {"input": lambda g, dims: g.permute([dims.index(i) for i in range(len(dims))])},
    prepare=_permuted,
    put=lambda whole, part, dims: part.permute([dims.index(i) for i in range(len(dims))]),
    batch=lambda b, x, dims: b.run(x, (0, *[d + 1 for d in dims])),
    infer=lambda input, dims: Spec(tuple(input.shape[d] for d in dims), input.dtype, input.device),
)
def permute(input: Array, dims: Sequence[int]) -> Any:
    """The dimensions in another order, as a view.

    Raises:
        RuntimeError: ``dims`` does not name each dimension once

    >>> import genesis
    >>> genesis.permute(genesis.zeros(2, 3, 4), (2, 0, 1)).shape
    genesis.Size([4, 2, 3])
    """
    return input.transpose(dims)


samples(permute, lambda t: [case(t(2, 3, 4), (2, 0, 1)), case(t(2, 3), (-1, 0)), case(t(), ()), case(t(0, 2), (1, 0))])

wrong_inputs(
    permute, (lambda t: case(t(2, 3), (0, 0)), RuntimeError, "permute: dims [0, 0] are not an order of 2 dimensions")
)


_varargs(permute, "permute")


def _transposed(input: Tensor, dim0: Any, dim1: Any) -> tuple[Any, ...]:
    return input, normalize_dim("transpose", dim0, input.ndim), normalize_dim("transpose", dim1, input.ndim)


def _swapped(shape: tuple[int, ...], a: int, b: int) -> tuple[int, ...]:
    order = list(shape)
    if order:
        order[a], order[b] = order[b], order[a]
    return tuple(order)


@view(
    {"input": lambda g, dim0, dim1: g.transpose(dim0, dim1)},
    prepare=_transposed,
    put=lambda whole, part, dim0, dim1: part.transpose(dim0, dim1),
    infer=lambda input, dim0, dim1: Spec(_swapped(input.shape, dim0, dim1), input.dtype, input.device),
)
def transpose(input: Array, dim0: int, dim1: int) -> Any:
    """Two dimensions exchanged, as a view.

    >>> import genesis
    >>> genesis.transpose(genesis.tensor([[1., 2.], [3., 4.]]), 0, 1)
    tensor([[1., 3.],
            [2., 4.]])
    """
    return input.swapaxes(dim0, dim1) if input.ndim else input[...]


samples(transpose, lambda t: [case(t(2, 3, 4), 0, 2), case(t(2, 3), -1, -2), case(t(), 0, 0), case(t(0, 2), 0, 1)])

wrong_inputs(transpose, (lambda t: case(t(2, 3), 0, 2), IndexError, "transpose: dim 2 is out of range"))


def _transpose(self: Tensor, *dims: Any, dim0: Any = None, dim1: Any = None) -> Tensor:
    """Two integers exchange these dimensions, one sequence reorders all, nothing reverses the order."""
    if dim0 is not None:
        dims = (dim0, dim1)
    if len(dims) == 2:
        return transpose(self, *dims)
    if len(dims) == 1 and not isinstance(dims[0], int):
        return permute(self, dims[0])
    if not dims:
        return permute(self, tuple(reversed(range(self.ndim))))
    raise ArgumentError(message("transpose", f"expected two dims, one sequence or nothing, got {len(dims)} arguments"))


Tensor.transpose = _transpose


@composite(dtypes=_ALL)
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix, as a view; vectors as they are.

    Raises:
        RuntimeError: more than two dimensions

    >>> import genesis
    >>> genesis.t(genesis.zeros(2, 3)).shape
    genesis.Size([3, 2])
    """
    if input.ndim > 2:
        raise ShapeError(
            message("t", f"expected at most 2 dimensions, got {input.ndim}", hint="transpose(dim0, dim1) or mT")
        )
    return transpose(input, 0, 1) if input.ndim == 2 else reshape(input, input.shape)


samples(t, lambda t: [case(t(2, 3)), case(t(3)), case(t())])

wrong_inputs(t, (lambda t: case(t(2, 3, 4)), RuntimeError, "t: expected at most 2 dimensions, got 3"))


def _matrix_transpose(self: Tensor) -> Tensor:
    if self.ndim < 2:
        raise ShapeError(message("mT", f"needs at least 2-D, got {self.ndim} dimensions"))
    return transpose(self, -2, -1)


Tensor.T = property(lambda self: permute(self, tuple(reversed(range(self.ndim)))))
Tensor.mT = property(_matrix_transpose)
Tensor.H = property(lambda self: t(self).conj())
Tensor.mH = property(lambda self: _matrix_transpose(self).conj())
swapaxes = alias("swapaxes", transpose)
swapdims = alias("swapdims", transpose)


@composite(dtypes=_ALL)
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Dimensions moved to other places, the rest in order.

    >>> import genesis
    >>> genesis.movedim(genesis.zeros(2, 3, 4), 0, -1).shape
    genesis.Size([3, 4, 2])
    """
    src = normalize_dims("movedim", source, input.ndim)
    dst = normalize_dims("movedim", destination, input.ndim)
    if len(src) != len(dst):
        raise ShapeError(message("movedim", f"{len(src)} sources and {len(dst)} destinations"))
    rest = iter([d for d in range(input.ndim) if d not in src])
    order = [src[dst.index(i)] if i in dst else next(rest) for i in range(input.ndim)]
    return permute(input, order)


samples(movedim, lambda t: [case(t(2, 3, 4), 0, -1), case(t(2, 3, 4), (0, 1), (1, 2))])


moveaxis = alias("moveaxis", movedim)

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
    return reshape(input, tuple(n for i, n in enumerate(shape) if n != 1 or i not in dims))


samples(
    squeeze, lambda t: [case(t(2, 1, 3, 1)), case(t(2, 1), 1), case(t(1, 2, 1), (0, 2)), case(t(2, 3), 0), case(t())]
)


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

explain_all(globals(), "broadcast_tensors", "broadcast_shapes", "atleast_1d", "atleast_2d", "atleast_3d")

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
    "flatten",
    "moveaxis",
    "movedim",
    "permute",
    "ravel",
    "reshape",
    "squeeze",
    "swapaxes",
    "swapdims",
    "t",
    "transpose",
    "unflatten",
    "unsqueeze",
]
