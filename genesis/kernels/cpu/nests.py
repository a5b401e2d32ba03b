"""Nests of loops over contiguous arrays: by this thread where there is little to do, in slices by several where there is
much.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.kernels.cpu import memory
from genesis.kernels.llvm import entries
from genesis.kernels.native import runtime


class Nest:
    """A function of arrays and integers, compiled; the first two integers say where it begins and where it ends.

    Args:
        name: of the function
        code: that has it
        arrays, integers: how many it takes
    """

    __slots__ = ("alone", "of_addresses")

    def __init__(self, name: str, code: str, arrays: int, integers: int) -> None:
        self.alone, self.of_addresses = entries.of_arrays(name, code, arrays, integers)

    def __call__(self, arrays: Sequence[Any], count: int, sizes: Sequence[int], much: bool) -> None:
        """Do ``range(count)`` with these arrays and the other integers, in slices where that is ``much``; ``alone(*arrays, 0,
        count, *sizes)`` is done by this thread, whatever it is.
        """
        if much:
            runtime.in_slices(self.of_addresses, [memory.address(a) for a in arrays], count, sizes)
        else:
            self.alone(*arrays, 0, count, *sizes)
