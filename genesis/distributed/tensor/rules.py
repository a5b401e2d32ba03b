"""How results of functions of a `DTensor` lie, by how their operands do (`propagation` says what a rule is)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor
from genesis.distributed.nn import ops
from genesis.distributed.placements import Partial, Shard
from genesis.distributed.tensor import layers, products
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
    name, default = _ALONG[call.name]
    if not isinstance(placement, Shard) or placement.dim in call.dims(call.argument(name, default), x.ndim):
        return None
    return Answer([placement, *[ALL] * (len(call.operands) - 1)], placement)


def repeated(call: Call) -> Answer | None:
    """A dimension that is as long as before is not repeated."""
    placement, x, whole = call.lies[0], call.operands[0], call.results.shape
    if not isinstance(placement, Shard):
        return None
    dim = placement.dim + len(whole) - x.ndim
    return Answer([placement], Shard(dim)) if whole[dim] == x.shape[placement.dim] else None


def joined(call: Call) -> Answer | None:
    """Tensors one behind the other, or one beside the other: dimensions of all of them may be divided."""
    x, stacks = call.operands[0], call.name == "stack"
    if not all([y.ndim == x.ndim > 0 for y in call.operands]) or (call.name in ("hstack", "vstack") and x.ndim < 2):
        return None
    dim = call.dims({"hstack": 1, "vstack": 0}.get(call.name, call.argument("dim", 0)), x.ndim + stacks)[0]
    placement = next((p for p in call.lies if isinstance(p, Shard) and (stacks or p.dim != dim)), None)
    if placement is None:
        return None
    return Answer([placement] * len(call.operands), Shard(placement.dim + (stacks and placement.dim >= dim)))


def gathered(call: Call) -> Answer | None:
    """`gather`: dimensions of equal size may be divided, but that along which elements are named."""
    x, index = call.operands
    dim, placement = call.dims(call.argument("dim"), x.ndim)[0], next(p for p in call.lies if not p.is_replicate())
    if not isinstance(placement, Shard) or placement.dim == dim or x.shape[placement.dim] != index.shape[placement.dim]:
        return None
    return Answer([placement] * 2, placement)


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
    if any([isinstance(x, bool) or not (x is None or x is Ellipsis or isinstance(x, int | slice)) for x in several]):
        return None
    ndim, named = call.operands[0].ndim, len([x for x in several if x is not None and x is not Ellipsis])
    full: list[Any] = []
    for x in several if any([x is Ellipsis for x in several]) else (*several, Ellipsis):
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
    given = call.argument("dim", -1 if call.name in ("mode", "kthvalue") else None)
    dims, keep = call.dims(given, x.ndim), bool(call.argument("keepdim", False))
    if placement.dim not in dims:
        return Answer([placement], Shard(placement.dim - (0 if keep else len([d for d in dims if d < placement.dim]))))
    if call.name not in ("sum", "mean"):
        return _extreme(call, placement, given is None)
    if call.name == "sum":
        return Answer([placement], Partial())
    count = 1
    for d in dims:
        count *= x.shape[d]
    dtype = call.argument("dtype")
    return Answer([placement], Partial(), lambda local: local.sum(dims, keep, dtype=dtype) / count)


def _extreme(call: Call, placement: Shard, of_all: bool) -> Answer | None:
    """The largest of all ranks' largest, where no gradient is asked for: it would be divided among equal ones."""
    x, key = call.operands[0], call.members.key
    known = call.name in _EXTREMES and (of_all or call.name not in ("max", "min"))
    if not known or x.requires_grad or not call.everywhere(x, placement.dim):
        return None
    own = call.changed()

    def compute(local: Any) -> Any:
        each: Any = ops.all_gather_stacked(
            own(local), key
        )  # not a sum of ranks: MPI's largest of a NaN and a number is either
        return getattr(each, _EXTREMES[call.name])(0)

    return Answer([placement], ALL, compute)


