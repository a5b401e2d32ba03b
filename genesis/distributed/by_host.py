"""Arrays of a device between ranks by way of the host, while the program goes on: a copy to pinned memory, the engine of
the group, a copy back. What moves the memory of devices where nothing else does.

The engine gets its part of a call when the first copy is made: at a look whether the call is done, or at the latest
before this process makes its next call of any group. So all ranks start transfers in the order of their calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.distributed.calls import UNSTARTED
from genesis.distributed.engine import Engine, Host, Request


class Staged:
    """A call on its way: to the host, between ranks, and back."""

    def __init__(
        self, crossing: Any, sent: Any, out: Any, start: Callable[[Host], tuple[Request, Host | None]]
    ) -> None:
        self._crossing, self._out, self._start = crossing, out, start
        self._host, self._event = crossing.out(sent)
        self._request: Request | None = None
        self._came: Host | None = None
        self._done = False
        UNSTARTED.append(self.start)

    def start(self) -> None:
        """Let the engine have it, when it is there."""
        if self._request is None:
            self._event.synchronize()
            UNSTARTED.remove(self.start)
            self._request, self._came = self._start(self._host)

    def Test(self) -> bool:  # noqa: N802
        """Whether the copy back was told to the stream, and so the program may go on (`join`)."""
        if self._request is None and self._event.query():
            self.start()
        if not self._done and self._request is not None and self._request.Test():
            self._done = True
            if self._came is not None:
                self._event = self._crossing.back(self._out, self._came)
            self._host = self._came = None
        return self._done

    def join(self) -> None:
        """What the current stream of the device is told from now on begins after it."""
        self._crossing.join(self._event)


class ByHost:
    """What `genesis.distributed.devices` asks of that which moves arrays of a device."""

    def __init__(self, crossing: Any, engine: Engine) -> None:
        self._crossing, self._engine = crossing, engine
        self.rank, self.size = engine.rank, engine.size

    def combines(self, dtype: Any, op: str) -> bool:
        """Whether the engine combines elements of a dtype as they are; see `genesis.distributed.wire`."""
        if dtype.kind == "b" or dtype.itemsize > 16:
            return False
        return op in ("sum", "product") or dtype.kind in "iu"

    # ---- contiguous arrays; combined in the dtype that they have

    def all_reduce(self, x: Any, op: str) -> Staged:
        return Staged(self._crossing, x, x, lambda host: (self._engine.all_reduce(host, op), host))

    def reduce(self, x: Any, op: str, root: int) -> Staged:
        def start(host: Host) -> tuple[Request, Host | None]:
            return self._engine.reduce(host, op, root), host if self.rank == root else None

        return Staged(self._crossing, x, x, start)

    def reduce_scatter(self, out: Any, x: Any, op: str) -> Staged:
        return self._apart(out, x, lambda into, host: self._engine.reduce_scatter(into, host, op))

    # ---- ... and moved

    def broadcast(self, x: Any, root: int) -> Staged:
        def start(host: Host) -> tuple[Request, Host | None]:
            return self._engine.broadcast(host, root), None if self.rank == root else host

        return Staged(self._crossing, x, x, start)

    def all_gather(self, out: Any, x: Any) -> Staged:
        return self._apart(out, x, lambda into, host: self._engine.all_gather(into, host))

    def _apart(self, out: Any, x: Any, call: Callable[[Host, Host], Request]) -> Staged:
        def start(host: Host) -> tuple[Request, Host | None]:
            into = self._crossing.room(out.shape, out.dtype)
            return call(into, host), into

        return Staged(self._crossing, x, out, start)

    def close(self) -> None:
        self._crossing.close()
