"""Sparse matrices by rows or by columns (CSR, CSC).

What is computed is computed on coordinates, as of every `SparseTensor`; the number of elements of each row, which
``crow_indices`` adds up, stands in the place of their first coordinate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.base import dtypes, layouts
from genesis.base.errors import ShapeError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.create import zeros
from genesis.ops.creation.outside import as_tensor
from genesis.ops.creation.sequences import arange
from genesis.ops.products.sparse import SparseTensor
from genesis.ops.products.sparse_calls import TO_LAYOUT
from genesis.ops.shapes.join import stack
from genesis.ops.shapes.repeat import repeat_interleave


class CompressedTensor(SparseTensor):
    """A sparse matrix by rows, or with ``layout=genesis.sparse_csc`` by columns; made by `sparse_csr_tensor` and
    ``x.to_sparse_csr()``.

    >>> import genesis
    >>> x = genesis.tensor([[0., 5.], [7., 0.]]).to_sparse_csr()
    >>> x.crow_indices(), x.col_indices(), x.values()
    (tensor([0, 1, 2]), tensor([1, 0]), tensor([5., 7.]))
    """

    __slots__ = ("layout",)
    is_sparse = False
    is_sparse_csr = property(lambda self: self.layout is layouts.sparse_csr)

    def __init__(
        self, indices: Tensor, values: Tensor, size: Sequence[int], layout: layouts.layout = layouts.sparse_csr
    ) -> None:
        super().__init__(indices, values, size, True)
        self.layout = layout  # type: ignore[misc]

    def _with(self, values: Tensor) -> CompressedTensor:
        return CompressedTensor(self._coordinates, values, self.shape, self.layout)

    def _compressed(self, name: str, dim: int, plain: bool) -> Tensor:
        """The ends of the rows (0) or columns (1), or as ``plain`` indices the coordinates of the elements."""
        if (self.layout is layouts.sparse_csr) != ((dim == 0) != plain):
            raise ShapeError(message(name, f"the tensor has the layout {self.layout}"))
        if plain:
            return self._coordinates[dim]
        counts = zeros(self.shape[dim] + 1, dtype=dtypes.int64, device=self.device)
        ones = counts.new_ones(self._nnz())  # type: ignore[attr-defined]
        return counts.index_add(0, self._coordinates[dim] + 1, ones).cumsum(0)  # type: ignore[attr-defined, no-any-return]

    def crow_indices(self) -> Tensor:
        """For each row how many elements there are before it, and at last how many there are."""
        return self._compressed("crow_indices", 0, False)

    def col_indices(self) -> Tensor:
        """The column of each element."""
        return self._compressed("col_indices", 1, True)

    def ccol_indices(self) -> Tensor:
        """`crow_indices` of a matrix by columns."""
        return self._compressed("ccol_indices", 1, False)

    def row_indices(self) -> Tensor:
        """The row of each element of a matrix by columns."""
        return self._compressed("row_indices", 0, True)

    def indices(self) -> Tensor:
        """Refused: a matrix by rows has other indices.

        Raises:
            RuntimeError: always
        """
        raise ShapeError(message("indices", f"the tensor has the layout {self.layout}", hint="x.to_sparse_coo()"))

    def coalesce(self) -> SparseTensor:
        """Refused, as of PyTorch's: no element is there twice."""
        raise ShapeError(message("coalesce", f"the tensor has the layout {self.layout}", hint="x.to_sparse_coo()"))

    def to_sparse(self, *args: Any, layout: Any = None, blocksize: Any = None, **kwargs: Any) -> SparseTensor:
        """In coordinates, or in another layout."""
        if layout not in (None, layouts.sparse_coo):
            return TO_LAYOUT[layout](self, *([] if blocksize is None else [blocksize]))  # type: ignore[no-any-return]
        return SparseTensor(self._coordinates, self._values_, self.shape, self.layout is layouts.sparse_csr)

    to_sparse_coo = to_sparse

    def clone(self) -> CompressedTensor:
        """A copy."""
        return CompressedTensor(self._coordinates.clone(), self._values_.clone(), self.shape, self.layout)  # type: ignore[attr-defined]

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Rows and columns exchanged: what was by rows is by columns."""
        if dim0 % 2 == dim1 % 2:
            return self
        turned = layouts.sparse_csc if self.layout is layouts.sparse_csr else layouts.sparse_csr
        return CompressedTensor(self._coordinates.flip(0), self._values_, self.shape[::-1], turned)

    def mm(self, mat2: Any) -> Any:
        """The product with a dense matrix or vector; of two sparse ones, in this one's layout."""
        product = self.to_sparse().mm(mat2)
        return by_layout(product, self.layout) if isinstance(product, SparseTensor) else product

    matmul = __matmul__ = mm

    def __mul__(self, other: Any) -> SparseTensor:
        product = self.to_sparse() * (other.to_dense() if isinstance(other, SparseTensor) else other)
        return by_layout(product, self.layout)

    __rmul__ = mul = multiply = __mul__

    def __add__(self, other: Any, *, alpha: Any = 1) -> Any:
        given = other.to_sparse() if isinstance(other, SparseTensor) else other
        total = self.to_sparse().__add__(given, alpha=alpha)
        return by_layout(total, self.layout) if isinstance(total, SparseTensor) else total

    add = __add__

    def __repr__(self) -> str:
        csr = self.layout is layouts.sparse_csr
        ends, others = ("crow", "col") if csr else ("ccol", "row")
        return (
            f"tensor({ends}_indices={getattr(self, f'{ends}_indices')()!r},\n       {others}_indices="
            f"{getattr(self, f'{others}_indices')()!r},\n       values={self._values_!r}, size={tuple(self.shape)}, "
            f"nnz={self._nnz()}, layout={self.layout})"
        )


