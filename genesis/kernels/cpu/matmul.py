"""Large outer products: columns times rows, one for each sample and layer in per-sample gradients.

They are nothing but writing memory, and NumPy spends more on each row than on its numbers: its matmul takes ten times
as long as a compiled loop, a product with broadcasting four times, einsum twice.
"""

from __future__ import annotations

import functools
import math
from ctypes import c_int64, c_void_p
from typing import Any

import numpy as np

from genesis.base.blas import product
from genesis.base.quiet import quietly, unnamed
from genesis.core.call.halves import HALVES
from genesis.core.call.kernels import attach
from genesis.core.call.op import REGISTRY
from genesis.kernels.cpu import memory
from genesis.kernels.llvm import native
from genesis.kernels.native import runtime

LARGE = 1 << 20  # elements of a result, from where it pays to compile and to use threads

# out[r, :] = a[r] * b[r // per, :] for the rows from first to last
_OUTER = """
define void @outer(ptr noalias %a, ptr noalias %b, ptr noalias %out, i64 %first, i64 %last, i64 %per, i64 %n) {
entry:
  %any = icmp slt i64 %first, %last
  br i1 %any, label %row, label %done
row:
  %r = phi i64 [ %first, %entry ], [ %next_r, %row_end ]
  %a_at = getelementptr TYPE, ptr %a, i64 %r
  %x = load TYPE, ptr %a_at
  %x_first = insertelement <LANES x TYPE> poison, TYPE %x, i32 0
  %x_all = shufflevector <LANES x TYPE> %x_first, <LANES x TYPE> poison, <LANES x i32> zeroinitializer
  %group = udiv i64 %r, %per
  %b_start = mul i64 %group, %n
  %b_row = getelementptr TYPE, ptr %b, i64 %b_start
  %out_start = mul i64 %r, %n
  %out_row = getelementptr TYPE, ptr %out, i64 %out_start
  br label %vector_test
vector_test:
  %v = phi i64 [ 0, %row ], [ %next_v, %vector_body ]
  %next_v = add i64 %v, LANES
  %in_vectors = icmp ule i64 %next_v, %n
  br i1 %in_vectors, label %vector_body, label %rest_test
vector_body:
  %bv_at = getelementptr TYPE, ptr %b_row, i64 %v
  %bv = load <LANES x TYPE>, ptr %bv_at, align SIZE
  %yv = fmul <LANES x TYPE> %x_all, %bv
  %yv_at = getelementptr TYPE, ptr %out_row, i64 %v
  store <LANES x TYPE> %yv, ptr %yv_at, align SIZE
  br label %vector_test
rest_test:
  %t = phi i64 [ %v, %vector_test ], [ %next_t, %rest_body ]
  %in_rest = icmp ult i64 %t, %n
  br i1 %in_rest, label %rest_body, label %row_end
rest_body:
  %bt_at = getelementptr TYPE, ptr %b_row, i64 %t
  %bt = load TYPE, ptr %bt_at
  %yt = fmul TYPE %x, %bt
  %yt_at = getelementptr TYPE, ptr %out_row, i64 %t
  store TYPE %yt, ptr %yt_at
  %next_t = add i64 %t, 1
  br label %rest_test
row_end:
  %next_r = add i64 %r, 1
  %more = icmp slt i64 %next_r, %last
  br i1 %more, label %row, label %done
done:
  ret void
}
"""
_TYPES = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}


def outer_products(a: Any, b: Any) -> Any:
    """Columns (..., M, 1) times rows (..., 1, N)."""
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if math.prod(shape) * a.shape[-2] * b.shape[-1] < LARGE:
        return a * b
    out = memory.empty((*shape, a.shape[-2], b.shape[-1]), a.dtype)
    compiled = _compiled(a.dtype)
    if compiled is None:
        np.einsum("...ij,...jk->...ik", a, b, out=out)
        return out
    columns, rows = (np.ascontiguousarray(np.broadcast_to(x, (*shape, *x.shape[-2:]))) for x in (a, b))
    addresses = columns.ctypes.data, rows.ctypes.data, out.ctypes.data
    runtime.in_slices(compiled, addresses, columns.size, (a.shape[-2], b.shape[-1]))
    return out


@functools.cache
def _compiled(dtype: Any) -> Any:
    if dtype not in _TYPES:
        return None
    code = (
        _OUTER.replace("TYPE", _TYPES[dtype])
        .replace("LANES", str(64 // dtype.itemsize))
        .replace("SIZE", str(dtype.itemsize))
    )
    return native.function("outer", code, c_void_p, c_void_p, c_void_p, c_int64, c_int64, c_int64, c_int64)


@unnamed
def matmul(input: Any, other: Any) -> Any:
    """The kernel of `genesis.matmul`."""
    kind = input.dtype
    if kind is other.dtype and kind not in HALVES:
        if input.ndim < 3:  # what is common, without other calls
            return product(input, other)
        if other.ndim > 2 and input.shape[-1] == other.shape[-2] == 1:
            return quietly(outer_products, input, other)
    return quietly(REGISTRY["matmul"].meaning, input, other)


attach("matmul", np.ndarray, matmul)
