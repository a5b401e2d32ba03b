"""Counters of libraries in a graph, all of which are set to zero at once.

A kernel of cuBLASLt whose programs fetch their tiles counts these in its workspace, and a fill of four bytes goes before it:
in a graph each is a launch of its own, for which the kernel waits 2 us. Where such a workspace is nobody else's
(`genesis.cuda.memory.sequence.apart`), it may be zero from the beginning of the graph.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from genesis.cuda.runtime.errors import CudaError


def zeros_first(driver: Any, graph: int, address: int, count: int) -> int:
    """Let a graph begin with zeros in some memory, and leave out what writes zeros to parts of it, but where that is done
    several times: a kernel has used them between. How many these were.
    """
    left_out = 0
    with suppress(CudaError):  # after each of the calls the graph is right as it is
        fills = [fill for fill in driver.zeros_in(graph) if address <= fill[1] and fill[1] + fill[2] <= address + count]
        once = [node for node, at, size in fills if sum([at < b + n and b < at + size for _, b, n in fills]) == 1]
        if len(once) > 1:
            driver.begin_with_zeros(graph, address, count)
            for node in once:
                driver.leave_out(graph, node)
                left_out += 1
    return left_out
