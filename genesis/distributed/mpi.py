"""The engine of MPI, by mpi4py's buffer interface: nothing is pickled.

Every transfer is one that MPI starts and `Calls` waits for. MPI's own waiting looks for news as fast as it can and keeps
the processor; where ranks share processors with anything else, the rank that is waited for does not get it.

A group has two communicators: one for payloads, one for what ranks say of themselves and for messages that a program knows
nothing of, so that neither is taken for the other when something goes wrong.
"""

from __future__ import annotations

import contextlib
import faulthandler
import math
import os
import re
import sys
import time
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from genesis.base.errors import DistributedError, message
from genesis.distributed import arrivals, halving, installed
from genesis.distributed.engine import Agreement, Engine, Host, Request
from genesis.distributed.watching import Progress, program_line

_TELL, _BEAT, _SUM = 1, 2, 1024  # tags of reports and of heartbeats, and the first one of sums
_SUMS = 1024  # that are on their way at once, at most
_PIECE = 1 << 21  # bytes of a rank's share of a piece that is combined
_AT_ONCE = 2  # pieces that are on their way, where nothing else is to begin meanwhile
_LONGEST = 2000  # bytes of a report
_PAUSE = 0.005  # seconds between looks whether all ranks have begun, at most
_GATHERING = 2.0  # seconds in which those that have come hear of each other: not all have begun to wait at once


class MPI(Engine):
    """Processes that a launcher of MPI started."""

    name = "mpi"

    def __init__(self, communicator: Any = None, timeout: float = math.inf) -> None:
        self._mpi = mpi = _begun(timeout)
        if communicator is None:
            _wait_for_all(mpi.COMM_WORLD, timeout)
            communicator = mpi.COMM_WORLD.Dup()
            communicator.Barrier()
            _take_names_away()
        self._comm = communicator
        self._side = self._comm.Dup()
        self._comm.Set_errhandler(mpi.ERRORS_RETURN)
        self.rank, self.size = self._comm.Get_rank(), self._comm.Get_size()
        self.threads = mpi.Query_thread() == mpi.THREAD_MULTIPLE
        self._sums: list[halving.Halving] = []  # that are on their way
        self._begun = 0  # sums, in all
        self._beat: Any = mpi.REQUEST_NULL
        self._told, self._heard = np.zeros(2, np.int64), np.zeros(2, np.int64)
        self._when: float | None = None  # of the last heartbeat
        self._itself = getattr(mpi, "IN_PLACE")  # noqa: B009  (MPI's name)
        self._agreements = _Agreements(self._side, mpi, self._itself, self.ahead)
        self._ops = {
            "sum": mpi.SUM, "product": mpi.PROD, "min": mpi.MIN, "max": mpi.MAX, "band": mpi.BAND, "bor": mpi.BOR,
            "bxor": mpi.BXOR,
        }  # fmt: skip

    # ---- combined

    def all_reduce(self, x: Host, op: str, waited: bool = False) -> Request:
        if x.nbytes <= _PIECE * self.size:
            return self._comm.Iallreduce(self._itself, x, self._ops[op])  # type: ignore[no-any-return]
        begin, size = partial(self._comm.Iallreduce, self._itself, op=self._ops[op]), _PIECE * self.size // x.itemsize
        flat = x.reshape(-1)
        pieces = [flat[at : at + size] for at in range(0, x.size, size)]
        return _InPieces(begin, pieces, _AT_ONCE if waited else len(pieces))

    def reduce(self, x: Host, op: str, root: int) -> Request:
        given = (self._itself, x) if self.rank == root else (x, None)
        return _Holding(self._comm.Ireduce(*given, self._ops[op], root), x)

    def reduce_scatter(self, out: Host, x: Host, op: str) -> Request:
        return _Holding(self._comm.Ireduce_scatter_block(x, out, self._ops[op]), x)

    def sum_in_tree(self, x: Host) -> Request:
        self._begun += 1
        tag = _SUM + self._begun % _SUMS

        def send(x: Host, to: int) -> Request:
            return self._side.Isend(_bytes(x), to, tag)  # type: ignore[no-any-return]

        def receive(x: Host, source: int) -> Request:
            return self._side.Irecv(_bytes(x), source, tag)  # type: ignore[no-any-return]

        return halving.Halving(x, self.rank, self.size, send, receive, self._sums)

    # ---- moved, as bytes

    def broadcast(self, x: Host, root: int) -> Request:
        return self._comm.Ibcast(_bytes(x), root)  # type: ignore[no-any-return]

    def all_gather(self, out: Host, x: Host) -> Request:
        return self._comm.Iallgather(_bytes(x), _bytes(out))  # type: ignore[no-any-return]

    def gather(self, out: Host | None, x: Host, root: int) -> Request:
        return self._comm.Igather(_bytes(x), None if out is None else _bytes(out), root)  # type: ignore[no-any-return]

    def scatter(self, out: Host, x: Host | None, root: int) -> Request:
        return self._comm.Iscatter(None if x is None else _bytes(x), _bytes(out), root)  # type: ignore[no-any-return]

    def all_to_all(self, out: Host, x: Host, received: Sequence[int], sent: Sequence[int]) -> Request:
        return self._comm.Ialltoallv((_bytes(x), list(sent)), (_bytes(out), list(received)))  # type: ignore[no-any-return]

    def send(self, x: Host, to: int, tag: int) -> Request:
        return self._comm.Isend(_bytes(x), to, tag)  # type: ignore[no-any-return]

    def receive(self, x: Host, source: int | None, tag: int) -> Request:
        return _Received(
            self._mpi, self._comm.Irecv(_bytes(x), self._mpi.ANY_SOURCE if source is None else source, tag)
        )

    # ---- agreed on

    def agree(self, number: int) -> Agreement:
        return self._agreements.begin(number)

    def reports(self, text: str, seconds: float) -> list[str | None]:
        return _reports(self._side, text, seconds)

    def asked(self) -> bool:
        return bool(self._side.Iprobe(self._mpi.ANY_SOURCE, _TELL))

    def beat(self, numbers: tuple[int, int]) -> None:
        if self._beat.Test():  # the next rank may have stopped
            self._told[:] = numbers
            self._beat = self._side.Isend(self._told, (self.rank + 1) % self.size, _BEAT)
        before = (self.rank - 1) % self.size
        while self._side.Iprobe(before, _BEAT):
            self._side.Recv(self._heard, before, _BEAT)
            self._when = time.monotonic()

    def heard(self) -> tuple[int, int, int, float] | None:
        if self._when is None:
            return None
        step, count = self._heard.tolist()
        return (self.rank - 1) % self.size, step, count, time.monotonic() - self._when

    def split(self, ranks: Sequence[int]) -> Engine | None:
        at = ranks.index(self.rank) if self.rank in ranks else None
        made = self._comm.Split(self._mpi.UNDEFINED if at is None else 0, at or 0)
        return None if at is None else MPI(made)

    def close(self) -> None:
        self._side.Barrier()  # all have sent their last heartbeat
        while self._side.Iprobe((self.rank - 1) % self.size, _BEAT):
            self._side.Recv(self._heard, (self.rank - 1) % self.size, _BEAT)
        self._beat.Wait()
        self._agreements.free()
        self._side.Free()
        self._comm.Free()

    def abort(self) -> None:
        end_all()


