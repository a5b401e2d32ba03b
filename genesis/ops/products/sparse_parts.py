"""Sparse tensors in place, their sums and their parts: methods of `SparseTensor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.base import dtypes
from genesis.base.errors import ShapeError, UnsupportedError, message
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.create import empty
from genesis.ops.creation.sequences import arange
from genesis.ops.indexing.mask import nonzero
from genesis.ops.products.sparse import SparseTensor
from genesis.ops.reductions.norms import norm
from genesis.ops.shapes.expand import sizes
from genesis.ops.shapes.join import stack


def _add_(self: Any, other: Any, *, alpha: Any = 1) -> SparseTensor:
    """Add another sparse tensor, in place."""
    if not isinstance(other, SparseTensor):
        raise ShapeError(message("add_", "add(sparse, dense) is not supported", hint="add(dense, sparse)"))
    return self._become("add_", self.__add__(other, alpha=alpha))


def _sub_(self: Any, other: Any, *, alpha: Any = 1) -> SparseTensor:
    """Subtract another sparse tensor, in place."""
    return self.add_(other, alpha=-alpha)


def _mul_(self: Any, other: Any) -> SparseTensor:
    """Multiply, in place; by a number the values are."""
    return self._become("mul_", self * other)


def _div_(self: Any, other: Any) -> SparseTensor:
    """Divide by a number, in place."""
    return self._become("div_", self / other)


def _neg_(self: Any) -> SparseTensor:
    """Change the sign, in place."""
    return self._become("neg_", -self)


def _zero_(self: Any) -> SparseTensor:
    """Drop all elements."""
    values = self._values_.detach()[:0]
    return self._become("zero_", SparseTensor(self._coordinates[:, :0], values, self.shape, self._coalesced))


def _copy_(self: Any, src: Any, non_blocking: bool = False) -> SparseTensor:
    """Take the elements of another sparse tensor."""
    if not isinstance(src, SparseTensor):
        raise ShapeError(message("copy_", "a dense tensor cannot be copied into a sparse one", hint="x.to_sparse()"))
    return self._become("copy_", src.to(self.dtype).clone())


def _clamp(self: Any, min: Any = None, max: Any = None) -> SparseTensor:
    """The elements in order, within bounds between which zero lies."""
    if (min is not None and min > 0) or (max is not None and max < 0):
        raise ShapeError(message("clamp", f"zeros would not stay zeros between {min} and {max}", hint="x.to_dense()"))
    return self._of_each(lambda values: values.clamp(min, max))  # type: ignore[no-any-return]


def _clamp_(self: Any, min: Any = None, max: Any = None) -> SparseTensor:
    """Keep the elements within bounds, in place."""
    return self._become("clamp_", self.clamp(min, max))  # type: ignore[no-any-return]


def _sparse_resize_(self: Any, size: Sequence[int], sparse_dim: int, dense_dim: int) -> SparseTensor:
    """Give it another size with room for all its elements, in place."""
    if self._nnz() and (sparse_dim != self.sparse_dim() or dense_dim != self.dense_dim()):
        text = f"it has {self.sparse_dim()} sparse and {self.dense_dim()} dense dimensions, and elements"
        raise ShapeError(message("sparse_resize_", f"{text}; {sparse_dim} and {dense_dim} do not fit"))
    if self._nnz() and any([a < b for a, b in zip(size, self.shape, strict=True)]):
        text = f"{list(self.shape)} cannot shrink to {list(size)} while there are elements"
        raise ShapeError(message("sparse_resize_", text))
    if not self._nnz():
        return self.sparse_resize_and_clear_(size, sparse_dim, dense_dim)
    self._hold(self._coordinates, self._values_, size, self._coalesced)
    return self


def _sparse_resize_and_clear_(self: Any, size: Sequence[int], sparse_dim: int, dense_dim: int) -> SparseTensor:
    """Give it another size, without elements, in place."""
    if len(size) != sparse_dim + dense_dim:
        text = f"{sparse_dim} sparse and {dense_dim} dense dimensions do not make up {list(size)}"
        raise ShapeError(message("sparse_resize_and_clear_", text))
    self._hold(*no_elements(size, sparse_dim, self._values_), size, True)
    return self


def _resize_as_sparse_(self: Any, other: SparseTensor) -> SparseTensor:
    """Give it the size of another sparse tensor, in place."""
    return self.sparse_resize_(other.shape, other.sparse_dim(), other.dense_dim())


def _resize_as_(self: Any, the_template: Any, *, memory_format: Any = None) -> SparseTensor:
    """`resize_as_sparse_`, which sparse tensors know alone."""
    if not isinstance(the_template, SparseTensor):
        raise UnsupportedError(
            message("resize_as_", "the other tensor is dense, this one is sparse", hint="x.to_dense()")
        )
    return self.resize_as_sparse_(the_template)  # type: ignore[no-any-return]


def _resize_(self: Any, *size: Any, memory_format: Any = None) -> SparseTensor:
    """Refused: there is no memory to lay out anew."""
    raise UnsupportedError(message("resize_", "it is not there for sparse tensors", hint="x.sparse_resize_(...)"))


# ---- others of its kind


def _new_zeros(
    self: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> SparseTensor:
    """A sparse tensor without elements."""
    shape = sizes(size)
    values = self._values_.detach().to(dtype=dtype, device=device)
    return SparseTensor(*no_elements(shape, len(shape), values), shape, True).requires_grad_(requires_grad)


def _new_empty(
    self: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> SparseTensor:
    """`new_zeros`: elements that are not there have no memory."""
    return self.new_zeros(*size, dtype=dtype, device=device, requires_grad=requires_grad)  # type: ignore[no-any-return]


def _zeros_like(self: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> SparseTensor:
    """Without elements, with as many sparse dimensions."""
    values = self._values_.detach().to(dtype=dtype, device=device)
    return SparseTensor(*no_elements(self.shape, self.sparse_dim(), values), self.shape, True).requires_grad_(
        requires_grad
    )


# ---- sums and parts


def _sum(self: Any, dim: Any = None, dtype: Any = None) -> Any:
    """The sum of all elements, or along dimensions: dense where no sparse dimension is left."""
    values = self._values_ if dtype is None else self._values_.to(dtype)
    if dim is None:
        return values.sum()
    dims = {d % self.ndim for d in (dim if isinstance(dim, list | tuple) else [dim])}
    n = self.sparse_dim()
    inside = [d - n + 1 for d in dims if d >= n]
    values = values.sum(inside) if inside else values
    left = [d for d in range(n) if d not in dims]
    shape = [size for d, size in enumerate(self.shape) if d not in dims]
    if not left:
        return values.sum(0)
    return SparseTensor(self._coordinates[left], values, shape, self._coalesced and len(left) == n).coalesce()


def _norm(self: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The norm of all elements, those at one coordinate added."""
    if dim is not None:
        return norm(self.to_dense(), p, dim, keepdim)
    return norm(self.coalesce()._values_.reshape(-1), p)