def by_layout(x: SparseTensor, layout: layouts.layout) -> CompressedTensor:
    """The same matrix by rows or columns."""
    if isinstance(x, CompressedTensor) and x.layout is layout:
        return x
    if x.ndim != 2:
        name = f"to_{layout.name}"
        raise ShapeError(message(name, f"a matrix is needed, the tensor has {x.ndim} dimensions"))
    if layout is layouts.sparse_csr:
        x = SparseTensor(x._coordinates, x._values_, x.shape, x.is_coalesced() and not isinstance(x, CompressedTensor))
        x = x.coalesce()
        return CompressedTensor(x._coordinates, x._values_, x.shape)
    turned = SparseTensor(x._coordinates.flip(0), x._values_, x.shape[::-1]).coalesce()
    return CompressedTensor(turned._coordinates.flip(0), turned._values_, x.shape, layout)


def _compressed_tensor(
    name: str, layout: layouts.layout, ends: Any, others: Any, values: Any, size: Any, options: Any
) -> CompressedTensor:
    """Check what a matrix by rows (or columns) is made of, and make it."""
    words = ("rows", "columns") if layout is layouts.sparse_csr else ("columns", "rows")
    device = options["device"]
    starts, numbers = (as_tensor(x, device=device).to(dtypes.int64) for x in (ends, others))
    data = as_tensor(values, dtype=options["dtype"], device=device)
    if starts.ndim != 1 or not starts.numel() or numbers.ndim != 1 or data.shape != numbers.shape:
        text = f"ends of {words[0]}, their {words[1]} and values are vectors, the last two of one size"
        shapes = ", ".join(str(list(x.shape)) for x in (starts, numbers, data))
        raise ShapeError(message(name, f"{text}; got shapes {shapes}"))
    counts = starts.diff()  # type: ignore[attr-defined]
    if int(starts[0]) or bool((counts < 0).any()) or int(starts[-1]) != numbers.numel():
        text = f"the ends of {words[0]} must grow from 0 to {numbers.numel()}, the number of values"
        raise ShapeError(message(name, f"{text}, got {starts.tolist()}"))
    count, most = starts.numel() - 1, int(numbers.max()) if numbers.numel() else -1
    shape = [count, most + 1] if layout is layouts.sparse_csr else [most + 1, count]
    if size is not None:
        shape = [int(n) for n in size]
    across = shape[1 if layout is layouts.sparse_csr else 0] if len(shape) == 2 else -1
    if len(shape) != 2 or shape[words[0] == "columns"] != count or most >= across or bool((numbers < 0).any()):
        raise ShapeError(message(name, f"{count} {words[0]} with {words[1]} up to {most} do not fit size {shape}"))
    first = repeat_interleave(arange(count, device=data.device), counts)
    flat = first * across + numbers
    if bool((flat.diff() <= 0).any()):  # type: ignore[attr-defined]
        raise ShapeError(message(name, f"the {words[1]} of each of the {words[0]} must grow, got {numbers.tolist()}"))
    if options["requires_grad"]:
        data = data.detach().requires_grad_()
    pair = [first, numbers] if layout is layouts.sparse_csr else [numbers, first]
    return CompressedTensor(stack(pair), data, shape, layout)


