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
    """Let a graph begin with zeros in memory that each piece of is used once, and leave out what writes zeros to parts of it;
    how many these were.
    """
    left_out = 0
    with suppress(CudaError):  # after each of the calls the graph is right as it is
        fills = [node for node, at, size in driver.zeros_in(graph) if address <= at and at + size <= address + count]
        if len(fills) > 1:
            driver.begin_with_zeros(graph, address, count)
            for node in fills:
                driver.leave_out(graph, node)
                left_out += 1
    return left_out
