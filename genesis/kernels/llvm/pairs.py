"""Pairs of bfloat16 numbers, each in the place of a float32 number: instructions of AVX-512 and of NEON add the products of
two pairs to a float32 number.
"""

from __future__ import annotations

from genesis.kernels.llvm.nests import Code, declarations

SUMS = {16: "@llvm.x86.avx512bf16.dpbf16ps.512", 4: "@llvm.aarch64.neon.bfdot.v4f32.v8bf16"}  # with fewer than 16
# lanes AVX-512 has it, too, which brings nothing


def added(code: Code, x: str, y: str, total: str) -> str:
    """``total`` and the products of the pairs that are in the place of the numbers in two vectors."""
    pair = f"<{2 * code.lanes} x bfloat>"
    x, y = (code.put(f"bitcast {code.vector} {v} to {pair}") for v in (x, y))
    return code.put(f"call {code.vector} {SUMS[code.lanes]}({code.vector} {total}, {pair} {x}, {pair} {y})")


class Pairs(Code):
    """Instructions whose products are those of pairs."""

    def added(self, x: str, y: str, total: str) -> str:
        return added(self, x, y, total)


def declared(lanes: int) -> str:
    """What a module has to say of the functions that are called."""
    vector, pair = f"<{lanes} x float>", f"<{2 * lanes} x bfloat>"
    return f"{declarations(lanes)}\ndeclare {vector} {SUMS[lanes]}({vector}, {pair}, {pair})"
