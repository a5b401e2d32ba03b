"""The engine of MPI, by mpi4py's buffer interface: nothing is pickled.

Every transfer is one that MPI starts and `Calls` waits for. MPI's own waiting looks for news as fast as it can and keeps
the processor; where ranks share processors with anything else, the rank that is waited for does not get it.

A group has two communicators: one for payloads, one for what ranks say of themselves, so that neither is taken for the
other when something goes wrong.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from genesis.base.errors import DistributedError, message
from genesis.distributed import installed
from genesis.distributed.engine import Agreement, Engine, Host, Request

_TELL = 1  # the tag of reports
_LONGEST = 2000  # bytes of a report


class MPI(Engine):
    """Processes that a launcher of MPI started."""

    name = "mpi"

    def __init__(self, communicator: Any = None) -> None:
        self._mpi = mpi = installed.library()
        if communicator is None:
            communicator = mpi.COMM_WORLD.Dup()
            communicator.Barrier()
            _take_names_away()
        self._comm = communicator
        self._side = self._comm.Dup()
        self._comm.Set_errhandler(mpi.ERRORS_RETURN)
        self.rank, self.size = self._comm.Get_rank(), self._comm.Get_size()
        self._itself = getattr(mpi, "IN_PLACE")  # noqa: B009  (MPI's name)
        self._ops = {
            "sum": mpi.SUM, "product": mpi.PROD, "min": mpi.MIN, "max": mpi.MAX, "band": mpi.BAND, "bor": mpi.BOR,
            "bxor": mpi.BXOR,
        }  # fmt: skip

    # ---- combined

    def all_reduce(self, x: Host, op: str) -> Request:
        return self._comm.Iallreduce(self._itself, x, self._ops[op])  # type: ignore[no-any-return]

    def reduce(self, x: Host, op: str, root: int) -> Request:
        given = (self._itself, x) if self.rank == root else (x, None)
        return self._comm.Ireduce(*given, self._ops[op], root)  # type: ignore[no-any-return]

    def reduce_scatter(self, out: Host, x: Host, op: str) -> Request:
        return self._comm.Ireduce_scatter_block(x, out, self._ops[op])  # type: ignore[no-any-return]

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
        return _Agreed(self._side, self._itself, number, self._mpi.MAX)

    def reports(self, text: str, seconds: float) -> list[str | None]:
        own = np.frombuffer(text.encode()[:_LONGEST].ljust(_LONGEST), np.uint8)
        others = [rank for rank in range(self.size) if rank != self.rank]
        kept = [self._side.Isend(own, rank, _TELL) for rank in others]  # asks as well: see `asked`
        came: list[str | None] = [None] * self.size
        came[self.rank] = text
        buffers = {rank: np.empty(_LONGEST, np.uint8) for rank in others}
        waiting = {rank: self._side.Irecv(buffer, rank, _TELL) for rank, buffer in buffers.items()}
        end = time.monotonic() + seconds
        while waiting and time.monotonic() < end:
            for rank in [rank for rank, request in waiting.items() if request.Test()]:
                del waiting[rank]
                came[rank] = bytes(buffers[rank]).decode(errors="replace").rstrip()
            time.sleep(0.001)
        for request in kept:
            request.Test()
        return came

    def asked(self) -> bool:
        return bool(self._side.Iprobe(self._mpi.ANY_SOURCE, _TELL))

    def split(self, ranks: Sequence[int]) -> Engine | None:
        at = ranks.index(self.rank) if self.rank in ranks else None
        made = self._comm.Split(self._mpi.UNDEFINED if at is None else 0, at or 0)
        return None if at is None else MPI(made)

    def close(self) -> None:
        self._side.Free()
        self._comm.Free()

    def abort(self) -> None:
        self._mpi.COMM_WORLD.Abort(1)


class _Agreed:
    """The largest of ``(number, -number)``: all agree where one is minus the other."""

    __slots__ = ("Test", "_numbers", "_request")

    def __init__(self, comm: Any, itself: Any, number: int, largest: Any) -> None:
        self._numbers = np.array((number, -number))
        self._request = comm.Iallreduce(itself, self._numbers, largest)
        self.Test = self._request.Test

    @property
    def agreed(self) -> bool:
        first, second = self._numbers.tolist()
        return bool(first == -second)


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
    """Remove the files of MPICH's shared memory, once all ranks have it: it lives as long as one of them does, and
    nothing is left of ranks that are killed. Where there is no such list of files, MPICH does it at the end.
    """
    with contextlib.suppress(OSError):
        for name in set(re.findall(r"/dev/shm/mpich_shm_\S+", Path(maps).read_text())):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


def _bytes(x: Host) -> Host:
    return x.reshape(-1).view(np.uint8)
