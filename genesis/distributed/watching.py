"""What a rank does beside its program: it tells the others that it lives, and answers those who ask.

A thread of each process looks twice a second. It sends a *heartbeat*, the step and the number of the last collective
call, to the next rank, the last rank to the first. So of a rank that stopped altogether its neighbour still knows how
far it came. A rank whose program computes, sleeps or waits for something else does not notice that another asks what it
does; the thread answers with the line in which the program is. And a call that is inside of the engine, which nothing
can interrupt, is ended at the timeout of the group.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from genesis.core.graph.site import LIBRARY, site_of, user_site

if TYPE_CHECKING:
    from genesis.distributed.calls import Calls

_LOOK = 0.5  # seconds
_PYTHON = os.path.dirname(threading.__file__) + os.sep


class Progress:
    """How far the program of this process is.

    Attributes:
        step: steps that it counted, of training or of `Snapshots`
        waits_in: the file that says so while it waits for all ranks to begin; None where nobody would read it
    """

    step = 0
    waits_in: str | None = None


def program_line(starter: str = "") -> str:
    """The line of the program that the main thread runs, ``train.py:41``, though it waits in Python's library; empty where
    there is none, or only the file that started it.

    >>> program_line() == "" or ":" in program_line()
    True
    """
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None and _is_no_program(frame.f_code.co_filename, starter):
        frame = frame.f_back
    site = site_of(*user_site(frame))
    return "" if site is None else site.short


def _is_no_program(file: str, starter: str) -> bool:
    of_python = file.startswith("<frozen ") or (file.startswith(_PYTHON) and "site-packages" not in file)
    return of_python or file == starter or LIBRARY[file]


class Watcher:
    """The thread, for the groups that ``groups`` gives; the first is the world."""

    def __init__(self, groups: Callable[[], Iterable[Calls]]) -> None:
        self._groups, self._ended, self._looking = groups, threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._run, name="watches the other ranks", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread: from then on this process calls the engine from its program only."""
        self._ended.set()
        self._thread.join()

    def settle(self) -> None:
        """Wait until it has done with a group that is no longer among those it is given."""
        with self._looking:
            pass

    def _run(self) -> None:
        while True:
            with self._looking:
                world, *others = self._groups()
                world.engine.beat((Progress.step, world.count))
                for calls in (world, *others):
                    self._look(calls)
            if self._ended.wait(_LOOK):
                return

    def _look(self, calls: Calls) -> None:
        if not calls.waits and calls.broken is None and calls.engine.asked():
            calls.failed("", None)  # the program hears of it at its next call
