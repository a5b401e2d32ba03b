"""Passes are functions from a program to a program; what users call takes graphs, too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from genesis.jit.binding import Graph
from genesis.jit.program import Program


def on_graphs(one: Callable[[Program], Program]) -> Callable[[Any], Any]:
    """A pass that takes a program, or a graph: then what comes out has the same binding. What comes out is verified."""

    @functools.wraps(one)
    def apply(given: Any) -> Any:
        if isinstance(given, Graph):
            return given.with_program(apply(given.program))
        return one(given).verified(given.calls)

    return apply
