"""A program as one call: `Step`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.base.errors import UnsupportedError, message
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import wrap
from genesis.jit.arguments import Var
from genesis.jit.program import Program, Write
from genesis.jit.replay import Plan

Array = np.ndarray[Any, Any]


class Step:
    """A program that is computed by one call.

    Attributes:
        takes: the variables that `run` is given arrays for, in order: arguments, captured tensors, and the ``.grad`` of
            leaves that have a variable
        returns: the variables that `run` returns arrays of, in order: the results that are variables and no aliases, the
            memory that several results share (``program.made``), and the values of writes that are not ``in_place``
        in_place: for each of ``program.writes`` whether `run` makes it: it is then in the array that was given for the
            argument, the captured tensor, or the ``.grad`` of the leaf (also where that was made for the call, because
            there was no ``.grad``: the caller then sets it). The others are ``new grad``, ``no grad``, and ``grad`` of
            leaves without a variable: they are the caller's.

    Raises:
        UnsupportedError: the program has values on another device than the CPU
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        for var in (*program.outside, *[v for call in program.calls for v in call.outs]):
            if var.spec.device.type not in ("cpu", "meta"):
                raise UnsupportedError(message("compile", f"a value of {program.name} is on {var.spec.device}"))
        numbers, gradients = [v for v, _ in program.numbers], [x.var for x in program.leaves if x.var is not None]
        self.takes: tuple[Var, ...] = (*program.arguments, *program.captured, *gradients)
        self.in_place = tuple([self._target(w) is not None for w in program.writes])
        aliases = dict(program.aliases)
        self.returns: tuple[Var, ...] = (
            *[r for i, r in enumerate(program.results) if isinstance(r, Var) and i not in aliases],
            *program.made,
            *[
                w.value
                for w, here in zip(program.writes, self.in_place, strict=True)
                if w.value is not None and not here
            ],
        )
        self._plan = Plan(program)
        self._constants = [wrap(array) for _, array in program.constants]
        self._middle = len(self.takes) - len(gradients)
        assert len(list(program.outside)) == len(self.takes) + len(numbers) + len(self._constants)

    def _target(self, w: Write) -> Var | None:
        """The variable whose array a write goes into; None if it is the caller's."""
        if w.value is None or w.kind == "new grad":
            return None
        if w.kind == "grad":
            return self.program.leaves[w.index].var
        return (self.program.arguments if w.kind == "argument" else self.program.captured)[w.index]

    def run(
        self, arrays: Sequence[Array], numbers: Sequence[float] = (), starts: Sequence[tuple[Any, int]] = ()
    ) -> list[Array]:
        """Compute the program, and make its writes in place.

        The arrays have shape, dtype and strides as the specs of ``takes`` say (strides of dimensions of one element, or
        of arrays without elements, mean nothing); that is not checked. An array that is written to may overlap others:
        what is read of these are the old values, as if all writes came at the end.

        Args:
            arrays: NumPy arrays, one for each of ``takes`` (a tuple is fastest)
            numbers: the numbers of the host, one for each of ``program.numbers``
            starts: for each of ``program.streams`` the generator, and the block where it is at the beginning of the call;
                moving it on afterwards, and back after an exception, is left to the caller

        Returns:
            NumPy arrays, one for each of ``returns``, in memory of their own, laid out as the specs say

        Raises:
            GraphError: two arrays that are written to overlap
            Exception: what an op raises that the host computes; then nothing has been written to
        """
        middle = self._middle
        inputs = [wrap(array) for array in arrays]
        with no_grad():
            values = self._plan.run([*inputs[:middle], *self._constants, *numbers, *inputs[middle:]], list(starts))
        slots = self._plan.slots
        own = [np.asarray(_array(values[slots[v]])).copy("K") for v in self.returns]
        new = [
            None if w.value is None else _array(values[slots[w.value]]).copy("K") if here else None
            for w, here in zip(self.program.writes, self.in_place, strict=True)
        ]
        where = dict(zip(self.takes, arrays, strict=True))
        for w, value in zip(self.program.writes, new, strict=True):
            target = self._target(w)
            if target is not None:
                where[target][...] = value
        return own


def _array(value: Any) -> Any:
    return getattr(value, "_array", value)
