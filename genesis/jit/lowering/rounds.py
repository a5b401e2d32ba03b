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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from genesis.arrays.spec import Spec, strides_of
from genesis.jit.arguments import Var, renamed
from genesis.jit.lowering import draws
from genesis.jit.lowering.batches import RULES
from genesis.jit.lowering.parts import I64, Position, Unknown
from genesis.jit.program import Call, Program, inferred, op_of

LEAST = 1 << 24  # bytes of the values of a program, below which they may all stay in the caches
TRIED = 4  # lengths that may be that of the batch
MOST = 1 << 20  # bytes of a value in a round: with a few others it is in the cache of one processor


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
    """A program in rounds; None where it is none that goes over a batch, or it is small, or its sums are added in one tree,
    whatever the number of ranks: rounds would add the rows of a rank otherwise than those of several shards.
    """
    if any([call.op == "sum_in_tree" for call in program.calls]):
        return None
    outs = [v for call in program.calls for v in call.outs if v not in program.regions]
    if sum([_bytes(v.spec) for v in outs]) < LEAST:
        return None
    given, trained = _given(program), sum([_bytes(leaf.spec) for leaf in program.leaves])  # read in each round
    for batch in sorted({v.spec.shape[0] for v in given}, reverse=True)[:TRIED]:
        own, counts = [v for v in given if v.spec.shape[0] == batch], [n for n in range(2, batch + 1) if batch % n == 0]
        try:
            if counts:
                first = Split(program, own, counts[0])
                made, rows = first.made(), [_bytes(v.spec) for v in outs if first.dims.get(v) is not None]
                fits = [n for n in counts if sum(rows) >= n * trained and max(rows, default=0) <= MOST * n]
                if fits:
                    return made if fits[0] == counts[0] else Split(program, own, fits[0]).made()
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


class Split:
    """The calls of a program, sorted. `RULES` say how the batch goes through ops: `batches` has them."""

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
        self.draws: dict[Var, Call] = {}  # those that a round can compute its part of
        self.turn: Var | None = None  # the number of the round

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
        self.before[:0] = self._drawn_before(ends)
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
            if draws.is_draw(call) and draws.is_native(call):
                self.draws[call.outs[0]] = call
            else:
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
                rule = RULES["elementwise"]
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
            if var in self.draws and math.prod(var.spec.shape[:dim]) == 1:
                self.body.append(draws.of_rounds(self.draws[var], self._number(), self.cut(var.spec.shape, dim)))
                self.small[var] = self.body[-1].outs[0]
                return self.small[var]
            own = Var(Spec(self.cut(var.spec.shape, dim), var.spec.dtype, var.spec.device, strides_of(var.spec)))
            self.small[var] = own
            self.slices[own] = var, self._step(var, own.spec)
        return self.small[var]

    def _number(self) -> Var:
        """The number of the round."""
        if self.turn is None:
            every, self.turn = Var(Spec((self.count,), I64)), Position(Spec((1,), I64))
            self.before.append(Call("numbers_of_rounds", (), (every,)))
            self.slices[self.turn] = every, I64.itemsize
        return self.turn

    def _drawn_before(self, ends: Sequence[Var]) -> list[Call]:
        """The draws of which more is read than a part in each round."""
        read = [*[v for call in (*self.before, *self.body) for v in call.inputs], *ends]
        used = {*map(self._root, read), *[v for v, _ in self.slices.values()]}
        return [call for var, call in self.draws.items() if var in used]

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
