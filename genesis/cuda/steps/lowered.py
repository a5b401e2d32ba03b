"""A program for rules of loops: without the draws that kernels make, and with float32 where memory holds 16 bits."""

from __future__ import annotations

import math
from typing import Any

from genesis.arrays.spec import Spec, strides_of
from genesis.base.errors import UnsupportedError, message
from genesis.core.call.halves import F32, HALVES
from genesis.cuda.kernels import channels, norms
from genesis.cuda.kernels.draws import kernel_of
from genesis.cuda.kernels.lowering import RULED
from genesis.jit.arguments import Var
from genesis.jit.lowering import regions as rules
from genesis.jit.lowering.parts import RULES
from genesis.jit.program import Call, Program, op_of
from genesis.jit.storage import Region

_ = rules.phases  # the rules are declared when it is imported
MOVED = {"convert", "named", "without_gradient", "clone", "reshape", "view_shape"}
LIKE_THE_CPUS = {f"fused.gelu.CudaArray{part}": f"fused.gelu{part}" for part in ("", ".backward")}  # whose rules do
RULES.update({name: RULES[other] for name, other in LIKE_THE_CPUS.items()})
OWN = (
    MOVED
    | RULED
    | {"place", "put", "take_index", "fused.adam_step", "scatter_sum", *LIKE_THE_CPUS, *channels.RULED, *norms.RULED}
)


def in_loops(call: Call) -> bool:
    """Whether a call may be one of loops."""
    return call.op in OWN or bool(op_of(call).kind.aligned)


class Lowered:
    """A program as rules of loops see it.

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

    def convert_again(self) -> None:
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


def _refuse_other_devices(program: Program, calls: list[Call], device: Any) -> None:
    """Of the host are arguments, and nothing but copies to the device reads them."""
    written = [w.value for w in program.writes if w.value is not None]
    for var in (*[v for call in calls for v in (*call.inputs, *call.outs)], *program.ends, *written):
        if var.spec.device.type != "meta" and var.spec.device != device:
            text = f"a value of {program.name} is on {var.spec.device}, others are on {device}"
            raise UnsupportedError(message("compile", text, hint="move the arguments to the device first"))
