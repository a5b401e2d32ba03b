"""How a batch goes through ops: the rules of `rounds`, what of a call is computed in each round."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call.halves import HALVES
from genesis.jit.arguments import Var, renamed
from genesis.jit.lowering.fused import ACTIVATIONS
from genesis.jit.lowering.parts import F64, I64, Unknown, normal_dims
from genesis.jit.program import Call

if TYPE_CHECKING:
    from genesis.jit.lowering.rounds import Split

F32 = np.dtype(np.float32)
Rule = Callable[["Split", Call], Any]
RULES: dict[str, Rule] = {}  # by the names of ops; "elementwise" for all of these


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def declare(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return declare


def _one(split: Split, values: Iterable[Any]) -> int:
    """The dimension of the batch, the same in all of these."""
    dims = {split.dim(v) for v in values}
    dim = dims.pop() if len(dims) == 1 else None
    if dim is None:
        raise Unknown("the batch is in several dimensions, or not in all operands")
    return dim


@_rule("elementwise")
def _elementwise(split: Split, call: Call) -> None:
    shape = call.outs[0].spec.shape
    n = len(shape)
    dims = {dim + n - len(v.spec.shape) for v in call.inputs if (dim := split.dim(v)) is not None}
    if len(dims) != 1:
        raise Unknown("the batch is in several dimensions")
    dim = dims.pop()

    def now(value: Any) -> Any:
        if not isinstance(value, Var):
            return renamed(value, now)
        own = dim - n + len(value.spec.shape)
        if split.dim(value) is None and own >= 0 and value.spec.shape[own] != 1:
            return split.part(value, own)
        return value

    split.emit(call, [dim] * len(call.outs), *[now(a) for a in call.args])


@_rule("convert")
def _convert(split: Split, call: Call) -> None:
    split.emit(call, [_one(split, call.args[:1])], *call.args)


@_rule(*[f"fused.{name}" for name in ACTIVATIONS], "fused.silu", "fused.silu.2")
def _activation(split: Split, call: Call) -> None:
    split.emit(call, [_one(split, call.args[:1])] * len(call.outs), *call.args)


@_rule(*[f"fused.{name}.backward" for name in ACTIVATIONS], "fused.silu.backward", "fused.silu.2.backward")
def _activation_gradient(split: Split, call: Call) -> None:
    g, saved, specs = call.args
    dim = _one(split, [g, *[v for v in saved if isinstance(v, Var)]])
    split.emit(call, [dim], g, saved, _specs(split, specs, [dim]))


def _specs(split: Split, specs: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, ...]:
    """The shapes and dtypes of gradients, those of a round."""
    return tuple([s and (split.cut(s[0], d), *s[1:]) for s, d in zip(specs, dims, strict=True)])


@_rule("reshape", "view_shape")
def _reshape(split: Split, call: Call) -> None:
    """The batch stays where as many elements are before and behind."""
    x, out = call.args[0], call.outs[0].spec.shape
    dim = _one(split, [x])
    before = math.prod(x.spec.shape[:dim])
    for d, n in enumerate(out):
        if math.prod(out[:d]) == before and n % split.batch == 0:
            split.emit(call, [d], x, split.cut(out, d), *call.args[2:])
            return
    raise Unknown("the batch is joined with what is before it")


@_rule("transpose")
def _transpose(split: Split, call: Call) -> None:
    x, *both = call.args
    dim, (a, b) = _one(split, [x]), (d % len(x.spec.shape) for d in both)
    split.emit(call, [{a: b, b: a}.get(dim, dim)], *call.args)


@_rule("narrow")
def _narrow(split: Split, call: Call) -> None:
    x, along = call.args[:2]
    _rows(split, call, along % len(x.spec.shape))


@_rule("cat")
def _cat(split: Split, call: Call) -> None:
    tensors, along = call.args
    dim = _one(split, tensors)
    if along % len(tensors[0].spec.shape) == dim:
        raise Unknown("parts of the batch are joined")
    split.emit(call, [dim], *call.args)


def _rows(split: Split, call: Call, columns: int) -> None:
    """An op on each row, whatever the others are: its columns are one dimension of the first operand."""
    dim = _one(split, call.args[:1])
    if dim == columns:
        raise Unknown("it goes along the batch")
    split.emit(call, [dim] * len(call.outs), *call.args)


@_rule("linear", "matmul")
def _product(split: Split, call: Call) -> None:
    x, *others = call.args
    if any([split.dim(v) is not None for v in others]) or len(others[0].spec.shape) != 2:
        raise Unknown("both operands go over the batch")
    out, dim = call.outs[0], _one(split, [x])
    if x.spec.dtype == out.spec.dtype:
        _rows(split, call, len(x.spec.shape) - 1)
    elif dim < len(x.spec.shape) - 1:  # a float32 product of others, which is no op
        split.small[out], split.dims[out] = Var(Spec(split.cut(out.spec.shape, dim), F32)), dim
        split.body.append(Call(call.op, tuple(map(split.now, call.args)), (split.small[out],), call.site))
    else:
        raise Unknown("it goes along the batch")


@_rule("matmul_tn")
def _sum_of_products(split: Split, call: Call) -> None:
    x, y = call.args
    if _one(split, [x, y]) != 0 or len(x.spec.shape) != 2 or len(y.spec.shape) != 2:
        raise Unknown("products of each element")
    out = call.outs[0]
    if out.spec.dtype == F32 and min(out.spec.shape) >= 4:
        first, last = split.sum(call, out)
        split.body.append(Call("matmul_tn.add", (split.now(x), split.now(y), first), (last,), call.site))
    else:
        split.add(call, out, split.made_of(call.op, call, *call.args)[0])


@_rule("sum", "mean")
def _sum(split: Split, call: Call) -> None:
    x, dims, keepdim, *_ = call.args
    dim, out = _one(split, [x]), call.outs[0]
    gone = normal_dims(dims, len(x.spec.shape))
    if dim in gone:
        short = out.spec.dtype in HALVES  # the sum is one of float32 numbers until it is complete
        spec = replace(out.spec, dtype=F32) if short else out.spec
        whole = out if call.op == "sum" and not short else Var(spec)
        row = split.made_of("convert", call, x, F32)[0] if short else x
        split.add(call, whole, split.made_of(call.op, call, row, *call.args[1:])[0])
        if call.op == "mean":
            mean = Var(spec) if short else out
            split.after.append(Call("div", (whole, split.count), (mean,), call.site))
            split.late.add(mean)
            whole = mean
        if short:
            split.after.append(Call("convert", (whole, out.spec.dtype), (out,), call.site))
            split.late.add(out)
    else:
        split.emit(call, [dim if keepdim else dim - sum([d < dim for d in gone])], *call.args)


@_rule("take_index")
def _take_index(split: Split, call: Call) -> None:
    x, index, key = call.args
    if tuple(key) != ("at",) or split.dim(x) is not None:
        raise Unknown("an index of this kind")
    split.emit(call, [_one(split, [index])], *call.args)


@_rule("place")
def _sums_into_rows(split: Split, call: Call) -> None:
    x, index, _, key = call.args
    if tuple(key) != ("at",) or index is None or _one(split, [x, index]) != 0:
        raise Unknown("an index of this kind")
    split.add(call, call.outs[0], split.made_of(call.op, call, *call.args)[0])


@_rule("fused.layer_norm", "fused.rms_norm")
def _layer_norm(split: Split, call: Call) -> None:
    x, shape = call.args[:2]
    dim = _one(split, [x])
    if dim >= len(x.spec.shape) - 1 or tuple(shape) != x.spec.shape[-1:]:
        raise Unknown("the batch is normalized")
    split.emit(call, [dim] * len(call.outs), *call.args)


@_rule("fused.layer_norm.backward", "fused.rms_norm.backward")
def _layer_norm_gradient(split: Split, call: Call) -> None:
    g, saved, specs = call.args
    dim = _one(split, [g, *saved[:2]])
    if any([split.dim(v) is not None for v in saved[2:]]) or dim >= len(g.spec.shape) - 1:
        raise Unknown("the batch is normalized")
    given = _specs(split, specs, [dim, *[None] * (len(specs) - 1)])
    shares = split.made_of(call.op, call, g, saved, given)
    for out, share in zip(call.outs, shares, strict=True):
        if out.spec.shape == g.spec.shape:
            split.small[out], split.dims[out] = share, dim
        else:
            split.add(call, out, share)


NAME = "fused.scaled_dot_product_attention"


@_rule(NAME)
def _attention(split: Split, call: Call) -> None:
    query, key, value, mask, *_ = call.args
    if _one(split, [query, key, value]) != 0 or mask is not None or len(query.spec.shape) < 3:
        raise Unknown("attention with a mask")
    split.emit(call, [0 if v.spec.shape else None for v in call.outs], *call.args)


@_rule(f"{NAME}.backward")
def _attention_gradient(split: Split, call: Call) -> None:
    g, saved, specs = call.args
    kept = [v for v in saved if isinstance(v, Var) and v.spec.shape]
    if _one(split, [g, *kept]) != 0 or any([s is not None for s in specs[3:]]):
        raise Unknown("attention with a mask")
    dims = [None if s is None else 0 for s in specs]
    split.emit(call, [0] * len(call.outs), g, saved, _specs(split, specs, dims))


@_rule("fused.cross_entropy")
def _cross_entropy(split: Split, call: Call) -> None:
    """The number of rows that count is known before; the mean is taken of all losses, after."""
    x, target, _, _, ignored, *_ = call.args
    out, shares, classes, share = call.outs
    if _one(split, [x, target]) != 0 or target not in split.whole:
        raise Unknown("classes that are computed")
    rows = x.spec.shape[:1]
    count, checked, losses = Var(Spec((), F64)), Var(Spec(rows, I64)), Var(Spec(rows, F64))
    split.before.append(Call("cross_entropy.before", (target, ignored, x.spec.shape[1]), (count, checked), call.site))
    split.whole |= {count, checked}
    split.dims |= {checked: 0, shares: 0, classes: 0, share: 0, losses: 0}
    split.small[classes] = split.part(checked, 0)
    made = [Var(Spec(split.cut(v.spec.shape, 0), v.spec.dtype)) for v in (shares, share, losses)]
    split.small |= dict(zip((shares, share, losses), made, strict=True))
    given = (split.now(x), split.now(target), split.small[classes], count, ignored)
    split.body.append(Call("cross_entropy.rows", given, tuple(made), call.site))
    split.after.append(Call("cross_entropy.after", (losses, count), (out,), call.site))
    split.late.add(out)


@_rule("fused.cross_entropy.backward")
def _cross_entropy_gradient(split: Split, call: Call) -> None:
    g, saved, specs = call.args
    if _one(split, saved) != 0 or split.dim(g) is not None:
        raise Unknown("a loss of each row")
    dims = [None if s is None else 0 for s in specs]
    split.emit(call, [0], g, saved, _specs(split, specs, dims))
