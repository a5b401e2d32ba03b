"""How results of functions of a `DTensor` lie, by how their operands do (`propagation` says what a rule is)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor
from genesis.distributed.placements import Partial, Placement, Shard
from genesis.distributed.sharded import Sharding
from genesis.distributed.tensor.parts import cross_entropy_of_classes, dropout_of_part, embedding_of_rows
from genesis.distributed.tensor.propagation import ALL, EXPANDS, RULES, Answer, Call, pointwise
from genesis.ops.creation.create import empty


def views(call: Call) -> Answer | None:
    """The elements in the same order, in another shape: a dimension that is divided remains the first of those that become
    the first of others.
    """
    placement, whole = call.lies[0], call.results
    if not isinstance(placement, Shard) or not isinstance(whole, Tensor) or whole.dtype != call.operands[0].dtype:
        return None
    dim = _followed(tuple(call.operands[0].shape), tuple(whole.shape), placement.dim, call.members.size())
    return None if dim is None else Answer([placement], Shard(dim), sizes=True)


def _followed(old: tuple[int, ...], new: tuple[int, ...], dim: int, ranks: int) -> int | None:
    """Which dimension of the new shape is divided if this one of the old is."""
    before = 1
    for n in old[:dim]:
        before *= n
    seen, rest = 1, old[dim]
    for at, n in enumerate(new):
        if seen == before and (n == rest or (n > 1 and n % ranks == 0 and rest % ranks == 0)):
            return at
        seen *= n
        if seen > before:
            return None
    return None


def expanded(call: Call) -> Answer | None:
    placement, ndim = call.lies[0], call.operands[0].ndim
    if not isinstance(placement, Shard) or call.operands[0].shape[placement.dim] == 1:
        return None
    return Answer(call.lies, Shard(placement.dim + len(call.results.shape) - ndim), sizes=True)


def permuted(call: Call) -> Answer | None:
    """Dimensions in another order, which a tensor of numbered sizes shows."""
    placement, x = call.lies[0], call.operands[0]
    if not isinstance(placement, Shard):
        return None
    with no_grad():
        numbered = empty(tuple(range(2, 2 + x.ndim)), device="meta")
        args, kwargs = call.with_tensors([numbered])
        order = list(call.func(*args, **kwargs).shape)
    return Answer([placement], Shard(order.index(placement.dim + 2)))


def along(call: Call) -> Answer | None:
    """Functions along one dimension, or several: others may be divided."""
    placement, x = call.lies[0], call.operands[0]
    if not isinstance(placement, Shard):
        return None
    dims = call.dims(call.argument("dim", 0 if call.name in _FIRST else -1), x.ndim)
    return Answer([placement, *[ALL] * (len(call.operands) - 1)], placement) if placement.dim not in dims else None


def unbound(call: Call) -> Answer | None:
    placement, x = call.lies[0], call.operands[0]
    dim = call.dims(call.argument("dim", 0), x.ndim)[0]
    if not isinstance(placement, Shard) or placement.dim == dim:
        return None
    return Answer([placement], Shard(placement.dim - (placement.dim > dim)))


def indexed(call: Call) -> Answer | None:
    """Slices and numbers of dimensions that are not divided."""
    placement, key = call.lies[0], call.argument("key", call.argument("index"))
    several = key if isinstance(key, tuple) else (key,)
    if not isinstance(placement, Shard) or len(call.operands) > 1:
        return None
    if (
        not all([x is None or x is Ellipsis or isinstance(x, int | slice) for x in several])
        or True in several
        or False in several
    ):
        return None
    ndim, named = call.operands[0].ndim, len([x for x in several if x is not None and x is not Ellipsis])
    full: list[Any] = []
    for x in several if Ellipsis in several else (*several, Ellipsis):
        full += [slice(None)] * (ndim - named) if x is Ellipsis else [x]
    at = out = 0
    for x in full:
        if x is None:
            out += 1
            continue
        if at == placement.dim:
            return Answer([placement], Shard(out)) if x == slice(None) else None
        at, out = at + 1, out + (not isinstance(x, int))
    return None


def reduced(call: Call) -> Answer | None:
    """Sums and others over dimensions; a sum over the one that is divided is terms."""
    placement, x = call.lies[0], call.operands[0]
    if not isinstance(placement, Shard) or len(call.operands) > 1:
        return None
    dims, keep = call.dims(call.argument("dim"), x.ndim), bool(call.argument("keepdim", False))
    if placement.dim not in dims:
        return Answer([placement], Shard(placement.dim - (0 if keep else len([d for d in dims if d < placement.dim]))))
    if call.name not in ("sum", "mean"):
        return None
    if call.name == "sum":
        return Answer([placement], Partial())
    count = 1
    for d in dims:
        count *= x.shape[d]
    dtype = call.argument("dtype")
    return Answer([placement], Partial(), lambda local: local.sum(dims, keep, dtype=dtype) / count)


def linear(call: Call) -> Answer | None:
    """`linear`: rows of the weight are columns of the result; of columns of both the result is terms."""
    x, weight, *bias = [call.argument(name) for name in ("input", "weight", "bias")]
    bias = [b for b in bias if b is not None]
    px, pw = call.lies[call.at(x)], call.lies[call.at(weight)]
    if weight.ndim != 2 or px.is_partial():
        return None
    last = x.ndim - 1
    if pw == Shard(0):
        return Answer([ALL, pw, *[Shard(0) for _ in bias]], Shard(last))
    if pw == Shard(1) or px == Shard(last):
        if bias:
            return None if pw != Shard(1) else Answer([Shard(last), Shard(1), ALL], Partial(), _with_one_bias(call))
        return Answer([Shard(last), Shard(1)], Partial())
    return Answer([px, ALL, *[ALL for _ in bias]], px) if isinstance(px, Shard) else None


def _with_one_bias(call: Call) -> Callable[..., Any]:
    """The first rank's term has the bias."""
    first = call.members.rank() == 0
    return lambda x, w, b: call.func(x, w) + (b if first else 0 * b)


