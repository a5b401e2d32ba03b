"""A program that is computed in parts: what Python decides on or looks at first, and then the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from genesis.arrays.memory import memory_of, number_in
from genesis.arrays.spec import Spec
from genesis.base.errors import message
from genesis.core.graph.tensor import Tensor
from genesis.jit.arguments import Var
from genesis.jit.compiling.flow import used_up
from genesis.jit.compiling.joint import Decided
from genesis.jit.compiling.leaves import HostCall, NotKept, without_history
from genesis.jit.lowering.layouts import laid_out
from genesis.jit.lowering.runner import finished
from genesis.jit.lowering.step import Step, step_of
from genesis.jit.program import Call, Program


class Elsewhere(Exception):
    """Python would decide otherwise: this is a call for another graph."""


class Segments:
    """Something like a `Step`: parts that compute what was asked, one after the other, and one that does all the rest."""

    def __init__(self, program: Program, decided: Decided, results: int) -> None:
        self.parts: list[tuple[Step, Any]] = []  # and the answer, or what Python does then
        self.specs: list[list[Spec]] = []  # of what each of them gives the parts behind it
        self.shared, self.renamed = decided.shared, _renamed(program, decided, results)
        self.closed = {k: (program.results[results + k].spec, ends) for k, ends in decided.closed_told}  # type: ignore[union-attr]
        rest, known = list(program.calls), list[Var]()
        outside = [*program.arguments, *program.captured, *[x.var for x in program.leaves if x.var is not None]]
        asked = decided.asked
        for variables, then in _points(program, decided, results):
            wanted, mine = set(variables), list[Call]()
            for call in reversed(rest):
                if any(v in wanted for v in call.outs):
                    mine.append(call)
                    wanted |= set(call.inputs)
            rest = [call for call in rest if call not in mine]
            later = {v for call in rest for v in call.inputs} | set(program.ends) | set(asked)
            out = [v for call in mine for v in call.outs if v in later]
            part = Program(
                f"a decision of {program.name}",
                tuple(mine[::-1]),
                (*outside, *known),
                constants=program.constants,
                numbers=program.numbers,
                streams=program.streams,
                results=(*variables, *out),
            )
            self.parts.append((step_of(part), then))
            self.specs.append([v.spec for v in out])
            known += out
        self.last = step_of(replace(program, calls=tuple(rest), arguments=(*program.arguments, *known)))
        self.arguments, self.numbers = len(program.arguments), [var for var, _ in program.numbers]
        self.returns, self.overwrites = self.last.returns, self.last.overwrites

    def run(
        self,
        arrays: Sequence[Any],
        numbers: Sequence[float],
        starts: Sequence[Any],
        given: Any,
        done: list[Any],
        ask: Any,
    ) -> Sequence[Any]:
        """See `Step.run`.

        Args:
            given: the tensors among the arguments
            done: gets what Python does
            ask: gives the numbers again, after Python has changed some

        Raises:
            Elsewhere: an answer is another one; nothing has been written to
        """
        known: tuple[Any, ...] = ()
        kept = dict[int, Any]()
        for (step, then), specs in zip(self.parts, self.specs, strict=True):
            try:
                values = step.run((*arrays, *known), numbers, starts)
            except BaseException as stop:
                finished(stop)  # nothing is written yet
                raise
            if isinstance(then, HostCall):
                for index, value in zip(then.told, values, strict=False):
                    kind, i = self.shared.get(index, ("", 0))
                    kept[index] = (
                        kept[i] if kind == "told" else without_history(given[i]) if kind == "argument" else value
                    )
                    if index in self.closed:
                        kept[index] = used_up(kept[index], *self.closed[index], given)
                then(kept, given, done)
                known += _laid_out(values[len(then.told) :], specs)
                if then.feeds:
                    new = zip(self.numbers, numbers, ask(), strict=True)
                    numbers = tuple([now if var in then.feeds else before for var, before, now in new])
            else:
                if not _same(number_in(values[0]), then[0]):
                    raise Elsewhere
                known += _laid_out(values[1:], specs)
        values = self.last.run((*arrays[: self.arguments], *known, *arrays[self.arguments :]), numbers, starts)
        if self.renamed:
            values = list(values)
            for index, position in self.renamed:
                values[position] = kept[index]._array if isinstance(kept[index], Tensor) else kept[index]
        return values


def _renamed(program: Program, decided: Decided, results: int) -> list[tuple[int, int]]:
    """Which results are what Python was told before: the index of that, and where among what is returned the result is."""
    aliases, early = dict(program.aliases), {k for call in decided.calls if call.early for k in call.told}
    renamed = []
    for k, (kind, i) in decided.shared.items():
        if kind == "result" and k in early:
            if i in aliases:
                raise NotKept(
                    message("compile", "a result that Python looks at before shares its memory with another one")
                )
            before = [
                r for j, r in enumerate(program.results[: min(i, results)]) if isinstance(r, Var) and j not in aliases
            ]
            renamed.append((k, len(before)))
    return renamed


def _points(program: Program, decided: Decided, results: int) -> Iterator[tuple[tuple[Var, ...], Any]]:
    """What Python decides, and then what it does, which cannot be undone: the variables that it needs, and what that is."""
    told = program.results[results : results + decided.told]
    for var, answer, behind in zip(decided.asked, decided.answers, decided.behind, strict=True):
        feeding = next((call for call in decided.calls[:behind] if call.feeds), None)
        if feeding is not None:
            text = f"Python decides behind what it does at {feeding.title}, by numbers that may change there"
            raise NotKept(message("compile", text))
        yield (var,), (answer,)
    for call in decided.calls:
        if call.early:
            yield tuple([told[t] for t in call.told]), call


def _laid_out(values: Sequence[Any], specs: Sequence[Spec]) -> tuple[Any, ...]:
    """Results have no gaps; what is a part of another value is read with the strides that it has there."""
    return tuple([_as_in(array, spec) for array, spec in zip(values, specs, strict=True)])


def _as_in(array: Any, spec: Spec) -> Any:
    return laid_out(array, spec) if array.__class__ is np.ndarray else memory_of(array).laid_out(array, spec)


def _same(a: Any, b: Any) -> bool:
    return bool(a == b) or (a != a and b != b)
