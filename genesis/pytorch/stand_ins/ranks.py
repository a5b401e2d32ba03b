"""``torch.distributed``: names of backends, and of what launchers add to a program."""

from __future__ import annotations

import enum
import importlib
import os
from typing import Any, ClassVar

from genesis.pytorch.reasons import why_absent
from genesis.pytorch.stand_ins.common import Values, absent, answer, as_it_is, values


class Backend(str):
    """The name of a backend, in small letters: ``Backend("GLOO")`` is ``"gloo"``."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, FAKE = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl", "fake"
    backend_list = (UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE)
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": GLOO, "cuda": NCCL}

    __slots__ = ()

    def __new__(cls, name: str) -> Any:
        return name.lower()


class DebugLevel(enum.Enum):
    """What ``TORCH_DISTRIBUTED_DEBUG`` says; ranks that disagree are always told."""

    OFF, INFO, DETAIL = 0, 1, 2


def _debug_level() -> DebugLevel:
    said = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    return DebugLevel[said] if said in DebugLevel.__members__ else DebugLevel.OFF


_LOCAL_SGD = "torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook"
values(_LOCAL_SGD)(  # trainers ask whether a state is one of these
    lambda: {
        name: absent(f"{_LOCAL_SGD}.{name}", why_absent(f"{_LOCAL_SGD}.{name}"))
        for name in ("PostLocalSGDState", "post_localSGD_hook")
    }
)


@values("torch.distributed")
def _distributed() -> Values:
    return {"Backend": Backend, "DebugLevel": DebugLevel, "get_debug_level": _debug_level}


@values("torch.distributed.distributed_c10d")
def _c10d() -> Values:
    groups = importlib.import_module("genesis.distributed.groups")
    distributed = importlib.import_module("genesis.distributed")
    stores = {
        name: getattr(distributed, name) for name in ("FileStore", "HashStore", "PrefixStore", "Store", "TCPStore")
    }
    return {**_distributed(), **stores, "_get_default_group": lambda: groups.group_of("_get_default_group")}


@values("torch.distributed.elastic.multiprocessing.errors")
def _errors() -> Values:
    """`genesis run` says which rank failed first, and why, of any program."""
    return {"record": as_it_is}


@values("torch.distributed.algorithms._checkpoint.checkpoint_wrapper")
def _checkpoint_wrapper() -> Values:
    module = importlib.import_module("genesis.distributed.algorithms.checkpoint_wrapper")
    wrapped = "_checkpoint_wrapped_module"  # in names of PyTorch's wrapped modules; ours keep theirs
    return {
        "CheckpointWrapper": module.CheckpointWrapper, "_CHECKPOINT_WRAPPED_MODULE": wrapped,
        "_CHECKPOINT_PREFIX": f"{wrapped}.",
    }  # fmt: skip


def _or_policy(module: Any, recurse: bool, nonwrapped_numel: int, policies: Any) -> bool:
    """Whether one of several policies wraps a module."""
    return any([each(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for each in policies])


def _module_wrap_policy(module: Any, recurse: bool, nonwrapped_numel: int, module_classes: Any) -> bool:
    return recurse or isinstance(module, tuple(module_classes))


@values("torch.distributed.fsdp.wrap")
def _policies() -> Values:
    return {"_or_policy": _or_policy, "_module_wrap_policy": _module_wrap_policy}


class AsyncCheckpointerType(enum.Enum):
    """What writes meanwhile: a thread, whatever is said."""

    THREAD, PROCESS = "thread", "process"


@values("torch.distributed.checkpoint.state_dict_saver")
def _saver() -> Values:
    return {"AsyncCheckpointerType": AsyncCheckpointerType}


@values("torch.distributed.checkpoint.default_planner")
def _planners() -> Values:
    """Trainers import them, and need them for partial snapshots only."""
    family = "torch.distributed.checkpoint"
    names = ("DefaultLoadPlanner", "DefaultSavePlanner")
    return {name: absent(f"{family}.{name}", why_absent(f"{family}.{name}")) for name in names}


@values("torch.distributed.checkpoint.state_dict")
def _state_dict() -> Values:
    module = importlib.import_module("genesis.distributed.checkpoint.state_dict")
    return {"_init_optim_state": module._init_optim_state}


def _all_of(name: str) -> Values:
    module = importlib.import_module(name)
    return {each: getattr(module, each) for each in module.__all__}


@values("torch.distributed._composable")
def _composable() -> Values:
    return {"fully_shard": _all_of("genesis.distributed.fsdp")["fully_shard"]}


@values("torch.distributed._composable.fsdp", "torch.distributed._composable.fsdp.fully_shard")
def _composable_fsdp() -> Values:
    """Where `fully_shard` was at first."""
    return _all_of("genesis.distributed.fsdp")


@values(
    "torch.distributed._tensor",
    "torch.distributed._tensor.placement_types",
    "torch.distributed.tensor.placement_types",
)
def _tensor() -> Values:
    """Where tensors in parts were at first, and the modules of their placements."""
    return _all_of("genesis.distributed.tensor")


@values(
    "torch.distributed.tensor.parallel.api",
    "torch.distributed.tensor.parallel.loss",
    "torch.distributed.tensor.parallel.style",
)
def _tensor_parallel() -> Values:
    """The modules of PyTorch in which they are defined."""
    return _all_of("genesis.distributed.tensor.parallel")


@values("torch.distributed.autograd", "torch.distributed.rpc")
def _calls_of_processes() -> Values:
    return {"is_available": answer(False)}
