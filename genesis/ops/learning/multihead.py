"""Attention of several heads, with projections before and after."""

from __future__ import annotations

import math
from typing import Any

from genesis.base.errors import ArgumentValueError, DTypeError, ShapeError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.create import zeros
from genesis.ops.learning.attention import scaled_dot_product_attention
from genesis.ops.learning.dropout import dropout
from genesis.ops.learning.softmax import softmax
from genesis.ops.products.linear import linear
from genesis.ops.products.matmul import matmul
from genesis.ops.shapes.join import cat

NAME = "multi_head_attention_forward"


def _check(
    query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None, heads: int, along: int
) -> None:
    """Refuse shapes of a batch that do not fit; sequences go along that dimension."""
    given = [("query", query._spec()), ("key", key._spec()), ("value", value._spec())]
    if query.ndim != 3 or key.ndim != 3 or value.ndim != 3:
        raise ShapeError(message(NAME, "query, key and value need 2 dimensions, or 3 with a batch", given))
    if key.shape[:2] != value.shape[:2] or key.shape[1 - along] != query.shape[1 - along]:
        raise ShapeError(message(NAME, "lengths or batches differ", given))
    batch, target, source = query.shape[1 - along], query.shape[along], key.shape[along]
    if padding is not None and tuple(padding.shape) != (batch, source):
        raise ShapeError(
            message(NAME, f"key_padding_mask has shape {list(padding.shape)}, expected {[batch, source]}", given)
        )
    if mask is not None and tuple(mask.shape) not in ((target, source), (batch * heads, target, source)):
        expected = f"{[target, source]} or {[batch * heads, target, source]}"
        raise ShapeError(message(NAME, f"attn_mask has shape {list(mask.shape)}, expected {expected}", given))


def _additive(what: str, mask: Tensor | None, like: Tensor) -> Tensor | None:
    """A mask that is added to the scores: bool ones are True where attention is not allowed."""
    if mask is None or mask.is_floating_point():
        return mask
    if mask._array.dtype.kind != "b":
        raise DTypeError(message(NAME, f"{what} must be bool or floating, it is {mask.dtype}"))
    return zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill(mask, -math.inf)  # type: ignore[attr-defined, no-any-return]


def _wider(mask: Tensor | None) -> Tensor | None:
    """With one more key that all see."""
    if mask is None:
        return None
    return cat([mask, zeros((*mask.shape[:-1], 1), dtype=mask.dtype, device=mask.device)], -1)


def _projected(
    query: Tensor, key: Tensor, value: Tensor, weights: list[Any], in_weight: Any, biases: list[Any], bias: Any
) -> tuple[Tensor, ...]:
    """Queries, keys and values; one product where they come of one tensor and one weight."""
    if in_weight is not None and query is key is value:
        return linear(query, in_weight, bias).chunk(3, -1)  # type: ignore[no-any-return]
    return tuple([linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)])


def _heads(x: Tensor, heads: int, along: int) -> Tensor:
    """(L, N, H * D), or (N, L, H * D), to (N, H, L, D)."""
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).permute(1 - along, 2, along, 3)  # type: ignore[attr-defined, no-any-return]


def _static(what: str, x: Tensor, batch: int, heads: int, features: int) -> Tensor:
    if x.ndim != 3 or x.shape[0] != batch * heads or x.shape[2] != features:
        expected = f"({batch * heads}, S, {features})"
        raise ShapeError(message(NAME, f"{what} has shape {list(x.shape)}, expected {expected}"))
    return x.reshape(batch, heads, x.shape[1], features)


def _merged(mask: Tensor | None, padding: Tensor | None, batch: int, heads: int) -> Tensor | None:
    """Both masks as one, broadcast to (N, H, L, S)."""
    if mask is not None and mask.ndim == 3:
        mask = mask.reshape(batch, heads, *mask.shape[1:])
    if padding is None:
        return mask
    padding = padding.reshape(batch, 1, 1, padding.shape[1])
    return padding if mask is None else mask + padding  # type: ignore[operator]


