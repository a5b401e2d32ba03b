"""What escapes recording: a watch over a stretch of a user's code is told of the first value with history that left the
graph there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from genesis.core.graph.lost import note
from genesis.core.graph.site import LIBRARY, Site, site_of
from genesis.core.graph.switches import ESCAPES


class Watch:
    """One stretch of a user's code in which everything should be recorded; the first thing that was not."""

    __slots__ = ("escape", "opened")

    def __init__(self) -> None:
        self.escape: tuple[str, Site | None] | None = None
        self.opened = False  # whether a saved tensor with history was looked at


open_watch: ContextVar[Watch | None] = ContextVar("genesis_escapes", default=None)  # the innermost


@contextmanager
def watched(watch: Watch) -> Iterator[Watch]:
    before = open_watch.get()
    ESCAPES.append(watch)
    try:
        open_watch.set(watch)
        yield watch
    finally:
        open_watch.set(before)
        ESCAPES.pop()


def escape(what: str) -> None:
    """Note that a value with history left the recorded world: the caller's caller's caller did that, while a watch is
    open.
    """
    method = sys._getframe(2).f_code
    frame = sys._getframe(3)
    while frame.f_back is not None and (
        frame.f_code.co_name == "__enter__"
        or (frame.f_code.co_name, frame.f_code.co_filename) == (method.co_name, method.co_filename)
    ):  # the latter is code in the method's place, which asks classes of users first
        frame = frame.f_back
    if LIBRARY[frame.f_code.co_filename]:
        return
    watch = open_watch.get()
    if watch is not None and watch.escape is None:
        watch.escape = (what, site_of(frame.f_code, frame.f_lasti))


def leaves(what: str, edge: Any) -> None:
    """A value with history is taken out of the graph: noted for errors, and told to whoever watches."""
    note(what, edge, sys._getframe(2))
    if ESCAPES:
        escape(what)
