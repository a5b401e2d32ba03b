"""A program that is computed in parts: what Python decided on first, and the rest if the decisions are the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from genesis.jit.arguments import Var
from genesis.jit.lowering.step import Step
from genesis.jit.program import Program


class Elsewhere(Exception):
    """Python would decide otherwise: this is a call for another graph."""


class Segments:
    """Something like a `Step`: parts that compute what was asked, one after the other, and one that does all the rest."""

    def __init__(self, program: Program, asked: tuple[Var, ...], answers: tuple[Any, ...]) -> None:
        self.answers, self.parts = answers, list[Step]()
        rest, known = list(program.calls), list[Var]()
        outside = [*program.arguments, *program.captured, *[x.var for x in program.leaves if x.var is not None]]
        for var in asked:
            wanted, mine = {var}, []
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
                results=(var, *out),
            )
            self.parts.append(Step(part))
            known += out
        self.last = Step(replace(program, calls=tuple(rest), arguments=(*program.arguments, *known)))
        self.arguments, self.known = len(program.arguments), len(known)
        self.returns, self.overwrites = self.last.returns, self.last.overwrites

    def run(self, arrays: Sequence[Any], numbers: Sequence[float] = (), starts: Sequence[Any] = ()) -> Sequence[Any]:
        """See `Step.run`.

        Raises:
            Elsewhere: an answer is another one; nothing has been written to
        """
        known: tuple[Any, ...] = ()
        for step, answer in zip(self.parts, self.answers, strict=True):
            value, *more = step.run((*arrays, *known), numbers, starts)
            if not _same(value.item(), answer):
                raise Elsewhere
            known += tuple(more)
        return self.last.run((*arrays[: self.arguments], *known, *arrays[self.arguments :]), numbers, starts)


def _same(a: Any, b: Any) -> bool:
    return bool(a == b) or (a != a and b != b)
