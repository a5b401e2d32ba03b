"""Locks and forks: none is left closed in a child by a thread that is not there."""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import WeakSet

_PATIENCE = 5.0  # seconds that a fork waits for the lock of an object
_of_objects: WeakSet[Any] = WeakSet()
_registered: list[bool] = []
_taken: list[Any] = []  # those of them that a fork holds


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


def object_lock(reentrant: bool = False) -> Any:
    """A lock of something that comes and goes: a fork waits until nobody holds it, so that what it guards is whole in the
    child, too; but not for ever, then it is open there.
    """
    lock = threading.RLock() if reentrant else threading.Lock()
    if not _registered and hasattr(os, "register_at_fork"):
        _registered.append(True)
        os.register_at_fork(before=_take, after_in_parent=_release, after_in_child=_open)
    _of_objects.add(lock)
    return lock


def _take() -> None:
    _taken[:] = [lock for lock in list(_of_objects) if lock.acquire(timeout=_PATIENCE)]


def _release() -> None:
    while _taken:
        _taken.pop().release()


def _open() -> None:
    held = {id(lock) for lock in _taken}
    _release()
    for lock in list(_of_objects):
        if id(lock) not in held:
            lock._at_fork_reinit()
