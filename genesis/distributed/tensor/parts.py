"""Functions of which each rank computes its part by other means than the function itself."""

from __future__ import annotations

from typing import Any

from genesis.core.graph.modes import no_grad
from genesis.distributed.nn import ops
from genesis.distributed.sharded import Sharding
from genesis.distributed.tensor.exchange import summed
from genesis.nn.functional import dropout, embedding
from genesis.ops.creation.create import ones
from genesis.ops.pointwise.choice import where


def dropout_of_part(x: Any, at: Sharding, p: float, training: bool) -> Any:
    """`dropout` of this rank's part, with the random numbers that one rank would draw for the whole; so all ranks draw
    all of them, and must have the same seed.
    """
    if not training or not p:
        return x
    with no_grad():
        drawn: Any = dropout(ones(at.shape_of(x.shape), dtype=x.dtype), p)
    return x * at.part_of(drawn)


def embedding_of_rows(words: Any, rows: Any, at: Sharding, padding_idx: int | None = None) -> Any:
    """This rank's term of `embedding`, of whose weight it has some rows: zeros for words that others have."""
    if not at.rows:
        return rows.new_zeros((*words.shape, rows.shape[1])) + 0 * rows.sum()
    inside = (words >= at.begin) & (words < at.end)
    padding = None if padding_idx is None else padding_idx % at.length - at.begin
    own = padding if padding is not None and 0 <= padding < at.rows else None
    return embedding(where(inside, words - at.begin, 0), rows, own) * inside.unsqueeze(-1).to(rows.dtype)


def cross_entropy_of_classes(
    logits: Any, target: Any, at: Sharding, ignore_index: int = -100, reduction: str = "mean"
) -> Any:
    """`cross_entropy` of targets that are numbers of classes, each rank having the logits of some. What goes between ranks
    are three numbers for each example.
    """
    dim, key = at.dim, at.members.key
    wide = logits.float() if logits.dtype.itemsize == 2 else logits
    with no_grad():
        own = wide.detach().amax(dim) if at.rows else wide.new_full(target.shape, float("-inf"))
        largest = ops.all_reduce(own, "max", key)
    wide = wide - largest.unsqueeze(dim)
    of_all = summed(wide.exp().sum(dim), key).log()
    inside, counted = (target >= at.begin) & (target < at.end), target != ignore_index
    index = where(inside, target - at.begin, 0).unsqueeze(dim)
    chosen = wide.gather(dim, index).squeeze(dim) if at.rows else wide.sum(dim)
    losses = (of_all - summed(where(inside, chosen, 0.0), key)) * counted.to(wide.dtype)
    losses = losses.to(logits.dtype) if reduction == "none" else losses
    if reduction == "none":
        return losses
    total = losses.sum() if reduction == "sum" else losses.sum() / counted.sum()
    return total.to(logits.dtype)
