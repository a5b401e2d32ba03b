"""Attention."""

from __future__ import annotations

import math

from genesis.base.errors import ArgumentError, ShapeError, message
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.kinds import case, composite
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.create import ones
from genesis.ops.pointwise.choice import where
from genesis.ops.products.matmul import matmul
from genesis.ops.learning.dropout import dropout
from genesis.ops.learning.softmax import softmax


def _mask(scores: Tensor, attn_mask: Tensor | None, is_causal: bool) -> Tensor:
    if is_causal:
        if attn_mask is not None:
            raise ArgumentError(message("scaled_dot_product_attention", "attn_mask and is_causal were both given"))
        attn_mask = ones(scores.shape[-2:], dtype="bool", device=scores.device).tril()
    if attn_mask is None:
        return scores
    return where(attn_mask, scores, -math.inf) if attn_mask._array.dtype.kind == "b" else scores + attn_mask


@composite(halves="alike", method=False, autocast="low", torch_name="nn.functional.scaled_dot_product_attention")
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """$softmax(Q K^T / \\sqrt d + mask) V$ (Vaswani et al. 2017).

    Args:
        query: (..., L, d); key: (..., S, d); value: (..., S, v); result: (..., L, v)
        attn_mask: bool (True takes part) or floating (added), broadcast to (..., L, S)
        is_causal: position i sees positions up to i
        enable_gqa: several query heads share one key head (dim -3)

    Raises:
        RuntimeError: sizes that do not fit

    >>> import genesis
    >>> q = genesis.ones(1, 2, 4)
    >>> genesis.nn.functional.scaled_dot_product_attention(q, q, q).shape
    genesis.Size([1, 2, 4])
    """
    if query.shape[-1] != key.shape[-1]:
        raise ShapeError(
            message("scaled_dot_product_attention", f"query has {query.shape[-1]} features, key {key.shape[-1]}",
                    [("query", query._spec()), ("key", key._spec()), ("value", value._spec())])
        )  # fmt: skip
    if enable_gqa:
        repeats = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(repeats, -3), value.repeat_interleave(repeats, -3)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    weights = softmax(_mask(matmul(query * factor, key.mT), attn_mask, is_causal), -1)
    return matmul(dropout(weights, dropout_p, dropout_p > 0), value)


samples(
    scaled_dot_product_attention,
    lambda t: [
        case(t(2, 3, 4), t(2, 5, 4), t(2, 5, 4)),
        case(t(1, 2, 3, 4), t(1, 2, 3, 4), t(1, 2, 3, 4), is_causal=True),
        case(t(2, 3, 4), t(2, 5, 4), t(2, 5, 2), t(3, 5), scale=0.3),
        case(t(1, 4, 3, 2), t(1, 2, 3, 2), t(1, 2, 3, 2), enable_gqa=True),
    ],
)

wrong_inputs(
    scaled_dot_product_attention,
    (lambda t: case(t(2, 3, 4), t(2, 5, 3), t(2, 5, 3)), RuntimeError, "query has 4 features, key 3"),
)


FUNCTIONAL = ["scaled_dot_product_attention"]
__all__: list[str] = []
