"""Many calls of one function as the chunks of a phase, with everything that is known before the arrays are.

    words      where the calls of each chunk begin, and for each call one word per argument: of those that are *given*
               with a run and those in *scratch* memory the bytes from where they begin, of *tables* the bytes from the
               first word, then integers; behind the calls the tables
    scratch    memory that a chunk needs while it runs. It begins with zeros, and keeps what was written

So nothing but the addresses of arrays comes with a run, and words are plain data: `kernel` has them in the code.
Of scratch memory there is as much as there are threads: a chunk takes the first piece that is free.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from genesis.kernels.llvm import native
from genesis.kernels.llvm.nests import Code
from genesis.kernels.native import runtime

LINE = 64  # bytes: where memory for vectors begins
PIECES = 32  # of scratch memory at most, and so threads
KEPT = 1 << 21  # bytes of a piece that is kept for the next run


class Signature:
    """The parameters of a function: pointers, of which some are given and some in scratch memory, and integers."""

    def __init__(self, name: str, pointers: Sequence[str], integers: Sequence[str], given: int, scratch: int) -> None:
        self.name, self.pointers, self.integers = name, len(pointers), len(integers)
        self.given, self.scratch = given, scratch

    @property
    def size(self) -> int:
        return self.pointers + self.integers


def calls(signature: Signature) -> str:
    """The function ``{name}.calls(ptr words, ptr given, ptr scratch, i64 chunk)``: all calls of a chunk."""
    code = Code(1)
    first, last = (code.number("%words", code.add("%chunk", str(i))) for i in (1, 2))
    rows = code.at("%words", code.number("%words", "0"), "i64")
    with code.loop(first, last, "1") as call:
        row = code.at(rows, code.times(call.index, str(signature.size)), "i64")
        numbers = [code.number(row, str(i)) for i in range(signature.size)]
        bases = [code.put(f"load ptr, ptr {code.at('%given', str(i), 'ptr')}") for i in range(signature.given)]
        bases += ["%scratch"] * signature.scratch
        bases += ["%words"] * (signature.pointers - len(bases))
        pointers = [code.at(base, n, "i8") for base, n in zip(bases, numbers, strict=False)]
        code.invoke(signature.name, pointers, numbers[signature.pointers :])
    head = f"define internal void @{signature.name}.calls(ptr %words, ptr %given, ptr %scratch, i64 %chunk) {{"
    return "\n".join([head, "entry:", *code.lines, "  ret void\n}"])


def _given(count: int, behind: int) -> str:
    """Lines that make ``%given``, the addresses of what is given: as they are, or those of the elements of objects that
    have them so many bytes behind their own address.
    """
    if not behind:
        return "  %given = getelementptr i64, ptr %args, i64 4"
    code = Code(1)
    for i in range(count):
        array = code.put(f"load ptr, ptr {code.at('%args', str(4 + i), 'ptr')}")
        elements = code.put(f"load ptr, ptr {code.at(array, str(behind), 'i8')}")
        code.lines.append(f"  store ptr {elements}, ptr {code.at('%given', str(i), 'ptr')}")
    return "\n".join([f"  %given = alloca [{count} x ptr]", *code.lines])


def chunk(name: str, count: int = 0, behind: int = 0) -> str:
    """The function ``{name}.chunk(ptr args, i64 chunk)``. The arguments: words, the first piece of scratch memory, the
    bytes of one, the mask of free ones, and what is given: addresses, or so many arrays (see `_given`).
    """
    loads = [f"  %at{i} = getelementptr i64, ptr %args, i64 {i}" for i in range(4)]
    loads += [f"  %x{i} = load {kind}, ptr %at{i}" for i, kind in enumerate(("ptr", "ptr", "i64", "ptr"))]
    return f"""
define internal i64 @{name}.take(ptr %free) {{
begin:
  br label %look
look:
  %mask = load atomic i64, ptr %free monotonic, align 8
  %less = sub i64 %mask, 1
  %rest = and i64 %mask, %less
  %some = icmp ne i64 %mask, 0
  br i1 %some, label %try, label %look
try:
  %both = cmpxchg ptr %free, i64 %mask, i64 %rest seq_cst seq_cst
  %won = extractvalue {{ i64, i1 }} %both, 1
  br i1 %won, label %done, label %look
done:
  %piece = call i64 @llvm.cttz.i64(i64 %mask, i1 true)
  ret i64 %piece
}}
declare i64 @llvm.cttz.i64(i64, i1)

define void @{name}.chunk(ptr %args, i64 %chunk) {{
begin:
{chr(10).join(loads)}
  %piece = call i64 @{name}.take(ptr %x3)
  %behind = mul i64 %piece, %x2
  %scratch = getelementptr i8, ptr %x1, i64 %behind
{_given(count, behind)}
  call void @{name}.calls(ptr %x0, ptr %given, ptr %scratch, i64 %chunk)
  %bit = shl i64 1, %piece
  %before = atomicrmw or ptr %x3, i64 %bit seq_cst
  ret void
}}"""


def kernel(name: str, signature: Signature, words: Any, scratch: int, cleared: tuple[int, int] | None = None) -> str:
    """The function ``{name}(ptr addresses, i64 chunk)`` for compiled programs: words are constants, and each chunk has
    scratch memory of its own, behind what is given. ``cleared``: which of what is given begins with zeros, and how many
    bytes of it are a chunk's.
    """
    clear = ""
    if cleared is not None:
        which, size = cleared
        clear = f"""
  %to = getelementptr ptr, ptr %addresses, i64 {which}
  %sums = load ptr, ptr %to
  %before = mul i64 %chunk, {size}
  %own = getelementptr i8, ptr %sums, i64 %before
  call void @llvm.memset.p0.i64(ptr %own, i8 0, i64 {size}, i1 false)"""
    numbers = ", ".join([f"i64 {n}" for n in words.tolist()])
    return f"""
