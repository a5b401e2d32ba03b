"""Names for parts of a program, under those of `torch.cuda.nvtx`: accepted, without an effect.

`genesis.profiler` has names that its tables show.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_depth = [0]


def range_push(msg: str) -> int:
    """Begin a range; how many are open around it.

    >>> import genesis.cuda.nvtx as nvtx
    >>> nvtx.range_push("forward"), nvtx.range_pop()
    (0, 0)
    """
    _depth[0] += 1
    return _depth[0] - 1


def range_pop() -> int:
    """End the innermost range; how many are open around it."""
    _depth[0] = max(_depth[0] - 1, 0)
    return _depth[0]


def mark(msg: str) -> None:
    """Say that something happened."""


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range around a ``with``."""
    range_push(str(msg).format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()


__all__ = ["mark", "range", "range_pop", "range_push"]
