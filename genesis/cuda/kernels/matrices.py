"""What kernels of linear algebra share: the library, if it takes matrices, and views and copies of these."""

from __future__ import annotations

from typing import Any

from genesis.arrays.spec import contiguous_strides
from genesis.core.call.op import REGISTRY
from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.cuda.kernels.pairs import real_of
from genesis.cuda.libraries.cusolver import INT, Solver, count_of, solver


def solver_for(*arrays: CudaArray) -> Solver | None:
    """The library, if it takes these."""
    takes = all([x.dtype.char in "fdFD" and x.dtype == arrays[0].dtype and x.size for x in arrays])
    return solver(arrays[0].on) if takes else None


def computed(name: str, *args: Any) -> Any:
    return MEMORY.kernel(REGISTRY[name])(*args)


def turned(x: CudaArray) -> CudaArray:
    """Transposed, as a view."""
    return x.seen(0, (*x.shape[:-2], x.shape[-1], x.shape[-2]), (*x.strides[:-2], x.strides[-1], x.strides[-2]))


def adjoint(x: CudaArray) -> CudaArray:
    return computed("conj_physical", turned(x)) if x.dtype.kind == "c" else turned(x)


def conjugated(x: CudaArray) -> CudaArray:
    """A copy without gaps."""
    return computed("conj_physical", x) if x.dtype.kind == "c" else MEMORY.copy(x)


def corner(x: CudaArray, rows: int, count: int) -> CudaArray:
    """The first rows and columns of matrices."""
    return x.seen(0, (*x.shape[:-2], rows, count), x.strides)


def infos(x: CudaArray, more: int = 0) -> CudaArray:
    return MEMORY.zeros((count_of(x) + more,), INT, x.device)


def of_each(info: CudaArray, x: CudaArray) -> CudaArray:
    return info.seen(0, x.shape[:-2], contiguous_strides(x.shape[:-2]))


def real_kind(x: CudaArray) -> Any:
    return real_of(x.dtype) if x.dtype.kind == "c" else x.dtype
