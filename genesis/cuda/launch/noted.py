"""Work that is only noted: which machine code, and which graphs of a library, it would want.

    with noting(on) as notes: work()      notes.codes     machine code that is not loaded
                                          notes.builds    what builds graphs that are not built, one call each

Inside, this thread's launches, fills and copies on the device are told to nobody, and what the host would read ends the
work: it goes through the same calls as it will, in the memory that it will have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from genesis.cuda.launch.cubins import Code
from genesis.cuda.runtime import devices
from genesis.cuda.runtime.devices import Device


class NothingToReadError(Exception):
    """The host wants numbers that were not computed."""


class Notes:
    """What work would want, each once, in the order in which it is first wanted."""

    def __init__(self) -> None:
        self.codes: dict[Code, None] = {}
        self.builds: dict[Any, Callable[[], Any]] = {}


class Noting:
    """The driver, but for what computes, and for what the host reads."""

    def __init__(self, driver: Any, notes: Notes) -> None:
        self.driver, self.notes = driver, notes

    def __getattr__(self, name: str) -> Any:
        return getattr(self.driver, name)

    def _nothing(self, *_: Any) -> None:
        pass

    # from the host come numbers for new memory, which may be kept: tables of windows, say
    launch = copy = copy_peer = fill = _nothing

    def copy_out(self, *_: Any) -> None:
        raise NothingToReadError


@contextmanager
def noting(on: Device) -> Iterator[Notes]:
    """Inside, work of this thread is noted, up to where the host would read what it computes."""
    notes = Notes()
    with (
        devices.through(Noting(on.driver, notes)),
        suppress(Exception),
    ):  # whatever it is, the work itself meets it again
        yield notes
