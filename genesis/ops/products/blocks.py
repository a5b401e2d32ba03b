"""Sparse matrices by rows or columns of blocks (BSR, BSC): as `CompressedTensor`, with small matrices as values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.base import dtypes, layouts
from genesis.base.errors import ArgumentValueError, ShapeError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.create import zeros
from genesis.ops.creation.outside import as_tensor
from genesis.ops.creation.sequences import arange
from genesis.ops.indexing.mask import nonzero
from genesis.ops.products.compressed import CompressedTensor, sparse_compressed_tensor
from genesis.ops.products.sparse import SparseTensor
from genesis.ops.products.sparse_calls import TO_LAYOUT
from genesis.ops.shapes.join import stack

_ROWS = layouts.sparse_bsr


class BlockTensor(SparseTensor):
    """A sparse matrix of blocks by rows, or by columns; made by `sparse_bsr_tensor` and ``x.to_sparse_bsr(blocksize)``.

    >>> import genesis
    >>> x = genesis.eye(4).to_sparse_bsr((2, 2))
    >>> x.crow_indices(), x.col_indices(), x.values().shape
    (tensor([0, 1, 2]), tensor([0, 1]), genesis.Size([2, 2, 2]))
    """

    __slots__ = ("layout",)
    is_sparse = is_sparse_csr = False

    def __init__(self, indices: Tensor, values: Tensor, size: Sequence[int], layout: layouts.layout = _ROWS) -> None:
        super().__init__(indices, values, size, True)
        self.layout = layout  # type: ignore[misc]

    def sparse_dim(self) -> int:
        """2: rows and columns."""
        return 2

    def dense_dim(self) -> int:
        """0: the elements of blocks are numbers."""
        return 0

    @property
    def blocksize(self) -> tuple[int, int]:
        return int(self._values_.shape[1]), int(self._values_.shape[2])

    def _with(self, values: Any) -> BlockTensor:
        return BlockTensor(self._coordinates, values, self.shape, self.layout)

    def _counted(self, name: str, dim: int) -> Tensor:
        self._expect(name, dim)
        counts = zeros(self.shape[dim] // self.blocksize[dim] + 1, dtype=dtypes.int64, device=self.device)
        ones = counts.new_ones(self._nnz())  # type: ignore[attr-defined]
        return counts.index_add(0, self._coordinates[dim] + 1, ones).cumsum(0)  # type: ignore[attr-defined, no-any-return]

    def _expect(self, name: str, dim: int) -> None:
        if (self.layout is _ROWS) != (dim == 0):
            raise ShapeError(message(name, f"the tensor has the layout {self.layout}"))

    def crow_indices(self) -> Tensor:
        """For each row of blocks how many there are before it, and at last how many there are."""
        return self._counted("crow_indices", 0)

    def ccol_indices(self) -> Tensor:
        """`crow_indices` of columns."""
        return self._counted("ccol_indices", 1)

    def col_indices(self) -> Tensor:
        """The column of each block."""
        self._expect("col_indices", 0)
        return self._coordinates[1]

    def row_indices(self) -> Tensor:
        """The row of each block."""
        self._expect("row_indices", 1)
        return self._coordinates[0]

    def indices(self) -> Tensor:
        """Refused: blocks have other indices.

        Raises:
            RuntimeError: always
        """
        raise ShapeError(message("indices", f"the tensor has the layout {self.layout}", hint="x.to_sparse()"))

    def coalesce(self) -> SparseTensor:
        """Refused, as of PyTorch's: no block is there twice."""
        raise ShapeError(message("coalesce", f"the tensor has the layout {self.layout}", hint="x.to_sparse()"))

    def to_sparse(self, *args: Any, layout: Any = None, blocksize: Any = None, dense_dim: Any = None) -> Any:
        """In coordinates, or in another layout."""
        if layout is self.layout and blocksize in (None, self.blocksize):
            return self
        x = self._in_coordinates()
        return x if layout in (None, layouts.sparse_coo) else TO_LAYOUT[layout](x, *([blocksize] if blocksize else []))

    to_sparse_coo = to_sparse

    def _in_coordinates(self) -> SparseTensor:
        (height, width), values = self.blocksize, self._values_
        inner = stack([arange(height).repeat_interleave(width), arange(width).repeat(height)])  # type: ignore[attr-defined]
        scale = as_tensor([[height], [width]])
        flat = (self._coordinates * scale).unsqueeze(2) + inner.unsqueeze(1)  # type: ignore[operator, attr-defined]
        return SparseTensor(flat.reshape(2, -1), values.reshape(-1), self.shape).coalesce()

    def _again(self, x: Any) -> Any:
        return blocked(x, self.blocksize, self.layout) if isinstance(x, SparseTensor) else x

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """The matrix with its zeros."""
        return self._in_coordinates().to_dense(dtype)

    def clone(self, *, memory_format: Any = None) -> BlockTensor:
        """A copy."""
        return BlockTensor(self._coordinates.clone(), self._values_.clone(), self.shape, self.layout)  # type: ignore[attr-defined]

    def __reduce__(self) -> Any:
        return BlockTensor, (self._coordinates, self._values_, tuple(self.shape), self.layout)

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Rows and columns exchanged: what was by rows is by columns."""
        if dim0 % 2 == dim1 % 2:
            return self
        turned = layouts.sparse_bsc if self.layout is _ROWS else _ROWS
        return BlockTensor(self._coordinates.flip(0), self._values_.mT, self.shape[::-1], turned)

    def mm(self, mat2: Any) -> Any:
        """The product with a dense matrix or vector; of two sparse ones, in this one's layout."""
        given = mat2.to_sparse() if isinstance(mat2, SparseTensor) else mat2
        return self._again(self._in_coordinates().mm(given))

    matmul = __matmul__ = mv = mm

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, Tensor) or not other.ndim:
            return self._with(self._values_ * other)
        return self._again(self._in_coordinates() * (other.to_sparse() if isinstance(other, SparseTensor) else other))

    __rmul__ = mul = multiply = __mul__

    def __add__(self, other: Any, *, alpha: Any = 1) -> Any:
        given = other.to_sparse() if isinstance(other, SparseTensor) else other
        return self._again(self._in_coordinates().__add__(given, alpha=alpha))

    add = __add__

    def _of_each(self, f: Any) -> Any:
        return self._with(f(self._values_))

    def __repr__(self) -> str:
        ends, others = ("crow", "col") if self.layout is _ROWS else ("ccol", "row")
        return (
            f"tensor({ends}_indices={getattr(self, f'{ends}_indices')()!r},\n       {others}_indices="
            f"{getattr(self, f'{others}_indices')()!r},\n       values={self._values_!r}, size={tuple(self.shape)}, "
            f"nnz={self._nnz()}, layout={self.layout})"
        )


