"""Attention of float32 arrays without a mask of its own and without dropout. The weights are kept for the backward.

They are computed a block of rows at a time, which stays in the cache, and in float64, sums of products included: the
exponentials cost more than the products, and take as long in float64. So a result is rounded once, where products in
float32 are a hundred units of the last place off. Of a causal block the columns beyond its last row are left out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call.halves import F32, F64
from genesis.core.call.kernels import attach
from genesis.core.call.op import REGISTRY

_BLOCK = 1 << 15  # numbers of a block of scores


def _fits(
    query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float, is_causal: bool, scale: Any, enable_gqa: bool
) -> bool:
    if (
        attn_mask is not None
        or dropout_p != 0
        or enable_gqa
        or not query.dtype == key.dtype == value.dtype == F32
        or query.ndim < 2
    ):
        return False
    same = query.shape[:-2] == key.shape[:-2] == value.shape[:-2] and query.ndim == key.ndim == value.ndim
    sizes = (*query.shape, *key.shape, *value.shape)
    return same and query.shape[-1] == key.shape[-1] and key.shape[-2] == value.shape[-2] and 0 not in sizes


def _infer(query: Spec, key: Spec, value: Spec, *_: Any) -> tuple[Spec, tuple[Any, ...]]:
    lead = query.shape[:-1]
    return Spec((*lead, value.shape[-1]), F32), (
        "query",
        "key",
        "value",
        Spec((*lead, key.shape[-2]), F32),
        Spec((), F32),
    )


@attach("scaled_dot_product_attention", np.ndarray, when=_fits, infer=_infer)
def attention(
    query: Any, key: Any, value: Any, attn_mask: None, dropout_p: float, is_causal: bool, scale: Any, enable_gqa: bool
) -> Any:
    """The kernel of `genesis.nn.functional.scaled_dot_product_attention`."""
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    lead, (rows, columns) = query.shape[:-2], (query.shape[-2], key.shape[-2])
    weights, out = np.empty((*lead, rows, columns), F32), np.empty((*lead, rows, value.shape[-1]), F32)
    arrays = [x.reshape(-1, *x.shape[-2:]) for x in (query, key, value, weights, out)]
    step = max(1, _BLOCK // (rows * columns))
    for i in range(0, len(arrays[0]), step):
        _attend(*[x[i : i + step] for x in arrays], factor, is_causal)
    return out, (query, key, value, weights, np.asarray(factor, F32))


def _attend(query: Any, key: Any, value: Any, weights: Any, out: Any, factor: float, is_causal: bool) -> None:
    """The weights and the results of some matrices, a block of rows at a time."""
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
        scores -= np.maximum.reduce(scores, -1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= np.add.reduce(scores, -1, keepdims=True)
        weights[:, part, seen] = scores
        out[:, part] = np.matmul(scores, value[:, seen])


@attention.backward(reads=("query", "key", "value"))
def _(g: Any, kept: Any, needs: Any) -> Any:
    query, key, value, weights, factor = kept
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
