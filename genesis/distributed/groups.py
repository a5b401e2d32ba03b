"""Groups of processes: how they begin, which ranks they have, and how they end."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from genesis.base.device import as_device, memory_named
from genesis.base.errors import (
    ArgumentError,
    ArgumentValueError,
    DistributedError,
    NoGroupError,
    UnsupportedError,
    message,
)
from genesis.distributed import arrivals
from genesis.distributed.calls import OPEN, Calls
from genesis.distributed.engine import Alone, Engine
from genesis.distributed.environment import TORCHRUN, Launch, launch, local_rank
from genesis.distributed.stores import Store
from genesis.distributed.watching import Watcher

default_pg_timeout = timedelta(minutes=30)
_LEAVING = 2.0  # seconds that a rank which ends with an error waits for the others to hear of it
_PRINTING = 0.3  # seconds in which they print what they heard


KEYED: WeakValueDictionary[str, ProcessGroup] = WeakValueDictionary()
_numbers = itertools.count()


class ProcessGroup:
    """Ranks that call collectives together. `init_process_group` and `new_group` make them."""

    def __init__(
        self, engine: Engine, ranks: tuple[int, ...], timeout: timedelta, name: str, backend: str | None = None
    ) -> None:
        self.engine, self.ranks, self.group_name = engine, ranks, name
        self.backend = backend.lower() if backend else engine.name
        self.calls = Calls(engine, ranks, timeout.total_seconds())
        self.key = f"group {next(_numbers)}"  # what a graph calls it
        self.store: Any = None  # of the world: what its ranks met by, or asked for since
        self.devices: dict[Any, Any] = {}  # what moves memory of a device between its ranks, see `devices`
        KEYED[self.key] = self

    def rank(self) -> int:
        """The rank of this process in the group."""
        return self.engine.rank

    def size(self) -> int:
        """How many processes the group has."""
        return self.engine.size

    def name(self) -> str:
        """The engine: ``"mpi"``, or ``"alone"`` for a world of one."""
        return self.engine.name

    def __repr__(self) -> str:
        return f"<process group {self.group_name!r} of ranks {list(self.ranks)} by {self.engine.name}>"

    def __deepcopy__(self, memo: Any) -> ProcessGroup:
        return self  # a copied model or mesh is of the same ranks


class GroupMember:
    """``WORLD``, the group of all processes, and ``NON_GROUP_MEMBER``, what `new_group` gives those outside."""

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER = object()


group = GroupMember

_groups: list[ProcessGroup] = []  # all but the world
_ended_by: list[str] = []  # the exception that ends this process


# ---- the beginning


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Begin: find out which rank this process is, and of how many.

    The launcher says it: ``genesis run -n 2``, ``mpiexec -n 2 python``, ``srun``, ``torchrun``; or the program does, with
    ``rank``, ``world_size`` and an address. Without any this process is a world of its own, which needs nothing installed
    and in which every call works; so one file serves a laptop and a cluster.

    Args:
        backend: ``"mpi"``; ``"gloo"`` means it, too, as there is one engine for the memory of CPUs; so does ``"nccl"``, where
            there is a GPU: tensors on it go through NCCL by themselves, or by the host where it is not installed
        init_method: ``"tcp://host:port"``, an address of the machine of rank 0, for processes that no launcher of MPI
            started; or ``"file:///path"``, a file that all of them see and that is taken away when they have met; without it
            the address of ``MASTER_ADDR`` and ``MASTER_PORT``. They need MPICH
        store: a `TCPStore` or another by which such processes meet, in place of ``init_method``
        timeout: after which a call that waits for other ranks is an error that says what they do; 30 minutes
        world_size, rank: what the launcher must have said, -1 for whatever it said; without one, what this process is
        group_name, pg_options, device_id: accepted for PyTorch's sake

    Raises:
        RuntimeError: it was called before, another number of processes was started, or some do not come
        ImportError: there are several processes, and mpi4py is not installed
        NotImplementedError: a backend that is not here; another ``init_method``

    >>> import genesis.distributed as dist
    >>> dist.init_process_group()
    >>> dist.get_rank(), dist.get_world_size()
    (0, 1)
    >>> dist.destroy_process_group()
    """
    name = "init_process_group"
    if GroupMember.WORLD is not None:
        raise DistributedError(message(name, "there is a process group already", hint="destroy_process_group() first"))
    _check_backend(name, backend)
    said = launch() or _said_by_program(init_method, rank, world_size, store)
    limit = timeout or default_pg_timeout
    engine = Alone() if said is None or said.size == 1 else _mpi(said, init_method, limit.total_seconds(), store)
    for what, wanted, have in (("world_size", world_size, engine.size), ("rank", rank, engine.rank)):
        if wanted not in (-1, have):
            text = f"{what} is {wanted}, and the launcher says {have}"
            hint = f"genesis run -n {world_size} script.py" if what == "world_size" else "rank=-1"
            raise ArgumentValueError(message(name, text, hint=hint))
    GroupMember.WORLD = world = ProcessGroup(engine, tuple(range(engine.size)), limit, group_name or "0", backend)
    world.store = store
    if engine.size > 1:
        _watch_the_end()
    if engine.size > 1 and engine.threads:
        _watchers.append(Watcher(lambda: [world.calls, *[each.calls for each in _groups if each.size() > 1]]))