@{name}_words = internal constant [{len(words)} x i64] [{numbers}], align 64
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define void @{name}(ptr %addresses, i64 %chunk) {{
begin:
  %at = getelementptr ptr, ptr %addresses, i64 {signature.given}
  %all = load ptr, ptr %at
  %behind = mul i64 %chunk, {scratch}
  %scratch = getelementptr i8, ptr %all, i64 %behind
  call void @llvm.memset.p0.i64(ptr align {LINE} %scratch, i8 0, i64 {scratch}, i1 false){clear}
  call void @{signature.name}.calls(ptr @{name}_words, ptr %addresses, ptr %scratch, i64 %chunk)
  ret void
}}"""


class Words:
    """The words of calls, as they are put together."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.bounds = [0]
        self.rows: list[list[Any]] = []
        self.tables: list[Any] = []
        self.known: dict[int, int] = {}  # tables by their identity
        self.size = 0  # of the tables

    def table(self, array: Any) -> int:
        """How far behind the calls the numbers of an array are, in bytes."""
        if id(array) not in self.known:
            flat = np.ascontiguousarray(array, np.int64).ravel()
            self.known[id(array)] = self.size
            self.tables.append((array, flat))
            self.size += 8 * len(flat)
        return self.known[id(array)]

    def call(
        self, given: Sequence[int], scratch: Sequence[int], tables: Sequence[Any], integers: Sequence[int]
    ) -> None:
        """One more call of this chunk; ``tables``: arrays of integers, None for one that is not read."""
        there = [0 if table is None else self.table(table) for table in tables]
        self.rows.append([*given, *scratch, *there, *integers])

    def end(self) -> None:
        """The next call is one of the next chunk."""
        self.bounds.append(len(self.rows))

    @property
    def chunks(self) -> int:
        return len(self.bounds) - 1

    def array(self) -> Any:
        """All words."""
        first = 1 + len(self.bounds)
        rows = np.array(self.rows, np.int64).reshape(-1, self.signature.size)
        begin = self.signature.given + self.signature.scratch
        rows[:, begin : self.signature.pointers] += 8 * (first + rows.size)
        return np.concatenate([np.array([first, *self.bounds], np.int64), rows.ravel(), *[t for _, t in self.tables]])


def moved(signature: Signature, words: Any, offsets: Sequence[int]) -> Any:
    """Words for given arrays that begin so many bytes behind their addresses."""
    words, first = words.copy(), int(words[0])
    rows = words[first : first + signature.size * int(words[first - 1])].reshape(-1, signature.size)
    rows[:, : len(offsets)] += offsets
    return words


class Calls:
    """Calls in chunks that are done again and again, with other arrays each time."""

    def __init__(self, code: str, words: Words, scratch: int) -> None:
        self.signature, self.code = words.signature, f"{code}\n{calls(words.signature)}"
        self.words, self.chunks = words.array(), words.chunks
        self.at = self.words.ctypes.data  # 1 us, as much as all that `run` computes itself
        self.bytes = -(-scratch // LINE) * LINE
        self.kept: list[Scratch] = []
        self.head = struct.Struct(f"={7 + self.signature.given}q")

    @functools.cached_property
    def function(self) -> int:
        """The address of the function of a chunk, of addresses."""
        return _function(self.signature.name, self.code)

    @functools.cached_property
    def of_arrays(self) -> int:
        """The address of the function of a chunk, of arrays."""
        return _function(self.signature.name, self.code, self.signature.given, native.ARRAY_DATA)

    def run(self, *given: int) -> None:
        """All chunks, with arrays at these addresses, by several threads."""
        self._run(self.function, given)

    def on(self, *arrays: Any) -> None:
        """`run` with these contiguous arrays. (To ask each for its address takes 0.4 us.)"""
        if native.ARRAY_DATA:
            self._run(self.of_arrays, map(id, arrays))
        else:
            self.run(*[array.ctypes.data for array in arrays])

    def _run(self, function: int, given: Iterable[int]) -> None:
        pool = runtime.begin()
        pieces = 1 if pool.threads == 1 else min(pool.threads, self.chunks, PIECES)
        scratch = self._lend(pieces)
        at = scratch.at
        block = self.head.pack(function, 24, self.chunks, self.at, at + LINE, self.bytes, at, *given)
        pool.run_block(pool.control, block, 1, pieces)
        if self.bytes <= KEPT and len(self.kept) < PIECES:
            self.kept.append(scratch)

    def _lend(self, pieces: int) -> Scratch:
        """Memory that no other run has."""
        try:
            scratch = self.kept.pop()
        except IndexError:
            scratch = None
        size = LINE + pieces * self.bytes
        if scratch is None or scratch.size < size:
            scratch = Scratch(size)
        scratch.free.value = (1 << pieces) - 1
        return scratch


class Scratch:
    """Memory that begins with a line, where the mask of free pieces is."""

    __slots__ = ("at", "free", "size", "whole")

    def __init__(self, size: int) -> None:
        self.whole, self.size = np.zeros(size + LINE, np.uint8), size
        start = self.whole.ctypes.data
        self.at = start + -start % LINE
        self.free = ctypes.c_int64.from_address(self.at)


@functools.cache
def _function(name: str, code: str, *arrays: int) -> int:
    return native.address(f"{name}.chunk", f"{code}\n{chunk(name, *arrays)}")
