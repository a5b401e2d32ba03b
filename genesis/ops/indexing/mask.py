"""Masks, triangles and diagonals."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import placed
from genesis.arrays.protocol import Array, Virtual
from genesis.arrays.spec import Spec
from genesis.base.errors import ArgumentError, ShapeError, UnsupportedError, message
from genesis.base.layouts import contiguous_format
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.strides import packed
from genesis.core.call.kinds import as_it_is, case, composite, fails, normalize_dim, primitive, view
from genesis.core.call.creating import creates
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor, wrap
from genesis.ops.shapes.expand import never_negative
from genesis.core.graph.tracing import tracer
from genesis.ops.pointwise.choice import where
from genesis.ops.indexing.index import put_by
from genesis.ops.shapes.expand import broadcast_tensors

_ALL = "fcib"

# ---- masks


def _mask(name: str, mask: Any) -> Tensor:
    if not isinstance(mask, Tensor) or mask._array.dtype.kind != "b":
        raise ArgumentError(
            message(
                name,
                "the mask must be a bool tensor, got "
                f"{mask.dtype if isinstance(mask, Tensor) else type(mask).__name__}",
            )
        )
    return mask


@composite(dtypes=_ALL, inplace=True, torch_name="Tensor.masked_fill")
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """``input`` with one value wherever the mask is True.

    Raises:
        TypeError: the mask is not bool

    >>> import genesis
    >>> genesis.masked_fill(genesis.ones(2), genesis.tensor([True, False]), 0.0)
    tensor([0., 1.])
    """
    if isinstance(value, Tensor):
        if value.ndim:
            raise ShapeError(message("masked_fill", f"the value must be 0-d, it has {value.ndim} dimensions"))
        value = value.to(input._array.dtype)
    elif input._array.dtype.kind != "f":
        value = input.new_full((), value)
    out = where(_mask("masked_fill", mask), value, input)
    plain = out._array.__class__ is np.ndarray and out._array.flags.c_contiguous
    return out if plain else out.contiguous()  # type: ignore[no-any-return]


samples(masked_fill, lambda t: [case(t(2, 3), t.bool(3), 0.5), case(t(2, 3), t.bool(2, 1), t())])

wrong_inputs(masked_fill, (lambda t: case(t(2), t(2), 0.0), TypeError, "masked_fill: the mask must be a bool tensor"))


@composite(dtypes=_ALL, out=True)
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask is True, in one dimension.

    >>> import genesis
    >>> genesis.masked_select(genesis.tensor([1., 2.]), genesis.tensor([False, True]))
    tensor([2.])
    """
    x, m = broadcast_tensors(input, _mask("masked_select", mask))
    return x[m]


samples(masked_select, lambda t: [case(t(2, 3), t.bool(2, 3)), case(t(2, 3), t.bool(3))])