def attended(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
    batch_first: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """`multi_head_attention_forward` without the last projection; ``batch_first``: queries, keys, values and the result
    are (N, L, E).
    """
    if query.ndim == 2 and key.ndim == 2 and value.ndim == 2:
        same = query is key is value
        batched = [x.unsqueeze(1) for x in (query, key, value)] if not same else [query.unsqueeze(1)] * 3  # type: ignore[attr-defined]
        padding = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)  # type: ignore[attr-defined]
        out, weights = attended(
            *batched, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn,
            dropout_p, training, padding, need_weights, attn_mask,
            use_separate_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, static_k, static_v,
            average_attn_weights, is_causal,
        )  # fmt: skip
        return out.squeeze(1), None if weights is None else weights.squeeze(0)  # type: ignore[attr-defined]
    along = 1 if batch_first else 0
    _check(query, key, value, key_padding_mask, attn_mask, num_heads, along)
    batch, size, heads = query.shape[1 - along], query.shape[2], num_heads
    if size != embed_dim_to_check or size % heads:
        raise ArgumentValueError(
            message(NAME, f"{size} features, expected {embed_dim_to_check} that {heads} heads divide among themselves")
        )
    if is_causal and attn_mask is None:
        raise ShapeError(message(NAME, "is_causal says what attn_mask is, it must be given",
                                 hint="nn.Transformer.generate_square_subsequent_mask"))  # fmt: skip
    causal = is_causal and key_padding_mask is None and not need_weights
    mask, padding = _additive("attn_mask", attn_mask, query), _additive("key_padding_mask", key_padding_mask, query)
    separate = [q_proj_weight, k_proj_weight, v_proj_weight]
    weights = separate if use_separate_proj_weight else list(in_proj_weight.chunk(3))  # type: ignore[union-attr]
    biases = [None] * 3 if in_proj_bias is None else list(in_proj_bias.chunk(3))  # type: ignore[attr-defined]
    q, k, v = _projected(
        query, key, value, weights, None if use_separate_proj_weight else in_proj_weight, biases, in_proj_bias
    )
    if bias_k is not None and bias_v is not None:
        one = (batch, 1, size) if batch_first else (1, batch, size)
        k, v = (cat([x, b.expand(one)], along) for x, b in ((k, bias_k), (v, bias_v)))  # type: ignore[attr-defined]
        mask, padding, causal = _wider(mask), _wider(padding), False
    q, k, v = (_heads(x, heads, along) for x in (q, k, v))
    if static_k is not None:
        k = _static("static_k", static_k, batch, heads, size // heads)
    if static_v is not None:
        v = _static("static_v", static_v, batch, heads, size // heads)
    if add_zero_attn:
        k, v = (cat([x, zeros((batch, heads, 1, size // heads), dtype=x.dtype, device=x.device)], 2) for x in (k, v))
        mask, padding, causal = _wider(mask), _wider(padding), False
    mask, rate = _merged(mask, padding, batch, heads), dropout_p if training else 0.0
    shares = None
    if need_weights:
        scores = matmul(q * (1 / math.sqrt(size // heads)), k.mT)
        shares = softmax(scores if mask is None else scores + mask, -1)
        shares = dropout(shares, rate, rate != 0)
        out = matmul(shares, v)
    else:
        out = scaled_dot_product_attention(q, k, v, None if causal else mask, rate, causal)
    out = out.permute(0, 2, 1, 3) if batch_first else out.permute(2, 0, 1, 3)  # type: ignore[attr-defined]
    out = out.reshape(query.shape)
    return out, shares.mean(1) if shares is not None and average_attn_weights else shares


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """What `genesis.nn.MultiheadAttention` computes: projections into heads, attention in each, a projection of all.

    Args:
        query: (L, N, E), or (L, E) without a batch; key, value: (S, N, ...)
        in_proj_weight: (3E, E), for queries, keys and values; else the three ``*_proj_weight``
        bias_k, bias_v: (1, 1, E), one more key and its value; add_zero_attn: one more of zeros
        key_padding_mask: (N, S); attn_mask: (L, S) or (N * heads, L, S); bool ones are True where attention is not
            allowed, floating ones are added
        need_weights: give the weights, too, averaged over heads where ``average_attn_weights``
        static_k, static_v: (N * heads, S, E / heads) instead of the projected keys and values
        is_causal: a hint that ``attn_mask`` is causal; it must be given

    Returns:
        (L, N, E), and the weights (N, L, S) or (N, heads, L, S) or None

    Raises:
        RuntimeError: shapes or dtypes that do not fit
        ValueError: features that cannot be divided among the heads

    >>> import genesis
    >>> x, w = genesis.ones(3, 1, 2), genesis.ones(6, 2)
    >>> out, weights = genesis.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 2, 1, w, None, None, None, False, 0.0, w[:2], None)
    >>> out.shape, weights.shape
    (genesis.Size([3, 1, 2]), genesis.Size([1, 3, 3]))
    """
    out, weights = attended(
        query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn,
        dropout_p, training, key_padding_mask, need_weights, attn_mask, use_separate_proj_weight, q_proj_weight,
        k_proj_weight, v_proj_weight, static_k, static_v, average_attn_weights, is_causal,
    )  # fmt: skip
    return linear(out, out_proj_weight, out_proj_bias), weights


FUNCTIONAL = ["multi_head_attention_forward"]
__all__: list[str] = []
explain_all(globals(), *FUNCTIONAL)
