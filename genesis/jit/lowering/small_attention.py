"""Small attention as parts: weights are kept, sums are totals element by element. (Of very few rows it is a kernel of its
own, see `attention_of_rows`.)

Axes are those of all heads, then i of rows, j of columns, and d of what is multiplied.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call.scalars import Expression, Symbol
from genesis.jit.arguments import Var
from genesis.jit.lowering import attention_of_rows
from genesis.jit.lowering.attention import NAME
from genesis.jit.lowering.parts import F64, Builder, Memory, Part, Unknown, rule, total
from genesis.jit.lowering.phases import Stage
from genesis.jit.program import Call

Names = dict[str, int]


class _Heads:
    """Parts over the axes of all heads and some of i, j, d."""

    def __init__(self, memory: Memory, call: Call, lead: tuple[int, ...], sizes: Names) -> None:
        self.memory, self.call, self.lead, self.sizes = memory, call, lead, sizes
        self.parts: list[Part] = []

    def begin(self, axes: str, totalled: bool = True) -> Builder:
        """A builder over these axes, of which the last is totalled."""
        shape = (*self.lead, *[self.sizes[a] for a in axes])
        self.axes = axes
        return Builder(self.memory, self.call, shape, (len(shape) - 1,) if totalled else None)

    def strides(self, var: Var, of: str) -> tuple[int, ...]:
        """The strides of a value whose last dimensions are these axes, over the axes of now."""
        own = self.memory.strides(var)
        along = dict(zip(of, own[len(self.lead) :], strict=True))
        return (*own[: len(self.lead)], *[along.get(a, 0) for a in self.axes])

    def read(self, made: Builder, var: Var, of: str) -> Any:
        return made.read(var, self.strides(var, of)).astype(F64)

    def give(self, made: Builder, var: Var, of: str, value: Any) -> None:
        made.give(var, value, self.strides(var, of))
        self.parts.append(made.made())

    def product(self, out: tuple[Var, str], a: tuple[Var, str], b: tuple[Var, str], axes: str) -> None:
        """``out = sum a b`` over the last of the axes."""
        made = self.begin(axes)
        self.give(made, *out, total("add", self.read(made, *a) * self.read(made, *b)))

    def values(self, axes: str, dtype: Any = np.float32) -> Var:
        return Var(Spec((*self.lead, *[self.sizes[a] for a in axes]), np.dtype(dtype)))


def _number(x: float) -> Any:
    return Symbol(Expression("number", (x,), F64))


def factor_of(call: Call) -> float:
    query, scale = call.args[0], call.args[6]
    return float(np.float32(1 / math.sqrt(query.spec.shape[-1]) if scale is None else scale))


@rule(NAME)
def forward(memory: Memory, call: Call) -> list[Part | Stage]:
    query, key, value, mask, _, causal, *_ = call.args
    out, weights, factor = call.outs
    heads = _heads(memory, call, query, key, value)
    number = factor_of(call)
    own = attention_of_rows.stage(memory, call, number)
    if own is not None:
        return [own, constant(memory, call, factor, number)]
    scores = heads.values("ij", F64)
    made = heads.begin("ijd")
    s = total("add", heads.read(made, query, "id") * heads.read(made, key, "jd")) * number
    if causal:
        seen = made.count(len(made.shape) - 2) <= made.count(len(made.shape) - 3)
        s = np.where(seen, s, -math.inf)
    heads.give(made, scores, "ij", s)
    made = heads.begin("ij")
    s = heads.read(made, scores, "ij")
    if mask is not None:
        s = np.where(made.read(mask), s, -math.inf)
    most = total("maximum", s)
    power = np.exp(s - (most if mask is None else np.where(most == -math.inf, 0.0, most)))
    sums = total("add", power)
    heads.give(made, weights, "ij", power / (sums if mask is None else np.where(sums == 0.0, 1.0, sums)))
    heads.product((out, "iw"), (weights, "ij"), (value, "jw"), "iwj")
    return [*heads.parts, constant(memory, call, factor, number)]


def constant(memory: Memory, call: Call, out: Var, number: float) -> Part:
    single = Builder(memory, call, ())
    single.give(out, _number(number))
    return single.made()


@rule(f"{NAME}.backward")
def backward(memory: Memory, call: Call) -> list[Part]:
    g, (query, key, value, weights, factor, _), wanted = call.args
    heads = _heads(memory, call, query, key, value)
    outs = iter(call.outs)
    of_query, of_key, of_value = (None if each is None else next(outs) for each in wanted[:3])
    if of_value is not None:
        heads.product((of_value, "jw"), (weights, "ij"), (g, "iw"), "jwi")
    if of_query is None and of_key is None:
        return heads.parts
    slopes, change = heads.values("ij", F64), heads.values("ij")
    heads.product((slopes, "ij"), (g, "iw"), (value, "jw"), "ijw")
    made = heads.begin("ij")
    slope, p = heads.read(made, slopes, "ij"), heads.read(made, weights, "ij")
    number = made.read(factor, (0,) * len(made.shape)).astype(F64)
    heads.give(made, change, "ij", p * (slope - total("add", slope * p)) * number)
    if of_query is not None:
        heads.product((of_query, "id"), (change, "ij"), (key, "jd"), "idj")
    if of_key is not None:
        heads.product((of_key, "jd"), (change, "ij"), (query, "id"), "jdi")
    return heads.parts


def _heads(memory: Memory, call: Call, query: Var, key: Var, value: Var) -> _Heads:
    lead, (rows, depth) = query.spec.shape[:-2], query.spec.shape[-2:]
    if any([v.spec.dtype != np.float32 for v in (query, key, value)]):
        raise Unknown("attention of this dtype")
    return _Heads(memory, call, lead, {"i": rows, "j": key.spec.shape[-2], "d": depth, "w": value.spec.shape[-1]})
