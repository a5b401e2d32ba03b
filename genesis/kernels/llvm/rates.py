"""What a core multiplies and adds in a second: float32 numbers, and pairs of bfloat16 numbers where it has a unit for them;
and what it reads.

An instruction for pairs may be twice as fast as that for float32 numbers, or half as fast: processors that have it say
nothing about that, so it is measured, once for each processor.
"""

from __future__ import annotations

import ctypes
import functools
import time

import numpy as np

from genesis.kernels.llvm import amx, loops, native, objects, pairs, units
from genesis.kernels.llvm.units import FLOAT32

READ = 8  # vectors that are read in a round
ROUNDS, RUNS = 2_000, 20  # 6 us, and the best of many
SUMS = {16: 24, 8: 12, 4: 24}  # by lanes: more than an instruction takes cycles, as many as there are registers for
PAYS = 1.5  # how much faster pairs have to be: they are twice as fast, or there is nothing in them


@functools.cache
def unit_of_pairs(lanes: int) -> str:
    """The unit that is the fastest one for products of bfloat16 numbers, where one pays, else none (an empty string). What
    was measured is kept with machine code.
    """
    here = units.of_pairs(lanes)
    if not here:
        return ""
    host = native.target()
    name = objects.name_of("unit of pairs", *here, *host, suffix=objects.HOST)
    kept = objects.load(name)
    if kept is None:
        kept = _fastest(here).encode()
        objects.save(name, kept)
    return kept.decode()


def _fastest(here: list[str]) -> str:
    speeds = {name: rate(name) for name in here}
    best = max(speeds, key=speeds.__getitem__)
    return best if speeds[best] > PAYS * rate(FLOAT32) else ""


def rate(unit: str, rounds: int = ROUNDS, runs: int = RUNS) -> float:
    """Operations of floats in a nanosecond: two for a product that is added. Sums stay in registers, so nothing is waited
    for but the unit.
    """
    text, operations = code(unit, loops.width() // 4)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(native.address("sums", text))
    numbers, best = np.zeros(16 * max(SUMS.values()), np.float32), float("inf")
    for _ in range(runs):
        begun = time.perf_counter()
        run(numbers.ctypes.data, rounds)
        best = min(best, time.perf_counter() - begun)
    return operations * rounds / best / 1e9


def reading(size: int, runs: int = RUNS) -> float:
    """Seconds in which so many bytes are read, one after the other: numbers that were read before, and are where the caches
    or memory have them. No product with a matrix of this size that is read once takes less.
    """
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(
        native.address("read", reading_code(loops.width() // 4))
    )
    group = READ * loops.width() // 4
    numbers, sums = np.zeros(-(-size // (4 * group)) * group, np.float32), np.zeros(group, np.float32)
    best = float("inf")
    for _ in range(runs):
        begun = time.perf_counter()
        run(numbers.ctypes.data, numbers.nbytes, sums.ctypes.data)
        best = min(best, time.perf_counter() - begun)
    return best


def reading_code(lanes: int) -> str:
    """The function ``read(ptr numbers, i64 bytes, ptr sums)``: of whole groups of vectors."""
    vector, step = f"<{lanes} x float>", 4 * lanes
    lines = [
        f"define void @read(ptr %x, i64 %bytes, ptr %sums) {{\nentry:\n  %last = sub i64 %bytes, {READ * step}",
        "  br label %loop\nloop:\n  %i = phi i64 [0, %entry], [%j, %loop]",
        *[f"  %s{k} = phi {vector} [zeroinitializer, %entry], [%t{k}, %loop]" for k in range(READ)],
    ]
    for k in range(READ):
        lines += [
            f"  %o{k} = add i64 %i, {k * step}\n  %p{k} = getelementptr i8, ptr %x, i64 %o{k}",
            f"  %v{k} = load {vector}, ptr %p{k}, align 4\n  %t{k} = fadd {vector} %s{k}, %v{k}",
        ]
    lines.append(f"  %j = add i64 %i, {READ * step}\n  %more = icmp sle i64 %j, %last")
    lines.append("  br i1 %more, label %loop, label %end\nend:")
    for k in range(READ):
        lines += [f"  %e{k} = getelementptr i8, ptr %sums, i64 {k * step}\n  store {vector} %t{k}, ptr %e{k}, align 4"]
    return "\n".join([*lines, "  ret void\n}"])


def code(unit: str, lanes: int) -> tuple[str, int]:
    """The function ``sums(ptr numbers, i64 rounds)``, and how many operations there are in a round."""
    if unit == "tdpbf16ps":
        return amx.speed(), amx.OPERATIONS
    paired, count, vector = unit != FLOAT32, SUMS[lanes], f"<{lanes} x float>"
    operand = f"<{2 * lanes} x bfloat>" if paired else vector
    name = pairs.SUMS[lanes] if paired else f"@llvm.fma.v{lanes}f32"
    lines = [
        f"declare {vector} {name}({vector}, {operand}, {operand})",
        "define void @sums(ptr %x, i64 %count) {\nentry:",
        f"  %a = load {operand}, ptr %x, align 4\n  %b = load {operand}, ptr %x, align 4\n  br label %loop\nloop:",
        "  %i = phi i64 [0, %entry], [%j, %loop]",
        *[f"  %s{k} = phi {vector} [zeroinitializer, %entry], [%t{k}, %loop]" for k in range(count)],
    ]
    for k in range(count):
        given = [f"{vector} %s{k}", f"{operand} %a", f"{operand} %b"]
        lines.append(f"  %t{k} = call {vector} {name}({', '.join(given if paired else [*given[1:], given[0]])})")
    lines.append(
        "  %j = add i64 %i, 1\n  %more = icmp slt i64 %j, %count\n  br i1 %more, label %loop, label %end\nend:"
    )
    for k in range(count):
        at = f"  %p{k} = getelementptr {vector}, ptr %x, i64 {k}"
        lines.append(f"{at}\n  store {vector} %t{k}, ptr %p{k}, align 4")
    return "\n".join([*lines, "  ret void\n}"]), 2 * lanes * (1 + paired) * count
