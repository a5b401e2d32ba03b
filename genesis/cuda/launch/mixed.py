"""One launch of several kernels that do not wait for each other: the programs of each come one after the other.

Small ones leave most of a GPU idle, and each begins when the one before it has ended: together they take about as long as
the slowest.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import Kernel, Launched, interpreted
from genesis.cuda.launch.several import MOST, several
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span

Grid = tuple[int, int, int]
BEGIN, PROGRAM = "@triton.jit\ndef kernel(", "    pid = tl.program_id(0)\n"


class Mixed(Launched):
    """Kernels as one, each with its own text, and with its first program.

    Args:
        parts: the kernels, and how many programs each has
    """

    def __init__(self, parts: tuple[tuple[Any, int], ...]) -> None:
        self.parts = parts
        self.warps = max([kernel.warps for kernel, _ in parts])
        self.signature = tuple([kind for kernel, _ in parts for kind in kernel.signature])
        self.letters = "".join([kernel.letters for kernel, _ in parts])
        self.source = self._printed()

    def _printed(self) -> str:
        heads, bodies = zip(*[kernel.source.split(BEGIN) for kernel, _ in self.parts], strict=True)
        names = {body: f"part{i}" for i, body in enumerate(dict.fromkeys(bodies))}
        parameters = [f"p{i}" for i in range(len(self.letters))]
        lines, first, rest = ["    pid = tl.program_id(0)"], 0, parameters
        for (kernel, programs), body in zip(self.parts, bodies, strict=True):
            own, rest = rest[: len(kernel.letters)], rest[len(kernel.letters) :]
            lines += [f"    if (pid >= {first}) & (pid < {first + programs}):"]
            lines += [f"        {names[body]}(pid - {first}, {', '.join(own)})"]
            first += programs
        text = "".join(dict.fromkeys(heads))
        for body, name in names.items():
            text += f"@triton.jit\ndef {name}(pid, {body.replace(PROGRAM, '', 1).strip()}\n\n\n"
        return text + "\n".join(["@triton.jit", f"def kernel({', '.join(parameters)}):", *lines, ""])

    def _sets(self, values: tuple[Any, ...]) -> list[tuple[Any, Grid, tuple[Any, ...]]]:
        """Each kernel with its programs, and the values of its parameters."""
        sets, first = [], 0
        for kernel, programs in self.parts:
            last = first + len(kernel.letters)
            sets.append((kernel, (programs, 1, 1), values[first:last]))
            first = last
        return sets

    # ---- on the emulated device

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        return [span for kernel, *own in self._sets(values) for span in kernel.spans(*own)]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        if not interpreted():
            for kernel, *own in self._sets(values):
                kernel.run(memory, *own)
            return
        arguments: list[Any] = []
        written: dict[int, Any] = {}
        for kernel, *own in self._sets(values):
            given, arrays = kernel.interpreted(memory, *own)
            written |= {len(arguments) + i: array for i, array in arrays.items()}
            arguments += given
        interpreter.run_into(self.source, grid, arguments, written)


@lru_cache(maxsize=256)
def _mixed(parts: tuple[tuple[Any, int], ...]) -> Mixed:
    return Mixed(parts)


def launch(on: Any, stream: int, kernels: Sequence[Any], operands: Sequence[list[Any]], counts: Sequence[int]) -> None:
    """Start all of these as one launch, with their operands, and how long their loops are; loops that are the same are one
    kernel of it.
    """
    alike: dict[Any, list[int]] = {}
    for i, kernel in enumerate(kernels):
        alike.setdefault((kernel.source, counts[i] % 16 == 0) if isinstance(kernel, Kernel) else i, []).append(i)
    parts: list[tuple[Any, int, tuple[Any, ...]]] = []
    for numbers in alike.values():
        for first in range(0, len(numbers), MOST):
            some = numbers[first : first + MOST]
            given, lengths = [operands[i] for i in some], [counts[i] for i in some]
            one = len(some) == 1
            part: Any = kernels[some[0]] if one else several(kernels[some[0]], len(some))
            grid, values = part.called(given[0], lengths[0]) if one else part.called(given, lengths)
            parts.append((part, grid[0], values))
    if len(parts) == 1:
        part, programs, values = parts[0]
        part.start(on, stream, (programs, 1, 1), values)
        return
    parts.sort(key=lambda each: -each[1])  # what has the most programs begins first: the others fill the gaps
    mixed = _mixed(tuple([(part, programs) for part, programs, _ in parts]))
    mixed.start(on, stream, (sum([each[1] for each in parts]), 1, 1), tuple([v for each in parts for v in each[2]]))
