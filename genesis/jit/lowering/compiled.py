"""A planned program as plain data: rows of a table for what is native, programs for what the host computes.

Nothing in here is a variable or an address, so it can be kept on disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from genesis.arrays.spec import Spec
from genesis.jit.program import Call, Program


class Where(NamedTuple):
    """A piece of memory: its kind, and the offset in the arena in bytes or which one it is, and where in that in bytes."""

    kind: str
    index: int
    offset: int = 0

    def moved(self, step: int) -> Where:
        """So many bytes further."""
        if self.kind == "arena":
            return Where(self.kind, self.index + step)
        return Where(self.kind, self.index, self.offset + step)


class Row(NamedTuple):
    """A phase: its function, the cell where the addresses of its operands begin, its chunks, and what it computes."""

    function: str
    cell: int
    chunks: int
    title: str


@dataclass(frozen=True, slots=True)
class Host:
    """Calls that the host computes: a program of its own, whose arguments are at ``inputs``.

    Its results are the arrays ``outputs`` of kind "host". Cells are to have their addresses, and some arrays are over
    then.
    """

    program: Program
    inputs: tuple[tuple[Where, Spec], ...]
    outputs: tuple[int, ...]
    cells: tuple[
        tuple[int, tuple[int, ...], tuple[int, ...]], ...
    ]  # with offsets; for each of the outputs that has some
    over: tuple[int, ...]
    count: int  # of phases


@dataclass(frozen=True, slots=True)
class Begin:
    """A call that goes on beside what follows: a program of its own, the memory that it reads and that it fills."""

    number: int
    program: Program
    given: tuple[Where, Spec]
    made: tuple[Where, Spec]


@dataclass(frozen=True, slots=True)
class End:
    """Where what was begun under a number has to be done."""

    number: int
    op: str


@dataclass(frozen=True, slots=True)
class Compiled:
    """A step: code, and what is done with it."""

    code: str
    rows: tuple[Row, ...]
    # in their order: rows from and to, and what the host does, or begins and waits for
    parts: tuple[tuple[int, int] | Host | Begin | End, ...]
    cells: tuple[Where, ...]  # whose address each cell has
    takes: tuple[Spec, ...]
    written: tuple[bool, ...]  # for each of these
    returns: tuple[Spec, ...]
    numbers: int
    hosts: int  # arrays of kind "host"
    size: int  # of the arena
    checks: int = 0  # how many of the rows come before all others, for flags
    flags: int = 0
    refusal: Host | None = None  # what raises, if a flag is set
    streams: int = 0  # of random numbers, whose places kernels read


def title_of(calls: Sequence[Call]) -> str:
    """The ops of a phase, with how often they are there."""
    counts = Counter([call.op for call in calls])
    parts = [name if n == 1 else f"{n} {name}" for name, n in counts.items()]
    return ", ".join(parts[:5]) + (f", {len(parts) - 5} more" if len(parts) > 5 else "") or "copy"
