"""Sparse matrices in coordinates, and their products with dense ones: what networks on graphs need.

A sparse tensor is a class of its own, around two tensors: the coordinates of its elements, and their values. Gradients go
through the values and through dense operands; what is not here, `SparseTensor.to_dense` gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.base import dtypes, layouts
from genesis.base.errors import ArgumentError, ShapeError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Size, Tensor
from genesis.ops.creation.outside import as_tensor
from genesis.ops.indexing.mask import nonzero
from genesis.ops.indexing.scattered import unravel_index
from genesis.ops.reductions.search import unique
from genesis.ops.shapes.join import cat, stack


class SparseTensor:
    """Elements at coordinates, and zeros everywhere else; made by `sparse_coo_tensor` and ``x.to_sparse()``.

    >>> import genesis
    >>> genesis.eye(2).to_sparse() @ genesis.ones(2, 1)
    tensor([[1.],
            [1.]])
    """

    __slots__ = ("_coalesced", "_coordinates", "_values_", "shape")
    __array_priority__ = 1000
    is_sparse, is_sparse_csr, is_quantized, layout = True, False, False, layouts.sparse_coo

    def __init__(self, indices: Tensor, values: Tensor, size: Sequence[int], coalesced: bool = False) -> None:
        self._coordinates, self._values_, self.shape, self._coalesced = indices, values, Size(size), coalesced

    @property
    def dtype(self) -> Any:
        return self._values_.dtype

    @property
    def device(self) -> Any:
        return self._values_.device

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def requires_grad(self) -> bool:
        return self._values_.requires_grad

    def dim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    sparse_dim = dim

    def dense_dim(self) -> int:
        """0: each value is one number."""
        return 0

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one size of it."""
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        """How many elements it has, zeros included."""
        return self.shape.numel()

    def _nnz(self) -> int:
        return int(self._values_.shape[0])

    def indices(self) -> Tensor:
        """The coordinates, a row for each dimension.

        Raises:
            RuntimeError: they may not be in order, or several may be one: `coalesce` it
        """
        self._in_order("indices")
        return self._coordinates

    def values(self) -> Tensor:
        """The values at these coordinates."""
        self._in_order("values")
        return self._values_

    def _in_order(self, name: str) -> None:
        if not self._coalesced:
            raise ShapeError(message(name, "the tensor is not coalesced", hint=f"x.coalesce().{name}()"))

    def _indices(self) -> Tensor:
        return self._coordinates

    def _values(self) -> Tensor:
        return self._values_

    def is_coalesced(self) -> bool:
        """Whether the coordinates are in order, and each there once."""
        return self._coalesced

    def _flat(self) -> Tensor:
        """The number of each coordinate in the flattened tensor."""
        flat = self._coordinates[0]
        for n, row in zip(self.shape[1:], self._coordinates[1:], strict=True):
            flat = flat * n + row
        return flat

    def coalesce(self) -> SparseTensor:
        """The same elements in order, those at one coordinate added."""
        if self._coalesced:
            return self
        if not self._nnz():
            return SparseTensor(self._coordinates, self._values_, self.shape, True)
        flat, inverse = unique(self._flat(), return_inverse=True)
        values = self._values_.new_zeros(flat.shape).index_add(0, inverse, self._values_)  # type: ignore[attr-defined]
        return SparseTensor(stack(list(unravel_index(flat, self.shape))), values, self.shape, True)

    def to_dense(self) -> Tensor:
        """The tensor with its zeros."""
        flat = self._values_.new_zeros(self.numel())  # type: ignore[attr-defined]
        return flat.index_add(0, self._flat(), self._values_).reshape(self.shape)  # type: ignore[no-any-return]

    def to_sparse(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """Itself."""
        return self

    def _with(self, values: Tensor) -> SparseTensor:
        return SparseTensor(self._coordinates, values, self.shape, self._coalesced)

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """In another dtype or on another device."""
        return self._with(self._values_.to(*args, **kwargs))  # type: ignore[attr-defined]

    def float(self) -> SparseTensor:
        """As float32."""
        return self.to(dtypes.float32)

    def double(self) -> SparseTensor:
        """As float64."""
        return self.to(dtypes.float64)

    def cpu(self) -> SparseTensor:
        """On the CPU."""
        return self.to(device="cpu")

    def cuda(self, device: Any = None) -> SparseTensor:
        """On a GPU; an error where there is none."""
        return self._with(self._values_.cuda(device))  # type: ignore[attr-defined]

    def detach(self) -> SparseTensor:
        """Without history."""
        return self._with(self._values_.detach())

    def clone(self) -> SparseTensor:
        """A copy."""
        return SparseTensor(self._coordinates.clone(), self._values_.clone(), self.shape, self._coalesced)  # type: ignore[attr-defined]

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Two dimensions exchanged."""
        order = list(range(self.ndim))
        order[dim0], order[dim1] = order[dim1], order[dim0]
        return SparseTensor(self._coordinates[order], self._values_, [self.shape[d] for d in order])

    def t(self) -> SparseTensor:
        """The transpose of a matrix."""
        return self.transpose(0, 1)

    @property
    def T(self) -> SparseTensor:  # noqa: N802
        return self.t()

    def mm(self, mat2: Any) -> Any:
        """The product with a dense matrix or vector, or with a sparse matrix: $C_{ik} = \\sum_j A_{ij} B_{jk}$."""
        if isinstance(mat2, SparseTensor):
            return self.mm(mat2.to_dense()).to_sparse()
        if not isinstance(mat2, Tensor):
            raise ArgumentError(message("spmm", f"expected a tensor, got {type(mat2).__name__}"))
        if self.ndim != 2 or mat2.ndim not in (1, 2) or self.shape[1] != mat2.shape[0]:
            raise ShapeError(message("spmm", f"shapes {list(self.shape)} and {list(mat2.shape)} have no product"))
        rows, columns = self._coordinates
        weights = self._values_ if mat2.ndim == 1 else self._values_.unsqueeze(1)  # type: ignore[attr-defined]
        parts = weights * mat2.index_select(0, columns)  # type: ignore[attr-defined]
        return parts.new_zeros((self.shape[0], *mat2.shape[1:])).index_add(0, rows, parts)

    matmul = __matmul__ = mm

    def __rmatmul__(self, other: Tensor) -> Tensor:
        return self.t().mm(other.t()).t()  # type: ignore[attr-defined, no-any-return]

    def __mul__(self, other: Any) -> SparseTensor:
        if isinstance(other, SparseTensor | Tensor) and tuple(other.shape):
            return (self.to_dense() * (other.to_dense() if isinstance(other, SparseTensor) else other)).to_sparse()
        return self._with(self._values_ * other)

    __rmul__ = mul = __mul__

    def __truediv__(self, other: Any) -> SparseTensor:
        return self._with(self._values_ / other)

    def __neg__(self) -> SparseTensor:
        return self._with(-self._values_)

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, SparseTensor):
            return self.to_dense() + other
        if self.shape != other.shape:
            raise ShapeError(
                message("add", f"shapes {list(self.shape)} and {list(other.shape)} of sparse tensors differ")
            )
        kind = dtypes.promote_types(self.dtype, other.dtype)
        values = cat([self._values_.to(kind), other._values_.to(kind)], 0)  # type: ignore[attr-defined]
        return SparseTensor(cat([self._coordinates, other._coordinates], 1), values, self.shape).coalesce()

    __radd__ = add = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def sum(self, dim: Any = None) -> Any:
        """The sum of all elements, or along dimensions, dense."""
        return self._values_.sum() if dim is None else self.to_dense().sum(dim)  # type: ignore[attr-defined]

    def backward(self, *args: Any) -> None:
        """Refused: a loss is one number."""
        raise ArgumentError(message("backward", "a sparse tensor is no loss", hint="x.to_dense().sum().backward()"))

    def __repr__(self) -> str:
        return (
            f"tensor(indices={self._coordinates!r},\n       values={self._values_!r},\n       size={tuple(self.shape)}, "
            f"nnz={self._nnz()}, layout=genesis.sparse_coo)"
        )


def sparse_coo_tensor(
    indices: Any,
    values: Any,
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
        size: the shape; the smallest that holds all coordinates for None

    Raises:
        RuntimeError: not one coordinate for each value, or one outside ``size``

    >>> import genesis
    >>> genesis.sparse_coo_tensor([[0, 1], [1, 0]], [3., 4.], (2, 2)).to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    coordinates = as_tensor(indices, device=device).to(dtypes.int64)
    data = as_tensor(values, dtype=dtype, device=device)
    if coordinates.ndim != 2 or data.ndim != 1 or coordinates.shape[1] != data.shape[0]:
        text = f"indices of shape {list(coordinates.shape)} and values of shape {list(data.shape)} do not fit"
        raise ShapeError(message("sparse_coo_tensor", text, hint="a column of indices for each value"))
    largest = coordinates.amax(1).tolist() if coordinates.numel() else [-1] * coordinates.shape[0]
    shape = [n + 1 for n in largest] if size is None else [int(n) for n in size]
    if (
        len(shape) != len(largest)
        or any(a >= n for a, n in zip(largest, shape, strict=True))
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


def _to_sparse(self: Tensor, *args: Any, **kwargs: Any) -> SparseTensor:
    """The elements that are not zero, at their coordinates."""
    coordinates = tuple(nonzero(self.detach(), as_tuple=True))
    return SparseTensor(stack(list(coordinates)), self[coordinates], tuple(self.shape), True)


Tensor.to_sparse = Tensor.to_sparse_coo = _to_sparse
explain_all(globals(), "sparse_coo_tensor", "spmm")

__all__ = ["SparseTensor", "sparse_coo_tensor", "spmm"]