def end_all() -> None:
    """End the processes of all ranks."""
    if arrivals.managed():  # the others hear of it; of MPI's own end there it complains
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)
    installed.library().COMM_WORLD.Abort(1)


def _reports(comm: Any, text: str, seconds: float) -> list[str | None]:
    """What each rank says of itself, as `Engine.reports` has it."""
    rank, size = comm.Get_rank(), comm.Get_size()
    own = np.frombuffer(text.encode()[:_LONGEST].ljust(_LONGEST), np.uint8)
    others = [each for each in range(size) if each != rank]
    kept = [comm.Isend(own, each, _TELL) for each in others]  # asks as well: see `asked`
    came: list[str | None] = [None] * size
    came[rank] = text
    buffers = {each: np.empty(_LONGEST, np.uint8) for each in others}
    waiting = {each: comm.Irecv(buffer, each, _TELL) for each, buffer in buffers.items()}
    end = time.monotonic() + seconds
    while waiting and time.monotonic() < end:
        for each in [each for each, request in waiting.items() if request.Test()]:
            del waiting[each]
            came[each] = bytes(buffers[each]).decode(errors="replace").rstrip()
        time.sleep(0.001)
    for request in kept:
        request.Test()
    return came


def _begun(timeout: float) -> Any:
    """MPI, initialized: where its launcher waits for all ranks, that is inside of the library, holds Python's lock, and
    only a thread that is not Python's can end it; all it can say is where the program was. It says so in a file, where
    ``genesis run`` has one for it.
    """
    if math.isinf(timeout):
        return installed.library()
    with contextlib.ExitStack() as ends:
        with contextlib.suppress(Exception):  # stderr may be no file
            file = sys.stderr
            if Progress.waits_in is not None:
                file = ends.enter_context(open(Progress.waits_in, "w"))
                ends.callback(Path(Progress.waits_in).unlink, missing_ok=True)
                print(f"{timeout:.0f} s at {program_line()}", file=file, flush=True)
            faulthandler.dump_traceback_later(timeout, exit=True, file=file)
            ends.callback(faulthandler.cancel_dump_traceback_later)
        return installed.library()


