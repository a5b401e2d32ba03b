"""A plan as plain data: the tables that say which functions run when, on which memory, and what the host does between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from genesis.arrays.spec import Spec
from genesis.jit.arguments import Var
from genesis.jit.lowering.code import functions_of
from genesis.jit.lowering.compiled import Begin, Compiled, End, Host, Row, Where, title_of
from genesis.jit.lowering.phases import Phase, Stage, in_order
from genesis.jit.lowering.plan import Plan, flags_of
from genesis.jit.program import Call, Program


def compiled(
    program: Program, plan: Plan, takes: Sequence[Var], returns: Sequence[Spec], written: set[Var]
) -> Compiled:
    """The data of a plan."""
    native = [phase for phase in plan.phases if phase.stages]
    checks = [phase for phase in native if phase.flag is not None]
    code, names = functions_of(native)
    rows: list[Row] = []
    cells: list[Where] = []
    firsts: dict[int, int] = {}  # of phases whose operands are the same in all rounds
    for i, turn in in_order(native):
        phase = native[i]
        if turn == 0 or any([any(stage.steps) for stage in phase.stages]):
            firsts[i] = len(cells)
            cells += [where for stage in phase.stages for where in _operands(plan, stage, turn)]
        rows.append(Row(names[i], firsts[i], phase.chunks, title_of(phase.calls)))
    hosts = sum(where.kind == "host" for where in plan.where.values())
    return Compiled(
        code,
        tuple(rows),
        tuple(_parts(program, plan, cells)),
        tuple(cells),
        tuple([v.spec for v in takes]),
        tuple([v in written for v in takes]),
        tuple(returns),
        len(program.numbers),
        hosts,
        plan.size,
        len(checks),
        len(flags_of(checks)),
        _refusal(program, plan, checks) if checks else None,
        len(program.streams) if any([where.kind == "stream" for where in cells]) else 0,
    )


def _refusal(program: Program, plan: Plan, checks: Sequence[Phase]) -> Host:
    """The calls that raise, by what they check."""
    calls = [call for phase in checks for call in phase.calls]
    views = {v: call for call in program.calls for v in call.outs if v in program.regions}
    host = _host(program, plan, _with_views(calls, views), [], set(), len(checks))
    return replace(host, program=replace(host.program, results=()), outputs=())


def _operands(plan: Plan, stage: Stage, turn: int) -> list[Where]:
    """Where the operands of a stage are in a round."""
    steps = stage.steps or (0,) * len(stage.operands)
    return [plan.where[var].moved(turn * step) for var, step in zip(stage.operands, steps, strict=True)]


def _parts(program: Program, plan: Plan, cells: list[Where]) -> Iterator[tuple[int, int] | Host | Begin | End]:
    done = sum([phase.flag is not None for phase in plan.phases])
    last = _last_uses(program, plan)
    views = {v: call for call in program.calls for v in call.outs if v in program.regions}
    numbers: dict[int, int] = {}  # of calls that go on beside others
    for (is_native, moves), group in groupby(
        enumerate(plan.phases), lambda each: (bool(each[1].stages), each[1].moves)
    ):
        phases = [(i, phase) for i, phase in group if phase.flag is None]
        if moves:
            for _, phase in phases:
                (call,) = phase.calls
                number = numbers.setdefault(id(call), len(numbers))
                yield _begin(program, plan, call, number) if moves == "begin" else End(number, call.op)
        elif is_native and phases:
            count = sum([phase.times for _, phase in phases])
            yield done, done + count
            done += count
        elif phases:
            over = {index for index, phase in last.items() if phases[0][0] <= phase <= phases[-1][0]}
            calls = [call for _, phase in phases for call in phase.calls]
            yield _host(program, plan, _with_views(calls, views), cells, over, len(phases))


def _last_uses(program: Program, plan: Plan) -> dict[int, int]:
    """For each array of kind "host" the last phase that needs it."""
    last: dict[int, int] = {}
    for index, phase in enumerate(plan.phases):
        used = [v for stage in phase.stages for v in stage.operands]
        if not phase.stages:
            used += [_root(program, v) for call in phase.calls for v in (*call.inputs, *call.outs)]
        last |= {plan.where[v].index: index for v in used if v in plan.where and plan.where[v].kind == "host"}
    return last


def _root(program: Program, var: Var) -> Var:
    region = program.regions.get(var)
    return var if region is None else region.root


def _with_views(calls: list[Call], views: dict[Var, Call]) -> list[Call]:
    """Calls, and before each the views that it needs."""
    every: dict[Var, Call] = {}  # by its first result

    def need(call: Call) -> None:
        for var in call.inputs:
            if var in views and var not in every:
                need(views[var])
        every[call.outs[0]] = call

    for call in calls:
        need(call)
    return list(every.values())


def _host(program: Program, plan: Plan, calls: list[Call], cells: list[Where], over: set[int], count: int) -> Host:
    """What the host does in neighbouring phases."""
    made = {v for call in calls for v in call.outs}
    inputs = tuple(dict.fromkeys([v for call in calls for v in call.inputs if v not in made]))
    outs = [v for v in made if v in plan.where]
    outputs = tuple([plan.where[v].index for v in outs])
    positions: dict[int, list[int]] = {index: [] for index in outputs}
    for i, where in enumerate(cells):
        if where.kind == "host" and where.index in positions:
            positions[where.index].append(i)
    return Host(
        _program_of(program, calls, inputs, outs),
        tuple([(plan.where[v], v.spec) for v in inputs]),
        outputs,
        tuple([(index, tuple(at), tuple([cells[i].offset for i in at])) for index, at in positions.items() if at]),
        tuple(sorted(over)),
        count,
    )


def _begin(program: Program, plan: Plan, call: Call, number: int) -> Begin:
    """What begins a call of one tensor."""
    (x,), (out,) = call.inputs, call.outs
    part = _program_of(program, [call], (x,), (out,))
    return Begin(number, part, (plan.where[x], x.spec), (plan.where[out], out.spec))


def _program_of(program: Program, calls: Sequence[Call], inputs: Sequence[Var], outs: Sequence[Var]) -> Program:
    return replace(
        program, calls=tuple(calls), arguments=tuple(inputs), captured=(), constants=(), numbers=(), counts=0, leaves=(),
        results=tuple(outs), writes=(), made=(), aliases=(),
    )  # fmt: skip
