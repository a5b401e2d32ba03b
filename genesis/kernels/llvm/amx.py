"""Products of bfloat16 matrices by AMX: registers that hold 16 rows of 16 float32 numbers, or of 16 pairs of bfloat16
numbers, and an instruction that multiplies two of them and adds to a third.

    c[i, j] += sum_t a[i, 2 t] b[2 t, j] + a[i, 2 t + 1] b[2 t + 1, j]        i, j, t < 16

The second matrix is packed as `genesis.kernels.llvm.products` packs it: a row of pairs is what the instruction wants. Four
registers hold 32 x 32 numbers of the result, two of each matrix are multiplied with each other. How many rows and bytes a
register has is set before (`configure`), so nothing that is outside of the matrices is read or written.

The instruction adds the products of the first numbers of 16 pairs one after the other, those of the second ones the same
way, both sums, and what was there, rounding to the nearest each time; it takes denormal numbers for zeros.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import NamedTuple

from genesis.kernels.llvm.nests import Code, declarations
from genesis.kernels.llvm.products import MULTIPLY

SIDE = 16  # rows of a register, and the words of each
CHUNK = 256  # words of a sum, until the next panel: those of a panel stay in the first cache
BLOCK = 4  # tiles of rows that meet all panels before the next: they stay in the second one
FIRST, SECOND = 4, 6  # registers of the matrices; those of the result are the first four
_DECLARED = """declare void @llvm.x86.ldtilecfg(ptr)
declare void @llvm.x86.tilerelease()
declare void @llvm.x86.tileloadd64(i8, ptr, i64)
declare void @llvm.x86.tilestored64(i8, ptr, i64)
declare void @llvm.x86.tdpbf16ps(i8, i8, i8)"""


@functools.cache
def permitted() -> bool:
    """Whether this process may use the registers: Linux makes room for them where it is asked to, once, for all threads
    and for processes that it forks. It refuses where a thread's stack for signals is too small for them.
    """
    if not sys.platform.startswith("linux"):
        return False
    arch_prctl, request, tile_data = 158, 0x1023, 18
    return bool(ctypes.CDLL(None).syscall(*map(ctypes.c_long, (arch_prctl, request, tile_data))) == 0)


def declared(lanes: int) -> str:
    """What a module has to say of the functions that are called."""
    return f"{declarations(lanes)}\n{_DECLARED}"


# ---- instructions


class Matrix(NamedTuple):
    """Where a matrix begins, and the bytes from one row to the next."""

    at: str
    step: str


def configure(code: Code, shape: tuple[int, int], rows: str, columns: str, words: str, room: str) -> None:
    """Set what the registers hold: of a result of so many rows and columns, as many registers beneath and beside each
    other as ``shape`` says, and so many pairs of a row of the first matrix. ``room`` is memory of 64 bytes.

    A register that is not used has no rows and no bytes; a processor refuses one that has only one of both.
    """
    high, wide = (_parts(code, size, count) for size, count in zip((rows, columns), shape, strict=True))
    bytes_of = [code.times(w, "4") for w in wide]
    of_result = [(h, b) if h != "0" != w else ("0", "0") for h in high for w, b in zip(wide, bytes_of, strict=True)]
    of_first = [(h, code.times(words, "4") if h != "0" else "0") for h in high]
    of_second = [(words, b) if w != "0" else ("0", "0") for w, b in zip(wide, bytes_of, strict=True)]
    registers = [*of_result, *of_first, *of_second]
    steps = [b for _, b in registers]
    words_of_memory = ["1", "0", _joined(code, steps[:4], 16), _joined(code, steps[4:], 16), "0", "0"]
    words_of_memory += [_joined(code, [h for h, _ in registers], 8), "0"]
    for i, word in enumerate(words_of_memory):
        code.lines.append(f"  store i64 {word}, ptr {code.at(room, str(i), 'i64')}, align 8")
    code.lines.append(f"  call void @llvm.x86.ldtilecfg(ptr {room})")


def _parts(code: Code, size: str, count: int) -> tuple[str, str]:
    """A size as those of two registers, of which the second may not be used."""
    return (size, "0") if count == 1 else (str(SIDE), code.put(f"sub i64 {size}, {SIDE}"))


def _joined(code: Code, values: list[str], bits: int) -> str:
    """Numbers of so many bits, in one."""
    total = values[0]
    for i, value in enumerate(values[1:], 1):
        if value != "0":
            total = code.put(f"or i64 {total}, {code.put(f'shl i64 {value}, {bits * i}')}")
    return total


def release(code: Code) -> None:
    """The registers are not used any more: what follows does not save them."""
    code.lines.append("  call void @llvm.x86.tilerelease()")


def tile(
    code: Code, shape: tuple[int, int], a: Matrix, b: Matrix, c: Matrix, start: Matrix, terms: tuple[str, str, str]
) -> None:
    """One tile of the result: what is at ``start`` and the products of these words, from, to, and how many at a time."""
    high, wide = shape
    cells = [(i, j) for i in range(high) for j in range(wide)]
    for i, j in cells:
        _move(code, "tileloadd64", 2 * i + j, _beneath(code, start, i, j), start.step)
    begin, end, words = terms
    firsts = [_beneath(code, a, i, 0) for i in range(high)]
    with code.loop(begin, end, words) as term:
        row = code.put(f"getelementptr i8, ptr {b.at}, i64 {code.times(term.index, b.step)}")
        for i, first in enumerate(firsts):
            _move(code, "tileloadd64", FIRST + i, code.at(first, term.index), a.step)
        for j in range(wide):
            _move(code, "tileloadd64", SECOND + j, code.at(row, str(SIDE * j)), b.step)
        for i, j in cells:
            code.lines.append(f"  call void @llvm.x86.tdpbf16ps(i8 {2 * i + j}, i8 {FIRST + i}, i8 {SECOND + j})")
    for i, j in cells:
        _move(code, "tilestored64", 2 * i + j, _beneath(code, c, i, j), c.step)


def _beneath(code: Code, x: Matrix, i: int, j: int) -> str:
    """Where the part of a matrix begins that is in a register."""
    line = code.put(f"getelementptr i8, ptr {x.at}, i64 {code.times(x.step, str(SIDE * i))}") if i else x.at
    return code.at(line, str(SIDE * j)) if j else line


def _move(code: Code, name: str, register: int, at: str, step: str) -> None:
    code.lines.append(f"  call void @llvm.x86.{name}(i8 {register}, ptr {at}, i64 {step})")


# ---- products of any size

_TILES = (
    ("a", "b", "c", "bias"),
    ("first", "last", "left", "right", "rows", "columns", "begin", "end", "words", "high", "wide", "row", "line", "more"),
)  # fmt: skip


def multiply(lanes: int, rows: int, columns: int, private: bool = False) -> str:
    """The function `genesis.kernels.llvm.products.multiply` of pairs, that lie beside each other in the rows of ``a``:
    tiles that are alike go together, as registers are set for them; words that do not fill one come last.
    """
    assert (lanes, rows, columns) == (SIDE, 2 * SIDE, 2), "tiles of four registers"
    code, side = Code(lanes), 2 * SIDE
    downwards = _alike(code, "%first", "%last", "%m", side)
    across = _alike(code, "0", code.put(f"sdiv i64 {code.add('%n', str(side - 1))}, {side}"), "%n", side)
    rest = code.put(f"srem i64 %k, {SIDE}")
    whole = code.put(f"sub i64 %k, {rest}")
    for terms in (("0", whole, str(SIDE)), (whole, "%k", rest)):
        for high, tiles, size in downwards:
            for wide, panels, width in across:
                given = [*tiles, *panels, size, width, *terms, "%high", "%wide", "%row", "%line", "%more"]
                code.invoke(f"tiles{high}{wide}", ["%a", "%b", "%c", "%bias"], given)
    shapes = [(high, wide) for high in (1, 2) for wide in (1, 2)]
    return "\n".join(
        [*[_tiles(lanes, shape) for shape in shapes], code.definition("multiply", *MULTIPLY, private=private)]
    )


def _alike(code: Code, first: str, last: str, size: str, side: int) -> list[tuple[int, tuple[str, str], str]]:
    """Tiles from ``first`` to ``last`` along one side of a result of this size, in three ranges: whole ones; a last one
    that takes two registers; one that takes one. With how many registers they take, and how long they are.
    """
    whole = code.put(f"sdiv i64 {size}, {side}")
    rest = code.put(f"srem i64 {size}, {side}")
    has_two = code.put(f"icmp sgt i64 {rest}, {SIDE}")
    two, one = (code.put(f"select i1 {has_two}, i64 {x}, i64 {y}") for x, y in ((last, whole), (whole, last)))
    return [(2, (first, code.least(last, whole)), str(side)), (2, (whole, two), rest), (1, (whole, one), rest)]


def _tiles(lanes: int, shape: tuple[int, int]) -> str:
    """The function of tiles and panels that are alike."""
    code, side = Code(lanes), 2 * SIDE
    room, zeros = (code.put(f"alloca [{size} x float], align 64") for size in (SIDE, side))
    for j in range(2):
        code.store(code.constant(0.0), zeros, str(SIDE * j))
    ranges = [code.put(f"icmp slt i64 %{x}, %{y}") for x, y in (("first", "last"), ("left", "right"), ("begin", "end"))]
    any_ = code.put(f"and i1 {ranges[0]}, {code.put(f'and i1 {ranges[1]}, {ranges[2]}')}")
    blocks = code.put(f"sdiv i64 {code.add(code.put('sub i64 %last, %first'), str(BLOCK - 1))}, {BLOCK}")
    chunks = code.put(f"sdiv i64 {code.add(code.put('sub i64 %end, %begin'), str(CHUNK - 1))}, {CHUNK}")
    a_step, b_step, c_step = [code.times(x, "4") for x in ("%row", "%wide", "%line")]
    with code.loop("0", code.put(f"zext i1 {any_} to i64"), "1"):
        configure(code, shape, "%rows", "%columns", "%words", room)
        with code.loop("0", blocks, "1") as block, code.loop("0", chunks, "1") as chunk:
            start = code.add("%first", code.times(block.index, str(BLOCK)))
            stop = code.least(code.add(start, str(BLOCK)), "%last")
            begin = code.add("%begin", code.times(chunk.index, str(CHUNK)))
            end = code.least(code.add(begin, str(CHUNK)), "%end")
            with code.loop("%left", "%right", "1") as panel, code.loop(start, stop, "1") as tile_:
                row, column = code.times(tile_.index, str(side)), code.times(panel.index, str(side))
                a = Matrix(code.at("%a", code.times(row, "%row")), a_step)
                b = Matrix(code.at("%b", code.times(column, "%high")), b_step)
                c = Matrix(code.at(code.at("%c", code.times(row, "%line")), column), c_step)
                tile(code, shape, a, b, c, _start(code, c, column, begin, zeros), (begin, end, "%words"))
        release(code)
    return code.definition(f"tiles{shape[0]}{shape[1]}", *_TILES, private=True)


def _start(code: Code, c: Matrix, column: str, begin: str, zeros: str) -> Matrix:
    """What the sum of a tile begins with: the bias in all rows, zeros, or what is in the result."""
    is_first = code.put(f"icmp eq i64 {begin}, 0")
    biased = code.put(f"select i1 {is_first}, i1 {code.put('icmp ne ptr %bias, null')}, i1 false")
    empty = code.put(f"icmp eq i64 {code.add(begin, '%more')}, 0")
    fixed = code.put(f"select i1 {biased}, ptr {code.at('%bias', column)}, ptr {zeros}")
    alone = code.put(f"or i1 {biased}, {empty}")
    at = code.put(f"select i1 {alone}, ptr {fixed}, ptr {c.at}")
    return Matrix(at, code.put(f"select i1 {alone}, i64 0, i64 {c.step}"))


# ---- how fast it is

OPERATIONS = 2 * 4 * SIDE * SIDE * 2 * SIDE  # in a round: a product of numbers and its addition


def speed() -> str:
    """The function ``sums(ptr numbers, i64 rounds)``: in each round four registers are added to."""
    code = Code(SIDE)
    room = code.put(f"alloca [{SIDE} x float], align 64")
    configure(code, (2, 2), str(2 * SIDE), str(2 * SIDE), str(SIDE), room)
    for register in range(8):
        _move(code, "tileloadd64", register, "%numbers", "64")
    with code.loop("0", "%rounds", "1"):
        for i in range(4):
            code.lines.append(f"  call void @llvm.x86.tdpbf16ps(i8 {i}, i8 {FIRST + i // 2}, i8 {SECOND + i % 2})")
    _move(code, "tilestored64", 0, "%numbers", "64")
    release(code)
    return f"{_DECLARED}\n{code.definition('sums', ['numbers'], ['rounds'])}"
