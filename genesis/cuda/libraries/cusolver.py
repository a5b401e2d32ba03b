"""Factors of matrices by cuSOLVER, and what goes with them in cuBLAS, through the bindings of ``nvmath-python``.

Both take matrices that lie column by column, and write over them: what is given here are copies, each matrix without gaps,
one behind the other (`columns` makes them). Of a batch each matrix is a call, or all are one where there is such a function
and they are small. What a function said (`info`) stays on the device.

None of this is recorded into graphs: functions may ask the host.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from genesis.arrays.spec import contiguous_strides
from genesis.cuda.arrays import MEMORY, CudaArray, empty, used
from genesis.cuda.libraries.loading import library, of_device
from genesis.cuda.memory.sequence import crosses
from genesis.cuda.runtime.devices import Device

NAME, BLAS = "cusolver", "cublas"
LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}  # that names of functions begin with
KINDS = {"f": 0, "d": 1, "F": 4, "D": 5}  # cudaDataType
LOWER, UPPER = 0, 1  # cublasFillMode
RIGHT = 1  # cublasSideMode
NORMAL, TRANSPOSED = 0, 1  # cublasOperation
WITH_VECTORS = 1  # cusolverEigMode
SMALL = 512  # rows of matrices of a batch that are factored by one call
TINY = 32  # rows and columns of those whose singular values are computed by one call: no more are taken
BYTE, INT = np.dtype(np.uint8), np.dtype(np.int32)


def columns(x: CudaArray, like: tuple[int, ...] | None = None) -> CudaArray:
    """A copy of matrices that lie column by column, of another shape that they broadcast to."""
    shape = x.shape if like is None else like
    m, n = shape[-2:]
    steps = contiguous_strides((*shape[:-2], n, m))
    out = empty(x.on, shape, x.dtype, (*steps[:-2], 1, m))
    own = [0 if have == 1 else s for have, s in zip(x.shape, x.strides, strict=True)]
    MEMORY.assign(out, x.seen(0, shape, (*[0] * (len(shape) - len(own)), *own)))
    return out


def count_of(x: CudaArray) -> int:
    """How many matrices there are."""
    return math.prod(x.shape[:-2])


def addresses(x: CudaArray, count: int, size: int) -> Iterator[int]:
    """Of so many parts of an array, each of ``size`` elements, where they begin."""
    for i in range(count):
        yield x.address + i * size * x.dtype.itemsize


def pointers(x: CudaArray, order: Any, size: int) -> CudaArray:
    """Where parts of an array begin, on the device."""
    return MEMORY.from_host(x.address + np.asarray(order, np.int64) * size * x.dtype.itemsize, x.device)


def solver(on: Device) -> Solver | None:
    """cuSOLVER and cuBLAS on a device, if they are there."""
    return of_device(on, Solver, NAME, BLAS)


class Solver:
    """Both libraries on one device."""

    def __init__(self, on: Device) -> None:
        on.enter()
        self.on, self.dn, self.blas = on, library(NAME), library(BLAS)
        self.handle, self.blas_handle = self.dn.create(), self.blas.create()
        self.params, self.jacobi = self.dn.create_params(), self.dn.create_gesvdj_info()
        self._lock = threading.RLock()  # the handles have one stream at a time

    def _began(self, *arrays: CudaArray) -> None:
        crosses("factors of matrices")
        stream = used(*arrays)
        self.on.enter()
        self.dn.set_stream(self.handle, stream.handle)
        self.blas.set_stream(self.blas_handle, stream.handle)

    def _function(self, name: str, x: CudaArray) -> Any:
        return getattr(self.dn, LETTERS[x.dtype.char] + name)

    def _space(self, count: int, dtype: Any) -> CudaArray:
        return empty(self.on, (max(count, 1),), dtype)

    # ---- triangles

    def cholesky(self, a: CudaArray, info: CudaArray, uplo: int) -> None:
        n, count = a.shape[-1], count_of(a)
        with self._lock:
            if count > 1 and n <= SMALL:
                where = pointers(a, range(count), n * n)
                self._began(a, info, where)
                self._function("potrf_batched", a)(self.handle, uplo, n, where.address, n, info.address, count)
                return
            self._began(a, info)
            wanted = self._function("potrf_buffer_size", a)(self.handle, uplo, n, a.address, n)
            space = self._space(wanted, a.dtype)
            for each, said in zip(addresses(a, count, n * n), addresses(info, count, 1), strict=True):
                self._function("potrf", a)(self.handle, uplo, n, each, n, space.address, wanted, said)

    def triangular(
        self, a: CudaArray, order: Any, b: CudaArray, uplo: int, operation: int, unit: bool, step: int
    ) -> None:
        """$X A = B$ for triangles A, of which ``order`` names one for each B, over B; all read column by column.

        Args:
            step: elements from one column of A to the next
        """
        k, n = b.shape[-1], b.shape[-2]  # rows and columns, as the library sees it
        letter, one = LETTERS[b.dtype.char], np.ones(1, b.dtype)
        size = a.strides[-3] if a.ndim > 2 else 0
        with self._lock:
            if len(order) == 1:
                self._began(a, b)
                getattr(self.blas, f"{letter}trsm")(
                    self.blas_handle, RIGHT, uplo, operation, int(unit), k, n, one.ctypes.data, a.address, step, b.address, k
                )  # fmt: skip
                return
            lefts, rights = pointers(a, order, size), pointers(b, range(len(order)), n * k)
            self._began(a, b, lefts, rights)
            getattr(self.blas, f"{letter}trsm_batched")(
                self.blas_handle, RIGHT, uplo, operation, int(unit), k, n, one.ctypes.data, lefts.address, step,
                rights.address, k, len(order),
            )  # fmt: skip

    # ---- LU

    def lu(self, a: CudaArray, pivots: CudaArray | None, info: CudaArray) -> None:
        (m, n), count = a.shape[-2:], count_of(a)
        rows = None if pivots is None else pivots.address
        with self._lock:
            if count > 1 and m == n <= SMALL:
                where = pointers(a, range(count), m * n)
                self._began(a, info, where, *([] if pivots is None else [pivots]))
                batched = getattr(self.blas, f"{LETTERS[a.dtype.char]}getrf_batched")
                batched(self.blas_handle, n, where.address, n, rows or 0, info.address, count)
                return
            self._began(a, info, *([] if pivots is None else [pivots]))
            wanted = self._function("getrf_buffer_size", a)(self.handle, m, n, a.address, m)
            space = self._space(wanted, a.dtype)
            step = min(m, n) * INT.itemsize
            for i, each in enumerate(addresses(a, count, m * n)):
                mine = 0 if rows is None else rows + i * step
                said = info.address + i * INT.itemsize
                self._function("getrf", a)(self.handle, m, n, each, m, space.address, mine, said)

    def substituted(self, lu: CudaArray, pivots: CudaArray, b: CudaArray, order: Any) -> None:
        """$A^{-1} B$ over B, from the factors of matrices of which ``order`` names one for each B."""
        n, k, info = lu.shape[-1], b.shape[-1], self._space(1, INT)
        with self._lock:
            self._began(lu, pivots, b, info)
            for which, each in zip(order, addresses(b, len(order), n * k), strict=True):
                factors = lu.address + int(which) * n * n * lu.dtype.itemsize
                rows = pivots.address + int(which) * n * INT.itemsize
                self._function("getrs", lu)(self.handle, NORMAL, n, k, factors, n, rows, each, n, info.address)

    def substituted_together(self, lu: CudaArray, pivots: CudaArray, b: CudaArray) -> None:
        """The same for as many matrices, by one call."""
        n, k, count = lu.shape[-1], b.shape[-1], count_of(b)
        lefts, rights = pointers(lu, range(count), n * n), pointers(b, range(count), n * k)
        said = np.zeros(1, INT)
        with self._lock:
            self._began(lu, pivots, b, lefts, rights)
            getattr(self.blas, f"{LETTERS[b.dtype.char]}getrs_batched")(
                self.blas_handle, NORMAL, n, k, lefts.address, n, pivots.address, rights.address, n, said.ctypes.data, count
            )  # fmt: skip

    # ---- reflections

    def reflections(self, a: CudaArray, tau: CudaArray) -> None:
        (m, n), count, info = a.shape[-2:], count_of(a), self._space(1, INT)
        with self._lock:
            self._began(a, tau, info)
            wanted = self._function("geqrf_buffer_size", a)(self.handle, m, n, a.address, m)
            space = self._space(wanted, a.dtype)
            for each, mine in zip(addresses(a, count, m * n), addresses(tau, count, min(m, n)), strict=True):
                self._function("geqrf", a)(self.handle, m, n, each, m, mine, space.address, wanted, info.address)

    def reflected(self, a: CudaArray, tau: CudaArray, count: int, size: int) -> None:
        """The first columns of the products of reflections over these, which are ``size`` elements apart."""
        (m, n), k, info = a.shape[-2:], tau.shape[-1], self._space(1, INT)
        name = "orgqr" if a.dtype.kind == "f" else "ungqr"
        k = min(k, n)
        with self._lock:
            self._began(a, tau, info)
            wanted = self._function(f"{name}_buffer_size", a)(self.handle, m, n, k, a.address, m, tau.address)
            space = self._space(wanted, a.dtype)
            for each, mine in zip(addresses(a, count, size), addresses(tau, count, tau.shape[-1]), strict=True):
                self._function(name, a)(self.handle, m, n, k, each, m, mine, space.address, wanted, info.address)

    # ---- spectra

    def hermitian(self, a: CudaArray, values: CudaArray, info: CudaArray, uplo: int) -> None:
        """Eigenvectors over matrices."""
        n, count = a.shape[-1], count_of(a)
        name = "syevd" if a.dtype.kind == "f" else "heevd"
        with self._lock:
            self._began(a, values, info)
            if count > 1:
                self._hermitian_together(a, values, info, uplo)
                return
            size = self._function(f"{name}_buffer_size", a)
            wanted = size(self.handle, WITH_VECTORS, uplo, n, a.address, n, values.address)
            space = self._space(wanted, a.dtype)
            self._function(name, a)(
                self.handle, WITH_VECTORS, uplo, n, a.address, n, values.address, space.address, wanted, info.address
            )

    def _hermitian_together(self, a: CudaArray, values: CudaArray, info: CudaArray, uplo: int) -> None:
        n, kind, real = a.shape[-1], KINDS[a.dtype.char], KINDS[values.dtype.char]
        about = self.handle, self.params, WITH_VECTORS, uplo, n, kind, a.address, n, real, values.address, kind
        there, here = self.dn.xsyev_batched_buffer_size(*about, count_of(a))
        space, held = self._space(there, BYTE), np.empty(max(here, 1), BYTE)
        self.dn.xsyev_batched(*about, space.address, there, held.ctypes.data, here, info.address, count_of(a))

    def singular(self, a: CudaArray, s: CudaArray, u: CudaArray, v: CudaArray, info: CudaArray, full: bool) -> None:
        """$A = U \\text{diag}(S) V^H$, each of them column by column; A is written over."""
        (m, n), count = a.shape[-2:], count_of(a)
        econ, parts = int(not full), (s, u, v)
        sizes = [math.prod(x.shape[-2:]) for x in (a, u, v)]
        with self._lock:
            self._began(a, *parts, info)
            about = m, n, a.address, m, s.address, u.address, m, v.address, n
            if full and count > 1 and max(m, n) <= TINY:
                size = self._function("gesvdj_batched_buffer_size", a)
                wanted = size(self.handle, WITH_VECTORS, *about, self.jacobi, count)
                space = self._space(wanted, a.dtype)
                self._function("gesvdj_batched", a)(
                    self.handle, WITH_VECTORS, *about, space.address, wanted, info.address, self.jacobi, count
                )
                return
            wanted = self._function("gesvdj_buffer_size", a)(self.handle, WITH_VECTORS, econ, *about, self.jacobi)
            space = self._space(wanted, a.dtype)
            each = zip(
                addresses(a, count, sizes[0]), addresses(s, count, s.shape[-1]), addresses(u, count, sizes[1]),
                addresses(v, count, sizes[2]), addresses(info, count, 1), strict=True,
            )  # fmt: skip
            for matrix, values, left, right, said in each:
                self._function("gesvdj", a)(
                    self.handle, WITH_VECTORS, econ, m, n, matrix, m, values, left, m, right, n, space.address, wanted, said,
                    self.jacobi,
                )  # fmt: skip
