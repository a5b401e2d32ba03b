"""Stand-ins for cuSOLVER and cuBLAS on the emulated device: they compute with NumPy on matrices that lie column by column, write
over what the libraries write over, and refuse what their documentation refuses. Of vectors whose sign is nobody's they choose
another one than the CPU does.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import numpy as np
from library_stand_ins import Work, demand

from genesis.ops.linalg import host

LETTERS = {"s": "f4", "d": "f8", "c": "c8", "z": "c16"}
KINDS = {0: "f4", 1: "f8", 4: "c8", 5: "c16"}
INT = np.dtype(np.int32)


def real(dtype):
    return np.dtype(dtype).type(0).real.dtype


@dataclass
class Matrix:
    """Columns in memory."""

    address: int
    rows: int
    columns: int
    step: int
    dtype: np.dtype

    def __post_init__(self):
        demand(self.rows > 0 and self.columns > 0 and self.step >= self.rows, "a leading dimension below the rows")
        demand(type(self.address) is int and self.address % self.dtype.itemsize == 0, "an address")

    def span(self, writes=True):
        return self.address, ((self.columns - 1) * self.step + self.rows) * self.dtype.itemsize, writes

    def view(self, spaces):
        flat = spaces.array(self.address, self.dtype, self.span()[1] // self.dtype.itemsize)
        size = self.dtype.itemsize
        return np.lib.stride_tricks.as_strided(flat, (self.rows, self.columns), (size, self.step * size))


def vector(address, count, dtype):
    return Matrix(address, count, 1, count, np.dtype(dtype))


class Library:
    """What both have: a stream, calls that the stream comes to, and names with letters for dtypes.

    Args:
        lacking: functions that this version has not
    """

    def __init__(self, driver, lacking=()):
        self.work, self.lacking = Work(driver), lacking
        self.stream, self.handles, self.done = None, itertools.count(1 << 22), []

    def create(self):
        self.handle = next(self.handles)
        return self.handle

    def set_stream(self, handle, stream):
        demand(handle == self.handle, "a handle")
        self.stream = stream

    def __getattr__(self, name):
        if name.startswith("_") or name in self.lacking or name[0] not in LETTERS:
            raise AttributeError(name)
        other = {"heevd": "syevd", "ungqr": "orgqr"}
        dtype, rest = np.dtype(LETTERS[name[0]]), name[1:]
        for complex_name, plain in other.items():
            demand(not rest.startswith(plain) or dtype.kind == "f", name)
            demand(not rest.startswith(complex_name) or dtype.kind == "c", name)
            rest = rest.replace(complex_name, plain)
        if rest.endswith("_buffer_size"):
            return lambda *args: 96
        return functools.partial(getattr(self, f"_{rest}"), dtype)

    def _told(self, name, handle, matrices, compute, space=None, count=96):
        """Do something with views of matrices when the stream comes to it."""
        demand(handle == self.handle and self.stream is not None, "a handle")
        spans = [m.span() for m in matrices]
        if space is not None:
            demand(count == 96, "another workspace than was asked for")
            spans.append((space, count, True))
        self.work.submit(self.stream, spans, lambda spaces: compute(*[m.view(spaces) for m in matrices]))
        self.done.append(name)

    def _addresses(self, address, count):
        """Those that an array of the device has."""
        got = []
        at = vector(address, count, "i8")
        self.work.submit(self.stream, [at.span(False)], lambda spaces: got.extend(at.view(spaces)[:, 0].tolist()))
        self.work.driver.stream_synchronize(self.stream)
        return got


def triangle(x, uplo, unit=False):
    x = np.tril(x) if uplo == 0 else np.triu(x)
    if unit:
        np.fill_diagonal(x, 1)
    return x


class Cublas(Library):
    """cuBLAS, as ``nvmath.bindings.cublas`` has it."""

    def _trsm(self, dtype, handle, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb):
        self._solved(dtype, handle, side, uplo, trans, diag, m, n, [a], lda, [b], ldb, "trsm")

    def _trsm_batched(self, dtype, handle, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb, count):
        lefts, rights = self._addresses(a, count), self._addresses(b, count)
        self._solved(dtype, handle, side, uplo, trans, diag, m, n, lefts, lda, rights, ldb, "trsm_batched")

    def _solved(self, dtype, handle, side, uplo, trans, diag, m, n, lefts, lda, rights, ldb, name):
        demand(side in (0, 1) and uplo in (0, 1) and trans in (0, 1, 2) and diag in (0, 1), "options")
        size = n if side else m

        def compute(*views):
            for a, b in zip(views[: len(lefts)], views[len(lefts) :], strict=True):
                full, lower = triangle(a, uplo, diag), uplo == 0
                if trans:
                    full, lower = full.T if trans == 1 else full.conj().T, not lower
                b[...] = host.solve_triangle(full.T, b.T, lower).T if side else host.solve_triangle(full, b, not lower)

        matrices = [Matrix(int(x), size, size, lda, dtype) for x in lefts]
        self._told(name, handle, [*matrices, *[Matrix(int(x), m, n, ldb, dtype) for x in rights]], compute)

    def _getrf_batched(self, dtype, handle, n, a, lda, p, info, count):
        matrices = [Matrix(x, n, n, lda, dtype) for x in self._addresses(a, count)]
        pivots = [vector(p, n * count, INT)] if p else []

        def compute(info, *views):
            for i, x in enumerate(views[len(pivots) :]):
                lu, rows, info[i, 0] = host.lu_factors(x, bool(p))
                x[...] = lu
                if p:
                    views[0][i * n : (i + 1) * n, 0] = rows

        self._told("getrf_batched", handle, [vector(info, count, INT), *pivots, *matrices], compute)

    def _getrs_batched(self, dtype, handle, trans, n, nrhs, a, lda, p, b, ldb, info, count):
        demand(trans == 0, "an operation")
        lefts, rights = self._addresses(a, count), self._addresses(b, count)
        matrices = [Matrix(x, n, n, lda, dtype) for x in lefts] + [Matrix(x, n, nrhs, ldb, dtype) for x in rights]

        def compute(pivots, *views):
            for i, (lu, x) in enumerate(zip(views[:count], views[count:], strict=True)):
                x[...] = substituted(lu, pivots[i * n : (i + 1) * n, 0], x)

        self._told("getrs_batched", handle, [vector(p, n * count, INT), *matrices], compute)


def substituted(lu, pivots, b):
    order = host.permutation(pivots.astype(np.int64) - 1, len(lu))
    return host.solve_triangle(lu, host.solve_unit(lu, b[order]), True)


def flipped(vectors):
    """Other signs than the CPU's."""
    return vectors * np.where(np.arange(vectors.shape[-1]) % 2, 1, -1).astype(vectors.dtype)


