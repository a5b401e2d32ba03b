"""Which calls of a program run together on a GPU: the rules and groups of the CPU's compiler, without its machine code.

Calls that go over the same elements are one kernel. Products, and what else has kernels of its own, are called as in
eager mode, between them. 16-bit floats are computed with in float32 and rounded where they are stored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from genesis.base.errors import UnsupportedError
from genesis.base.narrow import NARROW
from genesis.core.call.halves import HALVES
from genesis.core.call.scalars import Expression
from genesis.cuda.kernels.lowering import EXACT, MOST, PROCESSORS
from genesis.cuda.steps.lowered import Lowered, in_loops
from genesis.cuda.steps.stages import Launch, product_stage, stage_of
from genesis.cuda.steps.tiled import Small, small_product
from genesis.jit.arguments import Var
from genesis.jit.lowering.assemble import assembled, flat
from genesis.jit.lowering.beside import Sums, halved
from genesis.jit.lowering.groups import Group, of_one, without_ones
from genesis.jit.lowering.loops import Affine, For, Nest, loads_of, values_of
from genesis.jit.lowering.parts import RULES, Builder, Memory, Part, Position, Unknown
from genesis.jit.lowering.phases import Phase, Stage
from genesis.jit.lowering.pointwise import elementwise
from genesis.jit.program import Call


@dataclass(slots=True)
class _Item:
    group: Group | None = None  # at the end of a product, if there is one
    calls: list[Call] = field(default_factory=list)
    stage: Stage | None = None
    why: str = ""
    product: Small | None = None

    @property
    def given(self) -> list[Var]:
        """What loops give, and a product."""
        given = [] if self.group is None else [*self.group.given]
        return given if self.product is None else [self.product.out, *given]


class _Refused(Exception):
    """There is no kernel for these calls together."""

    def __init__(self, calls: list[Call]) -> None:
        super().__init__()
        self.calls = calls


class _Wanted(Exception):
    """A conversion that is no call is wanted by one that has no kernel of loops."""


def phases_of(lowered: Lowered) -> list[Phase]:
    """The phases of a program: those of groups of calls, and of calls that are done as they are."""
    alone: set[int] = set()
    eager: set[int] = set()
    while True:
        try:
            return _Regions(lowered, alone, eager).phases()
        except _Wanted:
            lowered.convert_again()
        except _Refused as refused:
            own = {id(call) for call in refused.calls}
            (alone if not own <= alone else eager).update(own)


class _Regions:
    """The calls in groups.

    Args:
        alone: calls that are not joined with others
        eager: calls that have no kernel of this kind
    """

    def __init__(self, of: Lowered, alone: set[int], eager: set[int]) -> None:
        self.of, self.alone, self.eager = of, alone, eager
        self.memory = Memory(of.regions, of.numbers, dict(of.program.constants))
        self.items: list[_Item] = []
        self.ready: dict[Var, int] = {}
        self.giving: dict[Any, list[int]] = {}  # the items whose groups give a value, and those that read one
        self.reading: dict[Any, list[int]] = {}
        self.joining: list[int] = []  # those that join totals of programs
        for call in of.calls:
            self._add(call)

    def _add(self, call: Call) -> None:
        if call.outs[0] in self.of.draws:
            self._draw(call)
            return
        if self._is_product(call):
            return
        try:
            parts = [] if id(call) in self.eager else self._parts(call)
        except (Unknown, UnsupportedError) as error:
            self._called(call, str(error).splitlines()[0])
            return
        if not parts:
            self._called(call, "no kernel of loops")
        for part in parts:
            self._into_group(without_ones(part), id(call) in self.alone)

    def _is_product(self, call: Call) -> bool:
        """Whether a call is a small product, which is an item then."""
        product = None if id(call) in self.alone else small_product(call, self.of.program.regions)
        if product is None:
            return False
        if self.of.as_they_are.keys() & set(call.inputs):
            raise _Wanted
        self._last(_Item(product=product, calls=[call], why="a small product"), [product.out])
        return True

    def _at_the_end(self, part: Part) -> bool:
        """Into the product that gives what a part reads, if its elements, one after the other, are all that it needs of it, and
        the others are there before.
        """
        at = max([self.ready.get(r.root, -1) for r in part.reads], default=-1)
        item = self.items[at] if at >= 0 else _Item()
        if item.product is None or part.rows is not None or id(part.call) in self.alone:
            return False
        group = Group(part, in_any_order=True)
        if item.group is not None:
            group.axes, group.rows, group.parts = item.group.axes, None, list(item.group.parts)
            group.given = dict(item.group.given)
            if group.takes(part):
                return False
        told = flat(group, {*group.given}) if item.product.out in group.roots else None
        if told is None or told[2] != item.product.count or not _is_along(told[0], told[1].index(item.product.out)):
            return False
        item.group = group
        item.calls.append(part.call)
        self.ready.update(dict.fromkeys([g.var for g in part.gives], at))
        return True

    def _draw(self, call: Call) -> None:
        out = call.outs[0]
        kernel, _ = self.of.draws[out]
        launch = Launch(kernel, frozenset({0}), math.prod(out.spec.shape))
        self._last(_Item(calls=[call], stage=Stage(launch, (out,)), why="random numbers"), [out])  # type: ignore[arg-type]

    def _called(self, call: Call, why: str) -> None:
        if self.of.as_they_are.keys() & set(call.inputs):
            raise _Wanted
        self._last(_Item(calls=[call], why=why), [self.of.widened(v) for v in call.outs])
        if call.op == "check_range":  # it gives 0 for what is none
            self.memory.limits[call.outs[0]] = call.args[2]

    def _parts(self, call: Call) -> Sequence[Part]:
        every = (*call.inputs, *call.outs)
        if any([v.spec.dtype.kind == "c" or v.spec.dtype in NARROW for v in every]):
            raise Unknown("complex numbers or 8-bit floats")
        if any([math.prod(v.spec.shape) >= MOST for v in every]):
            raise Unknown("more than 2^31 elements")
        if call.op in EXACT and any([v.spec.dtype in HALVES for v in every]):
            raise Unknown("16-bit floats mean another thing")
        wide = replace(call.renamed(self.of.widened), outs=tuple([self.of.widened(v) for v in call.outs]))
        if call.op == "scatter_sum":
            return chosen_one(self.memory, wide)
        if not in_loops(call):
            raise Unknown("no kernel of loops")
        parts = RULES.get(call.op, elementwise)(self.memory, wide)
        if not all([isinstance(part, Part) for part in parts]):
            raise Unknown("a kernel of the CPU's own")
        if any([min(r.strides, default=0) < 0 for part in parts for r in part.reads]):  # type: ignore[union-attr]
            raise Unknown("strides below 0")
        return [replace(part, call=call) for part in parts]  # type: ignore[type-var]

    def _last(self, item: _Item, outs: Sequence[Var]) -> None:
        self.items.append(item)
        self.ready.update(dict.fromkeys(outs, len(self.items) - 1))

    def _into_group(self, part: Part, alone: bool) -> None:
        """Into a group that can take it, or one of its own."""
        if all([0 in g.var.spec.shape for g in part.gives]) or self._at_the_end(part):
            return
        halves = None if alone else halved(part, PROCESSORS)
        if halves is not None and self._refused(halves[0]) is None:
            part = halves[1]
        why = "" if alone else self._refused(part)
        if why is None:
            return
        self._uses(part, len(self.items))
        self._last(_Item(Group(part, in_any_order=True), [part.call], why=why), [g.var for g in part.gives])

    def _refused(self, part: Part) -> str | None:
        """Into the first group that can take it, from the one on that gives the last of what it reads; if there is none, the
        reason.
        """
        first = max([self.ready.get(r.root, -1) for r in part.reads], default=-1)
        first = max([first, *[self.ready.get(g.var, -1) for g in part.gives]])
        why = ""
        for i in self._sharing(part, max(first, 0)):
            item = self.items[i]
            if any([id(call) in self.alone for call in item.calls]):
                continue
            reason = item.group.takes(part)  # type: ignore[union-attr]
            if not reason:
                self.ready.update(dict.fromkeys([g.var for g in part.gives], i))
                item.calls.append(part.call)
                self._uses(part, i)
                return None
            why = why or reason
        if not why and any([item.group is not None for item in self.items[max(first, 0) :]]):
            why = "nothing is shared"
        return why

    def _uses(self, part: Part, item: int) -> None:
        for give in part.gives:
            self.giving.setdefault(give.var, []).append(item)
        for root in dict.fromkeys([read.root for read in part.reads]):
            self.reading.setdefault(root, []).append(item)
            if isinstance(root, Sums):
                self.joining.append(item)

    def _sharing(self, part: Part, first: int) -> list[int]:
        """The items from one on with groups that read or give elements which a part reads. Numbers that both read are no
        reason: a loop for each (of an optimizer's updates, say) asks for memory as fast, in fewer registers, and loops alike
        are one launch.
        """
        items: set[int] = set()
        for root in dict.fromkeys([read.root for read in part.reads]):
            items.update(self.giving.get(root, ()), self.joining if isinstance(root, Sums) else ())
            if not isinstance(root, Position) and math.prod(root.spec.shape) > 1:
                items.update(self.reading.get(root, ()))
        return sorted([i for i in items if i >= first])

    # ---- out of groups

    def _root(self, var: Var) -> Var:
        region = self.of.regions.get(var)
        return var if region is None else region.root

    def _stored(self) -> list[set[Var]]:
        """For each item the values that others read."""
        readers: dict[Var, set[int]] = {self._root(self.of.widened(v)): {-1} for v in self.of.program.ends}
        for i, item in enumerate(self.items):
            used = set(item.group.roots) if item.group else set()
            if item.group is None or item.product is not None:
                used |= {self._root(self.of.widened(v)) for call in item.calls for v in call.inputs}
            for root in used:
                readers.setdefault(root, set()).add(i)
        return [{v for v in item.given if readers.get(v, set()) - {i}} for i, item in enumerate(self.items)]

    def phases(self) -> list[Phase]:
        out: list[Phase] = []
        for item, stored in zip(self.items, self._stored(), strict=True):
            calls = tuple({id(c): c for c in item.calls}.values())
            if item.stage is not None:
                out.append(Phase((item.stage,), calls, item.why))
            elif item.product is not None:
                try:
                    out.append(Phase((self._product(item.product, item.group, stored),), calls, item.why))
                except UnsupportedError:
                    raise _Refused(list(calls)) from None
            elif item.group is None:
                out += [Phase((), (call,), item.why) for call in calls]
            else:
                try:
                    out += [Phase((stage,), calls, item.why) for stage in self._stages(item.group, stored)]
                except UnsupportedError:
                    raise _Refused(list(calls)) from None
        return out

    def _product(self, small: Small, group: Group | None, stored: set[Var]) -> Stage:
        """A product, with the loop at its end."""
        told = None if group is None else flat(group, stored)
        return product_stage(small, None if told is None else self._stage(*told), small.out in stored)

    def _stages(self, group: Group, stored: set[Var]) -> list[Stage]:
        told = flat(group if group.axes or group.rows is not None else of_one(group), stored)
        nests = assembled(group, stored, PROCESSORS) if told is None else [told[:2]]
        count = 0 if told is None else told[2]
        return [self._stage(nest, operands, count) for nest, operands in nests if nest.body and nest.writes]

    def _stage(self, nest: Nest, operands: list[Var], count: int) -> Stage:
        return stage_of(nest, [self.of.memory_of(v) for v in operands], self.of.numbers, count)


def _is_along(nest: Nest, operand: int) -> bool:
    """Whether a loop reads all elements of an operand, one after the other."""
    (loop,) = nest.body
    assert isinstance(loop, For)
    loads = [x for value in values_of(loop) for x in loads_of(value) if x.operand == operand]
    return all([x.at == Affine(0, ((loop.axes[0], 1),)) and x.index is None for x in loads])


def chosen_one(memory: Memory, call: Call) -> list[Part]:
    """`scatter_sum` of one element of each row: where its place is the element is, else zeros."""
    x, shape, dim, index, *_ = call.args
    dim %= max(len(shape), 1)
    if not index.spec.shape or index.spec.shape != tuple([1 if d == dim else n for d, n in enumerate(shape)]):
        raise Unknown("sums of several elements")
    if x.spec.shape != index.spec.shape:
        raise Unknown("elements that are not all added")
    out = call.outs[0]
    made = Builder(memory, call, tuple(shape))
    value, chosen, zero = made.read(x), made.read(index), Expression("number", (0,), out.spec.dtype)
    made.give(out, np.where(made.count(dim) == chosen, value, type(value)(zero)))
    return [made.made()]
