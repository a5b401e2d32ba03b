"""``torch.futures``: results that come later, computed in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from genesis.base.errors import GenesisError, message


class FutureError(GenesisError, RuntimeError):
    """A future was completed twice."""


class Future:
    """A result that somebody sets; `wait` returns it, and `then` goes on with it.

    Args:
        devices: accepted, without an effect

    >>> from genesis.pytorch.futures import Future
    >>> future = Future()
    >>> later = future.then(lambda done: done.value() + 1)
    >>> future.set_result(2); later.wait()
    3
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._ready, self._result, self._error = threading.Event(), None, None
        self._lock, self._callbacks = threading.Lock(), []  # type: ignore[var-annotated]

    def __class_getitem__(cls, kind: Any) -> type:
        """``Future[Tensor]`` in annotations: the class."""
        return cls

    def done(self) -> bool:
        """Whether there is a result or an exception."""
        return self._ready.is_set()

    def wait(self) -> Any:
        """The result, as soon as it is there.

        Raises:
            Exception: the one that was set
        """
        self._ready.wait()
        return self.value()

    def value(self) -> Any:
        """The result, which is there; the exception is raised if it is one."""
        if self._error is not None:
            raise self._error
        return self._result

    def set_result(self, result: Any) -> None:
        """Complete the future.

        Raises:
            RuntimeError: it is complete already
        """
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Complete the future with an exception, which `wait` raises."""
        self._complete(None, result)

    def _complete(self, result: Any, error: Any) -> None:
        with self._lock:
            if self._ready.is_set():
                raise FutureError(message("Future", "it has its result already"))
            self._result, self._error = result, error
            self._ready.set()
        for callback in self._callbacks:
            callback(self)

    def add_done_callback(self, callback: Callable[[Future], None]) -> None:
        """Call ``callback(self)`` once it is complete, now if it is."""
        with self._lock:
            if not self._ready.is_set():
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A future of what ``callback(self)`` returns."""
        following = Future()

        def run(done: Future) -> None:
            try:
                following.set_result(callback(done))
            except Exception as error:
                following.set_exception(error)

        self.add_done_callback(run)
        return following


def collect_all(futures: Sequence[Future]) -> Future:
    """A future of the list of futures, complete when all of them are."""
    together, left, lock = Future(), len(futures), threading.Lock()

    def count(_: Future) -> None:
        nonlocal left
        with lock:
            left -= 1
            complete = left == 0
        if complete:
            together.set_result(list(futures))

    for future in futures:
        future.add_done_callback(count)
    if not futures:
        together.set_result([])
    return together


def wait_all(futures: Sequence[Future]) -> list[Any]:
    """The results of futures, when all are there."""
    return [future.wait() for future in collect_all(futures).wait()]