def extreme(call: Call) -> Answer | None:
    """`max` and `min` of two tensors, or of one."""
    return reduced(call) if len(call.operands) == 1 else pointwise(call)


def _named(names: Iterable[str], rule: Callable[[Call], Answer | None]) -> None:
    RULES.update(dict.fromkeys(names, rule))


_EXTREMES = {"max": "amax", "min": "amin", "amax": "amax", "amin": "amin", "any": "any", "all": "all"}
_FIRST = (
    "chunk",
    "split",
    "split_with_sizes",
    "tensor_split",
    "unsafe_chunk",
    "unsafe_split",
    "narrow",
    "index_select",
)
_LAST = ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "sort", "argsort", "topk", "glu", "diff")
_ALONG: dict[str, tuple[str, Any]] = {  # what the argument is called, and its default
    **dict.fromkeys(_FIRST, ("dim", 0)), **dict.fromkeys(_LAST, ("dim", -1)), "flip": ("dims", None), "roll": ("dims", None),
    "repeat_interleave": ("dim", None), "unfold": ("dimension", None), "normalize": ("dim", 1),
    **dict.fromkeys(("softmax", "log_softmax", "softmin"), ("dim", None)),  # where none is named it depends on their number
}  # fmt: skip
RULES.update({
    "linear": products.linear, "matmul": products.product, "mm": products.product, "bmm": products.product, "mv": products.product,
    "dot": products.product, "addmm": products.added, "baddbmm": products.added, "einsum": products.einsum, "outer": products.outer,
    "embedding": layers.embedded, "dropout": layers.dropped, "scaled_dot_product_attention": layers.attention,
    "cross_entropy": layers.cross_entropy, "nll_loss": layers.cross_entropy, "layer_norm": layers.normed, "rms_norm": layers.normed,
    "group_norm": layers.normed_by_example, "instance_norm": layers.normed_by_example,
    "unbind": unbound, "select": unbound, "getitem": indexed, "gather": gathered, "repeat": repeated, "tile": repeated,
})  # fmt: skip
_named(EXPANDS, expanded)
_named(("view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "ravel", "view_as", "reshape_as"), views)
_named(("transpose", "permute", "movedim", "moveaxis", "swapaxes", "swapdims", "t", "adjoint"), permuted)
_named(_ALONG, along)
_named(
    ("sum", "mean", "prod", "amax", "amin", "logsumexp", "var", "std", "var_mean", "std_mean", "any", "all", "norm", "linalg_vector_norm",
     "argmax", "argmin", "median", "mode", "kthvalue", "count_nonzero"),
    reduced,
)  # fmt: skip
_named(("max", "min"), extreme)
_named(("cat", "stack", "hstack", "vstack"), joined)
_named([f"conv{transpose}{n}d" for transpose in ("", "_transpose") for n in (1, 2, 3)], layers.convolved)
_named(
    [f"{kind}_pool{n}d" for kind in ("max", "avg", "adaptive_max", "adaptive_avg", "lp") for n in (1, 2, 3)],
    layers.windows,
)
_named(("pad", "interpolate", "tril", "triu"), layers.windows)
_named(
    (
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "kl_div",
    ),
    layers.loss,
)
_named(
    ("clamp", "clip", "where", "lerp", "addcmul", "addcdiv", "masked_fill", "divide", "relu6", "leaky_relu", "elu", "celu", "selu",
     "gelu", "silu", "mish", "softplus", "softsign", "hardtanh", "hardsigmoid", "hardswish", "logsigmoid", "tanhshrink",
     "threshold", "hardshrink", "softshrink", "positive", "to", "float", "double", "half", "bfloat16", "type_as", "type", "contiguous",
     "detach", "clone", "radd", "rsub", "rmul", "rtruediv", "rpow", "truediv", "cpu", "zeros_like", "ones_like", "empty_like",
     "full_like", "rdiv"),
    pointwise,
)  # fmt: skip
