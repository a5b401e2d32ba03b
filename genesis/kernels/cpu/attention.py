"""Attention of float32 arrays without dropout; with a mask of its own only of few rows, as of a token that is generated.

Where llvmlite is, loops compute it from `LEAST` multiplications on; two numbers of each row are kept for the backward
(`genesis.kernels.llvm.attention`). Elsewhere NumPy does, and the weights are kept. They are computed a block of rows at
a time, which stays in the cache, and in float64, sums of products included: the exponentials cost more than the
products, and take as long in float64. Of a causal block the columns beyond its last row are left out.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, laid_as
from genesis.base.threads import get_num_threads
from genesis.core.call.halves import F32, F64
from genesis.core.call.kernels import attach
from genesis.core.call.op import REGISTRY
from genesis.kernels.cpu import memory
from genesis.kernels.cpu.nests import Nest
from genesis.kernels.llvm import attention as code
from genesis.kernels.llvm import few_rows, loops, native
from genesis.kernels.native import runtime

_BLOCK = 1 << 15  # numbers of a block of scores
LEAST = 1 << 18  # multiplications from where it is worth to have llvmlite
FEW = 4  # rows that may have a mask


def _fits(
    query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float, is_causal: bool, scale: Any, enable_gqa: bool
) -> bool:
    if dropout_p != 0 or enable_gqa or not query.dtype == key.dtype == value.dtype == F32 or query.ndim < 2:
        return False
    same = query.shape[:-2] == key.shape[:-2] == value.shape[:-2] and query.ndim == key.ndim == value.ndim
    sizes = (*query.shape, *key.shape, *value.shape)
    fits = same and query.shape[-1] == key.shape[-1] and key.shape[-2] == value.shape[-2] and 0 not in sizes
    return fits and (attn_mask is None or (_is_few(query, key, attn_mask) and not is_causal))


def _is_few(query: Any, key: Any, mask: Any) -> bool:
    """Whether a mask of booleans is one of few rows, and the weights are kept."""
    scores = (*query.shape[:-1], key.shape[-2])
    sizes = zip(mask.shape[::-1], scores[::-1], strict=False)
    fits = mask.ndim <= len(scores) and all([n in (1, m) for n, m in sizes])
    return fits and mask.dtype.kind == "b" and query.shape[-2] <= FEW and not _is_compiled(query, key)


def _infer(query: Spec, key: Spec, value: Spec, *_: Any) -> tuple[Spec, tuple[Any, ...]]:
    lead = query.shape[:-1]
    kept = 2 if _is_compiled(query, key) else key.shape[-2]
    shape = (*lead, value.shape[-1])
    out = Spec(shape, F32, strides=laid_as(query, shape))
    return out, ("query", "key", "value", Spec((*lead, kept), F32), Spec((), F32), "is_causal")


def _made_as(query: Any, shape: tuple[int, ...]) -> Any:
    """An array whose rows are in the order of the query's."""
    strides = laid_as(query, shape)
    return memory.empty(shape, F32, None if strides is None else [4 * step for step in strides])


def _is_compiled(query: Any, key: Any) -> bool:
    return math.prod(query.shape) * key.shape[-2] >= LEAST and loops.available()


