"""Graphs of work: the driver's interface records them (`genesis.cuda.runtime.driver`), programs cannot yet."""

from __future__ import annotations

from typing import Any

from genesis.base.errors import UnsupportedError, message

_WHY = "graphs are not offered to programs yet: their memory, random numbers and learning rates would be those of the recording"


class CUDAGraph:
    """Not there yet.

    Raises:
        NotImplementedError: always
    """

    def __init__(self, *_: Any, **__: Any) -> None:
        raise UnsupportedError(message("CUDAGraph", _WHY, hint="genesis.compile(step)"))


def graph(*_: Any, **__: Any) -> Any:
    """Not there yet.

    Raises:
        NotImplementedError: always
    """
    raise UnsupportedError(message("graph", _WHY, hint="genesis.compile(step)"))


def make_graphed_callables(*_: Any, **__: Any) -> Any:
    """Not there yet.

    Raises:
        NotImplementedError: always
    """
    raise UnsupportedError(message("make_graphed_callables", _WHY, hint="genesis.compile(step)"))


def graph_pool_handle() -> Any:
    """Not there yet.

    Raises:
        NotImplementedError: always
    """
    raise UnsupportedError(message("graph_pool_handle", _WHY))


__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "make_graphed_callables"]
