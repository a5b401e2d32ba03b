"""Tensors of several processes combined and moved by NCCL, through the bindings of ``nccl4py``: each process has a GPU.

Calls go to a stream of their own, behind what the current stream was told until then; `Transfer.join` has the current
stream wait for them. The program waits for nothing.

NCCL combines in the dtype that it is given, so 16-bit floats go there as float32 and are rounded once; the smallest and
largest of floats are not asked of it, for which NaN may be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.cuda.arrays import CudaArray
from genesis.cuda.libraries.crossing import Crossing
from genesis.cuda.libraries.loading import library
from genesis.cuda.memory.sequence import crosses
from genesis.cuda.runtime.devices import Device
from genesis.cuda.runtime.streams import Event, Stream, current

NAME = "nccl"
KINDS = {
    "int8": 0, "uint8": 1, "bool": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6, "float32": 7,
    "float64": 8, "bfloat16": 9,
}  # fmt: skip
OPS = {"sum": 0, "product": 1, "max": 2, "min": 3}
UNIQUE = 128  # bytes of what the ranks of a communicator have in common


class Transfer:
    """A call that was told to the stream of the communicator."""

    def __init__(self, event: Event) -> None:
        self.event = event

    def Test(self) -> bool:  # noqa: N802
        """The program may go on: what it tells the stream next comes behind (`join`)."""
        return True

    def join(self) -> None:
        """What the current stream of the device is told from now on begins after it."""
        self.event.wait(current(self.event.on))


class Communicator:
    """NCCL between the processes of a group, for one device.

    Args:
        unique: called with bytes at rank 0, and None at others; gives those of rank 0
    """

    def __init__(self, on: Device, rank: int, size: int, unique: Callable[[bytes | None], bytes]) -> None:
        self.on, self.rank, self.size, self.nccl = on, rank, size, library(NAME)
        on.enter()
        same = unique(bytes(self.nccl.get_unique_id()) if rank == 0 else None)
        self.handle = self.nccl.comm_init_rank(size, self.nccl.UniqueId.from_buffer(bytearray(same)), rank)
        self.stream = Stream(on.index)

    def combines(self, dtype: Any, op: str) -> bool:
        """Whether elements of a dtype can be combined so; see `genesis.distributed.wire`."""
        if dtype.name not in KINDS or dtype.kind == "b":
            return False
        return op in ("sum", "product") or (dtype.kind in "iu" and op in OPS)

    def _told(self, call: Callable[[int], None], *arrays: CudaArray) -> Transfer:
        crosses("what ranks agree about")
        self.stream.wait_stream(current(self.on))
        for array in arrays:
            array.storage.used_on(self.stream)
        if self.on.enter().notes is None:
            call(self.stream.handle)
        return Transfer(self.stream.record_event())

    # ---- contiguous arrays; combined in the dtype that they have

    def all_reduce(self, x: CudaArray, op: str) -> Transfer:
        kind, how = KINDS[x.dtype.name], OPS[op]
        return self._told(
            lambda stream: self.nccl.all_reduce(x.address, x.address, x.size, kind, how, self.handle, stream), x
        )

    def reduce(self, x: CudaArray, op: str, root: int) -> Transfer:
        kind, how = KINDS[x.dtype.name], OPS[op]
        return self._told(
            lambda stream: self.nccl.reduce(x.address, x.address, x.size, kind, how, root, self.handle, stream), x
        )

    def reduce_scatter(self, out: CudaArray, x: CudaArray, op: str) -> Transfer:
        kind, how = KINDS[x.dtype.name], OPS[op]
        return self._told(
            lambda stream: self.nccl.reduce_scatter(x.address, out.address, out.size, kind, how, self.handle, stream),
            x, out,
        )  # fmt: skip

    # ---- ... and moved, as bytes

    def broadcast(self, x: CudaArray, root: int) -> Transfer:
        kind = KINDS["uint8"]
        return self._told(
            lambda stream: self.nccl.broadcast(x.address, x.address, x.nbytes, kind, root, self.handle, stream), x
        )

    def all_gather(self, out: CudaArray, x: CudaArray) -> Transfer:
        kind = KINDS["uint8"]
        return self._told(
            lambda stream: self.nccl.all_gather(x.address, out.address, x.nbytes, kind, self.handle, stream), x, out
        )

    def close(self) -> None:
        self.stream.synchronize()
        self.on.enter()
        self.nccl.comm_destroy(self.handle)


def available() -> bool:
    return library(NAME) is not None


def communicator(array: CudaArray, rank: int, size: int, unique: Callable[[bytes | None], bytes]) -> Communicator:
    """NCCL for the device of an array; see `genesis.arrays.memory.Memory.between_ranks`."""
    return Communicator(array.on, rank, size, unique)


def crossing(array: CudaArray) -> Crossing:
    """The way to the host and back, where there is no NCCL."""
    return Crossing(array.on)