def _any(self: Any) -> Tensor:
    """Whether an element is not zero."""
    return self.coalesce()._values_.any()  # type: ignore[no-any-return]


def _index_select(self: Any, dim: int, index: Tensor) -> SparseTensor:
    """The slices with these numbers."""
    dim, n = dim % self.ndim, self.sparse_dim()
    shape = [index.numel() if d == dim else size for d, size in enumerate(self.shape)]
    if dim >= n:
        values = self._values_.index_select(dim - n + 1, index)
        return SparseTensor(self._coordinates, values, shape, self._coalesced)
    wanted = index.reshape(-1).to(dtypes.int64)  # type: ignore[attr-defined]
    new, old = nonzero(wanted.unsqueeze(1) == self._coordinates[dim].unsqueeze(0), as_tuple=True)
    rows = [new if d == dim else self._coordinates[d][old] for d in range(n)]
    return SparseTensor(stack(rows), self._values_[old], shape)


def _select(self: Any, dim: int, index: int) -> Any:
    """The slice with this number: dense where no sparse dimension is left."""
    dim, n = dim % self.ndim, self.sparse_dim()
    if not -self.shape[dim] <= index < self.shape[dim]:
        raise IndexError(message("select", f"index {index} is out of range for size {self.shape[dim]}"))
    index = index % self.shape[dim]
    shape = [size for d, size in enumerate(self.shape) if d != dim]
    if dim >= n:
        return SparseTensor(self._coordinates, self._values_.select(dim - n + 1, index), shape, self._coalesced)
    kept = nonzero(self._coordinates[dim] == index).reshape(-1)  # type: ignore[attr-defined]
    if n == 1:
        return self._values_[kept].sum(0)
    rows = [d for d in range(n) if d != dim]
    return SparseTensor(self._coordinates[rows][:, kept], self._values_[kept], shape, self._coalesced)


