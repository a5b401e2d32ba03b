"""Processes that no launcher of MPI started come together: those of torchrun, of ``multiprocessing``, or started by hand.

They know an address and a port, ``MASTER_ADDR`` and ``MASTER_PORT``. There the first rank starts a `manager`, which MPICH
takes for its launcher. Where torchrun has a port for itself, it is one of the next. Or they know a store (`stores`), a file
for example, in which the first rank says where the manager is.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

from genesis.base.errors import ArgumentValueError, DistributedError, message
from genesis.distributed.environment import Launch
from genesis.distributed.manager import HELLO, HERE
from genesis.distributed.stores import FileStore, PrefixStore, Store

_PORTS = 16  # that are tried, from the one that was named
_ANSWER = 2.0  # seconds in which who listens at a port says whether this is the job
_PAUSE = 0.1  # seconds between rounds of all ports
_PRINTING = 0.3  # seconds in which a program says what it heard of others, before it ends with them
_NAME = "init_process_group"
_STORED, _ADDRESS = "genesis", "where rank 0 is"  # what stores have
_LISTENING: list[socket.socket] = []  # connections that must not close while this process lives


@contextmanager
def together(said: Launch, init_method: str | None, seconds: float, store: Store | None = None) -> Iterator[None]:
    """Wait until all have come; in here MPI begins with all of them.

    Args:
        init_method: names the address, see `address`, or a file, ``file:///path``; store: in place of it

    Raises:
        RuntimeError: some did not come in time; the message names them
        ValueError: there is no address
    """
    end, file = time.monotonic() + seconds, _file(init_method) if store is None else None
    store = FileStore(file) if file is not None else store
    if store is None:
        host, port = address(init_method)
        ports = range(port + _taken(), port + _taken() + _PORTS)
        connection = _at(said, host, ports, _token(port, said.size), end, seconds)
        job = f"{host}:{port}"
    else:
        connection, job = _by_store(said, PrefixStore(_STORED, store), end, seconds), file or type(store).__name__
    try:
        _wait(connection, f"rank {said.rank} of the job at {job}", end, seconds)
    finally:
        if file is not None and said.rank == 0:
            with suppress(OSError):
                os.unlink(file)
    _LISTENING.append(connection)
    threading.Thread(target=_end_with_the_others, args=(connection,), daemon=True).start()
    where, at, *_ = connection.getpeername()
    before = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(("PMI_", "PMIX_"))}
    os.environ |= {"PMI_PORT": f"{where}:{at}", "PMI_ID": str(said.rank)}
    try:
        yield
    finally:
        for name in ("PMI_PORT", "PMI_ID"):  # programs that this one starts are no ranks
            del os.environ[name]
        os.environ |= before


def _at(
    said: Launch, host: str, ports: Sequence[int], token: str, end: float, seconds: float, begin: bool = True
) -> socket.socket:
    """A connection to the manager of the job, which rank 0 starts."""
    if said.rank == 0 and begin:
        ports = range(at := _managed(token, said.size, host, ports), at + 1)
    hello = f"{HELLO} {token} {said.rank} {socket.gethostname()} {os.getpid()}"
    return _reached(hello, host, ports, end, seconds)


def _by_store(said: Launch, store: Store, end: float, seconds: float) -> socket.socket:
    """The same, where rank 0 says in a store where the manager is."""
    if said.rank == 0:
        token, at = secrets.token_hex(8), 0
        for host in dict.fromkeys([socket.gethostname(), "localhost"]):
            with suppress(DistributedError):
                at = _managed(token, said.size, host, [0])
                break
        store.set(_ADDRESS, f"{host} {at} {token}")
        return _at(said, host, [at], token, end, seconds, begin=False)
    while (left := end - time.monotonic()) > 0:
        with suppress(DistributedError):  # a file may say where the manager of a job was that has ended
            store.wait([_ADDRESS], timedelta(seconds=left))
            host, port, token = store.get(_ADDRESS).decode().split()
            return _at(said, host, [int(port)], token, min(end, time.monotonic() + _ANSWER), seconds)
    text = f"waited {seconds:.0f} s for rank 0, and it did not say where it is"
    raise DistributedError(message(_NAME, text, hint="a longer timeout, if that rank is only late"))


def _file(init_method: str | None) -> str | None:
    """The file that ``file:///path`` names."""
    return urllib.parse.urlsplit(init_method).path if str(init_method).startswith("file:") else None


