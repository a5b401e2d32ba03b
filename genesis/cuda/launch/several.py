"""One launch of a kernel for several sets of operands: the programs of each come one after the other."""

from __future__ import annotations

from functools import lru_cache, reduce
from operator import or_
from typing import Any

from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import Kernel, Launched, interpreted
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span

MOST = 16  # sets of a launch: a kernel has at most 4 KiB of parameters, and machine code grows with them
Grid = tuple[int, int, int]


class Several(Launched):
    """A kernel that is told how long its loop is, for ``count`` sets of addresses; numbers are the same for all."""

    def __init__(self, kernel: Kernel, count: int) -> None:
        self.kernel, self.count = kernel, count
        code = kernel.code
        self.lanes, self.warps = code.lanes, code.warps
        self.own = [i for i in range(len(code.letters) - 1) if i not in kernel.numbers]
        self.whole = tuple(range(len(self.own) * count + count))
        shared = sorted(kernel.numbers)
        parameters = [f"p{i}_{k}" for k in range(count) for i in self.own] + [f"n{k}" for k in range(count)]
        body = code.source.replace("def kernel(", "def one(pid, ").replace("    pid = tl.program_id(0)\n", "")
        lines = ["", "@triton.jit", f"def kernel({', '.join([*parameters, *[f'p{i}' for i in shared]])}):"]
        lines += ["    pid = tl.program_id(0)", "    first = 0"]
        for k in range(count):
            given = ", ".join([f"p{i}" if i in kernel.numbers else f"p{i}_{k}" for i in range(len(code.letters) - 1)])
            lines += [
                f"    last{k} = first + tl.cdiv(n{k}, {self.lanes})",
                f"    if (pid >= first) & (pid < last{k}):",
                f"        one(pid - first, {given}, n{k})",
                f"    first = last{k}",
            ]
        self.source = body + "\n".join(lines) + "\n"
        pointers = [code.signature[i] for i in self.own]
        self.signature = (*pointers * count, *["i32"] * count, *["fp64"] * len(shared))
        self.letters = "Q" * len(pointers) * count + "i" * count + "d" * len(shared)

    def launch(self, on: Any, stream: int, operands: list[list[Any]], counts: list[int]) -> None:
        """Start it with the addresses and numbers of each set, and how long each loop is."""
        addresses = [each[i] for each in operands for i in self.own]
        numbers = [operands[0][i] for i in sorted(self.kernel.numbers)]
        programs = sum([-(-n // self.lanes) for n in counts])
        self.start(on, stream, (programs, 1, 1), (*addresses, *counts, *numbers))

    def aligned(self, values: tuple[Any, ...]) -> tuple[int, ...]:
        """Lengths, and the pointers to an operand if those of all sets are: few machine codes. Numbers of a program in memory
        lie anywhere; where a length is none, nothing is read 16 bytes at a time in any case.
        """
        first, last = len(self.own) * self.count, (len(self.own) + 1) * self.count
        if reduce(or_, values[first:last]) % 16:
            return ()
        if not reduce(or_, values[:first]) % 16:
            return self.whole
        size = len(self.own)
        alike = [i for i in range(size) if not reduce(or_, values[i:first:size]) % 16]
        return (*[k * size + i for k in range(self.count) for i in alike], *range(first, last))

    def sets(self, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """The values of the parameters of the kernel, for each set."""
        size = len(self.own)
        numbers = dict(zip(sorted(self.kernel.numbers), values[(size + 1) * self.count :], strict=True))
        sets = []
        for k in range(self.count):
            own = dict(zip(self.own, values[k * size : (k + 1) * size], strict=True))
            each = [own[i] if i in own else numbers[i] for i in range(size + len(numbers))]
            sets.append((*each, values[size * self.count + k]))
        return sets

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        return [span for each in self.sets(values) for span in self.kernel.spans(grid, each)]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        sets = self.sets(values)
        if not interpreted():
            for each in sets:
                self.kernel.run(memory, (-(-each[-1] // self.lanes), 1, 1), each)
            return
        arrays = [self.kernel._operands(memory, each) for each in sets]
        given = [array[i] for array in arrays for i in self.own]
        numbers = [float(v) for v in values[len(given) + self.count :]]
        results = interpreter.run(self.source, grid, [*given, *values[len(given) : len(given) + self.count], *numbers])
        for array, result in zip(given, results, strict=False):
            array[...] = result


@lru_cache(maxsize=256)
def several(kernel: Kernel, count: int) -> Several:
    return Several(kernel, count)