def blocked(x: Any, blocksize: Any, layout: layouts.layout) -> BlockTensor:
    """A matrix in blocks: those in which an element is."""
    height, width = (blocksize, blocksize) if isinstance(blocksize, int) else blocksize
    if x.ndim != 2 or x.shape[0] % height or x.shape[1] % width:
        text = f"blocks of {[height, width]} do not divide a tensor of shape {list(x.shape)}"
        raise ArgumentValueError(message(f"to_{layout.name}", text))
    rows, columns = x.shape[0] // height, x.shape[1] // width
    sparse = x.to_sparse()
    block = sparse._coordinates // as_tensor([[height], [width]])  # type: ignore[operator]
    there = zeros(rows, columns, dtype=dtypes.bool)
    there[tuple(block)] = True  # type: ignore[index]
    if layout is _ROWS:
        at = nonzero(there).t()  # type: ignore[attr-defined]
    else:
        at = nonzero(there.t()).t().flip(0)  # type: ignore[attr-defined]
    dense = sparse.to_dense().reshape(rows, height, columns, width).permute(0, 2, 1, 3)
    return BlockTensor(at, dense[tuple(at)], tuple(x.shape), layout)


def _of_parts(
    name: str, layout: layouts.layout, ends: Any, others: Any, values: Any, size: Any, options: Any
) -> BlockTensor:
    """Check what a matrix of blocks is made of, and make it."""
    data = as_tensor(values, dtype=options["dtype"], device=options["device"])
    if data.ndim != 3:
        raise ShapeError(message(name, f"values are blocks (n, height, width), got shape {list(data.shape)}"))
    height, width = int(data.shape[1]), int(data.shape[2])
    if size is not None and (len(size) != 2 or size[0] % height or size[1] % width):
        raise ShapeError(message(name, f"blocks of {[height, width]} do not divide size {list(size)}"))
    inner = layouts.sparse_csr if layout is _ROWS else layouts.sparse_csc
    parts = None if size is None else (size[0] // height, size[1] // width)
    numbers = arange(data.shape[0])  # where the blocks are, as a matrix of their numbers
    numbered = sparse_compressed_tensor(ends, others, numbers, parts, layout=inner)
    shape = (numbered.shape[0] * height, numbered.shape[1] * width)
    if options["requires_grad"]:
        data = data.detach().requires_grad_()
    return BlockTensor(numbered._coordinates, data, shape, layout)


def sparse_bsr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> BlockTensor:
    """A sparse matrix by rows of blocks: `sparse_csr_tensor` with a small matrix for each value.

    Raises:
        RuntimeError: indices that say no matrix, or blocks that do not divide ``size``

    >>> import genesis
    >>> genesis.sparse_bsr_tensor([0, 1], [1], [[[1., 2.]]], (1, 4)).to_dense()
    tensor([[0., 0., 1., 2.]])
    """
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _of_parts("sparse_bsr_tensor", _ROWS, crow_indices, col_indices, values, size, options)


def sparse_bsc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> BlockTensor:
    """`sparse_bsr_tensor` by columns.

    >>> import genesis
    >>> genesis.sparse_bsc_tensor([0, 0, 1], [0], [[[1., 2.]]], (1, 4)).to_dense()
    tensor([[0., 0., 1., 2.]])
    """
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _of_parts("sparse_bsc_tensor", layouts.sparse_bsc, ccol_indices, row_indices, values, size, options)


def _to_bsr(self: Any, blocksize: Any, dense_dim: int | None = None) -> BlockTensor:
    """The matrix by rows of blocks of this size."""
    return blocked(self, blocksize, _ROWS)


def _to_bsc(self: Any, blocksize: Any, dense_dim: int | None = None) -> BlockTensor:
    """The matrix by columns of blocks of this size."""
    return blocked(self, blocksize, layouts.sparse_bsc)


TO_LAYOUT.update({_ROWS: _to_bsr, layouts.sparse_bsc: _to_bsc})
for _kind in (Tensor, SparseTensor, CompressedTensor):
    _kind.to_sparse_bsr, _kind.to_sparse_bsc = _to_bsr, _to_bsc  # type: ignore[attr-defined]
explain_all(globals(), "sparse_bsr_tensor", "sparse_bsc_tensor")

__all__ = ["BlockTensor", "sparse_bsc_tensor", "sparse_bsr_tensor"]