def product(call: Call) -> Answer | None:
    """Products of matrices, and of batches of them."""
    (a, b), (pa, pb) = call.operands, call.lies
    if a.ndim < 2 or b.ndim < 2:
        return None
    more = max(a.ndim, b.ndim) - 2

    def batch(x: Any, p: Placement) -> int | None:
        wide = isinstance(p, Shard) and p.dim < x.ndim - 2 and x.shape[p.dim] > 1
        return p.dim + more + 2 - x.ndim if wide else None  # type: ignore[attr-defined]

    dim = batch(a, pa) if batch(a, pa) is not None else batch(b, pb)
    if dim is not None:
        own = [dim - (more + 2 - x.ndim) for x in (a, b)]
        here = [n >= 0 and x.shape[n] > 1 for n, x in zip(own, (a, b), strict=True)]
        return Answer([Shard(n) if is_here else ALL for n, is_here in zip(own, here, strict=True)], Shard(dim))
    if pa == Shard(a.ndim - 1) or pb == Shard(b.ndim - 2):
        return Answer([Shard(a.ndim - 1), Shard(b.ndim - 2)], Partial())
    if pa == Shard(a.ndim - 2):
        return Answer([pa, ALL], Shard(more))
    return Answer([ALL, pb], Shard(more + 1)) if pb == Shard(b.ndim - 1) else None


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


def cross_entropy(call: Call) -> Answer | None:
    """Classes may be divided; the result is the same in all ranks, but its gradient is not."""
    x, target = call.operands[:2]
    classes = 0 if x.ndim == 1 else 1
    usual = all([not call.argument(name) for name in ("weight", "label_smoothing", "size_average", "reduce")])
    if call.lies[0] != Shard(classes) or not usual or target.is_floating_point():
        return None
    at = Sharding(x.shape[classes], call.members, classes)
    options = call.argument("ignore_index", -100), call.argument("reduction", "mean")
    return Answer([Shard(classes), ALL], ALL, lambda a, b: cross_entropy_of_classes(a, b, at, *options))


def dropped(call: Call) -> Answer | None:
    """`dropout`, with the random numbers of the whole."""
    placement, x = call.lies[0], call.operands[0]
    if not isinstance(placement, Shard) or call.argument("inplace", False):
        return None
    at = Sharding(x.shape[placement.dim], call.members, placement.dim)
    p, training = call.argument("p", 0.5), call.argument("training", True)
    return Answer([placement], placement, lambda a: dropout_of_part(a, at, p, training))


def _named(names: Iterable[str], rule: Callable[[Call], Answer | None]) -> None:
    RULES.update(dict.fromkeys(names, rule))


_FIRST = frozenset(("chunk", "split", "tensor_split", "unsafe_chunk", "unsafe_split"))
RULES.update({
    "linear": linear, "matmul": product, "mm": product, "bmm": product, "embedding": embedded, "dropout": dropped,
    "scaled_dot_product_attention": attention, "cross_entropy": cross_entropy, "layer_norm": normed, "rms_norm": normed,
    "unbind": unbound, "getitem": indexed,
})  # fmt: skip
_named(EXPANDS, expanded)
_named(("view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "ravel", "view_as", "reshape_as"), views)
_named(("transpose", "permute", "movedim", "moveaxis", "swapaxes", "swapdims", "t", "adjoint"), permuted)
_named((*_FIRST, "softmax", "log_softmax", "softmin", "cumsum", "cumprod", "normalize", "flip", "sort"), along)
_named(("sum", "mean", "prod", "amax", "amin", "logsumexp", "var", "std", "any", "all", "norm"), reduced)
_named(
    ("clamp", "clip", "where", "lerp", "addcmul", "addcdiv", "masked_fill", "divide", "relu6", "leaky_relu", "elu", "celu", "selu",
     "gelu", "silu", "mish", "softplus", "softsign", "hardtanh", "hardsigmoid", "hardswish", "logsigmoid", "tanhshrink",
     "threshold", "hardshrink", "softshrink", "positive", "to", "float", "double", "half", "bfloat16", "type_as", "type", "contiguous",
     "detach", "clone", "radd", "rsub", "rmul", "rtruediv", "rpow", "truediv", "cpu", "zeros_like", "ones_like", "empty_like",
     "full_like"),
    pointwise,
)  # fmt: skip
