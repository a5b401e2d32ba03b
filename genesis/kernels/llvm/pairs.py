"""Pairs of bfloat16 numbers, each in the place of a float32 number: an instruction of AVX-512 adds the products of two
pairs to a float32 number.
"""

from __future__ import annotations

from genesis.kernels.llvm.nests import Code, declarations

LANES = 16  # there are such instructions with fewer, which bring nothing
SUMS = "@llvm.x86.avx512bf16.dpbf16ps.512"
DECLARED = f"declare <16 x float> {SUMS}(<16 x float>, <32 x bfloat>, <32 x bfloat>)"


def added(code: Code, x: str, y: str, total: str) -> str:
    """``total`` and the products of the pairs that are in the place of the numbers in two vectors."""
    pair = f"<{2 * code.lanes} x bfloat>"
    x, y = (code.put(f"bitcast {code.vector} {v} to {pair}") for v in (x, y))
    return code.put(f"call {code.vector} {SUMS}({code.vector} {total}, {pair} {x}, {pair} {y})")


class Pairs(Code):
    """Instructions whose products are those of pairs."""

    def added(self, x: str, y: str, total: str) -> str:
        return added(self, x, y, total)


def declared(lanes: int, in_pairs: bool) -> str:
    """What a module has to say of the functions that are called."""
    return f"{declarations(lanes)}\n{DECLARED}" if in_pairs else declarations(lanes)
