"""A process that no launcher of MPI started: ``arriving.py RANK SIZE [what]``, at the address of the environment."""

import os
import signal
import socket
import sys
import time
from datetime import timedelta

import genesis
import genesis.distributed as dist


def begin(rank: int, size: int, where: str | None = None) -> None:
    dist.init_process_group("gloo", init_method=where, rank=rank, world_size=size, timeout=timedelta(seconds=60))
    x = genesis.ones(100_000) * (dist.get_rank() + 1)
    dist.all_reduce(x)
    assert x[-1].item() == sum(range(1, dist.get_world_size() + 1)), x
    assert not [name for name in os.environ if name.startswith("PMI_")], "children are no ranks"


def well(rank: int, size: int) -> None:
    begin(rank, size)
    everybody = [None] * size
    dist.all_gather_object(everybody, dist.get_rank())
    assert everybody == list(range(size))
    print(f"rank {dist.get_rank()} is done")
    dist.destroy_process_group()


def file(rank: int, size: int) -> None:
    """They meet in a file, in which a job that has ended may have said where it was."""
    path = sys.argv[4]
    begin(rank, size, f"file://{path}")
    dist.barrier()
    assert not os.path.exists(path)
    print(f"rank {dist.get_rank()} is done")
    dist.destroy_process_group()


def nobody_in_the_file(rank: int, size: int) -> None:
    where = f"file://{sys.argv[4]}"
    dist.init_process_group(init_method=where, rank=rank, world_size=size, timeout=timedelta(seconds=2))


def store(rank: int, size: int) -> None:
    """They meet by a store, which rank 1 has and the program uses as well."""
    values = dist.TCPStore("localhost", int(os.environ.pop("MASTER_PORT")), size, rank == 1)
    del os.environ["MASTER_ADDR"]
    dist.init_process_group(store=dist.PrefixStore("job", values), rank=rank, world_size=size)
    values.set(f"rank {rank}", str(rank))
    assert values.multi_get([f"rank {each}" for each in range(size)]) == [str(each).encode() for each in range(size)]
    x = genesis.ones(2) * (rank + 1)
    dist.all_reduce(x)
    assert x[0].item() == sum(range(1, size + 1))
    print(f"rank {dist.get_rank()} is done")
    dist.destroy_process_group()


def machines(rank: int, size: int) -> None:
    """As if the ranks were on two machines, in turn: MPI sends through the network."""
    socket.gethostname = lambda: f"machine{rank % 2}"
    well(rank, size)


def killed(rank: int, size: int) -> None:
    begin(rank, size)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()


def killed_in_mpi(rank: int, size: int) -> None:
    """While the others are in the end of MPI, where they hear nothing."""
    begin(rank, size)
    if rank == 1:
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGKILL)
    sys.modules["mpi4py.MPI"].Finalize()


def raised(rank: int, size: int) -> None:
    begin(rank, size)
    if rank == 1:
        raise ValueError("something is wrong")
    dist.barrier()


def late(rank: int, size: int) -> None:
    dist.init_process_group(rank=rank, world_size=size, timeout=timedelta(seconds=5))


if __name__ == "__main__":
    at, size, *rest = sys.argv[1:] or [os.environ["RANK"], os.environ["WORLD_SIZE"]]
    globals()[rest[0] if rest else "well"](int(at), int(size))
