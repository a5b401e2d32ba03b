"""Attention whose scores are changed by a function of the place: ``torch.nn.attention.flex_attention``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from genesis.base.dtypes import float32, float64
from genesis.base.errors import ArgumentValueError, ShapeError, message
from genesis.core.call.refusal import expect_tensor, explain_all
from genesis.core.graph.tensor import Tensor
from genesis.nn.attention.blocks import (
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    grid,
    noop_mask,
    or_masks,
    over_grid,
)
from genesis.ops.pointwise.choice import where

FlexKernelOptions = dict  # options of kernels on GPUs, without an effect


class AuxRequest(NamedTuple):
    """What `flex_attention` gives besides its result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for with an `AuxRequest`."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Any] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: dict[str, Any] | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention with scores of one's own: $\\mathrm{softmax}_j(f(s\\, q_i \\cdot k_j, b, h, i, j))\\, v_j$ over the j that the mask
    lets through (Dong et al. 2024). A row that has none gives zeros.

    ``score_mod`` and the mask are functions of single numbers, which are called once, on all places (`genesis.func.vmap`);
    they may index tensors of their own, to which gradients go, too. The scores are whole in memory, in float32 at least.

    Args:
        score_mod: ``score_mod(score, b, h, q_idx, kv_idx)``, of 0-d tensors; block_mask: from `create_block_mask`
        scale: $s$; $1 / \\sqrt{E}$ unless given; enable_gqa: fewer heads of keys and values, each for several of queries
        return_lse: give the logarithms of the sums of $e^f$, too; return_aux: or an `AuxRequest`, also of the largest scores
        kernel_options: accepted, without effect

    Shapes:
        query (B, H, L, E), key (B, H, S, E), value (B, H, S, V); result (B, H, L, V), sums (B, H, L)

    >>> import genesis
    >>> from genesis.nn.attention.flex_attention import create_block_mask, flex_attention
    >>> q = genesis.ones(1, 1, 3, 2)
    >>> v = genesis.tensor([[[[1.0], [2.0], [3.0]]]])
    >>> flex_attention(q, q, v, block_mask=create_block_mask(lambda b, h, i, j: i >= j, None, None, 3, 3)).flatten()
    tensor([1.0000, 1.5000, 2.0000])
    >>> flex_attention(q, q, v, lambda score, b, h, i, j: score - 100 * (i - j).abs()).flatten()
    tensor([1., 2., 3.])
    """
    _check(query, key, value, enable_gqa, block_mask)
    if return_lse and return_aux is not None:
        raise ArgumentValueError(
            message("flex_attention", "return_lse and return_aux are both given", hint="AuxRequest(lse=True)")
        )
    heads = query.shape[1] // key.shape[1]
    if heads > 1:
        key, value = (x.repeat_interleave(heads, 1) for x in (key, value))
    precise = float64 if query.dtype is float64 else float32
    scores = query.to(precise) @ key.to(precise).transpose(-2, -1)
    scores = scores * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if score_mod is not None:
        scores = over_grid(score_mod, True)(scores, *grid(*scores.shape)).to(scores.dtype)
    if block_mask is not None:
        scores = where(block_mask.elements(*scores.shape[:2]), scores, -math.inf)
    nothing = (scores == -math.inf).all(-1, keepdim=True)
    scores = where(nothing, 0.0, scores)  # its softmax has a gradient
    out = where(nothing, 0.0, scores.softmax(-1)).to(query.dtype) @ value.to(query.dtype)
    wanted = AuxRequest(lse=True) if return_lse else return_aux
    if wanted is None:
        return out
    nothing = nothing.squeeze(-1)
    sums = where(nothing, -math.inf, scores.logsumexp(-1)) if wanted.lse else None
    most = where(nothing, -math.inf, scores.amax(-1)) if wanted.max_scores else None
    return (out, sums) if return_lse else (out, AuxOutput(sums, most))


def _check(query: Any, key: Any, value: Any, enable_gqa: bool, block_mask: BlockMask | None) -> None:
    named = [("query", query), ("key", key), ("value", value)]
    for what, x in named:
        expect_tensor("flex_attention", what, x)
    shown = [(what, x._spec()) for what, x in named]
    if {x.ndim for _, x in named} != {4}:
        raise ShapeError(
            message("flex_attention", "query, key and value have 4 dimensions: (batch, heads, length, features)", shown)
        )
    if query.shape[-1] != key.shape[-1] or key.shape[:3] != value.shape[:3]:
        raise ShapeValueError(
            message("flex_attention", "queries and keys need as many features, keys and values one length", shown)
        )
    if query.shape[1] != key.shape[1] and not enable_gqa:
        raise ShapeValueError(
            message("flex_attention", f"query has {query.shape[1]} heads, key {key.shape[1]}", shown, "enable_gqa=True")
        )
    if not key.shape[1] or query.shape[1] % key.shape[1]:
        text = f"the {query.shape[1]} heads of query are no multiple of the {key.shape[1]} of key"
        raise ShapeValueError(message("flex_attention", text, shown))
    if key.shape[0] not in (1, query.shape[0]):
        raise ShapeValueError(
            message("flex_attention", f"query has {query.shape[0]} examples, key {key.shape[0]}", shown)
        )
    if block_mask is None:
        return
    if block_mask.seq_lengths != (query.shape[2], key.shape[2]):
        text = f"block_mask is for lengths {block_mask.seq_lengths}, they are {(query.shape[2], key.shape[2])}"
        raise ShapeValueError(message("flex_attention", text, shown, "a mask that is made for these lengths"))
    for what, n, have in zip(("examples", "heads"), block_mask.shape, query.shape, strict=False):
        if n not in (1, have):
            raise ShapeValueError(message("flex_attention", f"block_mask is for {n} {what}, query has {have}", shown))


class ShapeValueError(ShapeError, ArgumentValueError):
    """Shapes that do not fit: PyTorch has a ValueError for them."""


__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask", "flex_attention",
    "noop_mask", "or_masks",
]  # fmt: skip

explain_all(globals(), "flex_attention")
