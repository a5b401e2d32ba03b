"""Kernels for calls of elementwise ops, an element at a time: what tests of plans have in the place of real ones."""

from __future__ import annotations

import random
import zlib

import numpy as np

from genesis.arrays.spec import contiguous_strides, strides_of
from genesis.core.graph.tensor import wrap
from genesis.jit.arguments import Var
from genesis.jit.lowering.layouts import copy_as, size_of
from genesis.jit.lowering.phases import Kernel, Phase, Stage
from genesis.jit.lowering.step import Step
from genesis.jit.program import Call, Program
from genesis.jit.storage import Region

OPS = {
    "add": "fadd float %x0, %x1",
    "sub": "fsub float %x0, %x1",
    "mul": "fmul float %x0, %x1",
    "neg": "fneg float %x0",
}


def phases(program: Program, seed: int) -> list[Phase]:
    """Phases at random: some calls are kernels, of some chunks, and neighbours of as many chunks may be one phase."""
    rng = random.Random(seed)
    share, made = rng.choice([0.3, 0.7, 1.0]), []
    for call in program.calls:
        if call.outs[0] in program.regions:
            continue
        stage = _stage(program, call, rng) if rng.random() < share else None
        if stage is None:
            made.append(Phase((), (call,), "left to the host"))
        elif made and made[-1].stages and _joins(made[-1], stage) and rng.random() < 0.7:
            made[-1] = Phase((*made[-1].stages, stage), (*made[-1].calls, call))
        else:
            made.append(Phase((stage,), (call,)))
    return made


def _joins(phase: Phase, stage: Stage) -> bool:
    """Whether a stage may be in a phase: of what this writes it needs the same chunk only."""
    made = {stage.operands[-1] for stage in phase.stages}
    sizes = {v.spec.shape for v in (*made, stage.operands[-1])}
    if len(sizes) > 1 or phase.chunks != stage.kernel.chunks:
        return False
    return not any([v in made for v in stage.operands]) or "flat" in stage.kernel.name


