"""What moves numbers between processes: a small protocol, and the engine of a process that is alone.

An engine sees contiguous host memory and nothing else: no tensors, no gradients, no 16-bit floats (`wire` makes of
them what every engine can sum). Each method starts a transfer and returns a `Request` that says when it is done. A new
way to move numbers is a subclass of `Engine`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

Host = np.ndarray[Any, Any]


class Request(Protocol):
    """A transfer that was started."""

    def Test(self) -> bool | None:  # noqa: N802
        """Whether it is done; brings it forward. None where it is not, but has moved since it was asked before."""


class Done:
    """A transfer that is done."""

    def Test(self) -> bool:  # noqa: N802
        return True


DONE = Done()


class Engine(ABC):
    """Moves contiguous host memory between the processes of one group.

    Ranks are those within the group. ``op`` is ``"sum"``, ``"product"``, ``"min"``, ``"max"``, ``"band"``, ``"bor"`` or
    ``"bxor"``. Elements are numbers of 32 and 64 bits (integers of 8 and 16 bits, too) where they are combined, and
    anything where they are moved.
    """

    name: str
    rank: int
    size: int
    threads = False  # whether several threads may call it at once
    ahead = 64  # calls that a rank may begin before all ranks have begun the first of them

    # ---- combined

    @abstractmethod
    def all_reduce(self, x: Host, op: str, waited: bool = False) -> Request:
        """``x`` becomes the combination of everybody's ``x``; ``waited``: this rank begins nothing else until it is done."""

    @abstractmethod
    def reduce(self, x: Host, op: str, root: int) -> Request:
        """The same, at one rank; the others keep theirs."""

    @abstractmethod
    def reduce_scatter(self, out: Host, x: Host, op: str) -> Request:
        """``x`` has a block for each rank; ``out`` becomes the combination of the blocks for this one."""

    @abstractmethod
    def sum_in_tree(self, x: Host) -> Request:
        """``x`` becomes the sum of everybody's ``x``, in the order of `genesis.kernels.cpu.trees.tree_sum`; there are a power
        of two of ranks, and as many elements for each.
        """

    # ---- moved

    @abstractmethod
    def broadcast(self, x: Host, root: int) -> Request:
        """``x`` becomes that of one rank."""

    @abstractmethod
    def all_gather(self, out: Host, x: Host) -> Request:
        """``out`` becomes everybody's ``x``, in the order of ranks."""

    @abstractmethod
    def gather(self, out: Host | None, x: Host, root: int) -> Request:
        """The same at one rank, which alone has an ``out``."""

    @abstractmethod
    def scatter(self, out: Host, x: Host | None, root: int) -> Request:
        """``out`` becomes this rank's block of the ``x`` of one rank."""

    @abstractmethod
    def all_to_all(self, out: Host, x: Host, received: Sequence[int], sent: Sequence[int]) -> Request:
        """``x`` has so many bytes for each rank (``sent``), ``out`` so many from each (``received``)."""

    @abstractmethod
    def send(self, x: Host, to: int, tag: int) -> Request:
        """To one rank, which calls `receive`."""

    @abstractmethod
    def receive(self, x: Host, source: int | None, tag: int) -> Request:
        """From one rank, or from any; ``result.sender`` and ``result.bytes`` say who sent how much."""

    # ---- agreed on

    @abstractmethod
    def agree(self, number: int) -> Agreement:
        """Find out whether all ranks call this with the same number of 62 bits."""

    @abstractmethod
    def reports(self, text: str, seconds: float) -> list[str | None]:
        """What each rank says of itself; None of those that say nothing for so long."""

    @abstractmethod
    def asked(self) -> bool:
        """Whether another rank waits for this one's report."""

    @abstractmethod
    def beat(self, numbers: tuple[int, int]) -> None:
        """Tell the next rank, the last one the first, how far this one is; hear the one before. Another thread calls it."""

    @abstractmethod
    def heard(self) -> tuple[int, int, int, float] | None:
        """The rank before, the numbers that it told last, and how many seconds ago; None where it told none."""

    @abstractmethod
    def split(self, ranks: Sequence[int]) -> Engine | None:
        """An engine of these ranks (in this order), None in others; all ranks of this one call it."""

    @abstractmethod
    def close(self) -> None:
        """Give back what it holds; all ranks call it."""

    @abstractmethod
    def abort(self) -> None:
        """End the processes of all ranks, now."""


class Agreement(Protocol):
    """A request that knows at its end whether all agreed."""

    def Test(self) -> bool: ...  # noqa: N802

    @property
    def agreed(self) -> bool: ...


class _Agreed(Done):
    agreed = True


class _Received(Done):
    def __init__(self, count: int) -> None:
        self.sender, self.bytes = 0, count


class Alone(Engine):
    """A world of one: whatever is combined or moved stays as it is.

    >>> import numpy as np
    >>> x, out = np.ones(2), np.zeros((1, 2))
    >>> Alone().all_gather(out, x).Test(), out
    (True, array([[1., 1.]]))
    """

    name, rank, size = "alone", 0, 1

    def __init__(self) -> None:
        self._sent: dict[int, list[Host]] = {}  # by tag, what was sent to itself and is not received yet

    def all_reduce(self, x: Host, op: str, waited: bool = False) -> Request:
        return DONE

    def reduce(self, x: Host, op: str, root: int) -> Request:
        return DONE

    def reduce_scatter(self, out: Host, x: Host, op: str) -> Request:
        return _copy(out, x)

    def sum_in_tree(self, x: Host) -> Request:
        return DONE

    def broadcast(self, x: Host, root: int) -> Request:
        return DONE

    def all_gather(self, out: Host, x: Host) -> Request:
        return _copy(out, x)

    def gather(self, out: Host | None, x: Host, root: int) -> Request:
        return _copy(out, x)

    def scatter(self, out: Host, x: Host | None, root: int) -> Request:
        return _copy(out, x)

    def all_to_all(self, out: Host, x: Host, received: Sequence[int], sent: Sequence[int]) -> Request:
        return _copy(out, x)

    def send(self, x: Host, to: int, tag: int) -> Request:
        self._sent.setdefault(tag, []).append(x.copy())
        return DONE

    def receive(self, x: Host, source: int | None, tag: int) -> Request:
        return _FromItself(self._sent.setdefault(tag, []), x)

    def agree(self, number: int) -> Agreement:
        return _Agreed()

    def reports(self, text: str, seconds: float) -> list[str | None]:
        return [text]

    def asked(self) -> bool:
        return False

    def beat(self, numbers: tuple[int, int]) -> None:
        """There is nobody to tell."""

    def heard(self) -> tuple[int, int, int, float] | None:
        return None

    def split(self, ranks: Sequence[int]) -> Engine | None:
        return Alone() if 0 in ranks else None

    def close(self) -> None:
        self._sent.clear()

    def abort(self) -> None:
        """There are no others: this process ends by itself."""


class _FromItself:
    """A message to itself, which is there as soon as it was sent."""

    sender = 0

    def __init__(self, sent: list[Host], x: Host) -> None:
        self._sent, self._x, self.bytes = sent, x, -1

    def Test(self) -> bool:  # noqa: N802
        if self.bytes < 0 and self._sent:
            message = self._sent.pop(0)
            self.bytes = message.nbytes
            if self.bytes == self._x.nbytes:
                _copy(self._x, message)
        return self.bytes >= 0


def _copy(out: Any, x: Any) -> Request:
    np.copyto(out.reshape(-1), x.reshape(-1))
    return DONE