def _wait_for_all(comm: Any, timeout: float) -> None:
    """Until all ranks have come here.

    Raises:
        RuntimeError: they have not, in time; the message names those that are absent
    """
    end, request, pause = time.monotonic() + timeout, comm.Ibarrier(), 0.0001
    while not request.Test():
        if time.monotonic() > end:
            said = _reports(comm, "here", _GATHERING)
            absent = [f"rank {rank}" for rank, each in enumerate(said) if each is None]
            text = f"waited {timeout:.0f} s, and {', '.join(absent) or 'one of the ranks'} did not come"
            raise DistributedError(
                message("init_process_group", text, hint="a longer timeout, if that rank is only late")
            )
        time.sleep(pause)
        pause = min(2 * pause, _PAUSE)


class _Agreements:
    """What is found out whether all ranks say one number: the largest of ``(number, -number)``, where all agree if one is
    minus the other.

    MPI is told once of the combinations that are made again and again, and then only that one begins: a third of the time
    of telling it anew. Each has memory of its own, which the call after `Engine.ahead` others takes again. MPI that is
    older than its fourth version is told anew.
    """

    def __init__(self, comm: Any, mpi: Any, itself: Any, ahead: int) -> None:
        self._anew = partial(comm.Iallreduce, itself, op=mpi.MAX)
        self._persistent: list[tuple[array[int], Any]] = []
        with contextlib.suppress(AttributeError, NotImplementedError):
            for _ in range(ahead):
                numbers = array("q", (0, 0))  # a NumPy array costs 0.6 us more
                self._persistent.append((numbers, comm.Allreduce_init(itself, numbers, mpi.MAX)))

    def begin(self, number: int) -> _Agreed:
        if not self._persistent:
            numbers = array("q", (number, -number))
            return _Agreed(numbers, self._anew(numbers))
        numbers, request = self._persistent[number % len(self._persistent)]
        numbers[0], numbers[1] = number, -number
        request.Start()
        return _Agreed(numbers, request)

    def free(self) -> None:
        for _, request in self._persistent:
            if request.Test():  # nobody may have waited for the last ones
                request.Free()


class _Agreed:
    """One of them: what it came to stays when its memory is taken again."""

    __slots__ = ("_done", "_numbers", "_request", "agreed")

    def __init__(self, numbers: array[int], request: Any) -> None:
        self._numbers, self._request, self._done = numbers, request, False

    def Test(self) -> bool:  # noqa: N802
        if not self._done and self._request.Test():
            self.agreed, self._done = self._numbers[0] == -self._numbers[1], True
        return self._done


class _Holding:
    """A combination, and the memory that it reads while it is on its way: mpi4py holds what is moved, not what is
    combined. (What becomes the result, the one who waits for that has.)
    """

    __slots__ = ("Test", "_memory")

    def __init__(self, request: Any, memory: Host) -> None:
        self.Test, self._memory = request.Test, memory


class _InPieces:
    """A combination in pieces that caches hold. All ranks begin them in one order, in which nothing else may begin."""

    def __init__(self, begin: Callable[[Host], Request], pieces: Sequence[Host], at_once: int) -> None:
        self._begin, self._left = begin, deque(pieces[at_once:])
        self._running = deque(map(begin, pieces[:at_once]))

    def Test(self) -> bool | None:  # noqa: N802
        before = len(self._left)
        while self._running and self._running[0].Test():
            self._running.popleft()
            if self._left:
                self._running.append(self._begin(self._left.popleft()))
        return not self._running or (None if len(self._left) < before else False)


class _Received:
    """A message that comes from somewhere."""

    sender = bytes = -1

    def __init__(self, mpi: Any, request: Any) -> None:
        self._mpi, self._request, self._status = mpi, request, mpi.Status()

    def Test(self) -> bool:  # noqa: N802
        try:
            if not self._request.Test(self._status):
                return False
        except self._mpi.Exception as error:
            raise DistributedError(message("recv", f"MPI says: {error}", hint="one shape on both sides")) from None
        self.sender, self.bytes = self._status.Get_source(), self._status.Get_count(self._mpi.BYTE)
        return True


def _take_names_away(maps: str = "/proc/self/maps") -> None:
    """Remove the files of MPICH's shared memory, and that in which its launcher tells of the processors, once all ranks have
    them: memory lives as long as one of them does, and nothing is left of ranks that are killed. Where there is no such list
    of files, MPICH does it at the end.
    """
    names = []
    with contextlib.suppress(OSError):
        names += re.findall(r"/dev/shm/mpich_shm_\S+", Path(maps).read_text(errors="replace"))
    names += [name for name in files_of(os.getppid()) if re.fullmatch(r".*/hydra_hwloc_xmlfile_\w+", name)]
    for name in set(names):
        with contextlib.suppress(OSError):
            os.unlink(name)


def files_of(pid: int) -> list[str]:
    """The files that a process has open, as far as this user may know."""
    names, folder = [], f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):
        for number in os.listdir(folder):
            with contextlib.suppress(OSError):
                names.append(os.readlink(f"{folder}/{number}"))
    return names


def _bytes(x: Host) -> Host:
    return x.reshape(-1).view(np.uint8)