def _stage(program: Program, call: Call, rng: random.Random) -> Stage | None:
    out = call.outs[0]
    given = [a for a in call.args if isinstance(a, Var)]
    if call.op not in OPS or len(given) != len(call.args) or strides_of(out.spec) != contiguous_strides(out.spec.shape):
        return None
    if any([v.spec.dtype != np.float32 for v in (*given, out)]) or any([v.spec.device.type != "cpu" for v in given]):
        return None
    shape, n = out.spec.shape, int(np.prod(out.spec.shape))
    regions = [program.regions.get(v) or Region(v, 0, strides_of(v.spec)) for v in given]
    operands = (*dict.fromkeys([r.root for r in regions]), out)
    strides = [
        [0] * (len(shape) - len(v.spec.shape))
        + [0 if m == 1 else s for m, s in zip(v.spec.shape, r.strides, strict=True)]
        for v, r in zip(given, regions, strict=True)
    ]
    chunks = rng.choice([1, 1, 2, 3])
    per = -(-n // chunks)
    reads = [(operands.index(r.root), r.offset, s) for r, s in zip(regions, strides, strict=True)]
    flat = all([s == list(contiguous_strides(shape)) and r.offset == 0 for s, r in zip(strides, regions, strict=True)])
    name = f"{'flat' if flat else 'any'}_{call.op}_{zlib.crc32(repr((shape, per, reads, len(operands))).encode()):x}"
    over = [(k, len(operands) - 1) for k in range(len(operands) - 1) if flat]
    code = _code(name, OPS[call.op], shape, n, per, reads, len(operands) - 1)
    return Stage(Kernel(name, code, chunks, frozenset({len(operands) - 1}), tuple(over)), operands)


def _code(name, instruction, shape, n, per, reads, out) -> str:
    lines = [f"define void @{name}(ptr %addresses, i64 %chunk) {{", "begin:"]
    for k, (position, offset, _) in enumerate(reads):
        lines += [
            f"  %at{k} = getelementptr ptr, ptr %addresses, i64 {position}",
            f"  %root{k} = load ptr, ptr %at{k}",
            f"  %from{k} = getelementptr i8, ptr %root{k}, i64 {offset}",
        ]
    lines += [
        f"  %out_at = getelementptr ptr, ptr %addresses, i64 {out}",
        "  %out = load ptr, ptr %out_at",
        f"  %first = mul i64 %chunk, {per}",
        f"  %after = add i64 %first, {per}",
        f"  %short = icmp slt i64 %after, {n}",
        f"  %end = select i1 %short, i64 %after, i64 {n}",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ %first, %begin ], [ %next, %body ]",
        "  %more = icmp slt i64 %i, %end",
        "  br i1 %more, label %body, label %done",
        "body:",
    ]
    for k, (_, _, strides) in enumerate(reads):
        lines.append(f"  %s{k}_0 = add i64 0, 0")
        for d, (m, step, stride) in enumerate(zip(shape, contiguous_strides(shape), strides, strict=True)):
            lines += [
                f"  %q{k}_{d} = sdiv i64 %i, {step}",
                f"  %r{k}_{d} = srem i64 %q{k}_{d}, {max(m, 1)}",
                f"  %t{k}_{d} = mul i64 %r{k}_{d}, {stride}",
                f"  %s{k}_{d + 1} = add i64 %s{k}_{d}, %t{k}_{d}",
            ]
        lines += [
            f"  %p{k} = getelementptr float, ptr %from{k}, i64 %s{k}_{len(shape)}",
            f"  %x{k} = load float, ptr %p{k}",
        ]
    lines += [
        f"  %y = {instruction}",
        "  %to = getelementptr float, ptr %out, i64 %i",
        "  store float %y, ptr %to",
        "  %next = add i64 %i, 1",
        "  br label %loop",
        "done:",
        "  ret void",
        "}",
    ]
    return "\n".join(lines) + "\n"


def overlaps(plan):
    """The pairs of values of the arena that share bytes and live at the same time, but are not computed over each other."""
    values = [(var, plan.where[var].index, plan.lives[var]) for var in plan.lives if size_of(var.spec)]
    over = {
        (stage.operands[r], stage.operands[w])
        for phase in plan.phases
        for stage in phase.stages
        for r, w in stage.kernel.over
    }
    return [
        (a, b)
        for i, (a, at, life) in enumerate(values)
        for b, to, other in values[:i]
        if at < to + size_of(b.spec)
        and to < at + size_of(a.spec)
        and life.first <= other.last
        and other.first <= life.last
        and not (((a, b) in over and life.last == other.first) or ((b, a) in over and other.last == life.first))
    ]


class Stepped:
    """A step in the place of a graph's plan: its writes in place go to copies, which the replay then copies."""

    def __init__(self, program: Program, step: Step) -> None:
        self.program, self.step = program, step
        self.slots = {v: i for i, v in enumerate((*program.outside, *[v for call in program.calls for v in call.outs]))}

    def run(self, inputs, starts):
        program = self.program
        border = len(program.arguments) + len(program.captured)
        begin = border + len(program.constants)
        numbers = inputs[begin : begin + len(program.numbers)]
        given = [x._array for x in (*inputs[:border], *inputs[begin + len(numbers) :])]
        arrays = tuple([copy_as(x, v.spec) for x, v in zip(given, self.step.takes, strict=True)])
        values = [None] * len(self.slots)
        returns = self.step.run(arrays, numbers, starts)
        for var, array in zip(self.step.returns, returns, strict=True):
            values[self.slots[var]] = wrap(array)
        where = dict(zip(self.step.takes, arrays, strict=True))
        for i, target in self.step.targets.items():
            values[self.slots[program.writes[i].value]] = wrap(where[target])
        return values
