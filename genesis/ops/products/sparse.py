"""Sparse tensors in coordinates: what networks on graphs need, and gradients of tables of which few rows were used.

A sparse tensor holds two tensors: the coordinates of its elements, and their values. Gradients go through the values and
through dense operands; what is not here, `SparseTensor.to_dense` gives. The values may be slices: of a tensor whose
first dimensions are sparse and whose others are dense.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from genesis.arrays.sparse import SparseArray
from genesis.base import dtypes, layouts
from genesis.base.errors import ArgumentError, GraphError, ShapeError, UnsupportedError, message
from genesis.core.call.computing import INTERPRETERS
from genesis.core.call.subclasses import no_torch_function
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.sequences import arange
from genesis.ops.indexing.mask import nonzero
from genesis.ops.indexing.scattered import unravel_index
from genesis.ops.reductions.search import searchsorted, unique
from genesis.ops.shapes.join import cat, stack


class SparseTensor(Tensor):
    """Elements at coordinates, and zeros everywhere else; made by `sparse_coo_tensor` and ``x.to_sparse()``.

    >>> import genesis
    >>> genesis.eye(2).to_sparse() @ genesis.ones(2, 1)
    tensor([[1.],
            [1.]])
    """

    __slots__ = ("_coalesced", "_coordinates", "_values_")
    __torch_function__ = classmethod(no_torch_function)  # type: ignore[assignment, arg-type]
    is_sparse, is_sparse_csr, is_quantized, layout = True, False, False, layouts.sparse_coo

    def __init__(self, indices: Tensor, values: Tensor, size: Sequence[int], coalesced: bool = False) -> None:
        self._node = self._counter = self._view = None
        self._hold(indices, values, size, coalesced)

    def _hold(self, indices: Tensor, values: Any, size: Sequence[int], coalesced: bool) -> None:
        self._coordinates, self._values_, self._coalesced = indices, values, coalesced
        self._array = SparseArray(tuple([int(n) for n in size]), values._array.dtype, values.device)

    def sparse_dim(self) -> int:
        """How many of the dimensions have coordinates: the first ones."""
        return int(self._coordinates.shape[0])

    def dense_dim(self) -> int:
        """How many dimensions each value has: 0 where it is one number."""
        return self._values_.ndim - 1  # type: ignore[no-any-return]

    def _sparse_shape(self) -> tuple[int, ...]:
        return tuple(self.shape[: self.sparse_dim()])

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
        return self._values_  # type: ignore[no-any-return]

    def _in_order(self, name: str) -> None:
        if not self._coalesced:
            raise ShapeError(message(name, "the tensor is not coalesced", hint=f"x.coalesce().{name}()"))

    def _indices(self) -> Tensor:
        return self._coordinates

    def _values(self) -> Tensor:
        return self._values_  # type: ignore[no-any-return]

    def is_coalesced(self) -> bool:
        """Whether the coordinates are in order, and each there once."""
        return self._coalesced

    def _flat(self) -> Any:
        """The number of each coordinate in the flattened sparse dimensions."""
        if not self.sparse_dim():
            return arange(0).new_zeros(self._nnz())  # type: ignore[attr-defined]
        flat = self._coordinates[0]
        for n, row in zip(self._sparse_shape()[1:], self._coordinates[1:], strict=True):
            flat = flat * n + row
        return flat

    def coalesce(self) -> SparseTensor:
        """The same elements in order, those at one coordinate added."""
        if self._coalesced:
            return self
        if self._nnz() < 2:
            return SparseTensor(self._coordinates, self._values_, self.shape, True)
        flat, inverse = unique(self._flat(), return_inverse=True)
        values = self._values_.new_zeros((flat.shape[0], *self._values_.shape[1:]))
        values = values.index_add(0, inverse, self._values_)
        rows = list(unravel_index(flat, self._sparse_shape())) if self.sparse_dim() else []
        coordinates = stack(rows) if rows else self._coordinates[:, : flat.shape[0]]
        return SparseTensor(coordinates, values, self.shape, True)

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """The tensor with its zeros."""
        values = self._values_ if dtype is None else self._values_.to(dtype)
        if values.dtype == dtypes.bool:  # numbers of one place: any of them
            return self._with(values.to(dtypes.uint8)).to_dense().to(dtypes.bool)  # type: ignore[attr-defined, no-any-return]
        flat = values.new_zeros((math.prod(self._sparse_shape()), *values.shape[1:]))
        return flat.index_add(0, self._flat(), values).reshape(self.shape)  # type: ignore[no-any-return]

    def to_sparse(self, *args: Any, layout: Any = None, blocksize: Any = None, **kwargs: Any) -> Any:
        """Itself, or in another layout."""
        if layout in (None, layouts.sparse_coo):
            return self
        return getattr(self, f"to_{layout.name}")(*([] if blocksize is None else [blocksize]))

    to_sparse_coo = to_sparse

    def _with(self, values: Any) -> SparseTensor:
        return SparseTensor(self._coordinates, values, self.shape, self._coalesced)

    def _of_each(self, f: Callable[[Any], Any]) -> SparseTensor:
        """A function that keeps zeros, of the elements in order."""
        x = self.coalesce()
        return x._with(f(x._values_))

    # ---- its gradient story is that of its values

    @property
    def requires_grad(self) -> bool:
        return bool(self._values_.requires_grad)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Begin (or stop) recording what is done with the values."""
        self._values_.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:  # type: ignore[override]
        return bool(self._values_.is_leaf)

    @property
    def grad_fn(self) -> Any:
        return self._values_.grad_fn

    @property
    def grad(self) -> Any:
        g = self._values_.grad
        return None if g is None else self._with(g)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._values_.grad = value._values_ if isinstance(value, SparseTensor) else value

    def detach(self) -> SparseTensor:
        """Without history."""
        return self._with(self._values_.detach())

    def detach_(self) -> SparseTensor:
        """Forget the history of the values, in place."""
        self._values_ = self._values_.detach()
        return self

    def register_hook(self, hook: Callable[[Any], Any]) -> Any:
        """Call ``hook(gradient)`` with the sparse gradient; it may return another at the same coordinates."""

        def of_values(g: Tensor) -> Any:
            result = hook(self._with(g))
            return result._values_ if isinstance(result, SparseTensor) else result

        return self._values_.register_hook(of_values)

    def backward(self, *args: Any, **kwargs: Any) -> None:
        """Refused: a loss is one number."""
        raise ArgumentError(message("backward", "a sparse tensor is no loss", hint="x.to_dense().sum().backward()"))

    @property
    def data(self) -> Any:
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        self._hold(value._coordinates, value._values_, value.shape, value._coalesced)

    def _shared(self) -> SparseTensor:
        return self._with(self._values_ if self._values_._node is not None else self._values_._shared())

    _apart = _shared

    def _alias(self, node: Any) -> SparseTensor:
        return self._with(self._values_._alias(None if node is None else self._values_._node))

    def _own_memory(self) -> None:
        """Values that others may read are copied when they are written to."""

    def _zeros(self, shape: tuple[int, ...], dtype: Any) -> Tensor:
        return self._values_._zeros(shape, dtype)  # type: ignore[no-any-return]

    def _ones(self, shape: tuple[int, ...], dtype: Any) -> Tensor:
        return self._values_._ones(shape, dtype)  # type: ignore[no-any-return]

    # ---- other dtypes, devices, copies

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """In another dtype or on another device."""
        values = self._values_.to(*args, **kwargs)
        return SparseTensor(self._coordinates.to(values.device), values, self.shape, self._coalesced)  # type: ignore[attr-defined]

    def cpu(self) -> SparseTensor:
        """On the CPU."""
        return self.to(device="cpu")

    def cuda(self, device: Any = None) -> SparseTensor:
        """On a GPU; an error where there is none."""
        return self._with(self._values_.cuda(device))

    def type(self, dtype: Any = None) -> Any:
        """The name of its class and dtype as PyTorch has it, or the tensor in another dtype."""
        return self._values_.type().replace("torch.", "torch.sparse.") if dtype is None else self.to(dtype)

    def clone(self, *, memory_format: Any = None) -> SparseTensor:
        """A copy."""
        return SparseTensor(self._coordinates.clone(), self._values_.clone(), self.shape, self._coalesced)  # type: ignore[attr-defined]

    def __deepcopy__(self, memo: dict[int, Any]) -> SparseTensor:
        memo[id(self)] = copy = self.detach().clone()
        return copy.requires_grad_(self.requires_grad)

    def __reduce__(self) -> Any:
        return _rebuilt, (self._coordinates, self._values_, tuple(self.shape), self._coalesced)

    def stride(self, dim: int | None = None) -> Any:
        """Zeros: there is no memory to step through."""
        return (0,) * self.ndim if dim is None else 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """False: the elements do not lie one after the other."""
        return False

    def permute(self, *dims: Any) -> SparseTensor:
        """The dimensions in another order, sparse ones among themselves and dense ones among themselves."""
        order = [d % self.ndim for d in (dims[0] if len(dims) == 1 and isinstance(dims[0], list | tuple) else dims)]
        n = self.sparse_dim()
        if sorted(order[:n]) != list(range(n)) or sorted(order) != list(range(self.ndim)):
            text = (
                f"dimensions {order}: the first {n} are sparse, and stay in front of the {self.dense_dim()} dense ones"
            )
            raise ShapeError(message("permute", text))
        values = self._values_.permute(0, *[d - n + 1 for d in order[n:]])
        same = self._coalesced and order[:n] == list(range(n))
        return SparseTensor(self._coordinates[order[:n]], values, [self.shape[d] for d in order], same)

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Two dimensions exchanged."""
        order = list(range(self.ndim))
        order[dim0], order[dim1] = order[dim1], order[dim0]
        return self.permute(order)

    def t(self) -> SparseTensor:
        """The transpose of a matrix."""
        return self if self.ndim < 2 and not self.dense_dim() else self.transpose(0, 1)

    @property
    def T(self) -> SparseTensor:  # noqa: N802
        return self.t()

    # ---- arithmetic

    def mm(self, mat2: Any) -> Any:
        """The product with a dense matrix or vector, or with a sparse matrix: $C_{ik} = \\sum_j A_{ij} B_{jk}$."""
        if isinstance(mat2, SparseTensor):
            return self.mm(mat2.to_dense()).to_sparse()
        if not isinstance(mat2, Tensor):
            raise ArgumentError(message("spmm", f"expected a tensor, got {type(mat2).__name__}"))
        if self.ndim != 2 or mat2.ndim not in (1, 2) or self.shape[1] != mat2.shape[0]:
            raise ShapeError(message("spmm", f"shapes {list(self.shape)} and {list(mat2.shape)} have no product"))
        if self.dense_dim():
            return self.to_dense() @ mat2
        rows, columns = self._coordinates
        weights = self._values_ if mat2.ndim == 1 else self._values_.unsqueeze(1)
        parts = weights * mat2.index_select(0, columns)  # type: ignore[attr-defined]
        return parts.new_zeros((self.shape[0], *mat2.shape[1:])).index_add(0, rows, parts)

    matmul = __matmul__ = mv = mm

    def __rmatmul__(self, other: Tensor) -> Tensor:
        return self.t().mm(other.t()).t()  # type: ignore[attr-defined, no-any-return]

    def __mul__(self, other: Any) -> SparseTensor:
        if isinstance(other, SparseTensor):
            return self._common(other)
        if not isinstance(other, Tensor) or not other.ndim:
            return self._with(self._values_ * other)
        at = other.expand(self.shape)[tuple(self._coordinates)] if self.sparse_dim() else other  # type: ignore[attr-defined]
        return self._with(self._values_ * at)

    __rmul__ = mul = multiply = __mul__

    def _common(self, other: SparseTensor) -> SparseTensor:
        """The products at the coordinates that both have."""
        if self.shape != other.shape or self.sparse_dim() != other.sparse_dim():
            text = f"shapes {list(self.shape)} and {list(other.shape)} of sparse tensors differ"
            raise ShapeError(message("mul", text))
        x, y = self.coalesce(), other.coalesce()
        mine, others = x._flat(), y._flat()
        at = searchsorted(others, mine).clamp(max=max(y._nnz() - 1, 0))  # type: ignore[attr-defined]
        both = nonzero(others[at] == mine).reshape(-1) if y._nnz() else mine[:0]  # type: ignore[attr-defined]
        return SparseTensor(x._coordinates[:, both], x._values_[both] * y._values_[at[both]], x.shape, True)

    def __truediv__(self, other: Any) -> SparseTensor:
        if isinstance(other, Tensor) and other.ndim:
            text = f"a sparse tensor is divided by one number, the divisor has shape {list(other.shape)}"
            raise ShapeError(message("div", text, hint="x * (1 / divisor)"))
        return self._with(self._values_ / other)

    div = divide = true_divide = __truediv__

    def __floordiv__(self, other: Any) -> SparseTensor:
        return self._of_each(lambda values: values // other)

    floor_divide = __floordiv__

    def __pow__(self, exponent: Any) -> SparseTensor:
        if isinstance(exponent, Tensor) or exponent == 0:
            raise ShapeError(message("pow", f"the exponent of a sparse tensor is a number and not 0, got {exponent!r}"))
        return self._of_each(lambda values: values**exponent)

    pow = __pow__

    def __neg__(self) -> SparseTensor:
        return self._with(-self._values_)

    neg = negative = __neg__

    def __add__(self, other: Any, *, alpha: Any = 1) -> Any:
        if not isinstance(other, SparseTensor):
            return self.to_dense() + (other if alpha == 1 else other * alpha)
        if self.shape != other.shape or self.sparse_dim() != other.sparse_dim():
            raise ShapeError(
                message("add", f"shapes {list(self.shape)} and {list(other.shape)} of sparse tensors differ")
            )
        kind = dtypes.promote_types(self.dtype, other.dtype)
        added = other._values_ if alpha == 1 else other._values_ * alpha
        values = cat([self._values_.to(kind), added.to(kind)], 0)
        total = SparseTensor(cat([self._coordinates, other._coordinates], 1), values, self.shape)
        return total.coalesce() if self._coalesced and other._coalesced else total

    add = __add__

    def __radd__(self, other: Any) -> Any:
        return self.__add__(other)

    def __sub__(self, other: Any, *, alpha: Any = 1) -> Any:
        return self.__add__(other, alpha=-alpha)

    sub = subtract = __sub__

    def __rsub__(self, other: Any) -> Any:
        return (-self).__add__(other)

    # ---- in place: `sparse_parts`

    def _become(self, name: str, x: Any) -> SparseTensor:
        """These elements from now on; nothing of it is recorded."""
        if not isinstance(x, SparseTensor):
            raise ShapeError(message(name, "the result is dense, this tensor is sparse", hint="dense.add_(sparse)"))
        if grad_mode.get() and self.requires_grad and self.is_leaf:
            text = "a leaf that requires grad is written to in place"
            raise GraphError(message(name, text, hint="write under no_grad()"))
        self._hold(x._coordinates, x._values_, x.shape, x._coalesced)
        return self

    def __repr__(self) -> str:
        indices, values = _indented(self._coordinates, 15), _indented(self._values_, 14)
        return (
            f"tensor(indices={indices},\n       values={values},\n       size={tuple(self.shape)}, "
            f"nnz={self._nnz()}, layout={self.layout!r})"
        )


def _rebuilt(indices: Tensor, values: Tensor, size: Any, coalesced: bool) -> SparseTensor:
    return SparseTensor(indices, values, size, coalesced)


def _indented(x: Tensor, by: int) -> str:
    return f"{x!r}".replace("\n", "\n" + " " * by)


def _refused(op: Any, arrays: tuple[Any, ...], top: Any) -> Any:
    """Ops that know nothing of sparse tensors, and ways of them that these do not have."""
    raise UnsupportedError(message(op.name, "it is not there for sparse tensors", hint=f"x.to_dense().{op.name}(...)"))


INTERPRETERS[SparseArray] = _refused

__all__ = ["SparseTensor"]
