"""The garbage collector, while much is made that is no garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def waiting() -> Iterator[None]:
    """The collector waits: little that an import or a trace makes is garbage, and looking for some takes a fifth of its
    time.

    >>> import gc
    >>> with waiting():
    ...     gc.isenabled()
    False
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():  # into the oldest generation unseen: looking at all of it takes 10 ms
                gc.freeze()
                gc.unfreeze()
            gc.enable()
