"""Programs that go over a batch, in rounds: each computes all that can be said of some elements of the batch, forwards and
backwards, before the next begins.

    before   what does not depend on the batch, and what is given of it
    body     what is computed of the elements of one round; the next is computed in the same memory, in the caches
    after    what needs all elements: sums over the batch, as gradients of parameters are, are complete

A sum over the batch begins with zeros, and each round adds its share, in the order of the batch. How many rounds there are
depends on shapes only. Which dimension of a value goes over the batch is followed from op to op, by `RULES`; a program
with an op that mixes elements of the batch, and whose result is needed before the end, is left as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, strides_of
from genesis.core.call.halves import HALVES
from genesis.jit.arguments import Var, renamed
from genesis.jit.lowering.fused import ACTIVATIONS
from genesis.jit.lowering.parts import F64, I64, Unknown, normal_dims
from genesis.jit.program import Call, Program, inferred, op_of

LEAST = 1 << 24  # bytes of the values of a program, below which they may all stay in the caches
TRIED = 4  # lengths that may be that of the batch
MOST = 1 << 20  # bytes of a value in a round: with a few others it is in the cache of one processor
F32 = np.dtype(np.float32)


@dataclass(frozen=True, slots=True)
class Rounds:
    """A program in parts.

    Attributes:
        slices: of variables of the body, of which value's memory they are a part that is so many bytes further with
            each round
        sums: of variables of the body, which value they are, so far
    """

    before: Program
    body: Program
    after: Program
    count: int
    slices: dict[Var, tuple[Var, int]]
    sums: dict[Var, Var]


def in_rounds(program: Program) -> Rounds | None:
    """A program in rounds; None where it is none that goes over a batch, or it is small."""
    outs = [v.spec for call in program.calls for v in call.outs if v not in program.regions]
    if sum(map(_bytes, outs)) < LEAST:
        return None
    given, trained = _given(program), sum([_bytes(leaf.spec) for leaf in program.leaves])  # read in each round
    for batch in sorted({v.spec.shape[0] for v in given}, reverse=True)[:TRIED]:
        own = [v for v in given if v.spec.shape[0] == batch]
        largest = max([_bytes(spec) for spec in outs if spec.shape and batch and spec.shape[0] % batch == 0], default=0)
        rows = sum([_bytes(spec) for spec in outs if spec.shape and batch and spec.shape[0] % batch == 0])
        counts = [n for n in range(2, batch + 1) if batch % n == 0 and rows >= n * trained]
        count = next((n for n in counts if largest <= MOST * n), 0)
        try:
            if count:
                return _Split(program, own, count).made()
        except Unknown:
            continue
    return None


def _bytes(spec: Spec) -> int:
    return math.prod(spec.shape) * spec.dtype.itemsize


def _given(program: Program) -> list[Var]:
    """The arrays from outside that are neither trained nor changed."""
    of = {"argument": program.arguments, "captured": program.captured}
    changed = {of[w.kind][w.index] for w in program.writes if w.kind in of}
    changed |= {of[leaf.kind][leaf.index] for leaf in program.leaves if leaf.kind in of}
    return [v for v in (*program.arguments, *program.captured) if v not in changed and v.spec.shape]


class _Split:
    """The calls of a program, sorted."""

    def __init__(self, program: Program, given: Sequence[Var], count: int) -> None:
        self.program, self.count, self.batch = program, count, given[0].spec.shape[0]
        # the dimension of a value that goes over the batch; None where each round has a value of its own besides
        self.dims: dict[Var, int | None] = dict.fromkeys(given, 0)
        self.small: dict[Var, Var] = {}  # the variable of a round
        self.whole = set(program.outside)  # what is there before the rounds
        self.late: set[Var] = set()
        self.before: list[Call] = []
        self.body: list[Call] = []
        self.after: list[Call] = []
        self.slices: dict[Var, tuple[Var, int]] = {}
        self.sums: dict[Var, Var] = {}

    def made(self) -> Rounds:
        for call in self.program.calls:
            self._add(call)
        if not self.body or not self.late:
            raise Unknown("nothing goes over a batch, or nothing is summed over it")
        ends = [*[v for call in self.after for v in call.inputs], *self.program.ends]
        needed = [v for v in dict.fromkeys(map(self._root, ends)) if v in self.small and v not in self.whole]
        if 8 * sum([_bytes(v.spec) for v in needed]) > sum([_bytes(v.spec) for v in self.small]):
            raise Unknown("much of what is computed is needed after the rounds")
        for var in needed:
            if self.small[var] in self.slices or self.dims[var] is None:
                raise Unknown("a value of the rounds that is given")
            self.slices[self.small[var]] = var, self._step(var, self.small[var].spec)
        views = [call for call in self.program.calls if call.outs[0] in self.program.regions]
        early = [call for call in views if self._root(call.outs[0]) in self.whole]
        used = [v for call in self.body for v in call.inputs]
        inside = tuple(dict.fromkeys([*[self.small[v] for v in needed], *self.sums]))
        kept = tuple(dict.fromkeys([*used, *ends, *[v for v, _ in self.slices.values()]]))
        return Rounds(
            _part(self.program, [*self.before, *early], kept),
            _part(self.program, [*early, *self.body], inside),
            self.program.with_calls([*views, *self.after]),
            self.count, self.slices, self.sums,
        )  # fmt: skip

    def _root(self, var: Var) -> Var:
        region = self.program.regions.get(var)
        return var if region is None else region.root

    def _add(self, call: Call) -> None:
        inputs = list(call.inputs)
        is_view = call.outs[0] in self.program.regions
        if any([v in self.late for v in inputs]):
            self.late.update(call.outs)
            self.after += [] if is_view else [call]
        elif not any([v in self.dims for v in inputs]):
            self.whole.update(call.outs)
            self.before += [] if is_view else [call]
        else:
            if is_view and self._root(call.outs[0]) in self.whole:
                self.whole.update(call.outs)
            self._follow(call)

    def _follow(self, call: Call) -> None:
        """Into the body; a call that there is no rule for can be made before, of what is given."""
        rule = RULES.get(call.op)
        try:
            if rule is None and op_of(call).kind == "elementwise":
                rule = _elementwise
            if rule is None:
                raise Unknown(f"{call.op} of a batch")
            rule(self, call)
        except Unknown:
            if not all([v in self.whole for v in call.inputs]):
                raise
            self.before.append(call)
            self.whole.update(call.outs)
            self.dims |= {v: 0 for v in call.outs if v.spec.shape and v.spec.shape[0] % self.batch == 0}

    # ---- for rules

    def dim(self, var: Any) -> int | None:
        """The dimension of a value that goes over the batch."""
        return self.dims.get(var) if isinstance(var, Var) else None

    def now(self, value: Any) -> Any:
        """The variable of a round, or another argument."""
        if not isinstance(value, Var):
            return renamed(value, self.now)
        dim = self.dims.get(value)
        if value not in self.small and dim is not None:
            return self.part(value, dim)
        return self.small.get(value, value)

    def part(self, var: Var, dim: int) -> Var:
        """The part of a value that is there before."""
        if var not in self.small:
            if var not in self.whole or var in self.program.regions or var.spec.shape[dim] % self.count:
                raise Unknown("a part of such a value")
            own = Var(Spec(self.cut(var.spec.shape, dim), var.spec.dtype, var.spec.device, strides_of(var.spec)))
            self.small[var] = own
            self.slices[own] = var, self._step(var, own.spec)
        return self.small[var]

    def cut(self, shape: Sequence[int], dim: int | None) -> tuple[int, ...]:
        """The shape of the part of a value."""
        return tuple([n // self.count if d == dim else n for d, n in enumerate(shape)])

    def emit(self, call: Call, dims: Sequence[int | None], *args: Any) -> list[Var]:
        """The call for a round, whose results go over the batch in these dimensions."""
        outs = self.made_of(call.op, call, *args)
        for out, own, dim in zip(call.outs, outs, dims, strict=True):
            if own.spec.shape != self.cut(out.spec.shape, dim) or own.spec.dtype != out.spec.dtype:
                raise Unknown("a result of another shape")
            self.small[out], self.dims[out] = own, dim
        return outs

    def made_of(self, op: str, call: Call, *args: Any) -> list[Var]:
        """The results of an op with what a round has of these arguments."""
        new = Call(op, renamed(args, self.now), (), call.site)
        outs = [Var(spec) for spec in inferred(new)]
        self.body.append(replace(new, outs=tuple(outs)))
        return outs

    def sum(self, call: Call, out: Var) -> tuple[Var, Var]:
        """What a round adds to, and the sum with it."""
        if out.spec.dtype.itemsize < 4:
            raise Unknown("sums of short numbers")
        self.before.append(Call("zeros_of_sum", (), (out,), call.site))
        first, last = Var(out.spec), Var(out.spec)
        self.sums |= {first: out, last: out}
        self.late.add(out)
        return first, last

    def add(self, call: Call, out: Var, share: Var) -> None:
        """Add the share of a round to a sum."""
        if share.spec.shape != out.spec.shape or share.spec.dtype != out.spec.dtype:
            raise Unknown("a sum of another shape")
        first, last = self.sum(call, out)
        self.body.append(Call("add", (first, share), (last,), call.site))

    def _step(self, var: Var, part: Spec) -> int:
        """By how many bytes the parts of a value are apart."""
        (dim,) = [d for d, (n, m) in enumerate(zip(var.spec.shape, part.shape, strict=True)) if n != m]
        strides = strides_of(var.spec)
        same = [n == 1 or s == t for n, s, t in zip(part.shape, strides, strides_of(part), strict=True)]
        if not all(same) or strides[dim] * part.shape[dim] * self.count != math.prod(var.spec.shape):
            raise Unknown("parts that do not lie one behind the other")
        return strides[dim] * part.shape[dim] * var.spec.dtype.itemsize


def _part(program: Program, calls: Sequence[Call], ends: Iterable[Var]) -> Program:
    return program.with_calls(calls, results=tuple(ends), writes=(), made=(), aliases=(), leaves=())


# ---- how the batch goes through ops

Rule = Callable[[_Split, Call], Any]
RULES: dict[str, Rule] = {}


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def declare(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return declare


def _one(split: _Split, values: Iterable[Any]) -> int:
    """The dimension of the batch, the same in all of these."""
    dims = {split.dim(v) for v in values}
    dim = dims.pop() if len(dims) == 1 else None
    if dim is None:
        raise Unknown("the batch is in several dimensions, or not in all operands")
    return dim


def _elementwise(split: _Split, call: Call) -> None:
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
def _convert(split: _Split, call: Call) -> None:
    split.emit(call, [_one(split, call.args[:1])], *call.args)


@_rule(*[f"fused.{name}" for name in ACTIVATIONS], "fused.silu", "fused.silu.2")
def _activation(split: _Split, call: Call) -> None:
    split.emit(call, [_one(split, call.args[:1])] * len(call.outs), *call.args)


@_rule(*[f"fused.{name}.backward" for name in ACTIVATIONS], "fused.silu.backward", "fused.silu.2.backward")
def _activation_gradient(split: _Split, call: Call) -> None:
    g, saved, specs = call.args
    dim = _one(split, [g, *[v for v in saved if isinstance(v, Var)]])
    split.emit(call, [dim], g, saved, _specs(split, specs, [dim]))


def _specs(split: _Split, specs: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, ...]:
    """The shapes and dtypes of gradients, those of a round."""
    return tuple([s and (split.cut(s[0], d), *s[1:]) for s, d in zip(specs, dims, strict=True)])


@_rule("reshape", "view_shape")
def _reshape(split: _Split, call: Call) -> None:
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
def _transpose(split: _Split, call: Call) -> None:
    x, *both = call.args
    dim, (a, b) = _one(split, [x]), (d % len(x.spec.shape) for d in both)
    split.emit(call, [{a: b, b: a}.get(dim, dim)], *call.args)


@_rule("narrow")
def _narrow(split: _Split, call: Call) -> None:
    x, along = call.args[:2]
    _rows(split, call, along % len(x.spec.shape))


@_rule("cat")
def _cat(split: _Split, call: Call) -> None:
    tensors, along = call.args
    dim = _one(split, tensors)
    if along % len(tensors[0].spec.shape) == dim:
        raise Unknown("parts of the batch are joined")
    split.emit(call, [dim], *call.args)


def _rows(split: _Split, call: Call, columns: int) -> None:
    """An op on each row, whatever the others are: its columns are one dimension of the first operand."""
    dim = _one(split, call.args[:1])
    if dim == columns:
        raise Unknown("it goes along the batch")
    split.emit(call, [dim] * len(call.outs), *call.args)


@_rule("linear", "matmul")
def _product(split: _Split, call: Call) -> None:
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
def _sum_of_products(split: _Split, call: Call) -> None:
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
def _sum(split: _Split, call: Call) -> None:
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
def _take_index(split: _Split, call: Call) -> None:
    x, index, key = call.args
    if tuple(key) != ("at",) or split.dim(x) is not None:
        raise Unknown("an index of this kind")
    split.emit(call, [_one(split, [index])], *call.args)


@_rule("place")
def _sums_into_rows(split: _Split, call: Call) -> None:
    x, index, _, key = call.args
    if tuple(key) != ("at",) or index is None or _one(split, [x, index]) != 0:
        raise Unknown("an index of this kind")
    split.add(call, call.outs[0], split.made_of(call.op, call, *call.args)[0])


@_rule("fused.layer_norm", "fused.rms_norm")
def _layer_norm(split: _Split, call: Call) -> None:
    x, shape = call.args[:2]
    dim = _one(split, [x])
    if dim >= len(x.spec.shape) - 1 or tuple(shape) != x.spec.shape[-1:]:
        raise Unknown("the batch is normalized")
    split.emit(call, [dim] * len(call.outs), *call.args)


@_rule("fused.layer_norm.backward", "fused.rms_norm.backward")
def _layer_norm_gradient(split: _Split, call: Call) -> None:
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
def _attention(split: _Split, call: Call) -> None:
    query, key, value, mask, *_ = call.args
    if _one(split, [query, key, value]) != 0 or mask is not None or len(query.spec.shape) < 3:
        raise Unknown("attention with a mask")
    split.emit(call, [0 if v.spec.shape else None for v in call.outs], *call.args)


@_rule(f"{NAME}.backward")
def _attention_gradient(split: _Split, call: Call) -> None:
    g, saved, specs = call.args
    kept = [v for v in saved if isinstance(v, Var) and v.spec.shape]
    if _one(split, [g, *kept]) != 0 or any([s is not None for s in specs[3:]]):
        raise Unknown("attention with a mask")
    dims = [None if s is None else 0 for s in specs]
    split.emit(call, [0] * len(call.outs), g, saved, _specs(split, specs, dims))


@_rule("fused.cross_entropy")
def _cross_entropy(split: _Split, call: Call) -> None:
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
def _cross_entropy_gradient(split: _Split, call: Call) -> None:
    g, saved, specs = call.args
    if _one(split, saved) != 0 or split.dim(g) is not None:
        raise Unknown("a loss of each row")
    dims = [None if s is None else 0 for s in specs]
    split.emit(call, [0], g, saved, _specs(split, specs, dims))
