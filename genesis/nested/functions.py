"""What functions make of nested tensors: on the values where parts do not meet, part by part where they do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from genesis import ops
from genesis.base.errors import ShapeError, UnsupportedError, message
from genesis.core.call.kinds.elementwise import Elementwise
from genesis.core.call.op import REGISTRY
from genesis.core.graph.tensor import Tensor, wrap
from genesis.nested.tensor import RULES, NestedTensor, Ragged

_POINTWISE = ["to", "type", "float", "double", "half", "bfloat16", "long", "int", "short", "bool", "cfloat", "clone", "detach", "contiguous", "dropout", "relu6", "gelu", "silu", "mish", "elu", "celu", "selu", "leaky_relu", "prelu", "rrelu", "hardtanh", "hardswish", "hardsigmoid", "hardshrink", "softshrink", "tanhshrink", "softsign", "softplus", "logsigmoid", "threshold", "alpha_dropout", "feature_alpha_dropout", "where", "masked_fill", "clamp", "clip", "rsub", "divide", "div", "true_divide", "multiply", "subtract", "lerp", "addcmul", "addcdiv", "square", "isreal", "float_power", "zeros_like", "ones_like", "empty_like", "rand_like", "randn_like", "full_like", "greater", "less", "greater_equal", "less_equal", "not_equal", "isclose", "native_dropout", "absolute", "negative", "positive", "real", "conj", "logit", "log_sigmoid"]  # fmt: skip
_LAST = ["linear", "layer_norm", "rms_norm", "embedding", "glu"]  # they look at the last dimensions alone
_REDUCED = [
    "sum",
    "mean",
    "prod",
    "amax",
    "amin",
    "max",
    "min",
    "any",
    "all",
    "var",
    "std",
    "logsumexp",
    "norm",
    "argmax",
    "argmin",
    "nansum",
    "count_nonzero",
]
_KEPT = ["softmax", "log_softmax", "cumsum", "cumprod", "normalize", "flip", "sort"]  # along a dimension that stays


def _nested(args: Sequence[Any]) -> NestedTensor:
    every = [y for x in args for y in (x if isinstance(x, list | tuple) else (x,)) if isinstance(y, NestedTensor)]
    for x in every[1:]:
        if x._offsets is not every[0]._offsets and x.sizes != every[0].sizes:
            problem = f"the parts have sizes {list(every[0].sizes)} and {list(x.sizes)}"
            raise ShapeError(message("nested", problem, hint="nested tensors of the same offsets"))
    return every[0]


def _aligned(x: Any, nested: NestedTensor) -> Any:
    """An operand beside the values: rows of a batch are repeated for each row of the part."""
    if isinstance(x, NestedTensor):
        if x._ragged != nested._ragged and x.ndim == nested.ndim:
            raise ShapeError(message("nested", "the ragged dimensions are not the same"))
        return x._values
    if not isinstance(x, Tensor) or x.ndim <= nested.ndim - 1 - nested._ragged:
        return x
    if x.ndim != nested.ndim or x.shape[nested._ragged] != 1 or x.shape[0] not in (1, len(nested)):
        problem = f"a tensor of shape {list(x.shape)} does not fit {list(nested.shape)}"
        raise ShapeError(message("nested", problem, hint="size 1 where the nested tensor is ragged"))
    x = x.movedim(nested._ragged, 1)[:, 0]  # type: ignore[attr-defined]
    x = x[nested.rows()] if x.shape[0] != 1 else x.expand(len(nested._values), *x.shape[1:])
    return x.movedim(0, nested._ragged - 1)  # type: ignore[attr-defined]


def _pointwise(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    nested = _nested([*args, *kwargs.values()])
    result = function(*[_aligned(x, nested) for x in args], **{k: _aligned(x, nested) for k, x in kwargs.items()})
    return nested.like(result)


def _of_last(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    nested = _nested([*args, *kwargs.values()])
    if nested._ragged == nested.ndim - 1 and function.__name__ != "embedding":
        raise UnsupportedError(message(function.__name__, "the last dimension is ragged", hint="x.transpose(1, 2)"))
    return nested.like(function(*[_values(x) for x in args], **{k: _values(x) for k, x in kwargs.items()}))


def _values(x: Any) -> Any:
    return x._values if isinstance(x, NestedTensor) else x


def _dims(dim: Any, nested: NestedTensor) -> list[int]:
    return [d % nested.ndim for d in ([dim] if isinstance(dim, int) else dim)]


def _reduced(function: Callable[..., Any], input: NestedTensor, *args: Any, **kwargs: Any) -> Any:
    bound = inspect.signature(function).bind(None, *args, **kwargs)
    given: dict[str, Any] = {**bound.kwargs, **dict(zip([*bound.arguments][1:], bound.args[1:], strict=False))}
    dim, keepdim = given.pop("dim", None), given.pop("keepdim", False)
    if dim is None or len(set(_dims(dim, input))) == input.ndim:
        if keepdim:
            raise UnsupportedError(message(function.__name__, "keepdim of all dimensions of a nested tensor"))
        return function(input._values, **given)
    dims = _dims(dim, input)
    if 0 in dims:
        raise UnsupportedError(message(function.__name__, "along the batch, but not along all", hint="x.unbind()"))
    within: Any = [d - 1 for d in dims] if not isinstance(dim, int) else dims[0] - 1
    if input._ragged in dims:
        parts = [function(part, dim=within, keepdim=keepdim, **given) for part in input.unbind()]
        return _stacked(parts)
    result = function(input._values, dim=within, keepdim=keepdim, **given)
    lost = 0 if keepdim else sum([d < input._ragged for d in dims])
    return _map(result, lambda r: input.like(r, input._ragged - lost))


def _stacked(parts: list[Any]) -> Any:
    if isinstance(parts[0], Tensor):
        return ops.stack(parts)
    return type(parts[0])(*[ops.stack(list(p)) for p in zip(*parts, strict=True)])


def _map(result: Any, f: Callable[[Any], Any]) -> Any:
    if isinstance(result, Tensor):
        return f(result)
    return type(result)(*[f(x) for x in result]) if hasattr(result, "_fields") else tuple([f(x) for x in result])


def _kept(function: Callable[..., Any], input: NestedTensor, *args: Any, **kwargs: Any) -> Any:
    signature = inspect.signature(function)
    bound = signature.bind(None, *args, **kwargs)
    bound.apply_defaults()
    given = {k: v for k, v in bound.arguments.items() if v is not signature.parameters[k].default or k == "dim"}
    given = dict(list(given.items())[1:])
    (dim,) = _dims(given.pop("dims" if function.__name__ == "flip" else "dim"), input)
    name = "dims" if function.__name__ == "flip" else "dim"
    within: Any = (dim - 1,) if name == "dims" else dim - 1
    if dim == 0:
        raise UnsupportedError(message(function.__name__, "along the batch of a nested tensor", hint="x.unbind()"))
    if dim != input._ragged:
        return _map(function(input._values, **{name: within}, **given), input.like)
    parts = [function(part, **{name: within}, **given) for part in input.unbind()]
    if isinstance(parts[0], Tensor):
        return input.like(ops.cat(parts, dim - 1))
    return type(parts[0])(*[input.like(ops.cat(list(p), dim - 1)) for p in zip(*parts, strict=True)])


# ---- shapes


def _transposed(function: Any, input: NestedTensor, dim0: int, dim1: int) -> NestedTensor:
    a, b = _dims((dim0, dim1), input)
    if 0 in (a, b):
        raise UnsupportedError(message("transpose", "the batch of a nested tensor stays the first dimension"))
    ragged = {a: b, b: a}.get(input._ragged, input._ragged)
    return input.like(input._values.transpose(a - 1, b - 1), ragged)  # type: ignore[attr-defined]


def _unsqueezed(function: Any, input: NestedTensor, dim: int) -> NestedTensor:
    dim = dim % (input.ndim + 1)
    if dim == 0:
        raise UnsupportedError(message("unsqueeze", "the batch of a nested tensor stays the first dimension"))
    return input.like(input._values.unsqueeze(dim - 1), input._ragged + (dim <= input._ragged))  # type: ignore[attr-defined]


def _squeezed(function: Any, input: NestedTensor, dim: int) -> NestedTensor:
    (dim,) = _dims(dim, input)
    if dim in (0, input._ragged) or input._values.shape[dim - 1] != 1:
        return input
    return input.like(input._values.squeeze(dim - 1), input._ragged - (dim < input._ragged))  # type: ignore[attr-defined]


def _viewed(function: Any, input: NestedTensor, *shape: Any) -> NestedTensor:
    """The batch and the ragged dimension stay where they are, which -1 may stand for."""
    sizes = list(shape[0]) if len(shape) == 1 and isinstance(shape[0], list | tuple) else list(shape)
    at = next((i for i, n in enumerate(sizes) if isinstance(n, Ragged)), None)
    at = input._ragged if at is None else at
    if (
        not sizes
        or sizes[0] != len(input)
        or at != input._ragged
        or (sizes[at] != -1 and not isinstance(sizes[at], Ragged))
    ):
        problem = f"{list(input.shape)} does not become {sizes}"
        raise ShapeError(message("view", problem, hint="the sizes of the batch and of the ragged dimension stay"))
    sizes[at] = input._values.shape[at - 1]
    return input.like(input._values.reshape(sizes[1:]), at)  # type: ignore[attr-defined]


def _unflattened(function: Any, input: NestedTensor, dim: int, sizes: Any) -> NestedTensor:
    (dim,) = _dims(dim, input)
    if dim in (0, input._ragged):
        raise UnsupportedError(message("unflatten", "the batch and the ragged dimension stay as they are"))
    return input.like(
        input._values.unflatten(dim - 1, sizes),  # type: ignore[attr-defined]
        input._ragged + (len(sizes) - 1) * (dim < input._ragged),
    )


def _flattened(function: Any, input: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> NestedTensor:
    start, end = _dims((start_dim, end_dim), input)
    if start <= input._ragged <= end or start == 0:
        raise UnsupportedError(message("flatten", "the batch and the ragged dimension stay as they are"))
    return input.like(input._values.flatten(start - 1, end - 1), input._ragged - (end - start) * (end < input._ragged))  # type: ignore[attr-defined]


def _split(function: Any, input: NestedTensor, sizes: Any, dim: int = 0) -> tuple[NestedTensor, ...]:
    (dim,) = _dims(dim, input)
    if dim in (0, input._ragged):
        raise UnsupportedError(message(function.__name__, "along the batch or the ragged dimension", hint="x.unbind()"))
    return tuple([input.like(part) for part in function(input._values, sizes, dim - 1)])


def _joined(function: Any, tensors: Sequence[Any], dim: int = 0) -> NestedTensor:
    nested = tensors[0]
    (dim,) = _dims(dim, nested)
    if dim == 0:
        parts = [part for x in tensors for part in x.unbind()]
        return made_of(parts, nested._ragged)
    return _nested([tensors]).like(ops.cat([_aligned(x, nested) for x in tensors], dim - 1))


def made_of(parts: Sequence[Tensor], ragged: int = 1) -> NestedTensor:
    """Tensors that differ in one size, one after the other."""
    ends = np.cumsum([0, *[part.shape[ragged - 1] for part in parts]])
    return NestedTensor(ops.cat(list(parts), ragged - 1), wrap(ends.astype(np.int64)), ragged)


# ---- products


def _product(function: Any, input: Any, other: Any) -> Any:
    nested = _nested([input, other])
    if (
        isinstance(input, NestedTensor)
        and isinstance(other, Tensor)
        and other.ndim <= 2
        and input._ragged < input.ndim - 1
    ):
        return input.like(input._values @ other)
    sides = [x.unbind() if isinstance(x, NestedTensor) or x.ndim > 2 else [x] * len(nested) for x in (input, other)]
    parts = [a @ b for a, b in zip(*sides, strict=True)]
    return (
        _stacked(parts)
        if len({p.shape for p in parts}) == 1 and _both(input, other)
        else made_of(parts, parts[0].ndim - 1)
    )


def _both(input: Any, other: Any) -> bool:
    """Whether the ragged dimensions are summed over."""
    return isinstance(input, NestedTensor) and isinstance(other, NestedTensor)


def _attention(
    function: Any, query: NestedTensor, key: NestedTensor, value: NestedTensor, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> NestedTensor:  # fmt: skip
    """Part by part: the parts do not look at each other."""
    if attn_mask is not None:
        raise UnsupportedError(message("scaled_dot_product_attention", "nested tensors go without a mask"))
    parts = [
        function(q, k, v, dropout_p=dropout_p, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa)
        for q, k, v in zip(query.unbind(), key.unbind(), value.unbind(), strict=True)
    ]
    return query.like(ops.cat(parts, query._ragged - 1))


def _operator(name: str) -> Callable[..., Any]:
    method = getattr(Tensor, name)

    def operator(self: NestedTensor, *other: Any) -> Any:
        nested = _nested([self, *other])
        return nested.like(method(_aligned(self, nested), *[_aligned(x, nested) for x in other]))

    return operator


for _name in [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "radd",
    "rsub",
    "rmul",
    "rtruediv",
    "rpow",
    "neg",
    "abs",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "and",
    "or",
    "xor",
    "invert",
]:
    setattr(NestedTensor, f"__{_name}__", _operator(f"__{_name}__"))
NestedTensor.__matmul__ = lambda self, other: _product(None, self, other)  # type: ignore[attr-defined]
NestedTensor.__rmatmul__ = lambda self, other: _product(None, other, self)  # type: ignore[attr-defined]
NestedTensor.__hash__ = object.__hash__  # type: ignore[assignment]

RULES.update(dict.fromkeys([name for name, op in REGISTRY.items() if isinstance(op.kind, Elementwise)], _pointwise))
RULES.update(dict.fromkeys(_POINTWISE, _pointwise))
RULES.update(dict.fromkeys(_LAST, _of_last))
RULES.update(dict.fromkeys(_REDUCED, _reduced))
RULES.update(dict.fromkeys(_KEPT, _kept))
RULES.update(dict.fromkeys(("split", "chunk", "split_with_sizes", "tensor_split"), _split))
RULES.update(dict.fromkeys(("view", "reshape", "view_shape"), _viewed))
RULES.update(dict.fromkeys(("matmul", "bmm"), _product))
RULES.update(
    transpose=_transposed, swapaxes=_transposed, swapdims=_transposed, unsqueeze=_unsqueezed, squeeze=_squeezed,
    unflatten=_unflattened, flatten=_flattened, cat=_joined, concat=_joined, scaled_dot_product_attention=_attention,
)  # fmt: skip