@attach("scaled_dot_product_attention", np.ndarray, when=_fits, infer=_infer)
def attention(
    query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float, is_causal: bool, scale: Any, enable_gqa: bool
) -> Any:
    """The kernel of `genesis.nn.functional.scaled_dot_product_attention`."""
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    if _is_compiled(query, key):
        return _compiled(query, key, value, np.asarray(factor, F32), is_causal)
    if attn_mask is None and loops.available():
        return _row_by_row(query, key, value, factor, is_causal)
    lead, (rows, columns) = query.shape[:-2], (query.shape[-2], key.shape[-2])
    if attn_mask is None and math.prod(lead) * rows * columns <= _BLOCK:
        weights, out = _at_once(query, key, value, factor, is_causal)
        laid = _made_as(query, out.shape)
        np.copyto(laid, out, "same_kind")
        return laid, (query, key, value, weights.astype(F32), np.asarray(factor, F32), is_causal)
    weights, laid = np.empty((*lead, rows, columns), F32), _made_as(query, (*lead, rows, value.shape[-1]))
    out = laid if laid.flags.c_contiguous else np.empty(laid.shape, F32)
    arrays = [x.reshape(-1, *x.shape[-2:]) for x in (query, key, value, weights, out)]
    step = max(1, _BLOCK // (rows * columns))
    seen = None if attn_mask is None else np.broadcast_to(attn_mask, weights.shape).reshape(-1, rows, columns)
    for i in range(0, len(arrays[0]), step):
        mask = None if seen is None else seen[i : i + step]
        _attend(*[x[i : i + step] for x in arrays], factor, is_causal, mask)
    if out is not laid:
        np.copyto(laid, out)
    return laid, (query, key, value, weights, np.asarray(factor, F32), is_causal)


@functools.cache
def _of_few() -> Nest:
    code = few_rows.attention(loops.width() // 4)
    return Nest("attention", code, len(few_rows.POINTERS), len(few_rows.SIZES))


def _row_by_row(query: Any, key: Any, value: Any, factor: float, is_causal: bool) -> Any:
    lead, columns = query.shape[:-1], key.shape[-2]
    q, k, v = map(np.ascontiguousarray, (query, key, value))
    weights, laid = np.empty((*lead, columns), F32), _made_as(query, (*lead, value.shape[-1]))
    out = laid if laid.flags.c_contiguous else np.empty(laid.shape, F32)
    scores = np.empty(columns + loops.width() // 4, F64)
    sizes = query.shape[-2], columns, query.shape[-1], value.shape[-1], int(is_causal)
    _of_few()((q, k, v, np.asarray(factor, F64), scores, weights, out), math.prod(lead), sizes, False)
    if out is not laid:
        np.copyto(laid, out)
    return laid, (query, key, value, weights, np.asarray(factor, F32), is_causal)


def _at_once(query: Any, key: Any, value: Any, factor: float, is_causal: bool) -> tuple[Any, Any]:
    """The weights and the results of all matrices in float64, where all is a block (half of the time of `_attend`)."""
    scores = np.matmul(query.astype(F64) * factor, key.astype(F64).swapaxes(-1, -2))
    if is_causal:
        np.copyto(scores, -np.inf, where=_beyond(*scores.shape[-2:]))
    scores -= np.maximum.reduce(scores, -1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= np.add.reduce(scores, -1, keepdims=True)
    return scores, np.matmul(scores, value.astype(F64))


@functools.lru_cache(maxsize=64)
def _beyond(rows: int, columns: int) -> Any:
    """Which columns are behind their row."""
    return ~np.tri(rows, columns, dtype=np.bool_)


def _attend(
    query: Any, key: Any, value: Any, weights: Any, out: Any, factor: float, is_causal: bool, mask: Any
) -> None:
    """The weights and the results of some matrices, a block of rows at a time. A row that sees nothing has no weights."""
    query, key, value = query.astype(F64), key.astype(F64).swapaxes(-1, -2), value.astype(F64)
    query *= factor
    rows, columns = weights.shape[-2:]
    step = max(1, _BLOCK // columns)
    for i in range(0, rows, step):
        part = slice(i, i + step)
        seen = slice(min(columns, i + step) if is_causal else columns)
        scores = np.matmul(query[:, part], key[..., seen])
        if is_causal:
            np.copyto(scores, -np.inf, where=np.tri(*scores.shape[-2:], i, dtype=np.bool_) ^ True)
            weights[:, part, seen.stop :] = 0
        if mask is not None:
            np.copyto(scores, -np.inf, where=mask[:, part] ^ True)
        most = np.maximum.reduce(scores, -1, keepdims=True)
        if mask is not None:
            most[most == -np.inf] = 0
        scores -= most
        np.exp(scores, out=scores)
        total = np.add.reduce(scores, -1, keepdims=True)
        if mask is not None:
            total[total == 0] = 1
        scores /= total
        weights[:, part, seen] = scores
        out[:, part] = np.matmul(scores, value[:, seen])


@attention.backward(reads=("query", "key", "value"), laid=lambda kept: [None] * 4)
def _(g: Any, kept: Any, needs: Any) -> Any:
    query, key, value, weights, factor, is_causal = kept
    if _is_compiled(query, key):
        return (*_compiled_gradients(g, query, key, value, weights, factor, is_causal), None)
    matmul = REGISTRY["matmul"].kernel
    gvalue = np.ascontiguousarray(matmul(weights.swapaxes(-1, -2), g)) if needs[2] else None
    if not (needs[0] or needs[1]):
        return None, None, gvalue, None
    scores = np.ascontiguousarray(matmul(g, value.swapaxes(-1, -2)))
    scores *= weights
    scores -= weights * np.add.reduce(scores, -1, keepdims=True)
    scores *= factor
    gquery = np.ascontiguousarray(matmul(scores, key)) if needs[0] else None
    gkey = np.ascontiguousarray(matmul(scores.swapaxes(-1, -2), query)) if needs[1] else None
    return gquery, gkey, gvalue, None


# ---- compiled


@functools.cache
def _tile() -> tuple[int, int]:
    """The rows and vectors of a tile of a product: their sums are in registers."""
    return (4, 3) if loops.width() == 32 else (8, 3)  # 16 registers, or 32


@functools.cache
def _loops() -> list[Any]:
    sizes = {"forward": code.FORWARD, "backward": code.BACKWARD}
    text = code.module(loops.width() // 4, *_tile())
    return native.nests(text, {name: (len(addresses), len(integers)) for name, (addresses, integers) in sizes.items()})


def _compiled(query: Any, key: Any, value: Any, factor: Any, causal: bool) -> Any:
    query, key, value = map(_aligned, (query, key, value))
    lead = query.shape[:-1]
    out, stats = _made_as(query, (*lead, value.shape[-1])), np.empty((*lead, 2), F32)
    _run(_loops()[0], (query, key, value, out), factor, (out, stats), causal)
    return out, (query, key, value, stats, factor, causal)


def _compiled_gradients(g: Any, query: Any, key: Any, value: Any, stats: Any, factor: Any, causal: bool) -> Any:
    gradients = memory.empty(query.shape, F32), *[np.zeros(x.shape, F32) for x in (key, value)]
    arrays = query, key, value, _aligned(g)
    _run(_loops()[1], arrays, factor, (np.ascontiguousarray(stats), arrays[3], *gradients), causal)
    return gradients


def _run(loop: Any, arrays: Any, factor: Any, others: Any, causal: bool) -> None:
    """A loop over all heads, in several threads."""
    query, key, value = arrays[:3]
    sizes = query.shape[-2], key.shape[-2], query.shape[-1], value.shape[-1]
    panel = _tile()[1] * loops.width() // 4
    up = lambda n, step: -(-n // step) * step  # noqa: E731
    steps = [step // 4 for x in arrays for step in x.strides[-2:]]
    offsets = _offsets(arrays)
    first = [x.ctypes.data for x in (query, key, value, factor, offsets)]
    then = [x.ctypes.data for x in others]

    heads = math.prod(query.shape[:-2])
    slices = min(heads, 4 * get_num_threads()) if get_num_threads() > 1 else 1
    scratch = memory.empty((slices, code.scratch(*sizes[1:], *_tile()[:1], panel)), F32)
    addresses = *first, scratch.ctypes.data, *then
    rest = *sizes, up(sizes[1], panel), up(sizes[0], code.ROWS), int(causal), *steps
    runtime.in_slices(loop, addresses, heads, rest, slices, {len(first): scratch.strides[0]})


def _offsets(arrays: Any) -> Any:
    """Where the matrices of each array begin: of the first pair of all, then of the second, and so on."""
    lead = arrays[0].shape[:-2]
    table = np.zeros((*lead, len(arrays)), np.int64)
    for i, x in enumerate(arrays):
        for d, size in enumerate(lead):
            table[..., i] += (np.arange(size) * (x.strides[d] // 4)).reshape(size, *[1] * (len(lead) - d - 1))
    return table


def _aligned(x: Any) -> Any:
    """The array; a copy if its numbers are not where numbers of this size can be."""
    return x.copy() if not x.flags.aligned or any([step % 4 for step in x.strides]) else x
