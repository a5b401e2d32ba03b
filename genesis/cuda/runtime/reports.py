"""What kernels report without ending the program's work on the device: indices that are none.

A device has one word of pinned memory. A kernel that meets such an index takes another one, and writes to the word the
number of a sentence (`Reports.number`) and the index; whoever waits for the device raises the sentence (`Reports.check`).
The context stays alive, and later work is as good as before.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from genesis.base.errors import IndexOutOfRange, message

BITS = 48  # of the word, for the index; the number of the sentence is above
MOST = (1 << 15) - 1  # sentences
HINT = "the same on the CPU, which says where it happens; a GPU is asked when the program first waits for it"


class Reports:
    """The word of a device, and the sentences that it may stand for."""

    def __init__(self, on: Any) -> None:
        self.address = on.enter().host_allocate(8)
        self._word = ctypes.c_int64.from_address(self.address)
        self._word.value = 0
        self._numbers: dict[tuple[str, str], int] = {}
        self._said: list[tuple[str, str]] = []
        self._lock = threading.Lock()

    def number(self, name: str, where: str) -> int:
        """The number, above the bits of an index, of ``"name: index ... is out of range for where"``."""
        known = self._numbers.get((name, where))
        if known is None:
            with self._lock:
                if len(self._said) < MOST - 1:
                    self._said.append((name, where))
                    known = self._numbers[name, where] = len(self._said) << BITS
        return MOST << BITS if known is None else known

    def check(self) -> None:
        """Raise what was reported, once.

        Raises:
            IndexError: a kernel met an index that is none
        """
        word = self._word.value
        if word:
            self._word.value = 0
            number, index = word >> BITS, word & (1 << BITS) - 1
            index -= (index >> BITS - 1) << BITS
            name, where = self._said[number - 1] if number <= len(self._said) else ("index", "its dimension")
            raise IndexOutOfRange(message(name, f"index {index} is out of range for {where}", hint=HINT))


def reports(on: Any) -> Reports:
    return on.keep("reports", Reports)  # type: ignore[no-any-return]


def checked(on: Any) -> None:
    """Raise what kernels of a device reported until now, if it has kernels that do."""
    known = on.kept.get("reports")
    if known is not None:
        known.check()
