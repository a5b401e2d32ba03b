"""Functions of sparse matrices, under the names of `genesis.sparse`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.base import layouts
from genesis.base.errors import ArgumentError, ShapeError, message
from genesis.core.call.refusal import explained
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.sequences import arange
from genesis.ops.products.compressed import CompressedTensor, by_layout
from genesis.ops.products.sparse import SparseTensor
from genesis.ops.reductions.search import unique
from genesis.ops.shapes.join import cat, stack


def _sparse(name: str, x: Any) -> SparseTensor:
    if not isinstance(x, SparseTensor):
        raise ArgumentError(message(name, f"expected a sparse tensor, got {type(x).__name__}", hint="x.to_sparse()"))
    return x


def sparse_mm(mat1: Any, mat2: Any, reduce: str | None = None) -> Any:
    """The product of two matrices of which at least one is sparse.

    Args:
        reduce: "sum", or what stands in its place: "mean", "amax" or "amin" of what a row adds up; 0 of nothing

    Raises:
        RuntimeError: shapes that have no product, or an unknown ``reduce``

    >>> import genesis
    >>> genesis.sparse.mm(genesis.eye(2).to_sparse_csr(), genesis.ones(2, 1), "mean")
    tensor([[1.],
            [1.]])
    """
    if reduce in (None, "sum"):
        return mat1 @ mat2
    if reduce not in ("mean", "amax", "amin"):
        raise ShapeError(message("sparse.mm", f'reduce must be "sum", "mean", "amax" or "amin", got {reduce!r}'))
    x = _sparse("sparse.mm", mat1)
    if not isinstance(mat2, Tensor) or x.ndim != 2 or mat2.ndim != 2 or x.shape[1] != mat2.shape[0]:
        raise ShapeError(message("sparse.mm", f"shapes {list(x.shape)} and {list(mat2.shape)} have no product"))
    rows, columns = x._coordinates
    parts = x._values_.unsqueeze(1) * mat2.index_select(0, columns)  # type: ignore[attr-defined]
    out = parts.new_zeros((x.shape[0], mat2.shape[1]))
    index = rows.unsqueeze(1).expand(-1, mat2.shape[1])  # type: ignore[attr-defined]
    return out.scatter_reduce(0, index, parts, reduce, include_self=False)


def sparse_addmm(mat: Tensor, mat1: Any, mat2: Any, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """``beta * mat + alpha * (mat1 @ mat2)`` of a sparse matrix ``mat1``.

    >>> import genesis
    >>> genesis.sparse.addmm(genesis.ones(2, 1), genesis.eye(2).to_sparse(), genesis.ones(2, 1), beta=2.0)
    tensor([[3.],
            [3.]])
    """
    return mat * beta + (mat1 @ mat2) * alpha  # type: ignore[operator, no-any-return]


def sampled_addmm(
    input: SparseTensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0
) -> SparseTensor:
    """``beta * input + alpha * (mat1 @ mat2)``, computed only where the sparse ``input`` has elements.

    Raises:
        RuntimeError: shapes that do not fit

    >>> import genesis
    >>> genesis.sparse.sampled_addmm(genesis.eye(2).to_sparse_csr(), genesis.ones(2, 3), genesis.ones(3, 2)).values()
    tensor([4., 4.])
    """
    x = _sparse("sparse.sampled_addmm", input)
    if x.ndim != 2 or (mat1.shape[0], mat2.shape[-1]) != tuple(x.shape) or mat1.shape[-1] != mat2.shape[0]:
        text = f"shapes {list(x.shape)}, {list(mat1.shape)} and {list(mat2.shape)} do not fit"
        raise ShapeError(message("sparse.sampled_addmm", text))
    rows, columns = x._coordinates
    products = (mat1.index_select(0, rows) * mat2.t().index_select(0, columns)).sum(1)  # type: ignore[attr-defined]
    return x._with(x._values_ * beta + products * alpha)


def sparse_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The softmax along a dimension of the elements that are there; the others count as $-\\infty$.

    >>> import genesis
    >>> genesis.sparse.softmax(genesis.eye(2).to_sparse(), 1).to_dense()
    tensor([[1., 0.],
            [0., 1.]])
    """
    x, shifted, total = _along("sparse.softmax", input, dim, dtype)
    return x._with(shifted.exp() / total)


