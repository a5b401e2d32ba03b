"""The same loop over many tensors as one launch: what reads nothing that the step computes (weights that become 16 bits) is
done when the first of them is, what nothing of the step reads (an optimizer's updates, and the last sums of what they need)
when the last is. Then small products of the latter kind are one launch, with small loops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from genesis.cuda.launch.kernel import Kernel
from genesis.cuda.launch.several import MOST
from genesis.cuda.steps.tiled import Tiled
from genesis.cuda.steps.told import size_of
from genesis.jit.arguments import Var
from genesis.jit.lowering.phases import Phase, Stage
from genesis.jit.program import Program

SMALL = 1 << 23  # bytes that are read and written about as fast as a kernel begins
WORDS = 480  # parameters of a kernel, of 8 bytes each: a little less than there may be
PARTS = 8  # of a launch of different kernels: it is compiled as long as all of them one after the other
SHARED = 2  # chunks that stages of one launch are said to have: they use memory at the same time


def together(phases: Sequence[Phase], program: Program) -> list[Phase]:
    """The phases, with such loops as one phase of several stages."""
    written = {v for phase in phases for v in _operands(phase, program, True)}
    read = {v for phase in phases for v in _operands(phase, program, False)}
    alike: dict[Any, list[int]] = {}
    for i, phase in enumerate(phases):
        if (key := _loop(phase)) is not None:
            first = not written & {*_operands(phase, program, False)}
            last = not read & {*_operands(phase, program, True)}
            if first or last:
                alike.setdefault((first, key), []).append(i)
    taken: set[int] = set()
    at: dict[int, list[int]] = {}
    for (first, _), numbers in alike.items():
        most = max(min(MOST, WORDS // len(phases[numbers[0]].stages[0].operands)), 1)
        for begin in range(0, len(numbers), most):
            some = numbers[begin : begin + most]
            at[some[0] if first else some[-1]] = some
            taken |= {*some}
    return [
        _joined([phases[j] for j in at[i]]) if i in at else phase
        for i, phase in enumerate(phases)
        if i in at or i not in taken
    ]


def at_the_end(phases: Sequence[Phase], program: Program) -> list[Phase]:
    """The phases, with small products that give nothing which the step reads (gradients of weights, with an optimizer's
    updates) as one launch with small loops of that kind, where the last of them is.
    """
    read = {v for phase in phases for v in _operands(phase, program, False)}
    launches: list[list[Phase]] = []
    for phase in phases:
        if _is_short(phase) and not read & {*_operands(phase, program, True)}:
            if not launches or not _fit([*launches[-1], phase]):
                launches.append([])
            launches[-1].append(phase)
    launches = [some for some in launches if any([isinstance(kernel, Tiled) for kernel in _kernels(some)])]
    instead = {id(some[-1]): _joined(some) for some in launches}
    moved = {id(phase) for some in launches for phase in some}
    return [instead.get(id(p), p) for p in phases if id(p) in instead or id(p) not in moved]


def _kernels(phases: Sequence[Phase]) -> list[Any]:
    return [stage.kernel.kernel for phase in phases for stage in phase.stages]  # type: ignore[attr-defined]


def _is_short(phase: Phase) -> bool:
    """Whether it is of small products and loops alone."""
    both = list(zip(_kernels([phase]), phase.stages, strict=True))
    return bool(both) and all([isinstance(k, Tiled) or (isinstance(k, Kernel) and _is_small(s)) for k, s in both])


def _fit(phases: Sequence[Phase]) -> bool:
    """Whether they may be one launch: they and their parameters are not too many, the constant of their texts is the same, and
    none reads what another is computed over.
    """
    kernels, stages = _kernels(phases), [stage for phase in phases for stage in phase.stages]
    constants = {line for kernel in kernels for line in kernel.source.splitlines() if line.startswith("EXACT")}
    read = Counter([v for s in stages for v in {v for i, v in enumerate(s.operands) if i not in s.kernel.writes}])
    apart = all([read[s.operands[old]] == 1 for s in stages for old, _ in s.kernel.over])
    words = sum([len(kernel.letters) for kernel in kernels])
    return apart and len(phases) <= PARTS and words <= WORDS and len(constants) < 2


def behind_readers(phases: Sequence[Phase], program: Program, targets: dict[int, Var]) -> list[Phase]:
    """The phases, with those that give what is written over a value that later ones read (the gradient of a weight, with its
    update, before that of an input) behind the last of these, if none of them waits for it: nothing has to be copied then.
    """
    over = {program.writes[i].value: target for i, target in targets.items()}
    moved = [(phase, *[{*_operands(phase, program, written)} for written in (False, True)]) for phase in phases]
    for each in list(moved):
        _, _, writes = each
        old = {over[v] for v in writes if v in over}
        at = next(i for i, other in enumerate(moved) if other is each)
        last = max([i for i in range(at + 1, len(moved)) if old & moved[i][1]], default=at)
        if not any([writes & reads for _, reads, _ in moved[at + 1 : last + 1]]):
            moved.insert(last, moved.pop(at))
    return [phase for phase, _, _ in moved]


def _operands(phase: Phase, program: Program, written: bool) -> Iterator[Var]:
    """The roots that a phase writes, or reads."""
    for stage in phase.stages:
        yield from [v for i, v in enumerate(stage.operands) if (i in stage.kernel.writes) == written]
    for call in phase.calls if not phase.stages else ():
        for var in call.outs if written else call.inputs:
            yield program.regions[var].root if var in program.regions else var


def _loop(phase: Phase) -> Any:
    """What loops that are the same have in common; None of what is no loop that is told how long it is, or that is long."""
    if len(phase.stages) != 1:
        return None
    launch: Any = phase.stages[0].kernel
    kernel = launch.kernel
    if not isinstance(kernel, Kernel) or kernel.tables or not (kernel.told or _is_small(phase.stages[0])):
        return None
    return kernel.code.source, launch.count % 16 == 0


def _is_small(stage: Stage) -> bool:
    """Whether a loop that is as long for all tensors takes no longer than a launch, and little memory waits for it."""
    return sum([size_of(v.spec) for v in stage.operands]) <= SMALL


def _joined(phases: Sequence[Phase]) -> Phase:
    if len(phases) == 1:
        return phases[0]
    stages = [replace(s, kernel=replace(s.kernel, chunks=SHARED)) for p in phases for s in p.stages]
    return replace(phases[0], stages=tuple(stages), calls=tuple([call for p in phases for call in p.calls]))
