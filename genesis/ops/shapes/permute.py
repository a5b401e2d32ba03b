"""Dimensions in another order, as views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.errors import ArgumentError, ShapeError, message
from genesis.core.call.kinds import alias, case, composite, normalize_dim, normalize_dims, view
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.shapes.expand import varargs
from genesis.ops.shapes.reshape import reshape

_ALL, _INTEGERS = "fcib", {int}
_EVERY = [frozenset(range(n)) for n in range(65)]  # NumPy arrays have at most 64 dimensions


def _permuted(input: Tensor, dims: Any) -> tuple[Any, ...]:
    ndim = input._array.ndim
    if dims.__class__ is tuple and len(dims) == ndim and {*dims} == _EVERY[ndim] and {*map(type, dims)} == _INTEGERS:
        return input, dims
    order = tuple([normalize_dim("permute", d, ndim) for d in dims])
    if sorted(order) != list(range(ndim)):
        raise ShapeError(
            message(
                "permute", f"dims {list(dims)} are not an order of {input.ndim} dimensions", [("input", input._spec())]
            )
        )
    return input, order


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


varargs(permute, "permute", "dims")


def _transposed(input: Tensor, dim0: Any, dim1: Any) -> tuple[Any, ...]:
    ndim = input._array.ndim
    return input, normalize_dim("transpose", dim0, ndim), normalize_dim("transpose", dim1, ndim)


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

__all__ = [
    "moveaxis",
    "movedim",
    "permute",
    "swapaxes",
    "swapdims",
    "t",
    "transpose",
]
