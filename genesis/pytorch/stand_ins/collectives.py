"""``torch.distributed._functional_collectives``: collectives that return new tensors, and what programs take from inside of
``torch.distributed.distributed_c10d``.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from genesis.base.device import CPU
from genesis.base.errors import ArgumentError, message
from genesis.base.late import Late
from genesis.core.graph.modes import no_grad
from genesis.pytorch.stand_ins.common import Values, as_it_is, values

_distributed, _groups = Late("genesis.distributed"), Late("genesis.distributed.groups")
_ops, _join = Late("genesis.distributed.nn.ops"), Late("genesis.ops.shapes.join")


# ---- new tensors


def _members(name: str, group: Any) -> Any:
    """A group by itself, by its name, or as a mesh of one dimension, or one dimension of a mesh."""
    if isinstance(group, tuple) and len(group) == 2:
        return group[0].get_group(group[1])
    if isinstance(group, str):
        return resolve_process_group(group)
    if isinstance(group, _distributed.DeviceMesh):
        return group.get_group()
    return _groups.group_of(name, group)


def _op_named(name: str, op: Any) -> str:
    known = {each.name.lower(): each.value for each in _distributed.ReduceOp}
    said = op.name if isinstance(op, _distributed.ReduceOp) else str(op)
    if said.lower() not in known:
        raise ArgumentError(message(name, f"reduceOp is {op!r}", hint="one of " + ", ".join(map(repr, known))))
    return str(known[said.lower()])


def all_reduce(self: Any, reduceOp: str, group: Any, tag: str = "") -> Any:  # noqa: N803  (PyTorch's name)
    """The combination of the tensors of all ranks."""
    with no_grad():
        return _ops.all_reduce(self, _op_named("all_reduce", reduceOp), _members("all_reduce", group).key)


def broadcast(self: Any, src: int, group: Any, tag: str = "") -> Any:
    """The tensor of one rank of the group."""
    with no_grad():
        return _ops.broadcast_from(self, src, _members("broadcast", group).key)


def all_gather_tensor_autograd(self: Any, gather_dim: int, group: Any, tag: str = "") -> Any:
    """The tensors of all ranks, one behind the other along a dimension; with a gradient."""
    stacked = _ops.all_gather_stacked(self, _members("all_gather_tensor", group).key)
    return _join.cat(list(stacked.unbind(0)), gather_dim)


def reduce_scatter_tensor_autograd(self: Any, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Any:  # noqa: N803
    """This rank's part along a dimension of the combination of all tensors; with a gradient."""
    members, name = _members("reduce_scatter_tensor", group), "reduce_scatter_tensor"
    if self.shape[scatter_dim] % members.size():
        text = f"dimension {scatter_dim} has {self.shape[scatter_dim]} elements, the group {members.size()} ranks"
        raise ArgumentError(message(name, text, hint="a size that the ranks divide"))
    blocks = _join.stack(list(self.chunk(members.size(), scatter_dim)))
    return _ops.reduce_scatter_stacked(blocks, _op_named(name, reduceOp), members.key)


def all_to_all_single_autograd(
    self: Any, output_split_sizes: Sequence[int] | None, input_split_sizes: Sequence[int] | None, group: Any, tag: str = ""
) -> Any:  # fmt: skip
    """A block of rows to each rank, and what comes from each; with a gradient."""
    members = _members("all_to_all_single", group)
    equal = (self.shape[0] // members.size(),) * members.size()
    sent, received = (
        equal if sizes is None else tuple(map(int, sizes)) for sizes in (input_split_sizes, output_split_sizes)
    )
    return _ops.exchange(self, sent, received, members.key)


def _without_history(function: Any, name: str) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        with no_grad():
            return function(*args, **kwargs)

    call.__name__, call.__doc__ = name, function.__doc__.replace("; with a gradient", "")
    return call


@values("torch.distributed._functional_collectives")
def _functional() -> Values:
    """What was gathered is there: nothing has to be waited for."""
    with_gradients = (all_gather_tensor_autograd, reduce_scatter_tensor_autograd, all_to_all_single_autograd)
    plain = {each.__name__.removesuffix("_autograd"): each for each in with_gradients}
    return {
        "all_reduce": all_reduce, "broadcast": broadcast, "wait_tensor": as_it_is,
        **{each.__name__: each for each in with_gradients},
        **{name: _without_history(function, name) for name, function in plain.items()},
    }  # fmt: skip


# ---- from inside


def default_store() -> Any:
    """The store that all ranks have: what `init_process_group` was given, or one that rank 0 has in its memory. All ranks
    have to ask for that once, together.
    """
    world = _groups.group_of("_get_default_store")
    if world.store is None and world.size() == 1:
        world.store = _distributed.HashStore()
    elif world.store is None:
        hosts: list[Any] = [None] * world.size()
        _distributed.all_gather_object(hosts, socket.gethostname())
        host = "127.0.0.1" if len(set(hosts)) == 1 else hosts[0]
        if world.rank() == 0:
            world.store = _distributed.TCPStore(host, 0, world.size(), True, wait_for_workers=False)
        port = [world.store.port if world.rank() == 0 else None]
        _distributed.broadcast_object_list(port, 0)
        if world.rank():
            world.store = _distributed.TCPStore(host, port[0], world.size())
    return world.store


def resolve_process_group(name: str) -> Any:
    """The group of a name."""
    named = [each for each in _groups.KEYED.values() if each.group_name == name]
    return _groups.group_of("_resolve_process_group", named[0] if named else _groups.GroupMember.NON_GROUP_MEMBER)


def set_pg_timeout(timeout: timedelta, group: Any = None) -> None:
    """After which a call that waits for other ranks is an error."""
    _groups.group_of("_set_pg_timeout", group).calls.timeout = timeout.total_seconds()


def _pg_timeout(group: Any = None) -> timedelta:
    return timedelta(seconds=_groups.group_of("_get_pg_timeout", group).calls.timeout)


@contextlib.contextmanager
def coalescing_manager(group: Any = None, device: Any = None, async_ops: bool = False) -> Iterator[Any]:
    """Collectives in here are made one after the other, and each is done when it returns."""
    yield SimpleNamespace(wait=lambda: None)


class _World:
    """The groups there are."""

    @property
    def default_pg(self) -> Any:
        return _groups.GroupMember.WORLD

    @property
    def pg_map(self) -> dict[Any, Any]:
        """Of each group the backend, and its store."""
        there = [_groups.GroupMember.WORLD, *_groups._groups]
        return {each: (each.backend, each.store) for each in there if each is not None}

    @property
    def pg_names(self) -> dict[Any, str]:
        return {each: each.group_name for each in self.pg_map}


@values("torch.distributed")
def _managed() -> Values:
    return {"_coalescing_manager": coalescing_manager}


@values("torch.distributed.constants")
def _constants() -> Values:
    return {"default_pg_nccl_timeout": _groups.default_pg_timeout}


@values("torch.distributed.distributed_c10d")
def _inside() -> Values:
    return {
        **_managed(), **_constants(),
        "_get_default_store": default_store, "_resolve_process_group": resolve_process_group, "_world": _World(),
        "_set_pg_timeout": set_pg_timeout, "_get_pg_timeout": _pg_timeout,
        "_get_pg_default_device": lambda group=None: CPU,
        "_rank_not_in_group": lambda group: group is _groups.GroupMember.NON_GROUP_MEMBER,
        "_get_group_size": _groups.get_world_size, "_get_global_rank": _groups.get_global_rank,
        "_get_process_group_name": lambda group: group.group_name,
    }  # fmt: skip
