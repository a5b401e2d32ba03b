"""What a launcher of MPI does for its processes, for those that something else started: it tells them of each other.

A program of its own, which the first rank starts (`arrivals`), and which ends with the last. Processes come to a port and
say which rank they are. When all have come, each may begin MPI, whose library asks here for what it has to know of the
others: by PMI, the process management interface of MPICH, in lines like ``cmd=get kvsname=... key=card-1``. What MPI
then sends does not pass here. A process that ends before its time is told to those that are left.

Each connection has a thread. Nothing of Genesis is imported, so it is there at once.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping

HELLO, HERE = "genesis", "here"  # what a process says first, and when it has heard the answer
_ANSWER = 5.0  # seconds that a connection may take to say who it is
_LEAVING = 5.0  # seconds that processes have to end after one of them did: inside of MPI they cannot hear of it


class Rank:
    """A process that came."""

    def __init__(self, node: str, process: int, connection: socket.socket) -> None:
        self.node, self.process, self.connection, self.ended = node, process, connection, False

    def tell(self, text: str) -> None:
        with contextlib.suppress(OSError):  # it is gone
            self.connection.sendall(f"{text}\n".encode())


class Manager:
    """What is known of the processes of one job."""

    def __init__(self, token: str, size: int) -> None:
        self.token, self.size = token, size
        self.ranks: dict[int, Rank] = {}
        self.values: dict[str, str] = {}
        self.name = f"genesis_{secrets.token_hex(8)}"  # MPI calls its shared memory so: no other job on the machine may
        self.complete = False
        self._waiting: list[socket.socket] = []  # at a barrier
        self._lock = threading.RLock()

    def serve(self, connection: socket.socket) -> None:
        """One connection, of a process or of the MPI in it; its first line says of which."""
        connection.settimeout(_ANSWER)
        lines = connection.makefile("r", encoding="utf-8", errors="replace")
        with contextlib.suppress(OSError), connection:
            first = lines.readline().split()
            connection.settimeout(None)
            if first[:2] == [HELLO, self.token]:
                self._process(int(first[2]), Rank(first[3], int(first[4]), connection), iter(lines))
            elif first[:1] == ["cmd=initack"]:
                self._library(int(_fields(first)["pmiid"]), connection, lines)

    # ---- a process, for as long as it lives

    def _process(self, number: int, rank: Rank, lines: Iterator[str]) -> None:
        rank.tell("taken" if self._taken(number) else "welcome")
        if next(lines, "").strip() != HERE:  # it did not wait so long for the answer, and asks again
            return
        with self._lock:
            if self._taken(number):
                rank.tell("taken")
                return
            self.ranks[number] = rank
            self._tell_who_is_absent()
        with contextlib.suppress(OSError):
            for _ in lines:  # until it ends
                pass
        self._gone(number)

    def _taken(self, number: int) -> bool:
        with self._lock:
            return number in self.ranks or self.complete

    def _tell_who_is_absent(self) -> None:
        absent = [rank for rank in range(self.size) if rank not in self.ranks]
        if not absent:
            self.complete = True
            self.values["PMI_process_mapping"] = _mapping([self.ranks[rank].node for rank in range(self.size)])
        for rank in self.ranks.values():
            rank.tell(f"absent {' '.join(map(str, absent))}" if absent else "begin")

    def _gone(self, rank: int) -> None:
        with self._lock:
            left = self.ranks.pop(rank)
            if not self.complete:
                self._tell_who_is_absent()
                return
            if not left.ended:
                self.ended_early(rank)
            if not self.ranks:
                os._exit(0)

    def ended_early(self, rank: int) -> None:
        """Tell the others that they wait for nothing, and end those of this machine that do not hear it."""
        with self._lock:
            others = {number: other for number, other in self.ranks.items() if number != rank}
            for other in others.values():
                other.tell(f"ended {rank}")
            for connection in self._waiting:
                connection.shutdown(socket.SHUT_RDWR)
            self._waiting.clear()
        threading.Thread(target=self._end, args=(others,), daemon=True).start()

    def _end(self, others: Mapping[int, Rank]) -> None:
        time.sleep(_LEAVING)
        for number, other in others.items():
            if self.ranks.get(number) is other and other.node == socket.gethostname():
                with contextlib.suppress(OSError):
                    os.kill(other.process, signal.SIGKILL)

    # ---- the MPI in it

    def _library(self, rank: int, connection: socket.socket, lines: Iterable[str]) -> None:
        said = [f"cmd=initack rc=0\ncmd=set size={self.size}\ncmd=set rank={rank}\ncmd=set debug=0"]
        for line in itertools.chain([""], lines):
            fields = _fields(line.split())
            command = fields.get("cmd", "")
            if command == "barrier_in":
                said = self._barrier(connection)
            elif command:
                said = [self._answer(rank, command, fields, line)]
            for each in said:
                connection.sendall(f"{each}\n".encode())

    def _answer(self, rank: int, command: str, fields: dict[str, str], line: str) -> str:
        if command == "put":
            self.values[fields["key"]] = line.rstrip("\n").partition("value=")[2]
            return "cmd=put_result rc=0 msg=success"
        if command == "get":
            value = self.values.get(fields["key"])
            known = f"rc=0 msg=success value={value}"
            return "cmd=get_result " + ("rc=-1 msg=key_not_found value=unknown" if value is None else known)
        if command == "finalize":
            self.ranks[rank].ended = True
        if command == "abort":
            self.ended_early(rank)
        return _ANSWERS.get(command, f"cmd={command} rc=-1 msg=unknown").format(size=self.size, name=self.name)

    def _barrier(self, connection: socket.socket) -> list[str]:
        """Answers all when the last has come."""
        with self._lock:
            self._waiting.append(connection)
            if len(self._waiting) == self.size:
                for each in self._waiting:
                    each.sendall(b"cmd=barrier_out rc=0\n")
                self._waiting.clear()
        return []


_ANSWERS = {
    "init": "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
    "get_maxes": "cmd=maxes kvsname_max=64 keylen_max=64 vallen_max=1024",
    "get_appnum": "cmd=appnum appnum=0",
    "get_universe_size": "cmd=universe_size size={size}",
    "get_my_kvsname": "cmd=my_kvsname kvsname={name}",
    "finalize": "cmd=finalize_ack rc=0",
}


def _fields(words: list[str]) -> dict[str, str]:
    return dict([word.split("=", 1) for word in words if "=" in word])  # type: ignore[misc]


def _mapping(nodes: list[str]) -> str:
    """Which ranks share a machine, as PMI has it: runs of ranks, each with the number of its machine.

    >>> _mapping(["a", "a", "b"])
    '(vector,(0,1,2),(1,1,1))'
    """
    numbers = {node: i for i, node in enumerate(dict.fromkeys(nodes))}
    runs = [(numbers[node], len(list(some))) for node, some in itertools.groupby(nodes)]
    return f"(vector,{','.join([f'({number},1,{count})' for number, count in runs])})"


def _with_the_first_rank() -> None:
    """End with the process that started this one, where not all have come: then nobody else will."""
    sys.stdin.read()
    if not MANAGERS[0].complete:
        os._exit(1)


MANAGERS: list[Manager] = []


def main(token: str, size: str, host: str, *ports: str) -> None:
    """Listen at the first port that is free, and say which it is."""
    listener = None
    for port in ports:
        try:
            listener = socket.create_server((host, int(port)), backlog=1024)
            break
        except OSError as error:
            problem = error
    if listener is None:
        print(f"error {problem}", flush=True)
        return
    print(listener.getsockname()[1], flush=True)
    MANAGERS.append(Manager(token, int(size)))
    threading.Thread(target=_with_the_first_rank, daemon=True).start()
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=MANAGERS[0].serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
