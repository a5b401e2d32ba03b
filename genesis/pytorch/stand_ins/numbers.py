"""Functions of ``torch`` that compute and are seldom called: norms, sums of segments, a few eigenvalues, old names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import genesis
from genesis.base import dtypes
from genesis.base.errors import ArgumentValueError, ShapeError, message
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.gone import removed
from genesis.pytorch.stand_ins.common import NoEffect, Values, answer, values


def frobenius_norm(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """The root of the sum of squares along dimensions."""
    return genesis.linalg.vector_norm(input, 2, dim=dim if dim not in ((), []) else None, keepdim=keepdim)


def nuclear_norm(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The sum of the singular values."""
    if isinstance(dim, bool):
        dim, keepdim = None, dim
    return genesis.linalg.matrix_norm(input, "nuc", dim=(-2, -1) if dim is None else tuple(dim), keepdim=keepdim)


def norm_except_dim(v: Any, pow: int = 2, dim: int = 0) -> Any:
    """The norm along all dimensions but one; of all for -1."""
    if dim == -1:
        return genesis.norm(v, pow)
    others = tuple([d for d in range(v.ndim) if d != dim % v.ndim])
    return genesis.linalg.vector_norm(v, pow, dim=others, keepdim=True)


def segment_reduce(data: Any, reduce: str, *, lengths: Any = None, indices: Any = None, offsets: Any = None, axis: int = 0,
                   unsafe: bool = False, initial: Any = None) -> Any:  # fmt: skip
    """Sums, means, maxima, minima or products of segments that lie one after the other along a dimension."""
    if reduce not in ("sum", "mean", "max", "min", "prod"):
        raise ArgumentValueError(message("segment_reduce", f"unknown reduction {reduce!r}"))
    if lengths is None:
        if offsets is None:
            raise ShapeError(message("segment_reduce", "lengths or offsets are needed"))
        lengths = offsets.diff()
    axis = axis % data.ndim
    if axis:  # batches of segments: one batch after the other
        given = {"axis": axis - 1, "unsafe": unsafe, "initial": initial}
        return genesis.stack(
            [segment_reduce(x, reduce, lengths=n, **given) for x, n in zip(data, lengths, strict=True)]
        )
    sizes = [int(n) for n in lengths.tolist()]
    if not unsafe and (sum(sizes) != data.shape[0] or min(sizes, default=0) < 0):
        raise ShapeError(message("segment_reduce", f"lengths {sizes} do not add up to {data.shape[0]}"))
    ends = np.cumsum([0, *sizes])
    return genesis.stack(
        [_reduced(data[i:j], reduce, initial) for i, j in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
    )


_EMPTY = {"sum": 0.0, "mean": np.nan, "max": -np.inf, "min": np.inf, "prod": 1.0}


def _reduced(x: Any, reduce: str, initial: Any) -> Any:
    if initial is not None:
        first = x.new_full((1, *x.shape[1:]), initial)
        if reduce == "mean":
            return (x.sum(0) + initial) / max(len(x), 1) if len(x) else first[0]
        x = genesis.cat([first, x])
    elif not len(x):
        return x.new_full(tuple(x.shape[1:]), _EMPTY[reduce])
    return getattr(x, {"max": "amax", "min": "amin"}.get(reduce, reduce))(0)


def lobpcg(A: Any, k: int | None = None, B: Any = None, X: Any = None, n: int | None = None, iK: Any = None,  # noqa: N803
           niter: int | None = None, tol: float | None = None, largest: bool | None = None, method: str | None = None,
           tracker: Any = None, ortho_iparams: Any = None, ortho_fparams: Any = None, ortho_bparams: Any = None) -> Any:  # fmt: skip
    """The largest (or smallest) ``k`` eigenvalues of a symmetric matrix, of ``A x = l B x``, and their vectors; computed
    exactly, whatever the options of the iteration are.
    """
    count = k if k is not None else 1 if X is None else X.shape[-1]
    a = A.to_dense() if A.is_sparse else A
    size = a.shape[-1]
    if a.shape[-2] != size or 3 * count > size:
        raise ArgumentValueError(
            message("lobpcg", f"a square matrix of at least {3 * count} rows is needed, it has {size}")
        )
    root = None if B is None else genesis.linalg.cholesky(B.to_dense() if B.is_sparse else B)
    if root is not None:
        inverse = genesis.linalg.solve_triangular(root, genesis.eye(size, dtype=a.dtype).expand(a.shape), upper=False)
        a = inverse @ a @ inverse.mT
    numbers, vectors = genesis.linalg.eigh(a)
    vectors = vectors if root is None else inverse.mT @ vectors
    if largest is None or largest:
        return numbers.flip(-1)[..., :count], vectors.flip(-1)[..., :count]
    return numbers[..., :count], vectors[..., :count]


def from_file(filename: str, shared: bool | None = None, size: int | None = 0, *, dtype: Any = None, layout: Any = None,
              device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """The first elements of a file: shared, so that writes go to the file, or as a copy."""
    kind = dtypes.as_np(dtype or genesis.get_default_dtype())
    if shared:
        count = (size or 0) * kind.itemsize
        with open(filename, "ab") as file:
            file.truncate(max(file.tell(), count))
        return genesis.from_numpy(np.memmap(filename, kind, "r+", shape=(size,)).view(np.ndarray))
    return genesis.tensor(np.fromfile(filename, kind, size or 0)).requires_grad_(requires_grad)


def hsmm(mat1: Any, mat2: Any) -> Any:
    """The product of a sparse matrix and a dense one, sparse: of the rows that are not zero."""
    return (mat1 @ mat2).to_sparse(1)


def classproperty(func: Callable[[Any], Any]) -> Any:
    """A property of a class."""

    class Of:
        def __get__(self, instance: Any, owner: type) -> Any:
            return func(owner)

    return Of()


@values("torch")
def _torch() -> Values:
    functions = (frobenius_norm, nuclear_norm, norm_except_dim, segment_reduce, lobpcg, from_file,
                 hsmm, classproperty)  # fmt: skip
    return {
        **{f.__name__: f for f in functions}, **{name: removed(name) for name in ("eig", "symeig", "lstsq", "solve", "matrix_rank")},
        "saddmm": genesis.addmm, "sspaddmm": Tensor.sspaddmm, "to_dlpack": lambda tensor: tensor.__dlpack__(),
        "Storage": genesis.TypedStorage, "StorageBase": genesis.UntypedStorage,
        "is_anomaly_check_nan_enabled": answer(True), "thread_safe_generator": answer(None),
        "legacy_contiguous_format": genesis.contiguous_format, "autocast_increment_nesting": answer(1),
        "autocast_decrement_nesting": answer(0), "Stream": NoEffect, "Event": NoEffect,
    }  # fmt: skip


@values("torch.random")
def _random() -> Values:
    return {"thread_safe_generator": answer(None)}
