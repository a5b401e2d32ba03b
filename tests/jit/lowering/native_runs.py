"""Programs run phase by phase: by machine code, or by the Python form of every kernel, chunks in order or backwards."""

from __future__ import annotations

import ctypes

import numpy as np

from genesis import jit
from genesis.arrays.spec import strides_of
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import wrap
from genesis.jit import replay
from genesis.jit.lowering import regions
from genesis.jit.lowering.code import module
from genesis.jit.lowering.phases import in_order
from genesis.kernels.llvm import native


class Memory:
    """Values in flat arrays; all that is not given is full of a number that no kernel may read."""

    def __init__(self, program, given):
        self.program, self.flat = program, {}
        self.numbers = {v for v, _ in program.numbers}
        for var, value in given.items():
            if var in self.numbers:
                self.flat[var] = np.array([float(value)])
            else:
                self.array(var)[...] = value

    def of_root(self, var):
        if var not in self.flat:
            spec = var.spec
            size = 1 + sum((n - 1) * abs(s) for n, s in zip(spec.shape, strides_of(spec), strict=True))
            self.flat[var] = np.full(max(size, 1), 77).astype(spec.dtype)
        return self.flat[var]

    def array(self, var):
        if var in self.numbers:
            return float(self.flat[var][0])
        region, spec = self.program.regions.get(var), var.spec
        root, offset, strides = (var, 0, strides_of(spec)) if region is None else region
        data = self.of_root(root).view(np.uint8)[offset:]
        data = data[: data.size // spec.dtype.itemsize * spec.dtype.itemsize].view(spec.dtype)
        return np.lib.stride_tricks.as_strided(data, spec.shape, [s * spec.dtype.itemsize for s in strides])


class Runs:
    """The phases of a program, compiled."""

    def __init__(self, program):
        self.program, self.phases = program, regions.phases(program)
        codes = {stage.kernel.name: stage.kernel.code for phase in self.phases for stage in phase.stages}
        where = native.addresses_in(module(codes.values()), list(codes)) if codes else []
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
        self.functions = {name: call(at) for name, at in zip(codes, where, strict=True)}

    def run(self, given, form="native", backwards=False):
        memory = Memory(self.program, given)
        for i, turn in in_order(self.phases):
            phase = self.phases[i]
            if not phase.stages:
                for call in phase.calls:
                    self._of_host(call, memory)
            chunks = range(phase.chunks)
            for chunk in reversed(chunks) if backwards else chunks:
                for stage in phase.stages:
                    self._chunk(stage, chunk, memory, form, turn)
        return [memory.array(v).copy() for v in self.program.ends]

    def _of_host(self, call, memory):
        given = {v: memory.array(v) if v in memory.numbers else wrap(memory.array(v).copy()) for v in call.inputs}
        for out, value in zip(call.outs, replay.computed(call, given), strict=True):
            memory.array(out)[...] = value._array

    def _chunk(self, stage, chunk, memory, form, turn):
        operands = [memory.of_root(v) for v in stage.operands]
        for k, step in enumerate(stage.steps):
            operands[k] = operands[k][turn * step // operands[k].itemsize :]
        if form == "native":
            table = (ctypes.c_void_p * len(operands))(*[a.ctypes.data for a in operands])
            self.functions[stage.kernel.name](ctypes.addressof(table), chunk)
        else:
            stage.kernel.python(operands, chunk)


def given_to(graph, args):
    program = graph.program
    found = dict(zip(program.arguments, [x._array for x in args], strict=True))
    found |= dict(zip(program.captured, [x._array for x in graph.binding.captured], strict=True))
    found |= dict(program.constants)
    found |= {v: number() for (v, _), number in zip(program.numbers, graph.binding.numbers, strict=True)}
    found |= {x.var: -np.zeros(x.var.spec.shape, x.var.spec.dtype) for x in program.leaves if x.var is not None}
    return found


def by_calls(program, given):
    """What the program gives, call by call."""
    plan = replay.Plan(program)
    numbers = {v for v, _ in program.numbers}
    with no_grad():
        values = plan.run([float(given[v]) if v in numbers else wrap(np.array(given[v])) for v in program.outside], [])
    return [np.asarray(getattr(x, "_array", x)) for x in [values[plan.slots[v]] for v in program.ends]]


def check(graph, args, close, why=""):
    """Machine code gives what calls give, to ``close``, as does the Python form; and the same bits for any order of
    chunks. The phases come back.
    """
    runs, given = Runs(graph.program), given_to(graph, args)
    want = by_calls(graph.program, given)
    native, python = runs.run(given), runs.run(given, "python")
    for x, y, z in zip(want, native, python, strict=True):
        close(y, x, f"{why} by machine code")
        close(z, x, f"{why} by Python")
    for x, y in zip(native, runs.run(given, backwards=True), strict=True):
        assert x.tobytes() == y.tobytes()
    return runs.phases


def traced(function, *args):
    return jit.optimized(jit.trace(function, *args))


def ops_left_to_the_host(phases):
    return [call.op for phase in phases if not phase.stages for call in phase.calls]