def sparse_csr_tensor(
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
) -> CompressedTensor:
    """A sparse matrix by rows: row i has the values from ``crow_indices[i]`` to ``crow_indices[i + 1]``.

    Args:
        col_indices: the column of each value, growing in each row
        size: the shape; as many columns as needed for None

    Raises:
        RuntimeError: indices that say no matrix

    >>> import genesis
    >>> genesis.sparse_csr_tensor([0, 2, 2, 3], [1, 3, 0], [5., 3., 2.], (3, 4)).to_dense()
    tensor([[0., 5., 0., 3.],
            [0., 0., 0., 0.],
            [2., 0., 0., 0.]])
    """
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _compressed_tensor("sparse_csr_tensor", layouts.sparse_csr, crow_indices, col_indices, values, size, options)


def sparse_csc_tensor(
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
) -> CompressedTensor:
    """`sparse_csr_tensor` by columns.

    >>> import genesis
    >>> genesis.sparse_csc_tensor([0, 1, 2], [1, 0], [5., 3.]).to_dense()
    tensor([[0., 3.],
            [5., 0.]])
    """
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _compressed_tensor("sparse_csc_tensor", layouts.sparse_csc, ccol_indices, row_indices, values, size, options)


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> CompressedTensor:
    """`sparse_csr_tensor` or `sparse_csc_tensor`, as the layout says.

    Raises:
        RuntimeError: another layout

    >>> import genesis
    >>> genesis.sparse_compressed_tensor([0, 1], [0], [5.], layout=genesis.sparse_csr).to_dense()
    tensor([[5.]])
    """
    if layout not in (layouts.sparse_csr, layouts.sparse_csc):
        text = f"the layout must be sparse_csr or sparse_csc, got {layout}"
        raise ShapeError(message("sparse_compressed_tensor", text))
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _compressed_tensor(
        "sparse_compressed_tensor", layout, compressed_indices, plain_indices, values, size, options
    )


def _to_csr(self: Any, dense_dim: int | None = None) -> CompressedTensor:
    """The matrix by rows."""
    return by_layout(_sparse_of(self), layouts.sparse_csr)


def _to_csc(self: Any, dense_dim: int | None = None) -> CompressedTensor:
    """The matrix by columns."""
    return by_layout(_sparse_of(self), layouts.sparse_csc)


def _sparse_of(x: Any) -> SparseTensor:
    return x if isinstance(x, CompressedTensor) else x.to_sparse()  # type: ignore[no-any-return]


def _refused(name: str) -> Any:
    def method(self: Any) -> Any:
        kind = self.layout if isinstance(self, SparseTensor) else layouts.strided
        raise ShapeError(message(name, f"the tensor has the layout {kind}", hint="x.to_sparse_csr()"))

    method.__name__ = method.__qualname__ = name
    method.__doc__ = "Refused: only a compressed sparse matrix has it."
    return method


TO_LAYOUT.update({layouts.sparse_csr: _to_csr, layouts.sparse_csc: _to_csc})
Tensor.to_sparse_csr, Tensor.to_sparse_csc = _to_csr, _to_csc
SparseTensor.to_sparse_csr, SparseTensor.to_sparse_csc = _to_csr, _to_csc  # type: ignore[attr-defined]
for _name in ("crow_indices", "col_indices", "ccol_indices", "row_indices"):
    setattr(Tensor, _name, _refused(_name))
    setattr(SparseTensor, _name, _refused(_name))

explain_all(globals(), "sparse_csr_tensor", "sparse_csc_tensor", "sparse_compressed_tensor")

__all__ = ["CompressedTensor", "sparse_compressed_tensor", "sparse_csc_tensor", "sparse_csr_tensor"]
