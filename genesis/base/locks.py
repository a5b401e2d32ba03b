"""Locks of the whole process."""

from __future__ import annotations

import os
import threading


def process_lock() -> threading.RLock:
    """A lock that lives as long as the process, for modules: open in a child that was forked while another thread held
    it.

    Reentrant, because a signal handler or a finalizer may run while its own thread holds it.
    """
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lock._at_fork_reinit)  # type: ignore[attr-defined]
    return lock


def lock_that_forks_wait_for() -> threading.RLock:
    """A lock of the process for calls into libraries that have locks of their own: a fork waits until nobody holds it, so
    that theirs are open in the child, too.
    """
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        reinit = lock._at_fork_reinit  # type: ignore[attr-defined]
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=reinit)
    return lock
