"""How results of layers and losses of a `DTensor` lie."""

from __future__ import annotations

import math
from typing import Any

from genesis.distributed.nn import ops
from genesis.distributed.placements import Partial, Placement, Shard
from genesis.distributed.sharded import Sharding
from genesis.distributed.tensor.parts import cross_entropy_of_classes, dropout_of_part, embedding_of_rows
from genesis.distributed.tensor.propagation import ALL, Answer, Call


def normed(call: Call) -> Answer | None:
    """`layer_norm` and `rms_norm`: all dimensions but the last ones may be divided."""
    placement, x = call.lies[0], call.operands[0]
    last = len(tuple(call.argument("normalized_shape")))
    if not isinstance(placement, Shard) or placement.dim >= x.ndim - last:
        return None
    return Answer([placement, *[ALL] * (len(call.operands) - 1)], placement)


def embedded(call: Call) -> Answer | None:
    """`embedding`: of rows of the weight the result is terms."""
    words, weight = call.argument("input"), call.argument("weight")
    pi, pw = call.lies[call.at(words)], call.lies[call.at(weight)]
    if any([call.argument(name) for name in ("max_norm", "scale_grad_by_freq", "sparse")]):
        return None
    if pw == Shard(0):
        at, padding = Sharding(weight.shape[0], call.members), call.argument("padding_idx")
        return Answer([ALL, pw], Partial(), lambda x, w: embedding_of_rows(x, w, at, padding))
    if pw == Shard(1):
        return Answer([ALL, pw], Shard(words.ndim))
    return Answer([pi, ALL], pi) if isinstance(pi, Shard) else None


def attention(call: Call) -> Answer | None:
    """`scaled_dot_product_attention`: batches and heads may be divided."""
    placement, q = call.lies[0], call.operands[0]
    if not isinstance(placement, Shard) or placement.dim >= q.ndim - 2 or call.argument("dropout_p", 0.0):
        return None
    if any([tuple(x.shape[:-2]) != tuple(q.shape[:-2]) for x in call.operands[1:3]]):
        return None
    wanted: list[Placement] = [placement] * 3
    for mask in call.operands[3:]:
        own = placement.dim - (q.ndim - mask.ndim)
        wanted.append(Shard(own) if own >= 0 and mask.shape[own] > 1 else ALL)
    return Answer(wanted, placement)


def dropped(call: Call) -> Answer | None:
    """`dropout`, with the random numbers of the whole."""
    placement, x = call.lies[0], call.operands[0]
    if not isinstance(placement, Shard) or call.argument("inplace", False):
        return None
    at = Sharding(x.shape[placement.dim], call.members, placement.dim)
    p, training = call.argument("p", 0.5), call.argument("training", True)
    return Answer([placement], placement, lambda a: dropout_of_part(a, at, p, training))


def convolved(call: Call) -> Answer | None:
    """Convolutions: examples may be divided, and the channels that come out."""
    x, weight, *bias = [call.argument(name) for name in ("input", "weight", "bias")]
    bias = [b for b in bias if b is not None]
    px, pw = call.lies[call.at(x)], call.lies[call.at(weight)]
    examples = x.ndim == weight.ndim
    if examples and px == Shard(0) and call.everywhere(x, 0):
        return Answer([px, ALL, *[ALL for _ in bias]], px)
    whole = call.argument("groups", 1) == 1 and "transpose" not in call.name
    if pw == Shard(0) and whole and call.everywhere(weight, 0):
        return Answer([ALL, pw, *[pw for _ in bias]], Shard(int(examples)))
    return None


def windows(call: Call) -> Answer | None:
    """Pooling, padding, triangles and others that go over the last dimensions: those before may be divided."""
    placement, x = call.lies[0], call.operands[0]
    if call.name[-2:] in ("1d", "2d", "3d"):
        last = int(call.name[-2])
    else:
        last = len(call.argument("pad")) // 2 if call.name == "pad" else x.ndim - 2 if call.name == "interpolate" else 2
    if not isinstance(placement, Shard) or placement.dim >= x.ndim - last or len(call.operands) > 1:
        return None
    return Answer([placement], placement) if call.everywhere(x, placement.dim) else None


def normed_by_example(call: Call) -> Answer | None:
    """`group_norm` and `instance_norm`: examples may be divided."""
    if (
        call.lies[0] != Shard(0)
        or call.argument("running_mean") is not None
        or not call.everywhere(call.operands[0], 0)
    ):
        return None
    return Answer([Shard(0), *[ALL] * (len(call.operands) - 1)], Shard(0))


# ---- losses


def _usual(call: Call) -> bool:
    return not any([call.argument(name) for name in ("weight", "label_smoothing", "size_average", "reduce")])


def loss(call: Call) -> Answer | None:
    """Losses of each element: their sum is terms, and so is their mean."""
    x, reduction = call.operands[0], call.argument("reduction", "mean")
    same = len(call.operands) == 2 and all([y.shape == x.shape for y in call.operands])
    placement = next((p for p in call.lies if isinstance(p, Shard)), None)
    if placement is None or not same or not _usual(call):
        return None
    if reduction == "none":
        return Answer([placement] * 2, placement)
    count = {"sum": 1, "mean": math.prod(x.shape), "batchmean": x.shape[0]}[reduction]
    of_sum = call.changed(reduction="sum")
    return Answer([placement] * 2, Partial(), lambda a, b: of_sum(a, b) / count)


def cross_entropy(call: Call) -> Answer | None:
    """Examples may be divided: the mean is terms. And classes: the result is the same in all ranks, but its gradient is not."""
    x, target = call.operands[:2]
    if not _usual(call) or target.is_floating_point():
        return None
    if call.name == "nll_loss" or (x.ndim > 1 and call.lies[0] == Shard(0)):
        return _of_examples(call)
    classes = 0 if x.ndim == 1 else 1
    if call.lies[0] != Shard(classes):
        return None
    at = Sharding(x.shape[classes], call.members, classes)
    options = call.argument("ignore_index", -100), call.argument("reduction", "mean")
    return Answer([Shard(classes), ALL], ALL, lambda a, b: cross_entropy_of_classes(a, b, at, *options))


def _of_examples(call: Call) -> Answer | None:
    first, reduction = Shard(0), call.argument("reduction", "mean")
    if call.lies[0] != first or call.operands[0].ndim < 2:
        return None
    if reduction != "mean":
        return Answer([first] * 2, first if reduction == "none" else Partial())
    ignored, key, of_sum = call.argument("ignore_index", -100), call.members.key, call.changed(reduction="sum")

    def compute(x: Any, target: Any) -> Any:
        return of_sum(x, target) / ops.all_reduce((target != ignored).sum(), "sum", key)

    return Answer([first] * 2, Partial(), compute)