class Cusolver(Library):
    """cuSOLVER, as ``nvmath.bindings.cusolverDn`` has it.

    Args:
        fails: what ``info`` of iterations is
    """

    def __init__(self, driver, lacking=(), fails=0):
        super().__init__(driver, lacking)
        self.fails = fails

    def create_params(self):
        return 77

    def create_gesvdj_info(self):
        return 78

    def _potrf(self, dtype, handle, uplo, n, a, lda, space, count, info):
        self._factored("potrf", dtype, handle, uplo, n, [a], lda, info, space, count)

    def _potrf_batched(self, dtype, handle, uplo, n, a, lda, info, count):
        self._factored("potrf_batched", dtype, handle, uplo, n, self._addresses(a, count), lda, info)

    def _factored(self, name, dtype, handle, uplo, n, addresses, lda, info, space=None, count=96):
        def compute(infos, *views):
            for i, x in enumerate(views):
                half = triangle(x, uplo)
                factor, infos[i, 0] = host.cholesky(half if uplo == 0 else half.conj().T)
                other = np.full_like(x, np.nan)
                kept = np.tri(n, dtype=bool) if uplo == 0 else np.tri(n, dtype=bool).T
                x[...] = np.where(kept, factor if uplo == 0 else factor.conj().T, other)

        matrices = [Matrix(x, n, n, lda, dtype) for x in addresses]
        self._told(name, handle, [vector(info, len(matrices), INT), *matrices], compute, space, count)

    def _getrf(self, dtype, handle, m, n, a, lda, space, pivots, info):
        rows = [vector(pivots, min(m, n), INT)] if pivots else []

        def compute(info, x, *rows):
            lu, exchanged, info[0, 0] = host.lu_factors(x, bool(rows))
            x[...] = lu
            for each in rows:
                each[:, 0] = exchanged

        self._told("getrf", handle, [vector(info, 1, INT), Matrix(a, m, n, lda, dtype), *rows], compute, space)

    def _getrs(self, dtype, handle, trans, n, nrhs, a, lda, pivots, b, ldb, info):
        demand(trans == 0, "an operation")
        matrices = [
            Matrix(a, n, n, lda, dtype),
            vector(pivots, n, INT),
            Matrix(b, n, nrhs, ldb, dtype),
            vector(info, 1, INT),
        ]

        def compute(lu, pivots, b, info):
            b[...], info[0, 0] = substituted(lu, pivots[:, 0], b), 0

        self._told("getrs", handle, matrices, compute)

    def _geqrf(self, dtype, handle, m, n, a, lda, tau, space, count, info):
        def compute(x, tau, info):
            raw, tau[:, 0] = np.linalg.qr(x, "raw")
            x[...], info[0, 0] = raw.T, 0

        matrices = [Matrix(a, m, n, lda, dtype), vector(tau, min(m, n), dtype), vector(info, 1, INT)]
        self._told("geqrf", handle, matrices, compute, space, count)

    def _orgqr(self, dtype, handle, m, n, k, a, lda, tau, space, count, info):
        demand(m >= n >= k, "more columns than rows, or more reflections than columns")

        def compute(x, tau, info):
            q = np.eye(m, n, dtype=dtype)
            for i in reversed(range(k)):
                v = np.concatenate([np.zeros(i, dtype), np.ones(1, dtype), x[i + 1 :, i]])[:, None]
                q = q - tau[i, 0] * v @ (v.conj().T @ q)
            x[...], info[0, 0] = q, 0

        matrices = [Matrix(a, m, n, lda, dtype), vector(tau, k, dtype), vector(info, 1, INT)]
        self._told("orgqr", handle, matrices, compute, space, count)

    def _syevd(self, dtype, handle, jobz, uplo, n, a, lda, w, space, count, info):
        demand(jobz == 1, "a mode")
        self._eigen("syevd", dtype, handle, uplo, n, [a], lda, w, info, space, count)

    def xsyev_batched_buffer_size(self, *args):
        demand(len(args) == 12, "arguments")
        return 96, 32

    def xsyev_batched(self, handle, params, jobz, uplo, n, kind, a, lda, kind_w, w, compute_type, space, there, held, here, info,
                      batch):  # fmt: skip
        dtype = np.dtype(KINDS[kind])
        demand(params == 77 and jobz == 1 and np.dtype(KINDS[kind_w]) == real(dtype) and compute_type == kind, "dtypes")
        demand(here == 32 and held, "a workspace of the host")
        addresses = [a + i * lda * n * dtype.itemsize for i in range(batch)]
        self._eigen("xsyev_batched", dtype, handle, uplo, n, addresses, lda, w, info, space, there)

    def _eigen(self, name, dtype, handle, uplo, n, addresses, lda, w, info, space, count):
        def compute(info, values, *views):
            for i, x in enumerate(views):
                given = np.where(np.isfinite(x), x, 0)
                value, vectors = np.linalg.eigh(given, "L" if uplo == 0 else "U")
                values[i * n : (i + 1) * n, 0], x[...] = value, flipped(vectors)
                info[i, 0] = self.fails

        some = len(addresses)
        matrices = [vector(info, some, INT), vector(w, n * some, real(dtype))]
        self._told(name, handle, [*matrices, *[Matrix(x, n, n, lda, dtype) for x in addresses]], compute, space, count)

    def _gesvdj(self, dtype, handle, jobz, econ, m, n, a, lda, s, u, ldu, v, ldv, space, count, info, params):
        demand(jobz == 1 and params == 78, "a mode")
        self._singular("gesvdj", dtype, handle, not econ, m, n, a, lda, s, u, ldu, v, ldv, space, count, info, 1)

    def _gesvdj_batched(self, dtype, handle, jobz, m, n, a, lda, s, u, ldu, v, ldv, space, count, info, params, batch):
        demand(jobz == 1 and params == 78 and max(m, n) <= 32, "matrices that are too large")
        self._singular(
            "gesvdj_batched", dtype, handle, True, m, n, a, lda, s, u, ldu, v, ldv, space, count, info, batch
        )

    def _singular(self, name, dtype, handle, full, m, n, a, lda, s, u, ldu, v, ldv, space, count, info, batch):
        k, size = min(m, n), dtype.itemsize
        lefts, rights = (m, n) if full else (k, k)

        def compute(info, values, *views):
            for i in range(batch):
                x, left, right = views[i], views[batch + i], views[2 * batch + i]
                a, b, c = np.linalg.svd(np.where(np.isfinite(x), x, 0), full)
                left[...], right[...] = flipped(a), flipped(c.conj().T)
                values[i * k : (i + 1) * k, 0], info[i, 0], x[...] = b, self.fails, np.nan

        each = [
            *[Matrix(a + i * lda * n * size, m, n, lda, dtype) for i in range(batch)],
            *[Matrix(u + i * ldu * lefts * size, m, lefts, ldu, dtype) for i in range(batch)],
            *[Matrix(v + i * ldv * rights * size, n, rights, ldv, dtype) for i in range(batch)],
        ]
        first = [vector(info, batch, INT), vector(s, batch * k, real(dtype))]
        self._told(name, handle, [*first, *each], compute, space, count)