def sparse_log_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The logarithm of `sparse_softmax`.

    >>> import genesis
    >>> genesis.sparse.log_softmax(genesis.eye(2).to_sparse(), 1).coalesce().values()
    tensor([0., 0.])
    """
    x, shifted, total = _along("sparse.log_softmax", input, dim, dtype)
    return x._with(shifted - total.log())


def _along(name: str, input: SparseTensor, dim: int, dtype: Any) -> tuple[SparseTensor, Any, Any]:
    """In order, the values less the largest of their row, and for each the sum of the exponentials of its row."""
    x = _sparse(name, input)
    if not -x.ndim <= dim < x.ndim:
        raise ShapeError(message(name, f"dim {dim} is out of range for {x.ndim} dimensions"))
    x = x if isinstance(x, CompressedTensor) else x.coalesce()
    values: Any = x._values_ if dtype is None else x._values_.to(dtype)  # type: ignore[attr-defined]
    others = [d for d in range(x.ndim) if d != dim % x.ndim]
    flat = x._coordinates[0] * 0
    for d in others:
        flat = flat * x.shape[d] + x._coordinates[d]
    rows, group = unique(flat, return_inverse=True)
    largest = (
        values.detach().new_zeros(rows.shape).scatter_reduce(0, group, values.detach(), "amax", include_self=False)
    )
    shifted = values - largest[group]
    return x, shifted, values.new_zeros(rows.shape).index_add(0, group, shifted.exp())[group]


def sparse_sum(input: SparseTensor, dim: Any = None, dtype: Any = None) -> Any:
    """The sum of all elements, or along dimensions: sparse while there is a sparse dimension left.

    >>> import genesis
    >>> genesis.sparse.sum(genesis.eye(2).to_sparse(), 0).to_dense()
    tensor([1., 1.])
    """
    return _sparse("sparse.sum", input).sum(dim, dtype)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: Any = None) -> SparseTensor:
    """A sparse matrix with the rows of ``diagonals`` on the diagonals ``offsets``, element j of a row in column j.

    Raises:
        RuntimeError: not one offset for each row, an offset twice, or a shape that is no matrix's

    >>> import genesis
    >>> genesis.sparse.spdiags(genesis.ones(2, 3), genesis.tensor([0, 1]), (3, 3)).to_dense()
    tensor([[1., 1., 0.],
            [0., 1., 1.],
            [0., 0., 1.]])
    """
    name = "sparse.spdiags"
    table: Any = diagonals if diagonals.ndim == 2 else diagonals.unsqueeze(0)  # type: ignore[attr-defined]
    shifts = [int(k) for k in offsets.reshape(-1).tolist()]
    if len(shape) != 2 or len(shifts) != table.shape[0] or len(set(shifts)) < len(shifts):
        text = f"{table.shape[0]} diagonals with offsets {shifts} do not fit shape {list(shape)}"
        raise ShapeError(message(name, text))
    m, n = int(shape[0]), int(shape[1])
    coordinates, values = [], []
    for row, k in zip(table, shifts, strict=True):
        columns = arange(max(k, 0), max(min(n, m + k, row.shape[0]), max(k, 0)), device=table.device)
        coordinates.append(stack([columns - k, columns]))
        values.append(row[columns])
    x = SparseTensor(cat(coordinates, 1), cat(values, 0), (m, n))
    return x if layout in (None, layouts.sparse_coo) else by_layout(x, layout)


SPARSE = {"mm": sparse_mm, "addmm": sparse_addmm, "sampled_addmm": sampled_addmm, "softmax": sparse_softmax,
          "log_softmax": sparse_log_softmax, "sum": sparse_sum, "spdiags": spdiags}  # fmt: skip
SPARSE = {name: explained(call, f"sparse.{name}") for name, call in SPARSE.items()}
