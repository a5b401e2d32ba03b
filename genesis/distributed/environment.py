"""What a launcher said in the environment: which rank this process is, of how many, and which on its machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from genesis.base.errors import ArgumentValueError, message


class Launch(NamedTuple):
    """What a launcher said of this process."""

    by: str
    rank: int
    size: int
    local_rank: int


TORCHRUN = "torchrun"
# who says it: the names of rank, size, and the same on this machine; the first that says a rank counts
LAUNCHERS = {
    "mpiexec of MPICH": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    "mpiexec of Open MPI": (
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    "srun": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"),
    TORCHRUN: ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
}  # fmt: skip


def launch(environ: Mapping[str, str] | None = None) -> Launch | None:
    """What the environment says, or None where nothing was launched.

    >>> launch({"PMI_RANK": "1", "PMI_SIZE": "2", "RANK": "7"})
    Launch(by='mpiexec of MPICH', rank=1, size=2, local_rank=1)
    >>> launch({}) is None
    True

    Raises:
        ValueError: a variable is no number, or the rank is not below the size
    """
    environ = os.environ if environ is None else environ
    launchers = {TORCHRUN: LAUNCHERS[TORCHRUN]} if "TORCHELASTIC_RUN_ID" in environ else LAUNCHERS  # also under srun
    for by, (rank, size, local, _) in launchers.items():
        if rank in environ and size in environ:
            numbers = [_number(environ, name) for name in (rank, size)]
            if not 0 <= numbers[0] < numbers[1]:
                text = f"the environment says rank {numbers[0]} of {numbers[1]}"
                raise ArgumentValueError(message("init_process_group", text, [(rank, numbers[0]), (size, numbers[1])]))
            return Launch(by, *numbers, _number(environ, local) if local in environ else numbers[0])
    return None


def local_size(environ: Mapping[str, str] | None = None) -> int | None:
    """How many ranks this machine has; None where no launcher says it.

    >>> local_size({"PMI_RANK": "1", "PMI_SIZE": "4", "MPI_LOCALNRANKS": "2"})
    2
    """
    environ = os.environ if environ is None else environ
    said = launch(environ)
    name = None if said is None else LAUNCHERS[said.by][3]
    return _number(environ, name) if name is not None and name in environ else None


def logical_ranks(environ: Mapping[str, str] | None = None) -> int | None:
    """How many ranks a training computes as, whatever their number: ``GENESIS_SHARDS``; None where it is not said.

    >>> logical_ranks({"GENESIS_SHARDS": "4"})
    4
    """
    environ = os.environ if environ is None else environ
    return _number(environ, _SHARDS) if environ.get(_SHARDS) else None


_SHARDS = "GENESIS_SHARDS"


def _number(environ: Mapping[str, str], name: str) -> int:
    try:
        return int(environ[name])
    except ValueError:
        text = f"{name} is {environ[name]!r} in the environment, expected a number"
        raise ArgumentValueError(message("init_process_group", text)) from None


def local_rank(fallback: int | None = None) -> int:
    """The rank among the processes of this machine.

    Raises:
        RuntimeError: no launcher said it, and there is no ``fallback``
    """
    said = launch()
    if said is not None:
        return said.local_rank
    if fallback is None:
        text = "no launcher said the rank on this machine"
        raise ArgumentValueError(message("get_node_local_rank", text, hint="genesis run -n 2, or fallback_rank=0"))
    return fallback
