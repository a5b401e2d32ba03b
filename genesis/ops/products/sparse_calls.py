"""Sparse tensors are made, and what functions do with them: ``torch.add(dense, sparse)`` and its like.

An op that meets a sparse tensor fails on its array; then it is asked here what the function of that name is of sparse
tensors, which costs ordinary calls nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from genesis.base import dtypes, layouts
from genesis.base.errors import ArgumentError, ArgumentValueError, ShapeError, message
from genesis.core.call.refusal import ANSWERS, explain_all
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.outside import as_tensor
from genesis.ops.indexing.mask import nonzero
from genesis.ops.products.sparse import SparseTensor
from genesis.ops.products.sparse_parts import KEEP_ZEROS, at_coordinates, no_elements
from genesis.ops.shapes.join import cat, stack


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """A sparse tensor of values at coordinates, a row of ``indices`` for each dimension; those at one coordinate add up.

    Args:
        indices: of the first dimensions; or, without values, the size of a tensor that has no elements, which ``size`` may
            say as well
        values: numbers, or slices of the dimensions that have no coordinates
        size: the shape; the smallest that holds all coordinates for None

    Raises:
        RuntimeError: not one coordinate for each value, or one outside ``size``

    >>> import genesis
    >>> genesis.sparse_coo_tensor([[0, 1], [1, 0]], [3., 4.], (2, 2)).to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    if values is None:
        shape = size if indices is None else indices
        if shape is None or (indices is not None and size is not None):
            raise ArgumentError(message("sparse_coo_tensor", "expected indices and values, or a size alone"))
        made = as_tensor(0.0, dtype=dtype, device=device)
        return SparseTensor(*no_elements(shape, len(shape), made), shape, True).requires_grad_(requires_grad)
    coordinates = as_tensor(indices, device=device).to(dtypes.int64)
    data = as_tensor(values, dtype=dtype, device=device)
    if coordinates.ndim == 1 and not coordinates.numel():
        coordinates = coordinates.reshape(0 if size is None else len(size) - data.ndim + 1, 0)  # type: ignore[attr-defined]
    if coordinates.ndim != 2 or data.ndim < 1 or coordinates.shape[1] != data.shape[0]:
        text = f"indices of shape {list(coordinates.shape)} and values of shape {list(data.shape)} do not fit"
        raise ShapeError(message("sparse_coo_tensor", text, hint="a column of indices for each value"))
    largest = coordinates.amax(1).tolist() if coordinates.numel() else [-1] * coordinates.shape[0]
    inner = list(data.shape[1:])
    shape = [*[n + 1 for n in largest], *inner] if size is None else [int(n) for n in size]
    sparse = len(largest)
    if (
        shape[sparse:] != inner
        or any(a >= n for a, n in zip(largest, shape, strict=False))
        or len(shape) < sparse
        or bool((coordinates < 0).any())
    ):
        raise ShapeError(message("sparse_coo_tensor", f"coordinates up to {largest} do not fit size {shape}"))
    if requires_grad:
        data = data.detach().requires_grad_()
    return SparseTensor(coordinates, data, shape, bool(is_coalesced))


def spmm(input: SparseTensor, mat2: Any) -> Any:
    """The product of a sparse matrix and a dense one; `SparseTensor.mm`.

    >>> import genesis
    >>> genesis.spmm(genesis.eye(2).to_sparse(), genesis.ones(2, 1))
    tensor([[1.],
            [1.]])
    """
    return input @ mat2


def _to_sparse(
    self: Any, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None
) -> Any:
    """The elements that are not zero, at their coordinates; of ``sparse_dim`` dimensions the slices that are not, or in
    another layout.
    """
    if layout not in (None, layouts.sparse_coo):
        return TO_LAYOUT[layout](self, *([] if blocksize is None else [blocksize]))
    n = self.ndim if sparse_dim is None else sparse_dim
    if not 0 < n <= self.ndim and self.ndim:
        raise ArgumentValueError(message("to_sparse", f"sparse_dim must be from 1 to {self.ndim}, got {sparse_dim}"))
    there = self.detach() != 0
    if n < self.ndim:
        there = there.reshape(*self.shape[:n], -1).any(-1)
    coordinates = tuple(nonzero(there, as_tuple=True))
    return SparseTensor(stack(list(coordinates)), self[coordinates], tuple(self.shape), True)


TO_LAYOUT: dict[Any, Callable[..., Any]] = {}  # the compressed ones: `compressed`


# ---- methods of dense tensors


def _refused(name: str) -> Callable[..., Any]:
    def method(self: Any) -> Any:
        raise ShapeError(message(name, f"the tensor has the layout {self.layout}", hint=f"x.to_sparse().{name}()"))

    method.__name__ = method.__qualname__ = name
    method.__doc__ = "Refused: only a sparse tensor has it."
    return method


def _sparse_mask(self: Tensor, mask: SparseTensor) -> SparseTensor:
    """The elements at the coordinates of a sparse tensor.

    >>> import genesis
    >>> genesis.arange(4.).reshape(2, 2).sparse_mask(genesis.eye(2).to_sparse()).values()
    tensor([0., 3.])
    """
    if not isinstance(mask, SparseTensor):
        raise ArgumentError(message("sparse_mask", f"mask must be a sparse tensor, got {type(mask).__name__}"))
    return at_coordinates(self, mask)


def _sparse_dim(self: Tensor) -> int:
    """0: no dimension has coordinates."""
    return 0


