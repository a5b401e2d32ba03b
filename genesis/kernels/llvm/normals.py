"""Normal numbers in LLVM code: the words of a stream and what `genesis.core.graph.normals` makes of them, in one pass. Each
operation is rounded as there, so the bits are the same.
"""

from __future__ import annotations

from genesis.core.graph.normals import FLOAT32, FLOAT64, Parts
from genesis.kernels.llvm import draws, loops
from genesis.kernels.llvm.values import Code, Value, sqrt

PAIRS = 512  # whose words are made at a time; they stay in the nearest cache
_DIGITS = {"float": 24, "double": 53}  # binary ones of uniform numbers


def code(kind: str) -> str:
    """``void normals(ptr out, i64 first, i64 last, i64 key, i64 block, i64 above, i64 count)``: of ``count`` normal numbers,
    "float" or "double", those that have the pairs ``first`` to ``last`` of `PAIRS`. The words begin at a block of the
    stream of a key that has the number ``block + 2**64 above``. ``normals.entry`` reads the same arguments in memory.
    """
    size = 4 if kind == "float" else 8
    lanes = loops.width() // size
    made, out = Code(lanes), f"align {size}"
    made.mark("vector")
    u1, u2 = (_uniform(made, row, kind) for row in (0, 1))
    made.lines.append(f"%fits = icmp sle i64 %end, %whole\n{_rows('%to# = select i1 %fits, ptr %p#, ptr %rest#')}")
    for row, value in enumerate(_pair(u1, u2, FLOAT32 if kind == "float" else FLOAT64)):
        made.lines.append(f"store {made.vector(kind)} {value}, ptr %to{row}, {out}")
    body, declared = "\n  ".join(made.lines[1:]), "\n".join(made.declared.values())
    return f"""
{declared}
{draws.blocks()}
define void @normals(ptr %out, i64 %first, i64 %last, i64 %key, i64 %block, i64 %above, i64 %count) #0 {{
entry:
  %words0 = alloca [{PAIRS} x i64], align 64
  %made1 = alloca [{PAIRS + draws.WORDS} x i64], align 64
{_rows(f"%rest# = alloca [{lanes} x {kind}], align 64")}
  %more = add i64 %count, 1
  %half = lshr i64 %more, 1
  %less = sub i64 %count, %half
  %second = getelementptr {kind}, ptr %out, i64 %half
  %some = icmp slt i64 %first, %last
  br i1 %some, label %piece, label %done
piece:
  %number = phi i64 [ %first, %entry ], [ %next_number, %next_piece ]
  %begin = mul i64 %number, {PAIRS}
  %left = sub i64 %half, %begin
  %last_piece = icmp slt i64 %left, {PAIRS}
  %n = select i1 %last_piece, i64 %left, i64 {PAIRS}
  %left1 = sub i64 %less, %begin
  %last_piece1 = icmp slt i64 %left1, {PAIRS}
  %whole = select i1 %last_piece1, i64 %left1, i64 {PAIRS}
{_words("0", "%begin", "%words0")}
{_words("1", "%begin1", "%made1", "%begin1 = add i64 %begin, %half")}
  %words1 = getelementptr i64, ptr %made1, i64 %lane1
  %out0 = getelementptr {kind}, ptr %out, i64 %begin
  %out1 = getelementptr {kind}, ptr %second, i64 %begin
  br label %vector
vector:
  %i = phi i64 [ 0, %piece ], [ %end, %next ]
  %end = add i64 %i, {lanes}
{_rows("%from# = getelementptr i64, ptr %words#, i64 %i", f"%p# = getelementptr {kind}, ptr %out#, i64 %i")}
  {body}
  br i1 %fits, label %next, label %scatter
scatter:
  %j = phi i64 [ 0, %vector ], [ %next_j, %scatter ]
  %at = add i64 %i, %j
  %is_there = icmp slt i64 %at, %whole
{
        _rows(
            f"%rest_at# = getelementptr {kind}, ptr %rest#, i64 %j",
            f"%value# = load {kind}, ptr %rest_at#",
            f"%p_at# = getelementptr {kind}, ptr %p#, i64 %j",
        )
    }
  %to_at1 = select i1 %is_there, ptr %p_at1, ptr %rest_at1
  store {kind} %value0, ptr %p_at0, {out}
  store {kind} %value1, ptr %to_at1, {out}
  %next_j = add i64 %j, 1
  %next_at = add i64 %at, 1
  %more_of_vector = icmp slt i64 %next_j, {lanes}
  %more_of_row = icmp slt i64 %next_at, %n
  %more_j = and i1 %more_of_vector, %more_of_row
  br i1 %more_j, label %scatter, label %next
next:
  %again = icmp slt i64 %end, %n
  br i1 %again, label %vector, label %next_piece
next_piece:
  %next_number = add i64 %number, 1
  %more_pieces = icmp slt i64 %next_number, %last
  br i1 %more_pieces, label %piece, label %done
done:
  ret void
}}
{loops.attributes()}
"""


