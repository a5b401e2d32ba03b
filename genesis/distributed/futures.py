"""What comes of a transfer, under the methods of ``torch.futures.Future``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Future:
    """The result of a transfer, or of a function of one. Nothing runs beside the program for it: the function is called
    where the result is asked for.

    >>> import genesis, genesis.distributed as dist
    >>> dist.init_process_group()
    >>> future = dist.all_reduce(genesis.ones(2), async_op=True).get_future()
    >>> future.then(lambda done: done.value()[0] / 2).wait()
    tensor([0.5000, 0.5000])
    >>> dist.destroy_process_group()
    """

    def __init__(self, ready: Callable[[], bool], take: Callable[[], Any]) -> None:
        self._ready, self._take = ready, take
        self._taken, self._value = False, None

    def done(self) -> bool:
        """Whether `wait` returns at once; brings the transfer forward."""
        return self._taken or self._ready()

    def wait(self) -> Any:
        """The result, when it is there: of a transfer the list of its tensors.

        Raises:
            RuntimeError: a rank made another call, or none in time
        """
        if not self._taken:
            self._value, self._taken = self._take(), True
        return self._value

    value = wait

    def then(self, callback: Callable[[Any], Any]) -> Future:
        """What ``callback(self)`` returns, called when that is asked for."""

        def take() -> Any:
            self.wait()
            return callback(self)

        return Future(self.done, take)

    def add_done_callback(self, callback: Callable[[Any], Any]) -> None:
        """Wait, and call ``callback(self)``."""
        self.wait()
        callback(self)