def _check_backend(name: str, backend: str | None) -> None:
    kinds = [part.rpartition(":")[2] for part in str(backend or "mpi").lower().split(",")]
    known = ("mpi", "gloo", "alone", *(["nccl"] if memory_named("cuda") is not None else []))
    if not any([kind in known for kind in kinds]):
        raise UnsupportedError(message(name, f"there is no backend {backend!r} here", hint="'mpi', or None"))


def _said_by_program(init_method: str | None, rank: int, size: int, store: Any) -> Launch | None:
    """What a program knows that no launcher started: rank and size, if there is an address or a store, too."""
    if store is not None and not isinstance(store, Store):
        raise ArgumentError(message("init_process_group", f"store is {type(store).__name__}", hint="a TCPStore"))
    named = (init_method or "").startswith(("tcp://", "file:"))
    known = named or store is not None or "MASTER_ADDR" in os.environ
    if not known and size > 1 and init_method not in (None, "env://"):
        text = f"init_method is {init_method!r}, and processes that no launcher started meet at an address"
        raise UnsupportedError(
            message("init_process_group", text, hint="'tcp://localhost:29500', or genesis run -n 2 script.py")
        )
    return Launch(TORCHRUN, rank, size, rank) if known and 0 <= rank < size else None


def _mpi(said: Launch, init_method: str | None, seconds: float, store: Any) -> Engine:
    from genesis.distributed.mpi import MPI, end_all

    others = arrivals.together(said, init_method, seconds, store) if said.by == TORCHRUN else contextlib.nullcontext()
    with others:
        try:
            engine = MPI(timeout=seconds)
        except DistributedError:
            atexit.register(end_all)  # the end of MPI would wait for those that did not come
            raise
    if engine.size != said.size:
        text = f"{said.by} says {said.size} processes, MPI knows of {engine.size}"
        hint = f"start them with genesis run -n {said.size} script.py, or with the mpiexec of the MPI that mpi4py uses"
        raise DistributedError(message("init_process_group", text, hint=hint))
    return engine


def is_available() -> bool:
    """Whether processes can work together; those of a world of one always can."""
    return True


def is_mpi_available() -> bool:
    """Whether several processes can: mpi4py is installed."""
    from importlib.util import find_spec

    return find_spec("mpi4py") is not None


def is_gloo_available() -> bool:
    """Whether gloo is here: it is not, MPI does what it does."""
    return False


def is_nccl_available() -> bool:
    """Whether NCCL is here, and a GPU: tensors on GPUs go through it, and ranks agree about that by MPI."""
    memory = memory_named("cuda")
    return memory is not None and memory.between_ranks.available()


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_backend_available(backend: str) -> bool:
    """Whether a backend is here.

    >>> is_backend_available("nccl")
    False
    """
    return {"mpi": is_mpi_available, "nccl": is_nccl_available}.get(backend.lower(), is_gloo_available)()


def is_initialized() -> bool:
    """Whether `init_process_group` was called."""
    return GroupMember.WORLD is not None


# ---- ranks


def group_of(name: str, group: Any = None) -> ProcessGroup:
    """The group that is meant: the world for None.

    Raises:
        RuntimeError: there is none, or this process is not in it
    """
    members = GroupMember.WORLD if group is None else group
    if members is None:
        raise NoGroupError(message(name, "there is no process group", hint="init_process_group() first"))
    if members is GroupMember.NON_GROUP_MEMBER:
        raise DistributedError(message(name, "this process is not in the group", hint="call it in its ranks only"))
    if not isinstance(members, ProcessGroup):
        raise ArgumentError(message(name, f"group is {type(members).__name__}, expected a process group"))
    return members


def group_keyed(name: str, key: str | None) -> ProcessGroup:
    """The group that a graph calls by its key, or the world for None."""
    return group_of(name, None if key is None else KEYED.get(key, GroupMember.NON_GROUP_MEMBER))


def get_rank(group: Any = None) -> int:
    """The rank of this process in a group (-1 where it is not in it).

    Raises:
        RuntimeError: `init_process_group` was not called
    """
    return -1 if group is GroupMember.NON_GROUP_MEMBER else group_of("get_rank", group).engine.rank


def get_world_size(group: Any = None) -> int:
    """How many processes a group has (-1 where this one is not in it)."""
    return -1 if group is GroupMember.NON_GROUP_MEMBER else group_of("get_world_size", group).engine.size


def get_backend(group: Any = None) -> str:
    """What a group was made with, as programs ask for what they asked for; else its engine: ``"mpi"``, or ``"alone"`` in a
    world of one.

    >>> import genesis.distributed as dist
    >>> dist.init_process_group("gloo")
    >>> dist.get_backend()
    'gloo'
    >>> dist.destroy_process_group()
    """
    return group_of("get_backend", group).backend