@composite(dtypes=_ALL, inplace=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """``input`` with the elements where the mask is True replaced, in order, by those of ``source``.

    >>> import genesis
    >>> genesis.masked_scatter(genesis.zeros(3), genesis.tensor([True, False, True]), genesis.tensor([5., 6.]))
    tensor([5., 0., 6.])
    """
    input, m = broadcast_tensors(input, _mask("masked_scatter", mask))
    # elements that are not known, or not here; and complex ones, for the bits to be the same
    if not isinstance(m._array, np.ndarray) or input._array.dtype.kind == "c":
        order = m.reshape(-1).cumsum(0) - 1
        return where(m, source.reshape(-1)[where(m.reshape(-1), order, 0)].reshape(m.shape), input)
    count = int(m.sum())
    if source.numel() < count:
        raise ShapeError(message("masked_scatter", f"the mask names {count} elements, source has {source.numel()}"))
    out = input.clone(memory_format=contiguous_format)
    out[m] = source.reshape(-1)[:count]
    return out


samples(masked_scatter, lambda t: [case(t(2, 3), t.bool(2, 3), t(6)), case(t(3), t.bool(2, 3), t(3, 3))])


@composite(dtypes=_ALL, out=True)
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Indices of the elements that are not zero: a row each, or with ``as_tuple`` a tensor for each dimension.

    >>> import genesis
    >>> genesis.nonzero(genesis.tensor([0., 3.]))
    tensor([[1]])
    """
    if isinstance(input._array, Spec):
        raise UnsupportedError(message("nonzero", "the shape of the result depends on data, a meta tensor has no data"))
    if isinstance(input._array, Virtual) or tracer.get() is not None:
        raise UnsupportedError(
            message("nonzero", "the shape of the result depends on values, which this transform does not know",
                    operands=[("input", input._spec())], hint="use genesis.where and masks of the full shape")
        )  # fmt: skip
    indices = np.nonzero(np.atleast_1d(input.detach()._on_host()))
    if as_tuple:
        return tuple(wrap(placed(i, input.device)) for i in indices)
    return wrap(placed(np.stack(indices, 1) if input.ndim else np.zeros((len(indices[0]), 0), np.int64), input.device))


samples(nonzero, lambda t: [case(t(2, 3))])


argwhere = Tensor.argwhere = nonzero

# ---- triangles and diagonals


def _triangle(name: str, keep: Any) -> Any:
    def meaning(input: Array, diagonal: int = 0) -> Any:
        return packed(keep(input, diagonal))

    meaning.__name__ = name
    side = "Upper" if name == "triu" else "Lower"
    meaning.__doc__ = (
        f"{side} triangle of a matrix (or a batch of them), zeros elsewhere; ``diagonal`` moves its edge.\n\n"
        f">>> import genesis\n>>> genesis.{name}(genesis.ones(2, 2))\n"
        + ("tensor([[1., 1.],\n        [0., 1.]])\n" if name == "triu" else "tensor([[1., 0.],\n        [1., 1.]])\n")
    )
    rule = (lambda g, diagonal: g.triu(diagonal)) if name == "triu" else (lambda g, diagonal: g.tril(diagonal))
    bad = (lambda t: case(t(3)), RuntimeError, f"{name}: needs at least 2-D, got 1 dimensions")

    def prepare(input: Tensor, diagonal: int) -> tuple[Any, ...]:
        if input.ndim < 2:
            raise ShapeError(message(name, f"needs at least 2-D, got {input.ndim} dimensions"))
        return input, int(diagonal)

    return primitive(
        "movement",
        {"input": rule},
        batch=as_it_is,
        infer=lambda input, diagonal: input,
        prepare=prepare,
        dtypes=_ALL,
        inplace=True,
        out=True,
        samples=lambda t: [case(t(3, 4)), case(t(2, 3, 3), 1), case(t(3, 3), -1)],
        fails=fails(bad),
    )(meaning)


_SMALL = 1 << 14  # elements of a matrix whose triangle is kept
_kept_triangle = functools.lru_cache(maxsize=64)(np.tri)


def _below(x: Any, diagonal: int) -> Any:
    """Which elements of the matrices of x are not above a diagonal. Nobody writes to it."""
    rows, columns = x.shape[-2:]
    triangle = _kept_triangle if rows * columns <= _SMALL else np.tri
    return triangle(rows, columns, diagonal, np.bool_)


def _lower(x: Any, diagonal: int) -> Any:
    return np.where(_below(x, diagonal), x, np.zeros(1, x.dtype))


def _upper(x: Any, diagonal: int) -> Any:
    return np.where(_below(x, diagonal - 1), np.zeros(1, x.dtype), x)


tril, triu = _triangle("tril", _lower), _triangle("triu", _upper)


def _diagonal_dims(input: Tensor, offset: int, dim1: int, dim2: int) -> tuple[Any, ...]:
    a, b = (normalize_dim("diagonal", d, input.ndim) if input.ndim > 1 else 0 for d in (dim1, dim2))
    if a == b:
        raise ShapeError(
            message("diagonal", f"needs two different dims, got {dim1} and {dim2}", [("input", input._spec())])
        )
    return input, int(offset), a, b


def _diagonal_spec(input: Spec, offset: int, dim1: int, dim2: int) -> Spec:
    rows, columns = input.shape[dim1] + min(offset, 0), input.shape[dim2] - max(offset, 0)
    rest = [n for i, n in enumerate(input.shape) if i not in (dim1, dim2)]
    return Spec((*rest, max(0, min(rows, columns))), input.dtype, input.device)


def _on_diagonal(g: Tensor, shape: Sequence[int], offset: int, dim1: int, dim2: int) -> Tensor:
    out = g.new_zeros(shape)
    if g.requires_grad:
        return (
            diag_embed(g, offset, dim1, dim2)
            if shape[dim1] == shape[dim2]
            else out + _scattered(g, shape, offset, dim1, dim2)
        )
    diagonal(out, offset, dim1, dim2).copy_(g)
    return out


def _scattered(g: Tensor, shape: Sequence[int], offset: int, dim1: int, dim2: int) -> Tensor:
    out = g.new_zeros(shape) * 1
    diagonal(out, offset, dim1, dim2).copy_(g)
    return out


def put_on_diagonal(whole: Tensor, part: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    order = [*[d for d in range(whole.ndim) if d not in (dim1, dim2)], dim1, dim2]
    positions = np.arange(part.shape[-1])
    key = (Ellipsis, positions + max(-offset, 0), positions + max(offset, 0))
    if order == list(range(whole.ndim)):
        return put_by(whole, part, key)
    return put_by(whole.permute(order), part, key).permute([order.index(d) for d in range(whole.ndim)])


@view(
    {"input": lambda g, input_shape, offset, dim1, dim2: _on_diagonal(g, input_shape, offset, dim1, dim2)},
    infer=_diagonal_spec,
    prepare=_diagonal_dims,
    put=put_on_diagonal,
)
def diagonal(input: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The diagonal of two dimensions, last in the result; a view.

    >>> import genesis
    >>> genesis.diagonal(genesis.tensor([[1., 2.], [3., 4.]]))
    tensor([1., 4.])
    """
    out = np.diagonal(input, offset, dim1, dim2)
    if input.flags.writeable:
        out.flags.writeable = True
    return out


samples(diagonal, lambda t: [case(t(3, 3)), case(t(3, 4), 1), case(t(2, 3, 4), -1, 0, 2)])

wrong_inputs(diagonal, (lambda t: case(t(3)), RuntimeError, "diagonal: needs two different dims"))


_diagonal = diagonal  # `diag` has an argument of this name


@composite(dtypes=_ALL)
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices with the last dimension on their diagonal.

    >>> import genesis
    >>> genesis.diag_embed(genesis.tensor([1., 2.]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    n = input.shape[-1] + abs(offset)
    out = input.new_zeros((*input.shape[:-1], n, n))
    a, b = normalize_dim("diag_embed", dim1, out.ndim), normalize_dim("diag_embed", dim2, out.ndim)
    if (a, b) != (out.ndim - 2, out.ndim - 1):
        out = out.movedim((-2, -1), (a, b))
    diagonal(out, offset, a, b).copy_(input)
    return out


samples(diag_embed, lambda t: [case(t(3)), case(t(2, 3), 1), case(t(2, 3), 0, 0, 2)])


@composite(dtypes=_ALL, out=True)
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix, or the matrix with this diagonal.

    >>> import genesis
    >>> genesis.diag(genesis.tensor([[1., 2.], [3., 4.]]))
    tensor([1., 4.])
    """
    if input.ndim not in (1, 2):
        raise ShapeError(
            message("diag", f"expected 1 or 2 dimensions, got {input.ndim}", hint="diagonal or diag_embed")
        )
    return diag_embed(input, diagonal) if input.ndim == 1 else _diagonal(input, diagonal).clone()


samples(diag, lambda t: [case(t(3)), case(t(3, 4)), case(t(3), 1)])


def _indices(arrays: Any, dtype: Any, device: Any) -> Tensor:
    out = wrap(np.stack(arrays))
    return out if dtype is None and device is None else out.to(dtype=dtype, device=device)


@creates(out=False)
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Row and column indices of a lower triangle.

    >>> import genesis
    >>> genesis.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    never_negative("tril_indices", "sizes", (row, col))
    return _indices(np.tril_indices(row, offset, col), dtype, device)


@creates(out=False)
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Row and column indices of an upper triangle."""
    never_negative("triu_indices", "sizes", (row, col))
    return _indices(np.triu_indices(row, offset, col), dtype, device)


explain_all(globals(), "tril_indices", "triu_indices")

__all__ = [
    "argwhere",
    "diag",
    "diag_embed",
    "diagonal",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "nonzero",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
]
