"""`TCPStore`: a store in the memory of one process, which others ask through the network, a line for each command."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from datetime import timedelta
from typing import Any

from genesis.base.errors import ArgumentValueError, DistributedError, message
from genesis.distributed.stores import COMMANDS, HashStore, Store, heard, said

_WORKERS = "genesis/workers"  # the key that counts who came
_PAUSE = 0.05  # seconds between tries to reach the one that has the values


class TCPStore(Store):
    """A store that one process has, the master, and others reach at its address.

    Args:
        host_name, port: where the master listens; it takes a free port for 0, which ``port`` says
        world_size: how many processes there are, the master with them; None where it is not known
        is_master: whether this one has the values
        timeout: of the first connection, and of `get` and `wait`; 5 minutes
        wait_for_workers: the master waits until all have come
        multi_tenant: a master where there is one already asks that one
        master_listen_fd: a socket that listens already
        use_libuv: accepted for PyTorch's sake

    Raises:
        RuntimeError: the port is in use, nobody listens there in time, or some processes do not come

    >>> store = TCPStore("localhost", 0, 1, True)
    >>> store.set("a", b"1"); TCPStore("localhost", store.port).get("a")
    b'1'
    """

    def __init__(
        self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
        timeout: timedelta = Store.timeout, wait_for_workers: bool = True, multi_tenant: bool = False,
        master_listen_fd: int | None = None, use_libuv: bool = True,
    ) -> None:  # fmt: skip
        if not 0 <= port < 2**16 or (port == 0 and not is_master):
            raise ArgumentValueError(message("TCPStore", f"port is {port}", hint="the port of the master"))
        self.host, self.port, self.timeout, self.world_size = host_name, port, timeout, world_size
        self._lock = threading.Lock()
        self._served = self._listening(multi_tenant, master_listen_fd) if is_master else None
        self._connection = self._reached(time.monotonic() + timeout.total_seconds())
        self._answers = self._connection.makefile("rb")
        came = self.add(_WORKERS, 1)
        if is_master and wait_for_workers and world_size is not None:
            self._wait_for(world_size, came, time.monotonic() + timeout.total_seconds())

    def _listening(self, shared: bool, number: int | None) -> socket.socket | None:
        try:
            listener = (
                socket.create_server(("", self.port), backlog=1024) if number is None else socket.socket(fileno=number)
            )
        except OSError as error:
            if shared:
                return None
            text = f"cannot listen at port {self.port}: {error.strerror}"
            raise DistributedError(message("TCPStore", text, hint="port=0 takes a free one")) from None
        self.port = listener.getsockname()[1]
        threading.Thread(target=_serve, args=(listener, HashStore()), daemon=True).start()
        return listener

    def _reached(self, end: float) -> socket.socket:
        while True:
            try:
                connection = socket.create_connection((self.host, self.port), max(end - time.monotonic(), 0.1))
                connection.settimeout(None)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection
            except OSError as error:
                if time.monotonic() > end:
                    text = (
                        f"waited {self.timeout.total_seconds():.3g} s for the store at {self.host}:{self.port}: {error}"
                    )
                    raise DistributedError(message("TCPStore", text, hint="is_master=True in one process")) from None
            time.sleep(_PAUSE)

    def _wait_for(self, size: int, came: int, end: float) -> None:
        while came < size:
            if time.monotonic() > end:
                text = f"waited {self.timeout.total_seconds():.3g} s, and {came} of {size} processes came"
                raise DistributedError(message("TCPStore", text, hint="a longer timeout"))
            time.sleep(_PAUSE)
            came = self.add(_WORKERS, 0)

    def _do(self, command: str, *args: Any) -> Any:
        try:
            with self._lock:
                self._connection.sendall(said((command, *args)))
                line = self._answers.readline()
        except OSError:
            line = b""
        if not line:
            text = f"the process that has the store at {self.host}:{self.port} has ended"
            raise DistributedError(message("TCPStore", text))
        return heard(line)[0]

    def __del__(self) -> None:
        for each in (self.__dict__.get(name) for name in ("_answers", "_connection", "_served")):
            with contextlib.suppress(OSError):
                if each is not None and each is self._served:
                    each.shutdown(socket.SHUT_RDWR)  # the thread that listens hears of it
                if each is not None:
                    each.close()


def _serve(listener: socket.socket, store: HashStore) -> None:
    with contextlib.suppress(OSError):  # the store is not used any more
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_answer, args=(connection, store), daemon=True).start()


def _answer(connection: socket.socket, store: HashStore) -> None:
    with contextlib.suppress(OSError, ValueError, TypeError), connection, connection.makefile("rb") as lines:
        for line in lines:
            command, *args = heard(line)
            if command not in COMMANDS:
                return
            connection.sendall(said((store._do(command, *args),)))
