"""Writes in place are counted, so that a saved value that was written to since is seen."""

from __future__ import annotations

import weakref
from types import CodeType
from typing import TYPE_CHECKING

from genesis.base.locks import process_lock
from genesis.core.graph.site import site_here

if TYPE_CHECKING:
    from genesis.core.graph.tensor import Tensor


class Version:
    """The in-place writes to one piece of memory; shared by a tensor, its views and its saved aliases.

    A tensor starts without one: most tensors are never written to. `stamp` is the number of the last
    write among all writes anywhere (`WRITES`), so a saved tensor is stale exactly when its stamp is later than
    the moment of saving, and a node needs to remember that one moment only.
    """

    __slots__ = ("count", "last", "refs", "stamp")

    def __init__(self) -> None:
        self.count = self.stamp = 0
        # who wrote last, and where: one record, for many tensors are written to together
        self.last: tuple[str, CodeType | None, int] = ("", None, -1)
        self.refs: list[weakref.ref[Tensor]] = []  # live views, to be given a new history after a write

    @property
    def writer(self) -> str:
        return self.last[0]

    @property
    def site(self) -> tuple[CodeType | None, int]:
        return self.last[1:]


class VersionOfTwo(Version):
    """The writes to an array of two memories, a value with a tangent: who writes to it writes to the first."""

    __slots__ = ("first", "second")

    def __init__(self, first: Version, second: Version) -> None:
        self.first, self.second = first, second

    @property
    def stamp(self) -> int:
        return max(self.first.stamp, self.second.stamp)

    @stamp.setter
    def stamp(self, number: int) -> None:
        self.first.stamp = number

    @property
    def count(self) -> int:
        return self.first.count + self.second.count

    @count.setter
    def count(self, number: int) -> None:
        self.first.count = number - self.second.count

    @property
    def last(self) -> tuple[str, CodeType | None, int]:
        return (self.first if self.first.stamp >= self.second.stamp else self.second).last

    @last.setter
    def last(self, record: tuple[str, CodeType | None, int]) -> None:
        self.first.last = record

    @property
    def refs(self) -> list[weakref.ref[Tensor]]:  # type: ignore[override]
        return self.first.refs


WRITES = [0]  # the number of the last in-place write; a list, so that every module sees it change
counting = process_lock()


def count_write(version: Version, writer: str, site: tuple[CodeType | None, int] | None = None) -> None:
    """Note a write, at ``site`` or where the user called; the lock keeps the numbers in order when several threads
    write.
    """
    with counting:
        WRITES[0] = version.stamp = WRITES[0] + 1
        version.count += 1
    version.last = (writer, *(site_here() if site is None else site))


def count_event() -> int:
    """A number among those of the writes for something else that saved tensors are checked for."""
    with counting:
        WRITES[0] += 1
        return WRITES[0]


INFERENCE = Version()  # marks tensors made in inference mode
SHARED = Version()  # marks a gradient others may read: copied before the first in-place write
