"""Where the values of a program lie in memory while it runs.

    arena     memory of a step, planned here: two values may have the same if they do not live at the same time
    outside   an array that the call is given. A value that is written to it at the end is computed right in it, where
              nothing reads the old one later, and the host computes nothing later (it may raise)
    result    an array that the call returns, new for each call
    number, constant    what they say
    stream    where a stream of random numbers is at the beginning of the call
    flag      a number of the call that says whether it is to be refused
    host      the array that an op has returned that the host computed

What is not computed where it has to be at the end is copied by phases behind the others, and these cannot fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from genesis.arrays.spec import strides_of
from genesis.jit.arguments import Var
from genesis.jit.lowering.compiled import Where
from genesis.jit.lowering.copies import copy_kernel
from genesis.jit.lowering.layouts import LINE, dense, room_of, same_layout, size_of
from genesis.jit.lowering.parts import StreamState
from genesis.jit.lowering.phases import Kernel, Phase, Stage
from genesis.jit.program import Program
from genesis.jit.storage import Region


class Life(NamedTuple):
    """The first time that a value is written and the last that it is read or written, both included.

    A phase is one time, for its chunks are done in any order; in a phase of one chunk each stage is one.
    """

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Phases with those that copy, and where their operands are."""

    phases: tuple[Phase, ...]
    where: dict[Var, Where]
    lives: dict[Var, Life]
    size: int  # of the arena, in bytes


def planned(
    program: Program, phases: Sequence[Phase], takes: Sequence[Var], returns: Sequence[Var], targets: dict[int, Var],
    copying: Callable[..., Any] = copy_kernel, may_fail: bool = True,
) -> Plan:  # fmt: skip
    """A plan.

    Args:
        takes: the variables that the call is given arrays for
        returns: those that it returns arrays of
        targets: by the index of a write that is made in place, the variable whose array it goes to
        copying: makes kernels that copy, see `copy_kernel`
        may_fail: whether calls of phases without kernels may raise: nothing of the outside is written to before
    """
    return _Planner(program, phases, takes, returns, targets, copying, may_fail).plan()


def flags_of(phases: Sequence[Phase]) -> list[Var]:
    """The flags that phases compute."""
    return list(dict.fromkeys([phase.flag for phase in phases if phase.flag is not None]))


# what a call that goes on beside others does with its operand and its result
_APART = Kernel("", "", 1, frozenset({1}))
_OVER = replace(_APART, over=((0, 1),))


