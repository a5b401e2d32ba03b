"""How much memory there is, and the error where more is asked for."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import Any

from genesis.base.errors import OutOfMemoryError, message


def size_text(count: float) -> str:
    """A number of bytes as people read it.

    >>> size_text(4 * 2**30)
    '4.0 GiB'
    """
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    power = min(int(math.log2(max(count, 1)) // 10), 6)
    value = count / 1024**power
    return f"{value:.{min(power, 1)}f} {units[power]}" if value < 1e6 else f"{value:.1e} {units[power]}"


def free_text() -> str:
    """How much memory is free, or (where the system does not say) how much there is."""
    try:
        with open("/proc/meminfo") as file:
            match = re.search(r"MemAvailable:\s+(\d+) kB", file.read())
        if match is not None:
            return f"{size_text(int(match.group(1)) * 1024)} are free"
    except OSError:
        pass
    return f"the machine has {size_text(os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES'))}"


def too_large(name: str, shape: Sequence[int], dtype: Any, spec: object) -> OutOfMemoryError:
    """The error of an operation that asks for more memory than there is."""
    asked = math.prod(shape) * dtype.itemsize
    return OutOfMemoryError(
        message(
            name, f"{size_text(asked)} are asked for, {free_text()}", [("result", spec)], "a smaller shape, or dtype"
        )
    )


def impossible(shape: Sequence[int], dtype: Any) -> bool:
    """Whether no array of a shape can be addressed."""
    return math.prod([n for n in shape if n]) * dtype.itemsize >= 2**63  # type: ignore[no-any-return]
