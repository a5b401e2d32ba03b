"""What a core multiplies and adds in a second: float32 numbers, and pairs of bfloat16 numbers where it has an instruction;
and what it reads.

The instruction may be twice as fast as that for float32 numbers, or half as fast: processors that have it say nothing
about that, so it is measured, once for each processor.
"""

from __future__ import annotations

import ctypes
import functools
import time

import numpy as np

from genesis.kernels.llvm import loops, native, objects

READ = 8  # vectors that are read in a round
SUMS, ROUNDS, RUNS = 24, 2_000, 20  # more sums than an instruction takes cycles; 6 us, and the best of many
PAYS = 1.5  # how much faster pairs have to be: they are twice as fast, or there is nothing in them
KINDS = {
    # an instruction of 16 lanes, the type of its operands, and how often a lane multiplies and adds
    "float32": ("@llvm.fma.v16f32(<16 x float> %a, <16 x float> %b, <16 x float> {0})", "<16 x float>", 1),
    "bfloat16": ("@llvm.x86.avx512bf16.dpbf16ps.512(<16 x float> {0}, <32 x bfloat> %a, <32 x bfloat> %b)", "<32 x bfloat>", 2),
}  # fmt: skip
FEATURES = {"float32": "avx512f", "bfloat16": "avx512bf16"}


@functools.cache
def pairs_pay() -> bool:
    """Whether products are faster in pairs of bfloat16 numbers; what was measured is kept with machine code."""
    host = native.host()
    if host is None or not all(map(host.has, FEATURES.values())):
        return False
    name = objects.name_of("pairs pay", *host, suffix=objects.HOST)
    kept = objects.load(name)
    if kept is None:
        kept = b"yes" if rate("bfloat16") > PAYS * rate("float32") else b"no"
        objects.save(name, kept)
    return kept == b"yes"


def rate(kind: str, rounds: int = ROUNDS, runs: int = RUNS) -> float:
    """Operations of floats in a nanosecond: two for a product that is added. Sums stay in registers, so nothing is waited
    for but the units that multiply.
    """
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(native.address("sums", code(kind)))
    numbers, best = np.zeros(16 * SUMS, np.float32), float("inf")
    for _ in range(runs):
        begun = time.perf_counter()
        run(numbers.ctypes.data, rounds)
        best = min(best, time.perf_counter() - begun)
    return 2 * 16 * KINDS[kind][2] * SUMS * rounds / best / 1e9


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


def code(kind: str) -> str:
    """The function ``sums(ptr numbers, i64 rounds)``."""
    call, operand, _ = KINDS[kind]
    name, types = call.split("(")[0], ["<16 x float>", operand, operand]
    lines = [
        f"declare <16 x float> {name}({', '.join(types if kind == 'bfloat16' else types[::-1])})",
        "define void @sums(ptr %x, i64 %count) {\nentry:",
        f"  %a = load {operand}, ptr %x, align 4\n  %b = load {operand}, ptr %x, align 4\n  br label %loop\nloop:",
        "  %i = phi i64 [0, %entry], [%j, %loop]",
        *[f"  %s{k} = phi <16 x float> [zeroinitializer, %entry], [%t{k}, %loop]" for k in range(SUMS)],
        *[f"  %t{k} = call <16 x float> {call.format(f'%s{k}')}" for k in range(SUMS)],
        "  %j = add i64 %i, 1\n  %more = icmp slt i64 %j, %count\n  br i1 %more, label %loop, label %end\nend:",
    ]
    for k in range(SUMS):
        lines.append(
            f"  %p{k} = getelementptr <16 x float>, ptr %x, i64 {k}\n  store <16 x float> %t{k}, ptr %p{k}, align 4"
        )
    return "\n".join([*lines, "  ret void\n}"])
