"""Stretches of work that Ctrl-C does not tear apart."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` spends 2 us on making enumerations of what it is given
from collections.abc import Callable
from threading import get_ident, main_thread
from typing import Any

_SIGINT = _signal.SIGINT


def uninterrupted(work: Callable[[], Any]) -> Any:
    """Call ``work()``; Ctrl-C that comes meanwhile takes effect when it has ended. For work that is short.

    Python runs signal handlers in the main thread only, so there is nothing to do in others.
    """
    handler = _signal.getsignal(_SIGINT)
    if not callable(handler) or get_ident() != main_thread().ident:
        return work()
    came: list[Any] = []
    try:
        _signal.signal(_SIGINT, lambda *arguments: came.append(arguments))
        return work()
    finally:
        _signal.signal(_SIGINT, handler)
        if came:
            handler(*came[-1])
