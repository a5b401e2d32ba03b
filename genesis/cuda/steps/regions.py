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

from genesis.arrays.spec import Spec, strides_of
from genesis.base.errors import UnsupportedError, message
from genesis.base.narrow import NARROW
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.scalars import Expression
from genesis.cuda.kernels import channels, norms
from genesis.cuda.kernels.draws import Draw, kernel_of
from genesis.cuda.kernels.lowering import EXACT, MOST, PROCESSORS, RULED, in_memory
from genesis.cuda.steps.held import Held
from genesis.cuda.steps.tiled import Small, Tiled, small_product
from genesis.jit.arguments import Var
from genesis.jit.lowering import regions as rules
from genesis.jit.lowering.assemble import assembled, flat
from genesis.jit.lowering.beside import Sums, halved
from genesis.jit.lowering.groups import Group, of_one, without_ones
from genesis.jit.lowering.loops import Affine, Axis, For, Load, Nest, Store, loads_of, values_of
from genesis.jit.lowering.parts import RULES, Builder, Memory, Part, Position, Unknown
from genesis.jit.lowering.phases import Phase, Stage
from genesis.jit.lowering.pointwise import elementwise
from genesis.jit.program import Call, Program, op_of
from genesis.jit.storage import Region

_ = rules.phases  # the rules are declared when it is imported
MOVED = {"convert", "named", "without_gradient", "clone", "reshape", "view_shape"}
LIKE_THE_CPUS = {f"fused.gelu.CudaArray{part}": f"fused.gelu{part}" for part in ("", ".backward")}  # whose rules do
RULES.update({name: RULES[other] for name, other in LIKE_THE_CPUS.items()})
OWN = MOVED | RULED | {"place", "put", "fused.adam_step", "scatter_sum", *LIKE_THE_CPUS, *channels.RULED, *norms.RULED}


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel of a stage: loops, or a draw; ``count`` is how long a loop is that is told so, and of a draw how many
    numbers there are. It stands for a `genesis.jit.lowering.phases.Kernel` in the plan.
    """

    kernel: Held | Draw | Tiled
    writes: frozenset[int]
    count: int
    over: tuple[tuple[int, int], ...] = ()
    chunks: int = 1


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


class Lowered:
    """The phases of a program.

    Attributes:
        draws: the stages that draw, by what they give: the stream, and how many blocks behind the beginning of the call
        fed: what is copied to the device before: the calls of draws that the CPU makes in its own way, or the numbers of
            arguments, and the value on the device of each
    """

    def __init__(self, program: Program, device: Any) -> None:
        self.program, self.device = program, device
        self.draws: dict[Var, Any] = {}
        self.fed: list[tuple[Call | int, Var]] = []
        self.calls = self._without_draws([call for call in program.calls if call.outs[0] not in program.regions])
        _refuse_other_devices(program, [call for call in self.calls if call.outs[0] not in self.draws], device)
        self.numbers = {v for v, _ in program.numbers}
        self._widen()
        self.as_they_are = self._read_as_they_are()
        alone: set[int] = set()
        eager: set[int] = set()
        while True:
            try:
                self.phases = _Regions(self, alone, eager).phases()
                return
            except _Wanted:
                self._convert_again()
            except _Refused as refused:
                own = {id(call) for call in refused.calls}
                (alone if not own <= alone else eager).update(own)

    # ---- draws

    def _without_draws(self, calls: list[Call]) -> list[Call]:
        """The calls without those that draw on the CPU and those that copy what it drew, or an argument, to the device."""
        drawn = {call.outs[0]: call for call in calls if op_of(call).kind.draws}
        given = {v: i for i, v in enumerate(self.program.arguments) if v.spec.device.type == "cpu"}
        out = []
        for call in calls:
            if op_of(call).kind.draws:
                continue
            if call.op == "transfer" and call.args[0] in drawn:
                origin = drawn[call.args[0]]
                stream, _, dtype, *options = origin.args
                count = math.prod(call.outs[0].spec.shape)
                kernel = kernel_of(origin.op.removeprefix("random."), dtype, count, tuple(options), held=True)
                if kernel is None:
                    self.fed.append((origin, call.outs[0]))
                    continue
                self.draws[call.outs[0]] = kernel, stream
            if call.op == "transfer" and call.args[0] in given:
                self.fed.append((given[call.args[0]], call.outs[0]))
                continue
            out.append(call)
        return out

    # ---- 16-bit floats

    def _widen(self) -> None:
        """A float32 variable for each of 16 bits, for the rules."""
        self.wide: dict[Var, Var] = {}
        self.narrow: dict[Var, Any] = {}  # what the memory of a wide one holds
        self.regions: dict[Var, Region] = {}
        for var, region in self.program.regions.items():
            root = self.widened(region.root)
            scale = 2 if root is not region.root and var.spec.dtype in HALVES else 1
            self.regions[self.widened(var)] = Region(root, region.offset * scale, region.strides)

    def _read_as_they_are(self) -> dict[Var, Call]:
        """The conversions of 16 bits to float32 that only loops read: these read the 16 bits. They are no calls then."""
        readers: dict[Var, list[Call]] = {}
        for call in self.program.calls:
            for var in dict.fromkeys(call.inputs):
                readers.setdefault(var, []).append(call)
        kept = {*self.program.ends, *[region.root for region in self.program.regions.values()]}
        widening = {}
        for call in self.calls:
            out = call.outs[0]
            widens = call.op == "convert" and out.spec.dtype == F32 and call.args[0].spec.dtype in HALVES
            if widens and out not in kept and all([in_loops(reader) for reader in readers.get(out, [])]):
                widening[out] = call
                source = self.widened(call.args[0])
                self.regions[out] = self.regions.get(source) or Region(source, 0, strides_of(source.spec))
        self.every, self.calls = self.calls, [call for call in self.calls if call.outs[0] not in widening]
        return widening

    def _convert_again(self) -> None:
        """All conversions are calls again: something else than loops reads one."""
        for out in self.as_they_are:
            del self.regions[out]
        self.as_they_are, self.calls = {}, self.every

    def widened(self, var: Var) -> Var:
        if var.spec.dtype not in HALVES:
            return var
        if var not in self.wide:
            spec = var.spec
            self.wide[var] = wide = Var(Spec(spec.shape, F32, spec.device, spec.strides))
            self.narrow[wide] = var
        return self.wide[var]

    def memory_of(self, var: Var) -> Var:
        return self.narrow.get(var, var)


class _Refused(Exception):
    """There is no kernel for these calls together."""

    def __init__(self, calls: list[Call]) -> None:
        super().__init__()
        self.calls = calls


class _Wanted(Exception):
    """A conversion that is no call is wanted by one that has no kernel of loops."""


def in_loops(call: Call) -> bool:
    """Whether a call may be one of loops."""
    return call.op in OWN or bool(op_of(call).kind.aligned)


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
        told, first = None if group is None else flat(group, stored), len(small.operands)
        kept = small.out in stored or told is None
        outs, writes = (small.out,) if kept else (), frozenset({first} if kept else ())
        if told is None:
            return Stage(Launch(Tiled(small), writes, small.count), (*small.operands, *outs))  # type: ignore[arg-type]
        loop = self._stage(*told)
        given = loop.operands.index(small.out)
        kernel = Tiled(small, loop.kernel.kernel, given, kept)  # type: ignore[attr-defined]
        at = {i: first + kept + i - (i > given) for i in range(len(loop.operands)) if i != given}
        writes |= {at[i] for i in loop.kernel.writes}
        over = tuple([(at[r], at[w]) for r, w in loop.kernel.over if r != given])
        operands = (*small.operands, *outs, *[loop.operands[i] for i in at])
        return Stage(Launch(kernel, writes, small.count, over), operands)  # type: ignore[arg-type]

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


def stage_of(nest: Nest, operands: list[Var], numbers: set[Var], count: int = 0) -> Stage:
    """The launch of loops over these values."""
    held = frozenset([i for i, v in enumerate(operands) if v in numbers])
    dtypes = [np.dtype(np.float64) if i in held else v.spec.dtype for i, v in enumerate(operands)]
    kernel = Held(in_memory(nest, dtypes), held)
    _ = kernel.code  # it can be printed
    same = tuple([(r, w) for r, w in nest.over if dtypes[r] == dtypes[w]])
    return Stage(Launch(kernel, nest.writes, count, same), tuple(operands))  # type: ignore[arg-type]


def chosen_one(memory: Memory, call: Call) -> list[Part]:
    """`scatter_sum` of one element of each row: where its place is the element is, else zeros."""
    x, shape, dim, index = call.args
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


def copy_launch(spec: Spec, offset: int, source: Sequence[int], target: Sequence[int]) -> Launch:
    """What `genesis.jit.lowering.copies.copy_kernel` is on the CPU."""
    dtype = spec.dtype
    axes = [Axis(n) for n in spec.shape if n != 1] or [Axis(1)]
    steps = [(s, t) for n, s, t in zip(spec.shape, source, target, strict=True) if n != 1] or [(0, 0)]
    reads = tuple([(axis, s) for axis, (s, _) in zip(axes, steps, strict=True) if s])
    writes = tuple([(axis, t) for axis, (_, t) in zip(axes, steps, strict=True) if t])
    load = Load(0, Affine(offset // dtype.itemsize, reads), dtype)
    nest = Nest((dtype, dtype), (For(tuple(axes), (Store(1, Affine(0, writes), load),), vector=True),))
    return Launch(Held(nest, frozenset()), frozenset({1}), 0)


def _refuse_other_devices(program: Program, calls: list[Call], device: Any) -> None:
    """Of the host are arguments, and nothing but copies to the device reads them."""
    written = [w.value for w in program.writes if w.value is not None]
    for var in (*[v for call in calls for v in (*call.inputs, *call.outs)], *program.ends, *written):
        if var.spec.device.type != "meta" and var.spec.device != device:
            text = f"a value of {program.name} is on {var.spec.device}, others are on {device}"
            raise UnsupportedError(message("compile", text, hint="move the arguments to the device first"))
