"""Attention of float32 arrays without a mask of its own and without dropout: the weights are computed in place, and
kept.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call.kernels import attach
from genesis.core.call.op import REGISTRY

F32 = np.dtype(np.float32)


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
    matmul, factor = (
        REGISTRY["matmul"].kernel,
        np.asarray(1 / math.sqrt(query.shape[-1]) if scale is None else scale, F32),
    )
    weights = np.ascontiguousarray(matmul(query * factor, key.swapaxes(-1, -2)))
    if is_causal:
        np.copyto(weights, -np.inf, where=np.tri(*weights.shape[-2:], dtype=np.bool_) ^ True)
    weights = REGISTRY["softmax"].kernel(weights, weights.ndim - 1, None)
    return np.ascontiguousarray(matmul(weights, value)), (query, key, value, weights, factor)


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