def address(init_method: str | None) -> tuple[str, int]:
    """Where the processes meet: what ``tcp://host:port`` says, or the environment.

    >>> address("tcp://localhost:29500")
    ('localhost', 29500)

    Raises:
        ValueError: nothing says it, or there is no number
    """
    if init_method is not None and init_method.startswith("tcp://"):
        host, _, port = init_method[len("tcp://") :].partition("?")[0].rpartition(":")
    else:
        host, port = os.environ.get("MASTER_ADDR", ""), os.environ.get("MASTER_PORT", "")
    if not host or not port.isdecimal():
        text = f"no address at which the processes meet: MASTER_ADDR is {host!r}, MASTER_PORT {port!r}"
        raise ArgumentValueError(message(_NAME, text, hint="genesis run -n 2 script.py, which needs none"))
    return host, int(port)


def managed() -> bool:
    """Whether this process came so: then no launcher of MPI ends it, or hears that it did."""
    return bool(_LISTENING)


def _token(port: int, size: int) -> str:
    """What tells this job from others at the same ports."""
    known = [os.environ.get(name) for name in ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")]
    return f"{zlib.crc32(repr((known, port, size)).encode()):x}"


def _taken() -> int:
    """How many ports torchrun has for itself."""
    return 1 if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" else 0


def _managed(token: str, size: int, host: str, ports: Sequence[int]) -> int:
    """Start the manager; the port at which it listens."""
    import genesis.distributed.manager as manager

    command = [sys.executable, str(Path(manager.__file__)), token, str(size), host, *map(str, ports)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdin is not None and process.stdout is not None, "they are pipes"
    _OPEN.append(process)
    first = process.stdout.readline().strip()
    if not first.isdecimal():
        text = f"rank 0 cannot listen at {host}, ports {ports[0]} to {ports[-1]}: {first.removeprefix('error ')}"
        raise DistributedError(
            message(_NAME, text, hint="an address of the machine of rank 0, and a port that is free")
        )
    return int(first)


_OPEN: list[subprocess.Popen[str]] = []  # whose pipe says that this process lives


def _reached(hello: str, host: str, ports: Sequence[int], end: float, seconds: float) -> socket.socket:
    """A connection to the manager of this job, at one of the ports."""
    while True:
        for port in ports:
            with suppress(OSError):
                connection = socket.create_connection((host, port), _ANSWER)
                connection.sendall(f"{hello}\n".encode())
                line = _line(connection)
                if line == "welcome":
                    connection.sendall(f"{HERE}\n".encode())
                    return connection
                connection.close()
                if line == "taken":
                    raise _taken_by_another(f"rank {hello.split()[2]} of the job at {host}:{port}")
        if time.monotonic() > end:
            text = f"waited {seconds:.0f} s for rank 0 at {host}, ports {ports[0]} to {ports[-1]}"
            raise DistributedError(message(_NAME, text, hint="a longer timeout, if that rank is only late"))
        time.sleep(_PAUSE)


def _taken_by_another(rank: str) -> DistributedError:
    return DistributedError(message(_NAME, f"another process is {rank}", hint="each rank once"))


def _wait(connection: socket.socket, rank: str, end: float, seconds: float) -> None:
    """Until the manager says that all are there."""
    said = "absent"
    while said != "begin":
        connection.settimeout(max(end - time.monotonic(), 0.01))
        absent = ", ".join([f"rank {rank}" for rank in said.split()[1:]]) or "one of the ranks"
        try:
            said = _line(connection)
        except TimeoutError:
            text = f"waited {seconds:.0f} s, and {absent} did not come"
            raise DistributedError(message(_NAME, text, hint="a longer timeout, if that rank is only late")) from None
        if said == "taken":
            raise _taken_by_another(rank)
        if not said:
            text = f"rank 0 has ended, and {absent} did not come"
            raise DistributedError(message(_NAME, text, hint="a longer timeout, if that rank is only late"))


def _line(connection: socket.socket) -> str:
    """The next line: nothing is read behind it. Empty at the end."""
    text = b""
    while (one := connection.recv(1)) not in (b"", b"\n"):
        text += one
    return text.decode(errors="replace")


def _end_with_the_others(connection: socket.socket) -> None:
    """End this process when one of the others ended before its time: that is what a launcher of MPI does."""
    connection.settimeout(None)
    with suppress(OSError):
        while line := _line(connection):
            if line.startswith("ended"):
                time.sleep(_PRINTING)
                print(
                    f"rank {line.split()[1]} ended before its time, and this one with it", file=sys.stderr, flush=True
                )
                os._exit(1)
