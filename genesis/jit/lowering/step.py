"""A program as one call: `Step`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.base.device import MEMORIES
from genesis.base.errors import UnsupportedError, message
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import wrap
from genesis.jit.arguments import Var
from genesis.jit.lowering import plan as planning
from genesis.jit.lowering import regions, stacked, tables
from genesis.jit.lowering.compiled import Compiled
from genesis.jit.lowering.layouts import dense
from genesis.jit.lowering.runner import Runner
from genesis.jit.program import Program, Write
from genesis.jit.replay import Plan as Replay
from genesis.kernels.llvm import loops

if TYPE_CHECKING:
    from genesis.jit.lowering.phases import Phase
    from genesis.jit.lowering.plan import Plan

Array = np.ndarray[Any, Any]


def step_of(program: Program, native: bool = True) -> Step:
    """The step of a program, on the device where its values are."""
    device = device_of(program)
    made = None if device is None else MEMORIES[device.type].step(program, device)
    return Step(program, native=native) if made is None else made


def device_of(program: Program) -> Any:
    """The device of the values of a program, if that is not the CPU."""
    every = (*program.outside, *[v for call in program.calls for v in call.outs])
    return next((v.spec.device for v in every if v.spec.device.type not in ("cpu", "meta")), None)


class Step:
    """A program that is computed by one call.

    Args:
        phases: what `regions.phases` says, where it is known already
        kept: its data and the addresses of its functions, where these are known (`cache` keeps them, and its program)
        native: whether to compile it, where that can be done

    Attributes:
        takes: the variables that `run` is given arrays for, in order: arguments, captured tensors, and the ``.grad`` of
            leaves that have a variable
        returns: the variables that `run` returns arrays of, in order: the results that are variables and no aliases, the
            memory that several results share (``program.made``), and the values of writes that are not ``overwrites``
        overwrites: for each of ``program.writes`` whether `run` makes it, over what was there: it is then in the array that was given for the
            argument, the captured tensor, or the ``.grad`` of the leaf (also where that was made for the call, because
            there was no ``.grad``: the caller then sets it). The others are ``new grad``, ``no grad``, and ``grad`` of
            leaves without a variable: they are the caller's.
        left: how many of ``returns``, the last ones, are values of writes
        small: whether these are so small that their memory costs more than what is written to it, and can be given

    Raises:
        UnsupportedError: the program has values on another device than the CPU
    """

    def __init__(
        self,
        program: Program,
        phases: Sequence[Phase] | None = None,
        kept: tuple[Compiled, dict[str, int]] | None = None,
        native: bool = True,
    ) -> None:
        as_it_is = not native or phases is not None or kept is not None
        self.program, self._phases = program if as_it_is else stacked.stacked(program), phases
        elsewhere = device_of(program)
        if elsewhere is not None:
            raise UnsupportedError(message("compile", f"a value of {program.name} is on {elsewhere}"))
        self._borders()
        self.compiled: Compiled | None = None
        if native and loops.available():
            self.compiled, functions = kept or (self._compiled(), None)
            constants = [(var.spec, array) for var, array in program.constants]
            self._runner: Any = Runner(self.compiled, constants, functions, self.left)
        else:
            self._runner = _Replayed(self)
        self.small: bool = self._runner.small
        self.run = self._runner.run  # type: ignore[method-assign]  # without a call between

    def _borders(self) -> None:
        """What comes in and goes out."""
        program = self.program
        gradients = [x.var for x in program.leaves if x.var is not None]
        self.takes: tuple[Var, ...] = (*program.arguments, *program.captured, *gradients)
        self.targets = {i: target for i, w in enumerate(program.writes) if (target := self._target(w)) is not None}
        self.overwrites = tuple([i in self.targets for i in range(len(program.writes))])
        aliases, writes = dict(program.aliases), zip(program.writes, self.overwrites, strict=True)
        left = [w.value for w, here in writes if w.value is not None and not here]
        self.returns: tuple[Var, ...] = (
            *[r for i, r in enumerate(program.results) if isinstance(r, Var) and i not in aliases],
            *program.made,
            *left,
        )
        self.left = len(left)

    @cached_property
    def plan(self) -> Plan:
        """The phases, and where their values lie."""
        phases = self._phases or regions.phases(self.program)
        return planning.planned(self.program, phases, self.takes, self.returns, self.targets)

    def explain(
        self, arrays: Sequence[Array] | None = None, numbers: Sequence[float] = (), starts: Sequence[Any] = ()
    ) -> Any:
        """What the step does: its phases, the lines that they come from, what they move and compute, and the memory.

        With what `run` takes the phases are timed, on copies of the arrays.
        """
        from genesis.jit.lowering import explain

        return explain.explained(self) if arrays is None else explain.measured(self, arrays, numbers, starts)

    def _compiled(self) -> Compiled:
        returns = [dense(v.spec) for v in self.returns]
        return tables.compiled(self.program, self.plan, self.takes, returns, set(self.targets.values()))

    def _target(self, w: Write) -> Var | None:
        """The variable whose array a write goes into; None if it is the caller's."""
        if w.value is None or w.kind == "new grad":
            return None
        if w.kind == "grad":
            return self.program.leaves[w.index].var
        return (self.program.arguments if w.kind == "argument" else self.program.captured)[w.index]

    def run(
        self,
        arrays: Sequence[Array],
        numbers: Sequence[float] = (),
        starts: Sequence[tuple[Any, int]] = (),
        kept: tuple[Array, ...] = (),
    ) -> Sequence[Array]:
        """Compute the program, and make its writes in place.

        The arrays have shape, dtype and strides as the specs of ``takes`` say (strides of dimensions of one element, or
        of arrays without elements, mean nothing); that is not checked. An array that is written to may overlap others:
        what is read of these are the old values, as if all writes came at the end.

        Args:
            arrays: NumPy arrays, one for each of ``takes`` (a tuple is fastest)
            numbers: the numbers of the host, one for each of ``program.numbers``
            starts: for each of ``program.streams`` the generator, and the block where it is at the beginning of the call;
                moving it on afterwards, and back after an exception, is left to the caller
            kept: what an earlier call returned for the last ``left`` of ``returns``, to be written to

        Returns:
            NumPy arrays, one for each of ``returns``, in memory of their own, laid out as the specs say

        Raises:
            GraphError: two arrays that are written to overlap
            Exception: what an op raises that the host computes; then nothing has been written to
        """
        return self._runner.run(arrays, numbers, starts, kept)  # type: ignore[no-any-return]


class _Replayed:
    """A step op by op, where there is no native code."""

    small = False

    def __init__(self, step: Step) -> None:
        self.step = step
        self.plan = Replay(step.program)
        self.constants = [wrap(array) for _, array in step.program.constants]

    def run(
        self, arrays: Sequence[Array], numbers: Sequence[float] = (), starts: Sequence[tuple[Any, int]] = ()
    ) -> Sequence[Array]:
        """See `Step.run`."""
        step, slots = self.step, self.plan.slots
        border = len(step.program.arguments) + len(step.program.captured)
        inputs = [wrap(array) for array in arrays]
        with no_grad():
            values = self.plan.run([*inputs[:border], *self.constants, *numbers, *inputs[border:]], list(starts))

        def own(var: Var | None) -> Array:
            value = values[slots[var]]
            return np.asarray(getattr(value, "_array", value)).copy("K")

        returns = tuple([own(var) for var in step.returns])
        where = dict(zip(step.takes, arrays, strict=True))
        new = [(target, own(step.program.writes[i].value)) for i, target in step.targets.items()]
        for target, value in new:
            where[target][...] = value
        return returns
