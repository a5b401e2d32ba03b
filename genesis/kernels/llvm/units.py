"""What multiplies matrices: instructions, and the code of tiles that is made of them.

Those of pairs of bfloat16 numbers have interfaces like that of float32 numbers: two numbers, that are two terms of a sum,
are in the place of one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import NamedTuple

from genesis.kernels.llvm import amx, loops, native, pairs, products
from genesis.kernels.llvm.nests import declarations


class Unit(NamedTuple):
    """An instruction that multiplies.

    Args:
        feature: by which the compiler knows of processors that have it
        tiles: for vectors of so many float32 numbers, the rows and the vectors of a tile: its sums and a row of the second
            matrix are in registers
        multiply: the code of the function `products.multiply`, see there
        declared: what a module has to say of the functions that this calls
        permitted: whether the system lets this process use it
        times: how many products of words it makes, about, while float32 numbers are multiplied once: chunks of work are so
            much larger
    """

    feature: str
    tiles: Mapping[int, tuple[int, int]]
    multiply: Callable[..., str]
    declared: Callable[[int], str]
    permitted: Callable[[], bool] = lambda: True
    times: int = 1


_of_pairs = functools.partial(products.multiply, kind=pairs.Pairs)
FLOAT32 = "fma"
# vectors of AVX-512, AVX2 and NEON, of whose registers there are 32, 16 and 32; with the longest ones numbers of the first
# matrix are read from memory as they are multiplied
UNITS = {
    FLOAT32: Unit("", {16: (6, 4), 8: (4, 3), 4: (8, 3)}, products.multiply, declarations),
    "dpbf16ps": Unit("avx512bf16", {16: (6, 4)}, _of_pairs, pairs.declared),
    "bfdot": Unit("bf16", {4: (8, 3)}, _of_pairs, pairs.declared),
    "tdpbf16ps": Unit("amx-bf16", {16: (32, 2)}, amx.multiply, amx.declared, amx.permitted, 4),
}


def of_pairs(lanes: int) -> list[str]:
    """The units here that multiply pairs of bfloat16 numbers, with vectors of so many float32 numbers."""
    host = native.host()
    if host is None or not loops.available():
        return []
    return [
        name
        for name, unit in UNITS.items()
        if name != FLOAT32 and lanes in unit.tiles and host.has(unit.feature) and unit.permitted()
    ]
