"""What a core can multiply and add in a second: float32 numbers, and pairs of bfloat16 numbers where it has an instruction.

    python benchmarks/peaks.py

Sums stay in registers, so nothing is waited for but the units that multiply. The best of many short runs.
"""

from __future__ import annotations

import ctypes
import time

import numpy as np

from genesis.kernels.llvm import native

SUMS, ROUNDS, RUNS = 24, 100_000, 30  # more sums than an instruction takes cycles
KINDS = {
    # an instruction of 16 lanes, the type of its operands, and how often a lane multiplies and adds
    "float32": ("@llvm.fma.v16f32(<16 x float> %a, <16 x float> %b, <16 x float> {0})", "<16 x float>", 1),
    "bfloat16": ("@llvm.x86.avx512bf16.dpbf16ps.512(<16 x float> {0}, <32 x bfloat> %a, <32 x bfloat> %b)", "<32 x bfloat>", 2),
}  # fmt: skip


def code(kind: str) -> str:
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


def peak(kind: str) -> float:
    """Operations of floats in a nanosecond: two for a product that is added."""
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(native.address("sums", code(kind)))
    numbers, best = np.zeros(16 * SUMS, np.float32), float("inf")
    for _ in range(RUNS):
        begun = time.perf_counter()
        run(numbers.ctypes.data, ROUNDS)
        best = min(best, time.perf_counter() - begun)
    return 2 * 16 * KINDS[kind][2] * SUMS * ROUNDS / best / 1e9


def main() -> None:
    host = native.host()
    for kind, feature in (("float32", "avx512f"), ("bfloat16", "avx512bf16")):
        if host is None or not host.has(feature):
            print(f"{kind}: this processor has no {feature}, or there is no llvmlite")
        else:
            print(f"{kind}: {peak(kind):.0f} GFLOP/s of one core, {host.cpu}")


if __name__ == "__main__":
    main()
