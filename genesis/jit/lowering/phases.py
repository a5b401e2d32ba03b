"""What a compiled program is made of: kernels, functions of machine code over memory, and phases, which say when they
run.

    program --(regions)--> phases --(plan)--> memory, one table --(step)--> one native call

A phase is a row of the runtime's table. Its chunks may run at the same time and in any order; a phase begins when the
one before it has ended. How many chunks there are depends on shapes only, so the bits of results do not depend on the
number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from genesis.jit.arguments import Var
from genesis.jit.lowering.loops import Nest
from genesis.jit.program import Call


@dataclass(frozen=True, slots=True)
class Kernel:
    """``void name(ptr addresses, i64 chunk)``: ``addresses`` points to an array with an address for each operand.

    Shapes, strides and offsets of operands are in the code; a number of the host is the address of a double.
    """

    name: str  # the same for the same code: kernels of one name are compiled once
    code: str  # LLVM's text: this function and what it calls
    chunks: int
    writes: frozenset[int]  # the operands that it writes, by position; it reads all others
    over: tuple[tuple[int, int], ...] = ()  # (read, written): both may lie in the same memory
    python: Callable[[list[Any], int], None] | None = None  # the same on flat NumPy arrays: what the tests compare with
    nest: Nest | None = None  # the loops that the code was made of, where it was; of products there are tiles
    listing: Callable[[str], str] | None = None  # of others the text of loops that do the same, for a name


@dataclass(frozen=True, slots=True)
class Stage:
    """A kernel and the values whose memory it is called with. Views are no operands: their roots are."""

    kernel: Kernel
    operands: tuple[Var, ...]
    steps: tuple[int, ...] = ()  # by how many bytes each of them is further with each round of a phase; or all by none


@dataclass(frozen=True, slots=True)
class Phase:
    """Stages with the same number of chunks: a chunk runs through all of them before the next begins, so a stage needs of
    the stages before it the same chunk only. Without stages it is one call that the host computes, as a replay does, or
    one that goes on beside others: what begins it, or what ends when it is done.
    """

    stages: tuple[Stage, ...]
    calls: tuple[Call, ...]  # of the program, that are computed here
    why: str = ""  # it is not one with the phase before it, or is left to the host
    flag: Var | None = None  # of a phase before all others, for a flag: where it is set, nothing else is computed
    times: int = 1  # neighbouring phases that run several times do so together: all, then all again
    moves: str = ""  # "begin" or "end" of a call that goes on beside those between: see `Op.begins`

    @property
    def chunks(self) -> int:
        return self.stages[0].kernel.chunks if self.stages else 1


def in_order(phases: Sequence[Phase]) -> Iterator[tuple[int, int]]:
    """The numbers of phases in the order in which they run, with the round."""
    for times, some in groupby(range(len(phases)), key=lambda i: phases[i].times):
        numbers = list(some)
        for turn in range(times):
            yield from [(i, turn) for i in numbers]
