"""Which calls of a program run together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from genesis.base.errors import UnsupportedError
from genesis.base.narrow import NARROW
from genesis.jit.arguments import Var
from genesis.jit.lowering import (
    attention,
    channels,
    convolutions,
    draws,
    fused,
    halves,
    indexing,
    many,
    pointwise,
    products,
    ranges,
    recurrent,
    reductions,
    rounds,
    small_attention,
    steps,
    transfers,
    trees,
    writes,
)
from genesis.jit.lowering.assemble import assembled, flat
from genesis.jit.lowering.emit_llvm import emitted
from genesis.jit.lowering.emit_python import interpreted
from genesis.jit.lowering.groups import Group, without_ones
from genesis.jit.lowering.loops import Nest
from genesis.jit.lowering.parts import RULES, Check, Memory, Part, Unknown
from genesis.jit.lowering.phases import Kernel, Phase, Stage
from genesis.jit.program import Call, Program, op_of
from genesis.kernels.llvm import loops

__all__ = [
    "channels",
    "convolutions",
    "fused",
    "phases",
    "pointwise",
    "recurrent",
    "reductions",
    "small_attention",
    "steps",
]  # the rules are declared when they are imported


@dataclass(slots=True)
class _Item:
    """Something that runs: a group of parts, or calls that have kernels of their own or are left to the host."""

    group: Group | None = None
    calls: list[Call] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    why: str = ""
    joined: bool = False  # with others, whose kernel does it
    moves: str = ""  # see `Phase`


def phases(program: Program) -> list[Phase]:
    """The phases of a program. Views are no calls, they are parts of their root. Without llvmlite the host computes all
    calls.
    """
    if not loops.available():
        return [_of_host(call, "there is no llvmlite") for call in _calls(program)]
    program = halves.widened(program)
    calls = _calls(program)
    checks = _checks(program)
    checked = set(checks)
    parts = rounds.in_rounds(program)
    others = (None if parts is None else _in_rounds(parts, checked)) or _Regions(
        program, calls, checked=checked
    ).phases()
    return [*[phase for some in checks.values() for phase in some], *others]


def _checks(program: Program) -> dict[Check, list[Phase]]:
    """The phases that look at indices of the outside, before all others."""
    memory, known = Memory(program.regions, set()), dict[Check, list[Phase]]()
    for check, calls in ranges.of_outside(program).items():
        if 0 in check.index.spec.shape:
            known[check] = []
            continue
        try:
            group = Group(without_ones(ranges.flag(memory, calls[-1], check)))
        except Unknown:
            continue
        (flag,) = group.given
        known[check] = [Phase((_stage(*each),), calls, flag=flag) for each in assembled(group, {flag})]
    return known


def _in_rounds(parts: rounds.Rounds, checked: set[Check]) -> list[Phase] | None:
    """The phases of a program in rounds; None if the host would have to compute in each."""
    before = _Regions(parts.before, _calls(parts.before), checked=checked)
    limits = dict(before.memory.limits)
    limits |= {v: limits[whole] for v, (whole, _) in parts.slices.items() if whole in limits}
    made = {v for call in parts.body.calls for v in call.outs}
    body = _Regions(parts.body, _calls(parts.body), limits, {*made, *parts.slices, *parts.sums})
    after = _Regions(parts.after, _calls(parts.after), limits)
    each = [replace(phase, times=parts.count, stages=_of_rounds(parts, phase)) for phase in body.phases()]
    if not all([phase.stages and all(map(_is_sound, phase.stages)) for phase in each]):
        return None
    once = _serial([Phase(tuple(item.stages), tuple(item.calls), item.why) for item in body.earlier])
    return [*before.phases(), *once, *each, *after.phases()]


def _calls(program: Program) -> list[Call]:
    """Those that compute. What the host draws comes first: it reads nothing, and native code is not left for it."""
    calls = [call for call in program.calls if call.outs[0] not in program.regions]
    calls.sort(key=lambda call: not (draws.is_draw(call) and not draws.is_native(call)))
    return transfers.late(program, products.added_to(program, calls))


def _of_rounds(parts: rounds.Rounds, phase: Phase) -> tuple[Stage, ...]:
    """The stages of a phase, with the memory that variables of a round are in."""
    out = []
    for stage in phase.stages:
        lying = [parts.slices.get(v, (parts.sums.get(v, v), 0)) for v in stage.operands]
        out.append(Stage(stage.kernel, tuple([v for v, _ in lying]), tuple([step for _, step in lying])))
    return tuple(out)


def _is_sound(stage: Stage) -> bool:
    """Whether what is written is read by a kernel that may be given the same memory for both."""
    writes = stage.kernel.writes
    return all(
        [
            v is not stage.operands[w] or (k, w) in stage.kernel.over
            for w in writes
            for k, v in enumerate(stage.operands)
            if k not in writes
        ]
    )


def _of_host(call: Call, why: str = "") -> Phase:
    return Phase((), (call,), why or f"there is no kernel for {call.op}")


class _Regions:
    """The calls of a program, or of a part of it that runs several times.

    Args:
        limits: see `Memory`
        checked: what was looked at before
        changing: the values that are others in each round; what is made of the others only is made ``earlier``
    """

    def __init__(
        self,
        program: Program,
        calls: list[Call],
        limits: dict[Var, int] | None = None,
        changing: set[Var] | None = None,
        checked: set[Check] | None = None,
    ) -> None:
        self.program, self.changing = program, changing
        self.memory = Memory(program.regions, {v for v, _ in program.numbers}, dict(program.constants))
        self.memory.limits.update(limits or {})
        self.memory.checked = checked or set()
        self.earlier: list[_Item] = []
        self.items: list[_Item] = []
        self.ready: dict[Var, int] = {}  # the number of the item that gives a value
        self.drawn: dict[Var, Part] = {}  # that no group has yet: the first that reads them computes them
        self.begun: dict[Var, Call] = {}  # that nothing has waited for yet: the first that reads them does
        for call in calls:
            self._add(call)

    def root(self, var: Var) -> Var:
        region = self.program.regions.get(var)
        return var if region is None else region.root

    # ---- into groups

    def _add(self, call: Call) -> None:
        self._wait([v for v in call.inputs if self.root(v) in self.begun])
        if transfers.goes_on(self.program, call):
            self._last(_Item(calls=[call], moves="begin"), call.outs)
            self.begun[call.outs[0]] = call
            return
        try:
            if call.op == "check_range" and self.memory.is_checked(call.args[0], call.args[2]):
                self._into_group(without_ones(ranges.as_it_is(self.memory, call)))
                self.memory.limits[call.outs[0]] = call.args[2]
                return
            if call.op in products.OPS:
                self._multiply(call)
                return
            if call.op == trees.OP:
                own = trees.stage(self.memory, call, lambda text: "k" + _digest(text))
                self._last(_Item(calls=[call], stages=[own]), call.outs)
                return
            if call.op in indexing.SUMS and call.args[1 if call.op == "place" else 3] is not None:
                self._last(_Item(calls=[call], stages=[_stage(*indexing.sums(self.memory, call))]), call.outs)
                return
            if call.op in attention.CALLS and attention.suits(call):
                own = attention.stage(self.memory, call, lambda text: "k" + _digest(text))
                self._last(_Item(calls=[call], stages=[own]), call.outs)
                return
            if call.op == "put" and call.args[2] is not None:
                own = writes.put_rows(self.memory, call, lambda text: "k" + _digest(text))
                self._last(_Item(calls=[call], stages=[own]), call.outs)
                return
            parts = self._parts(call)
        except (Unknown, UnsupportedError) as error:
            self._last(_Item(calls=[call], why=f"{call.op}: {error}"), call.outs)
            if call.op == "check_range":
                self.memory.limits[call.outs[0]] = call.args[2]
            return
        for part in parts:
            if isinstance(part, Call) and part.op in products.OPS:
                self._add(part)
            elif isinstance(part, Call):
                self._last(_Item(calls=[part], why=f"{part.op} of {call.op}"), part.outs)
            elif isinstance(part, Stage):
                written = [part.operands[i] for i in part.kernel.writes]
                self._last(_Item(calls=[call], stages=[part]), written)
            elif draws.is_draw(part.call) or part.call.op == draws.ROWS:
                self.drawn[part.gives[0].var] = without_ones(part)
            else:
                self._into_group(without_ones(part))

    def _parts(self, call: Call) -> Sequence[Part | Call | Stage]:
        if any([v.spec.dtype.kind == "c" or v.spec.dtype in NARROW for v in (*call.inputs, *call.outs)]):
            raise Unknown("there are no kernels for complex numbers and 8-bit floats")
        if call.op in RULES:
            return RULES[call.op](self.memory, call)
        op = op_of(call)
        if op.kind.draws:
            return draws.parts(self.memory, call)
        if op.kind == "elementwise":
            return pointwise.elementwise(self.memory, call)
        raise Unknown("there is no kernel")

    def _multiply(self, call: Call) -> None:
        given = products.operands(self.memory, call)
        if given.product.c[1] == 1 != given.product.c[2] and given.bias is None:
            given = replace(given, product=given.product.transposed(), a=given.b, b=given.a)
        if not products.suits(given):
            for each in halves.in_float32(call):
                self._add(each)
            if call.args[0].spec.dtype == call.outs[0].spec.dtype:
                self._into_group(without_ones(products.as_part(self.memory, call)))
            return
        panels = None
        if self.changing is not None and given.b.root not in self.changing:
            panels = products.in_panels(given, lambda text: "k" + _digest(text))
        if panels is not None:
            self.earlier.append(_Item(calls=[call], stages=[panels[0]]))
            given = panels[1]
        elif given.product.b[2] != 1 and not products.is_turned_inside(given):
            before = given
            part, given = products.packed(self.memory, call, given)
            turned = products.turned(before, given.b.root, lambda text: "k" + _digest(text))
            if turned is None:
                self._into_group(without_ones(part))
            else:
                self._last(_Item(calls=[call], stages=[turned]), [given.b.root])
        lanes = loops.width() // 4
        unit = products.unit_of(given)
        name = "k" + _digest(repr(given.product), str(lanes), unit)
        kernel = products.kernel(name, given.product, lanes, unit)
        self._last(_Item(calls=[call], stages=[Stage(kernel, given.stage_operands)]), call.outs)

    def _last(self, item: _Item, outs: Iterable[Var]) -> None:
        self._draw(self._used(item))
        self.items.append(item)
        self.ready.update(dict.fromkeys(outs, len(self.items) - 1))

    def _wait(self, read: Iterable[Var]) -> None:
        """Until these are there."""
        for call in [self.begun.pop(v) for v in dict.fromkeys(map(self.root, read))]:
            self._last(_Item(calls=[call], moves="end"), call.outs)

    def _draw(self, read: Iterable[Var]) -> None:
        """What is drawn of these is a group of its own."""
        for part in [self.drawn.pop(v) for v in read if v in self.drawn]:
            self._last(_Item(Group(part), [part.call]), [part.gives[0].var])

    def _into_group(self, part: Part) -> None:
        """Into the first group that can take it, from the one on that gives the last of what it reads."""
        if all([0 in g.var.spec.shape for g in part.gives]):
            return  # nothing is stored
        first = max([self.ready.get(r.root, -1) for r in part.reads], default=-1)
        first = max([first, *[self.ready.get(g.var, -1) for g in part.gives]])  # parts of a result, in order
        why, drawn = "", list({r.root: self.drawn[r.root] for r in part.reads if r.root in self.drawn}.values())
        for i in range(max(first, 0), len(self.items)):
            group = self.items[i].group
            if group is None:
                continue
            reason = group.takes(part, drawn)
            if not reason:
                for each in (*drawn, part):
                    self.ready.update(dict.fromkeys([g.var for g in each.gives], i))
                    self.items[i].calls.append(each.call)
                for each in drawn:
                    del self.drawn[each.gives[0].var]
                return
            why = why or reason
        if drawn:
            self._draw([drawn[0].gives[0].var])
            self._into_group(part)
            return
        group = Group(part)
        self._last(_Item(group, [part.call], why=why), [g.var for g in part.gives])

    # ---- out of groups

    def _used(self, item: _Item) -> set[Var]:
        used = item.group.roots if item.group else {self.root(v) for call in item.calls for v in call.inputs}
        return used | {v for stage in item.stages for v in stage.operands}

    def _stored(self) -> list[set[Var]]:
        """For each item the values that others read."""
        readers: dict[Var, set[int]] = {self.root(v): {-1} for v in self.program.ends}
        for i, item in enumerate(self.items):
            for root in self._used(item):
                readers.setdefault(root, set()).add(i)
        return [
            {v for v in item.group.given if readers.get(v, set()) - {i}} if item.group else set()
            for i, item in enumerate(self.items)
        ]

    def _join_alike(self, stored: list[set[Var]]) -> None:
        """Groups that do the same to other tensors become one kernel, where the last of them stands; nothing between may
        read what the others give.
        """
        alike: dict[str, list[tuple[int, Nest, list[Var], int]]] = {}
        for i, item in enumerate(self.items):
            told = flat(item.group, stored[i]) if item.group else None
            if told is not None and told[0].writes:
                alike.setdefault(emitted(told[0], "NAME", loops.width()), []).append((i, *told))
            self._break_up(item, alike)
        for same in alike.values():
            self._join(same)

    def _break_up(self, reader: _Item, alike: dict[str, list[tuple[int, Nest, list[Var], int]]]) -> None:
        """What is read here can't be given later: those groups are joined now."""
        used = self._used(reader)
        for key, same in alike.items():
            early = [self.items[i] for i, *_ in same if self.items[i] is not reader]
            if any([used & set(item.group.given) for item in early if item.group]):
                done = [each for each in same if self.items[each[0]] is not reader]
                alike[key] = [each for each in same if self.items[each[0]] is reader]
                self._join(done)

    def _join(self, same: list[tuple[int, Nest, list[Var], int]]) -> None:
        if len(same) > 1:
            last = self.items[same[-1][0]]
            kernel = many.kernel(
                lambda text: "k" + _digest(text), same[0][1], [size for *_, size in same], loops.width()
            )
            last.stages = [Stage(kernel, tuple([v for _, _, operands, _ in same for v in operands]))]
            last.calls = [call for i, *_ in same for call in self.items[i].calls]
            for i, *_ in same:
                self.items[i].joined = True

    def phases(self) -> list[Phase]:
        self._draw(list(self.drawn))
        self._wait(list(self.begun))
        out: list[Phase] = []
        all_stored = self._stored()
        self._join_alike(all_stored)
        for item, stored in zip(self.items, all_stored, strict=True):
            if item.joined and not item.stages:
                continue
            if item.stages or item.moves:
                out.append(Phase(tuple(item.stages), tuple(item.calls), item.why, moves=item.moves))
            elif item.group is None:
                out += [_of_host(call, item.why) for call in item.calls]
            else:
                for nest, operands in assembled(item.group, stored):
                    if not nest.body:  # nothing of it is read by others
                        continue
                    out.append(
                        Phase((_stage(nest, operands),), tuple({id(c): c for c in item.calls}.values()), item.why)
                    )
        return _serial(out)


def _stage(nest: Nest, operands: list[Var]) -> Stage:
    code = emitted(nest, "NAME", loops.width())
    name = "k" + _digest(code)
    code = code.replace("@NAME(", f"@{name}(") + loops.attributes()
    kernel = Kernel(name, code, nest.chunks, nest.writes, nest.over, interpreted(nest), nest)
    return Stage(kernel, tuple(operands))


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def _serial(all_phases: list[Phase]) -> list[Phase]:
    """Phases of one chunk after each other are stages of one phase."""
    out: list[Phase] = []
    for phase in all_phases:
        last = out[-1] if out else None
        if last and last.stages and phase.stages and last.chunks == phase.chunks == 1:
            out[-1] = Phase((*last.stages, *phase.stages), (*last.calls, *phase.calls), last.why)
        else:
            out.append(phase)
    return out