def get_default_backend_for_device(device: Any) -> str:
    """What moves tensors of a device between ranks: ``"mpi"`` those of the CPU, ``"nccl"`` those of a GPU.

    >>> get_default_backend_for_device("cpu")
    'mpi'
    """
    return "nccl" if as_device(device).type == "cuda" else "mpi"


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank among the processes of this machine, or ``fallback_rank`` where nobody says it."""
    return local_rank(fallback_rank)


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The ranks of a group, as they are in the world."""
    return list(group_of("get_process_group_ranks", group).ranks)


def get_global_rank(group: Any, group_rank: int) -> int:
    """The rank in the world of a rank of a group."""
    return group_of("get_global_rank", group).ranks[check_rank("get_global_rank", group, group_rank)]


def get_group_rank(group: Any, global_rank: int) -> int:
    """The rank in a group of a rank of the world."""
    return rank_in("get_group_rank", group_of("get_group_rank", group), global_rank)


def check_rank(name: str, group: Any, rank: Any) -> int:
    """A rank within a group, checked."""
    size = group_of(name, group).engine.size
    if not isinstance(rank, int | np.integer) or not 0 <= rank < size:
        raise ArgumentValueError(message(name, f"rank {rank!r} is not in a group of {size}", hint=f"0 to {size - 1}"))
    return int(rank)


def rank_in(name: str, members: ProcessGroup, global_rank: Any) -> int:
    """The rank in a group of a rank of the world, checked."""
    if global_rank not in members.ranks:
        raise ArgumentValueError(message(name, f"rank {global_rank!r} is not in the group", [("group", members)]))
    return members.ranks.index(global_rank)


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """A group of some ranks of the world; *all* processes call it, those outside get ``GroupMember.NON_GROUP_MEMBER``.

    Args:
        ranks: of the world; None for all
        timeout: as for `init_process_group`
        sort_ranks: order them; without it they have the order that is given
        backend, pg_options, use_local_synchronization, group_desc, device_id: accepted for PyTorch's sake

    >>> import genesis.distributed as dist
    >>> dist.init_process_group()
    >>> pair = dist.new_group([0])
    >>> dist.get_world_size(pair)
    1
    >>> dist.destroy_process_group()
    """
    world = group_of("new_group")
    _check_backend("new_group", backend)
    chosen = list(world.ranks if ranks is None else ranks)
    for rank in chosen:
        check_rank("new_group", None, rank)
    if len(set(chosen)) < len(chosen) or not chosen:
        raise ArgumentValueError(message("new_group", f"a group of the ranks {chosen}", hint="name each rank once"))
    chosen = sorted(chosen) if sort_ranks else chosen
    world.calls.meet(*world.calls.begin("new_group", (None, None, str(chosen))))
    engine = world.engine.split(chosen)
    if engine is None:
        return GroupMember.NON_GROUP_MEMBER
    called = group_desc or str(len(_groups) + 1)
    made = ProcessGroup(engine, tuple(chosen), timeout or default_pg_timeout, called, backend or world.backend)
    _groups.append(made)
    return made


# ---- the end


def destroy_process_group(group: Any = None) -> None:
    """End a group: all its ranks call it. Without one, end all of them."""
    members = group_of("destroy_process_group", group)
    if members is not GroupMember.WORLD:
        _groups.remove(members)
        _close(members)
        return
    while _groups:
        _close(_groups.pop())
    try:
        _close(members)
    finally:
        GroupMember.WORLD = None


def _close(members: ProcessGroup) -> None:
    for work in list(OPEN):
        if work._calls is members.calls:
            work.wait()
    members.calls.meet(*members.calls.begin("the end of the group"))
    if members is GroupMember.WORLD:
        _stop_watching()
    for watcher in _watchers:
        watcher.settle()
    members.calls.broken = message("destroy_process_group", f"{members!r} has ended", hint="new_group(ranks)")
    for device in members.devices.values():
        if device is not None:
            device.close()
    members.devices.clear()
    members.engine.close()


def _stop_watching() -> None:
    while _watchers:
        _watchers.pop().stop()


_watchers: list[Watcher] = []
_watching: list[bool] = []


def _watch_the_end() -> None:
    """Tell the others when this process ends: they would wait for it for ever."""
    if _watching:
        return
    _watching.append(True)
    atexit.register(_leave)
    shown = sys.excepthook

    def noted(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        text = f"{kind.__name__}: {error}".partition("\n")[0]
        _ended_by.append(text[:200])
        shown(kind, error, trace)

    sys.excepthook = noted


def _leave() -> None:
    world = GroupMember.WORLD
    if world is None or world.engine.size == 1:
        return
    sys.stdout.flush()
    try:
        if world.calls.broken is None and not _ended_by:
            world.calls.meet(*world.calls.begin("the end of the group"), float("inf"))
            _stop_watching()  # before MPI ends
            world.engine.close()
            return
        if world.calls.broken is None:
            world.calls.meet(*world.calls.begin(f"ended by {_ended_by[0]}"), _LEAVING)
    except DistributedError as error:
        if not _ended_by:
            print(f"rank {world.engine.rank} ended: {error}", file=sys.stderr)
    with contextlib.suppress(Exception):
        sys.stderr.flush()
    time.sleep(_PRINTING)
    world.engine.abort()