def _dense_dim(self: Tensor) -> int:
    """How many dimensions it has: all are dense."""
    return self.ndim


def _sspaddmm(input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """``beta * input + alpha * (mat1 @ mat2)``, sparse, of two sparse matrices and a dense one."""
    return input * beta + (mat1 @ mat2).to_sparse() * alpha


def _smm(self: Any, mat: Any) -> Any:
    """The product of a sparse matrix and a dense one, as a sparse tensor."""
    return (self @ mat).to_sparse()


Tensor.smm, Tensor.sspaddmm = _smm, _sspaddmm
Tensor.to_sparse = Tensor.to_sparse_coo = _to_sparse
Tensor.sparse_mask, Tensor.sparse_dim, Tensor.dense_dim = _sparse_mask, _sparse_dim, _dense_dim
_ONLY_SPARSE = ("coalesce", "indices", "values", "sparse_resize_", "sparse_resize_and_clear_", "resize_as_sparse_")
for _name in _ONLY_SPARSE:
    setattr(Tensor, _name, _refused(_name))


# ---- functions of sparse tensors


def _of_first(name: str) -> Callable[..., Any]:
    def call(input: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(SparseTensor, name)(input, *args, **kwargs) if isinstance(input, SparseTensor) else None

    return call


def _added(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    if isinstance(input, SparseTensor):
        return input.__add__(other, alpha=alpha)
    n, values = other.sparse_dim(), other._values_ * alpha
    kind = dtypes.promote_types(input.dtype, other.dtype)
    total = input.expand(other.shape) if input.ndim < other.ndim else input
    if tuple(total.shape) != tuple(other.shape):
        return total + other.to_dense() * alpha
    if not n:
        return total + values.sum(0)
    return total.to(kind).index_put(tuple(other._coordinates), values.to(kind), accumulate=True)


def _product(input: Any, mat2: Any) -> Any:
    return input @ mat2 if isinstance(input, SparseTensor) else mat2.__rmatmul__(input)


def _added_product(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return input * beta + _product(mat1, mat2) * alpha


def _batches(input: Any, mat2: Any) -> Any:
    return stack([x @ y for x, y in zip(input.unbind(), mat2, strict=True)])


def _joined(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Sparse tensors one after the other along a sparse dimension."""
    first = tensors[0]
    if not all([isinstance(x, SparseTensor) for x in tensors]) or not -first.ndim <= dim < first.sparse_dim():
        raise ShapeError(message("cat", "sparse tensors are joined with sparse ones, along a sparse dimension"))
    dim, start, moved = dim % first.ndim, 0, []
    for x in tensors:
        rows = [row + start if d == dim else row for d, row in enumerate(x._coordinates)]
        moved, start = [*moved, stack(rows)], start + x.shape[dim]
    shape = [start if d == dim else size for d, size in enumerate(first.shape)]
    return SparseTensor(cat(moved, 1), cat([x._values_ for x in tensors], 0), shape)


def _stacked(tensors: Sequence[Any], dim: int = 0) -> Any:
    return _joined([x.unsqueeze(dim) for x in tensors], dim)


def _new(self: Any, *args: Any, device: Any = None) -> SparseTensor:
    """A sparse tensor of this one's kind, of a size or of coordinates and values: what programs call as ``constructor``."""
    coordinates = len(args) in (2, 3) and all([isinstance(x, Tensor) for x in args[:2]])
    if coordinates:
        return sparse_coo_tensor(*args)
    whole = all([isinstance(n, int) for n in args]) or (len(args) == 1 and type(args[0]) is type(self.shape))
    if not whole:
        text = f"expected a size, or indices and values, got {', '.join([type(x).__name__ for x in args])}"
        raise ArgumentError(message("new", text, hint="x.new(indices, values, size)"))
    return self.new_empty(*(args or (0,)), device=device)  # type: ignore[no-any-return]


_SAME = (
    "add", "sub", "mul", "multiply", "div", "divide", "true_divide", "floor_divide", "pow", "neg", "negative", "sum", "norm",
    "any", "index_select", "select", "narrow_copy", "unbind", "unsqueeze", "permute", "transpose", "t", "mm", "mv", "matmul",
    "clone", "detach", "subtract",
)  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {name: _of_first(name) for name in (*_SAME, *KEEP_ZEROS)} | {
    "add": _added,
    "sub": lambda input, other, *, alpha=1: _added(input, other, alpha=-alpha),
    "mul": lambda input, other: input * other if isinstance(input, SparseTensor) else other * input,
    **dict.fromkeys(("mm", "mv", "matmul"), _product),
    "addmm": _added_product,
    "bmm": _batches,
    "cat": _joined,
    "stack": _stacked,
    "is_nonzero": lambda input: bool(input.any()),
}


def _answer(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
    """What a function that has failed is of sparse tensors, if it is anything."""
    known = _FUNCTIONS.get(getattr(function, "__name__", ""))
    values = [*args, *kwargs.values()]
    sparse = any([isinstance(y, SparseTensor) for x in values for y in (x if isinstance(x, list | tuple) else (x,))])
    if known is None or not sparse:
        return None
    result = known(*args, **kwargs)
    return None if result is None else (result,)


ANSWERS.append(_answer)
SparseTensor.new = _new  # type: ignore[method-assign]
explain_all(globals(), "sparse_coo_tensor", "spmm")

__all__ = ["sparse_coo_tensor", "spmm"]
