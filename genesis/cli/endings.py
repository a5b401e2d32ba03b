"""Which rank ended first. What MPI's launcher says of it is the process that it looked at first, when it had ended all."""

from __future__ import annotations

import os
import select
import threading
from pathlib import Path

from genesis.cli.notes import ENDED, left

_LOOK = 0.1  # seconds between looks for ranks that have begun


def pids(folder: str) -> dict[int, str]:
    """The processes of the ranks on this machine."""
    return {int(text): rank for rank, text in left(folder, "pid").items() if text.isdigit()}


def is_at_its_end(folder: str, rank: str) -> bool:
    """Whether its program came to its end, of itself or by an exception."""
    return Path(folder, f"{rank}.{ENDED}").exists()


class Endings:
    """Waits for the end of each rank of this machine, where the system tells of it at once (Linux).

    Attributes:
        first: the rank that ended before its program did, and before the others, however late that is looked at: the
            system keeps the order; several where it was not asked to before they had ended
    """

    def __init__(self, folder: str) -> None:
        self.first: list[str] = []
        self._folder, self._over = folder, False
        self._thread = threading.Thread(target=self._wait, daemon=True)

    def __enter__(self) -> Endings:
        if hasattr(os, "pidfd_open"):
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """No further end is looked at."""
        self._over = True
        if self._thread.is_alive():
            self._thread.join()

    def _wait(self) -> None:
        known: dict[int, int] = {}  # processes, and what is polled for each
        ranks: dict[int, str] = {}
        poll = select.epoll()  # which gives what it has in the order in which that happened
        try:
            while not self._over:
                new = set()
                for pid, rank in pids(self._folder).items():
                    if pid not in known:
                        known[pid] = number = os.pidfd_open(pid)
                        ranks[number] = rank
                        poll.register(number, select.EPOLLIN)
                        new.add(rank)
                gone = [number for number, _ in poll.poll(_LOOK)]
                for number in gone:
                    poll.unregister(number)
                early = [ranks[number] for number in gone if not is_at_its_end(self._folder, ranks[number])]
                if early:
                    self.first = early[:1] if new.isdisjoint(early) else sorted(early, key=int)
                    return
        except OSError:  # the folder is gone, or a rank ended before it was known
            return
        finally:
            poll.close()
            for number in known.values():
                os.close(number)
