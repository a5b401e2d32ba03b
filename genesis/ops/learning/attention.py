"""Attention."""

from __future__ import annotations

import math

from genesis.arrays.spec import order_of_rows
from genesis.base.errors import DTypeError, ShapeError, message
from genesis.core.call.kinds import case, composite
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor, known_values
from genesis.ops.creation.create import ones
from genesis.ops.learning.dropout import dropout
from genesis.ops.learning.softmax import softmax
from genesis.ops.pointwise.choice import where
from genesis.ops.products.matmul import matmul
from genesis.ops.shapes.permute import permute

NAME = "scaled_dot_product_attention"


def _weights(scores: Tensor, attn_mask: Tensor | None, is_causal: bool) -> Tensor:
    """The softmax of what is not masked; zeros, where a query sees nothing."""
    if is_causal:  # the first key is seen by all
        attn_mask = ones(scores.shape[-2:], dtype="bool", device=scores.device).tril()
        return softmax(where(attn_mask, scores, -math.inf), -1)
    if attn_mask is None:
        return softmax(scores, -1)
    boolean = attn_mask._array.dtype.kind == "b"
    scores = where(attn_mask, scores, -math.inf) if boolean else scores + attn_mask
    seen = known_values(attn_mask)
    if seen is not None and (seen if boolean else seen > -math.inf).any(-1).all():
        return softmax(scores, -1)
    blind = (scores == -math.inf).all(-1, keepdim=True)
    return where(blind, 0.0, softmax(where(blind, 0.0, scores), -1))


def _check(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool) -> None:
    given = [("query", query._spec()), ("key", key._spec()), ("value", value._spec())]
    dims = [x.ndim for x in (query, key, value)]
    if min(dims) < 2:
        raise ShapeError(message(NAME, f"query, key and value need at least 2 dimensions, they have {dims}", given))
    if query.shape[-1] != key.shape[-1]:
        raise ShapeError(message(NAME, f"query has {query.shape[-1]} features, key {key.shape[-1]}", given))
    if attn_mask is None:
        return
    if is_causal:
        raise ShapeError(message(NAME, "attn_mask and is_causal were both given", hint="one of them"))
    if attn_mask._array.dtype.kind != "b" and not attn_mask.is_floating_point():
        raise DTypeError(message(NAME, f"attn_mask must be bool or floating, it is {attn_mask.dtype}"))


def _in_order(x: Tensor, order: tuple[int, ...]) -> Tensor:
    """The same, with its dimensions in this order in memory: heads of a projection lie beside each other, and so do those
    of what is computed of them, so that they are one projection's again without a copy.
    """
    return permute(permute(x, order).contiguous(), [order.index(d) for d in range(len(order))])  # type: ignore[attr-defined, no-any-return]


def _for_all_heads(query: Tensor, x: Tensor, what: str) -> Tensor:
    """Heads of keys or values once for each of the query heads that share them."""
    heads = [t.shape[-3] if t.ndim > 2 else 1 for t in (query, x)]
    if heads[1] == 0 or heads[0] % heads[1]:
        raise ShapeError(message(NAME, f"{heads[0]} query heads cannot share {heads[1]} {what} heads"))
    return x if heads[0] == heads[1] else x.repeat_interleave(heads[0] // heads[1], -3)  # type: ignore[attr-defined, no-any-return]


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
        attn_mask: bool (True takes part) or floating (added), broadcast to (..., L, S); a query that sees nothing gives
            zeros
        dropout_p: of the weights, also outside of training
        is_causal: position i sees positions up to i
        scale: instead of $1 / \\sqrt d$
        enable_gqa: several query heads share one head of keys and values (dim -3)

    On a GPU, gradients in 16 bits by cuDNN may differ in their last bits from one time to the next, unless
    `use_deterministic_algorithms` or ``backends.cudnn.deterministic`` is on, which takes half as long again.

    Raises:
        RuntimeError: sizes or dtypes that do not fit, or both ``attn_mask`` and ``is_causal``

    >>> import genesis
    >>> q = genesis.ones(1, 2, 4)
    >>> genesis.nn.functional.scaled_dot_product_attention(q, q, q).shape
    genesis.Size([1, 2, 4])
    """
    _check(query, key, value, attn_mask, is_causal)
    if enable_gqa:
        key, value = _for_all_heads(query, key, "key"), _for_all_heads(query, value, "value")
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    weights = _weights(matmul(query * factor, key.mT), attn_mask, is_causal)
    out = matmul(dropout(weights, dropout_p, dropout_p != 0), value)
    order = order_of_rows(query.shape, query.stride()) if dropout_p == 0 else None
    return out if order is None else _in_order(out, order)


samples(
    scaled_dot_product_attention,
    lambda t: [
        case(t(2, 3, 4), t(2, 5, 4), t(2, 5, 4)),
        case(t(1, 2, 3, 4), t(1, 2, 3, 4), t(1, 2, 3, 4), is_causal=True),
        case(t(2, 3, 4), t(2, 5, 4), t(2, 5, 2), t(3, 5), scale=0.3),
        case(t(2, 3), t(3, 3), t(3, 2), t(2, 1) < 0),
        case(t(1, 4, 3, 2), t(1, 2, 3, 2), t(1, 2, 3, 2), enable_gqa=True),
    ],
)

wrong_inputs(
    scaled_dot_product_attention,
    (lambda t: case(t(2, 3, 4), t(2, 5, 3), t(2, 5, 3)), RuntimeError, "query has 4 features, key 3"),
    (lambda t: case(t(4), t(3, 4), t(3, 4)), RuntimeError, "need at least 2 dimensions"),
    (lambda t: case(t(3, 4), t(3, 4), t(3, 4), t(3, 3), is_causal=True), RuntimeError, "were both given"),
    (lambda t: case(t(3, 4), t(3, 4), t(3, 4), t.int(3, 3)), RuntimeError, "attn_mask must be bool or floating"),
    (
        lambda t: case(t(3, 3, 4), t(2, 3, 4), t(2, 3, 4), enable_gqa=True),
        RuntimeError,
        "3 query heads cannot share 2 key heads",
    ),
)


FUNCTIONAL = ["scaled_dot_product_attention"]
__all__: list[str] = []