def _rows(*patterns: str) -> str:
    return loops.lines((0, 1), *patterns)


def _words(row: str, begin: str, to: str, *before: str) -> str:
    """Make the words of a row of the pairs of a piece; ``%lane`` is where they begin in the first block."""
    lines = [
        *before,
        f"%lane{row} = and i64 {begin}, {draws.WORDS - 1}",
        f"%block{row} = lshr i64 {begin}, 2",
        f"%sum{row} = add i64 %lane{row}, %n",
        f"%up{row} = add i64 %sum{row}, {draws.WORDS - 1}",
        f"%blocks{row} = lshr i64 %up{row}, 2",
        f"call void @blocks_of_words(ptr {to}, i64 %key, i64 %block, i64 %above, i64 %block{row}, i64 %blocks{row})",
    ]
    return "\n".join([f"  {line}" for line in lines])


def _uniform(made: Code, row: int, kind: str) -> Value:
    """Numbers in [0, 1) of the first digits of words."""
    digits, words = _DIGITS[kind], made.vector("i64")
    word = made.write("i64", f"load {words}, ptr %from{row}, align 8")
    first = made.write("i64", f"lshr {words} {word}, {made.constant(64 - digits, 'i64')}")
    if kind == "float":
        first = made.write("i32", f"trunc {words} {first} to {made.vector('i32')}")
    return made.write(kind, f"uitofp {made.vector(first.kind)} {first} to {made.vector(kind)}") * 0.5**digits


def _pair(u1: Value, u2: Value, known: Parts) -> tuple[Value, Value]:
    """Two normal numbers of two uniform ones."""
    bits = (1.0 - u1).bits()
    e = (bits - known.half) & (-1 << known.digits)  # shifted
    m = (bits - e).number()
    s = (m - 1.0) / (m + 1.0)
    t = u2 - 0.5
    square = t * t
    radius = sqrt(_polynomial(s * s, known.logarithm) * s + _exponent(e, known) * known.step)
    a = t * _polynomial(square, known.sine)
    b = _polynomial(square, known.cosine) * a
    return (a * a - 1.0) * radius, b * radius


def _exponent(e: Value, known: Parts) -> Value:
    """The number of an exponent in its bits. (Of its upper half, where it is wide: vectors have that conversion.)"""
    made, kind = e.code, "double" if e.kind == "i64" else "float"
    if kind == "double":
        upper = made.write("i64", f"lshr {made.vector('i64')} {e}, {made.constant(32, 'i64')}")
        e = made.write("i32", f"trunc {made.vector('i64')} {upper} to {made.vector('i32')}")
    e >>= known.digits % 32
    return made.write(kind, f"sitofp {made.vector('i32')} {e} to {made.vector(kind)}")


def _polynomial(x: Value, coefficients: tuple[float, ...]) -> Value:
    total = x * coefficients[0]
    for c in coefficients[1:-1]:
        total = (total + c) * x
    return total + coefficients[-1]