class _Planner:
    def __init__(
        self, program: Program, phases: Sequence[Phase], takes: Sequence[Var], returns: Sequence[Var], targets: dict[int, Var],
        copying: Callable[..., Any], may_fail: bool,
    ) -> None:  # fmt: skip
        self.copying, self.may_fail = copying, may_fail
        self.program, self.phases, self.takes = program, list(phases), takes
        self.where: dict[Var, Where] = {var: Where("outside", i) for i, var in enumerate(takes)}
        self.where |= {var: Where("number", i) for i, (var, _) in enumerate(program.numbers)}
        self.where |= {var: Where("constant", i) for i, (var, _) in enumerate(program.constants)}
        self.where |= {v: Where("flag", i) for i, v in enumerate(flags_of(phases))}
        self.results = [Var(dense(v.spec)) for v in returns]
        self.ends = list(zip(returns, self.results, strict=True))  # what has to be where
        for i, w in enumerate(program.writes):
            if i in targets:
                assert w.value is not None
                self.ends.append((w.value, targets[i]))
        self.written = set(targets.values())
        self.reads: dict[Var, list[tuple[int, Stage | None]]] = {}
        self.writers: dict[Var, list[tuple[int, Stage | None]]] = {}
        self.last_host, self.hosts, self.now = -1, 0, -1
        self.rounds: list[tuple[int, int]] = []  # the first and the last time of phases that run several times
        self.between: set[Var] = set()  # values of which each round has a part
        for phase in self.phases:
            self._look(phase)

    def region(self, var: Var) -> Region:
        """The memory of a value, as a part of the value at its root."""
        return self.program.regions.get(var) or Region(var, 0, strides_of(var.spec))

    def _look(self, phase: Phase) -> None:
        """Who reads and writes what, and when."""
        self.now += 1
        if phase.times > 1:
            begun = self.rounds.pop()[0] if self.rounds and self.rounds[-1][1] == self.now - 1 else self.now
            self.rounds.append((begun, self.now + (len(phase.stages) - 1 if phase.chunks == 1 else 0)))
        for i, stage in enumerate(phase.stages):
            self.now += i > 0 and phase.chunks == 1
            self.between.update([v for v, step in zip(stage.operands, stage.steps, strict=False) if step])
            for position, var in enumerate(stage.operands):
                uses = self.writers if position in stage.kernel.writes else self.reads
                uses.setdefault(var, []).append((self.now, stage))
                if isinstance(var, StreamState):
                    self.where[var] = Where("stream", var.index)
        if not phase.stages:
            self.last_host = self.now if self.may_fail else -1
        if phase.moves:
            self._look_beside(phase)
        elif not phase.stages:
            for call in phase.calls:
                for var in call.inputs:
                    self.reads.setdefault(self.region(var).root, []).append((self.now, None))
                for var in call.outs:
                    self.where[var] = Where("host", self.hosts)
                    self.hosts += 1

    def _look_beside(self, phase: Phase) -> None:
        """A call that is begun, and may be made in the memory of its operand; or one that is done."""
        (call,) = phase.calls
        (x,), (out,) = call.inputs, call.outs
        if phase.moves == "end":
            self.reads.setdefault(out, []).append((self.now, None))
            return
        stage = Stage(_OVER if same_layout(x.spec, out.spec) else _APART, (x, out))
        self.reads.setdefault(x, []).append((self.now, stage))
        self.writers.setdefault(out, []).append((self.now, stage))

    def plan(self) -> Plan:
        self._old_values()
        for value, target in self.ends:
            if target in self.written and self._fits(value, target):
                self.where[value] = self.where[target]
        for i, (value, result) in enumerate(zip([v for v, _ in self.ends], self.results, strict=False)):
            self.where[result] = Where("result", i)
            if value in self.writers and value not in self.where and same_layout(value.spec, result.spec):
                self.where[value] = self.where[result]
        self._copies()
        lives = {var: self._life(var) for var in self.writers if var not in self.where}
        offsets, size = packed(self._blocks(lives))
        self.where |= {var: Where("arena", offset) for var, offset in offsets.items()}
        # what nothing writes has no elements
        self.where |= {var: Where("arena", 0) for var in self.reads if var not in self.where and not size_of(var.spec)}
        return Plan(tuple(self.phases), self.where, lives, size)

    # ---- what has to be somewhere at the end

    def _old_values(self) -> None:
        """What is read at the end, from an array that is written to then, is copied before."""
        for i, (value, target) in enumerate(self.ends):
            if self.region(value).root in self.written:
                old = Var(dense(value.spec))
                self.phases.append(self._copy(value, old))
                self.ends[i] = old, target

    def _fits(self, value: Var, target: Var) -> bool:
        """Whether a value can be computed in the memory of a target."""
        writers = self.writers.get(value)
        if writers is None or value in self.where or not same_layout(value.spec, target.spec):
            return False
        first = writers[0][0]
        if first <= self.last_host or any([begun <= first <= ended for begun, ended in self.rounds]):
            return False
        return all(
            time < first or (time == first and stage is writers[0][1] and _over(stage, target, value) and len(writers) == 1)
            for time, stage in self.reads.get(target, ())
        )  # fmt: skip

    def _copies(self) -> None:
        """Phases that bring to their place what is not there."""
        for value, target in self.ends:
            if value not in self.where or self.where[value] != self.where[target]:
                self.phases.append(self._copy(value, target))

    def _copy(self, value: Var, target: Var) -> Phase:
        region = self.region(value)
        kernel = self.copying(value.spec, region.offset, region.strides, strides_of(target.spec))
        phase = Phase((Stage(kernel, (region.root, target)),), (), "what leaves the program is copied")
        self._look(phase)
        return phase

    # ---- the arena

    def _life(self, var: Var) -> Life:
        """From the first use to the last; through all rounds, where it is not made anew in each."""
        uses = [time for time, _ in (*self.writers[var], *self.reads.get(var, ()))]
        life = Life(self.writers[var][0][0], max(uses))
        for first, last in self.rounds:
            inside = any([first <= time <= last for time in uses])
            if inside and (var in self.between or life.first < first or life.last > last):
                life = Life(min(life.first, first), max(life.last, last))
        return life

    def _blocks(self, lives: dict[Var, Life]) -> list[Block]:
        """The values of the arena in blocks: one that is computed over another is in the block of that."""
        blocks: dict[Var, Block] = {}
        for var in sorted(lives, key=lambda v: lives[v].first):
            over = next((v for v in self._under(var, lives) if blocks[v].values[-1] is v), None)
            if over is None:
                blocks[var] = Block([var], lives[var], room_of(var.spec))
            else:
                block = blocks[var] = blocks[over]
                block.values.append(var)
                block.life = Life(block.life.first, lives[var].last)
        return list({id(block): block for block in blocks.values()}.values())

    def _under(self, var: Var, lives: dict[Var, Life]) -> Iterator[Var]:
        """The values of the arena that this one may be computed over: nothing but its kernel reads them then or later."""
        (time, stage), *others = self.writers[var]
        assert stage is not None
        for read, written in stage.kernel.over:
            old = stage.operands[read]
            if (
                stage.operands[written] is var
                and not others
                and old in lives
                and lives[old].last == time
                and lives[old].first < time
                and room_of(old.spec) == room_of(var.spec)
                and all(s is stage for t, s in self.reads[old] if t == time)
                and stage.operands.count(old) == 1
            ):
                yield old


def _over(stage: Stage | None, old: Var, new: Var) -> bool:
    """Whether a kernel may compute a value in the memory of another that it reads."""
    if stage is None or stage.operands.count(old) != 1:
        return False
    return any(stage.operands[r] is old and stage.operands[w] is new for r, w in stage.kernel.over)


@dataclass(slots=True, eq=False)
class Block:
    """Values that share memory."""

    values: list[Var]
    life: Life
    size: int


def packed(blocks: Iterable[Block]) -> tuple[dict[Var, int], int]:
    """Offsets of blocks so that none overlaps another that lives at the same time, and the size of all: the largest
    first, each in the smallest gap that fits.
    """
    lying: list[tuple[int, int, int, int]] = []  # (offset, end, first phase, last phase), by offset
    offsets: dict[Var, int] = {}
    for block in sorted(blocks, key=lambda b: (-b.size, b.life)):
        first, last = block.life
        size = -(-block.size // LINE) * LINE
        best, gap, end = -1, math.inf, 0
        for offset, after, begun, over in lying:
            if begun <= last and over >= first:
                if size <= offset - end < gap:
                    best, gap = end, offset - end
                end = max(end, after)
        at = end if best < 0 else best
        offsets |= dict.fromkeys(block.values, at)
        if size:
            lying.append((at, at + size, first, last))
            lying.sort()
    return offsets, max([after for _, after, _, _ in lying], default=0)
