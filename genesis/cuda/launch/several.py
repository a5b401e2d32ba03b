"""One launch of a kernel for several sets of operands: the programs of each come one after the other."""

from __future__ import annotations

from functools import lru_cache, reduce
from operator import or_
from typing import Any
from zlib import crc32

from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import Kernel, Launched, interpreted
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span

MOST = 16  # sets of a launch: a kernel has at most 4 KiB of parameters, and machine code grows with them
Grid = tuple[int, int, int]


class Several(Launched):
    """A kernel for ``count`` sets of addresses; numbers are the same for all.

    One that is told how long its loop is has a call for each set. Others are as long for all sets: a program chooses the
    addresses that are its own.
    """

    def __init__(self, kernel: Kernel, count: int) -> None:
        self.kernel, self.count, self.told = kernel, count, int(kernel.told)
        code = kernel.code
        self.lanes, self.warps, self.programs = code.lanes, code.warps, code.programs
        self.size = len(code.letters) - self.told  # operands of a set
        self.own = [i for i in range(self.size) if i not in kernel.numbers]
        self.pointers = len(self.own) * count
        self.before = self.pointers + self.told * count  # values before the numbers
        self.whole = tuple(range(self.before))
        shared = sorted(kernel.numbers)
        parameters = [f"p{i}_{k}" for k in range(count) for i in self.own] + [f"n{k}" for k in range(count * self.told)]
        self.one = f"one_{crc32(code.source.encode()):x}"  # which is that of no other, in a launch of several (`mixed`)
        body = code.source.replace("def kernel(", f"def {self.one}(pid, ").replace("    pid = tl.program_id(0)\n", "")
        lines = ["", "@triton.jit", f"def kernel({', '.join([*parameters, *[f'p{i}' for i in shared]])}):"]
        lines += ["    pid = tl.program_id(0)", *(self._each() if self.told else self._chosen())]
        self.source = body + "\n".join(lines) + "\n"
        pointers = [code.signature[i] for i in self.own]
        self.signature = (*pointers * count, *["i32"] * count * self.told, *["fp64"] * len(shared))
        self.letters = "Q" * len(pointers) * count + "i" * count * self.told + "d" * len(shared)

    def _each(self) -> list[str]:
        """Which set a program belongs to is asked as a search asks, and each has its own end: no program goes through what
        tells the others apart, and code that differs in addresses alone is there once.
        """
        shift, lines = self.lanes.bit_length() - 1, []
        for k in range(self.count - 1):
            before = f"last{k - 1} + " if k else ""
            lines.append(f"    last{k} = {before}((n{k} + {self.lanes - 1}) >> {shift})")
        return [*lines, *self._among(0, self.count, 1)]

    def _among(self, first: int, last: int, depth: int) -> list[str]:
        pad, middle = "    " * depth, (first + last) // 2
        if last - first > 1:
            sets = self._among(first, middle, depth + 1), self._among(middle, last, depth + 1)
            return [f"{pad}if pid < last{middle - 1}:", *sets[0], f"{pad}else:", *sets[1]]
        given = ", ".join([f"p{i}" if i in self.kernel.numbers else f"p{i}_{first}" for i in range(self.size)])
        program = f"pid - last{first - 1}" if first else "pid"
        return [f"{pad}{self.one}({program}, {given}, n{first})"]

    def _chosen(self) -> list[str]:
        lines = [f"    which = pid // {self.programs}"]
        for i in self.own:
            lines += [f"    p{i} = p{i}_0"]
            lines += [f"    p{i} = tl.where(which == {k}, p{i}_{k}, p{i})" for k in range(1, self.count)]
        return [*lines, f"    {self.one}(pid % {self.programs}, {', '.join([f'p{i}' for i in range(self.size)])})"]

    def launch(self, on: Any, stream: int, operands: list[list[Any]], counts: list[int]) -> None:
        """Start it with the addresses and numbers of each set, and how long each loop is, if it is told that."""
        self.start(on, stream, *self.called(operands, counts))

    def called(self, operands: list[list[Any]], counts: list[int]) -> tuple[Grid, tuple[Any, ...]]:
        """The programs that `launch` starts, and the values of their parameters."""
        addresses = [each[i] for each in operands for i in self.own]
        numbers = [operands[0][i] for i in sorted(self.kernel.numbers)]
        programs = sum([-(-n // self.lanes) for n in counts]) if self.told else self.count * self.programs
        return (programs, 1, 1), (*addresses, *counts * self.told, *numbers)

    def aligned(self, values: tuple[Any, ...]) -> tuple[int, ...]:
        """Lengths, and the pointers to an operand if those of all sets are: few machine codes. Numbers of a program in memory
        lie anywhere; where a length is none, nothing is read 16 bytes at a time in any case.
        """
        first, last = self.pointers, self.before
        if self.told and reduce(or_, values[first:last]) % 16:
            return ()
        if not reduce(or_, values[:first]) % 16:
            return self.whole
        size = len(self.own)
        alike = [i for i in range(size) if not reduce(or_, values[i:first:size]) % 16]
        return (*[k * size + i for k in range(self.count) for i in alike], *range(first, last))

    def sets(self, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """The values of the parameters of the kernel, for each set."""
        size = len(self.own)
        numbers = dict(zip(sorted(self.kernel.numbers), values[self.before :], strict=True))
        sets = []
        for k in range(self.count):
            own = dict(zip(self.own, values[k * size : (k + 1) * size], strict=True))
            each = [own[i] if i in own else numbers[i] for i in range(self.size)]
            at = size * self.count + k
            sets.append((*each, *values[at : at + self.told]))
        return sets

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        return [span for each in self.sets(values) for span in self.kernel.spans(grid, each)]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        if not interpreted():
            for each in self.sets(values):
                programs = -(-each[-1] // self.lanes) if self.told else self.programs
                self.kernel.run(memory, (programs, 1, 1), each)
            return
        interpreter.run_into(self.source, grid, *self.interpreted(memory, grid, values))

    def interpreted(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> tuple[list[Any], dict[int, Any]]:
        """What the interpreter is given, and the arrays that it writes, by parameter."""
        arrays = [self.kernel._operands(memory, each) for each in self.sets(values)]
        given = [array[i] for array in arrays for i in self.own]
        numbers = [float(v) for v in values[self.before :]]
        written = {k * len(self.own) + self.own.index(i): array[i] for k, array in enumerate(arrays) for i in self.kernel.nest.writes}  # fmt: skip
        return [*given, *values[len(given) : self.before], *numbers], written


@lru_cache(maxsize=256)
def several(kernel: Kernel, count: int) -> Several:
    return Several(kernel, count)