def _narrow_copy(self: Any, dim: int, start: int, length: int) -> SparseTensor:
    """``length`` slices from ``start`` on."""
    return self.index_select(dim, arange(start, start + length))


def _unbind(self: Any, dim: int = 0) -> tuple[Any, ...]:
    """All slices along a dimension."""
    return tuple([self.select(dim, i) for i in range(self.shape[dim])])


def _unsqueeze(self: Any, dim: int) -> SparseTensor:
    """With a dimension of size one."""
    dim, n = dim % (self.ndim + 1), self.sparse_dim()
    shape = [*self.shape[:dim], 1, *self.shape[dim:]]
    if dim > n:
        return SparseTensor(self._coordinates, self._values_.unsqueeze(dim - n + 1), shape, self._coalesced)
    rows = list(self._coordinates)
    rows.insert(dim, arange(0).new_zeros(self._nnz()))  # type: ignore[attr-defined]
    return SparseTensor(stack(rows), self._values_, shape, self._coalesced)


def _getitem(self: Any, index: Any) -> Any:
    keys, x, dim = (index if isinstance(index, tuple) else (index,)), self, 0
    for key in keys:
        if isinstance(key, slice) and key == slice(None):
            dim += 1
        elif isinstance(key, int):
            x = x.select(dim, key)
        else:
            text = f"a sparse tensor is indexed by numbers and :, got {key!r}"
            raise UnsupportedError(message("__getitem__", text, hint="x.to_dense()[...]"))
    return x


def _iterated(self: Any) -> Any:
    return iter(self.unbind())


def _sparse_mask(self: Any, mask: SparseTensor) -> SparseTensor:
    """The elements at the coordinates of another sparse tensor; zeros where there is none."""
    return at_coordinates(self.to_dense(), mask)


def no_elements(size: Sequence[int], sparse_dim: int, values: Any) -> tuple[Tensor, Tensor]:
    """Coordinates and values of a tensor without elements."""
    made = values.new_empty((0, *[int(n) for n in size[sparse_dim:]]))
    return empty(sparse_dim, 0, dtype=dtypes.int64, device=values.device), made


def at_coordinates(x: Tensor, mask: SparseTensor) -> SparseTensor:
    if tuple(x.shape) != tuple(mask.shape):
        text = f"shapes {list(x.shape)} and {list(mask.shape)} differ"
        raise ShapeError(message("sparse_mask", text))
    return mask._with(x[tuple(mask._coordinates)])


_METHODS = (
    _add_, _sub_, _mul_, _div_, _neg_, _zero_, _copy_, _sparse_resize_, _sparse_resize_and_clear_, _resize_as_sparse_,
    _clamp, _clamp_, _sum, _norm, _any, _index_select, _select, _narrow_copy, _unbind, _unsqueeze, _sparse_mask,
    _resize_as_, _resize_, _new_zeros, _new_empty,
)  # fmt: skip
for _method in _METHODS:
    _method.__name__ = _method.__qualname__ = _method.__name__[1:]
    setattr(SparseTensor, _method.__name__, _method)
SparseTensor._zeros_like = _zeros_like  # type: ignore[attr-defined]
SparseTensor.__getitem__, SparseTensor.__iter__ = _getitem, _iterated  # type: ignore[method-assign, assignment]

# functions that keep zeros: of the elements alone
KEEP_ZEROS = (
    "abs", "absolute", "asin", "asinh", "atan", "atanh", "arcsin", "arcsinh", "arctan", "arctanh", "ceil", "deg2rad",
    "erf", "erfinv", "expm1", "floor", "frac", "isinf", "isnan", "log1p", "nan_to_num", "rad2deg", "relu", "round", "sgn",
    "sign", "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
)  # fmt: skip


def _keeping_zeros(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> SparseTensor:
        return self._of_each(lambda values: getattr(values, name)(*args, **kwargs))  # type: ignore[no-any-return]

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`{name}` of the elements in order."
    return method


def _keeping_zeros_written(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> SparseTensor:
        return self._become(name, getattr(self, name[:-1])(*args, **kwargs))  # type: ignore[no-any-return]

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"In-place form of `{name[:-1]}`."
    return method


for _name in KEEP_ZEROS:
    setattr(SparseTensor, _name, _keeping_zeros(_name))
    setattr(SparseTensor, f"{_name}_", _keeping_zeros_written(f"{_name}_"))
SparseTensor.__abs__ = SparseTensor.abs  # type: ignore[attr-defined]
