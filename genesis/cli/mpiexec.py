"""The ``mpiexec`` of MPICH, and of libraries made of it, and that of Open MPI: how each is told, and what it prints."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from genesis.base.errors import DistributedError, message
from genesis.distributed import installed

_PATIENCE = 20  # seconds


class Kind(NamedTuple):
    """What one of them understands."""

    options: tuple[str, ...]  # mark each piece with the rank; take any user, number of ranks, and processor
    hosts: str  # the option that names machines
    hands_on: str  # the option that names a variable which ranks on other machines have, too; empty where they have all
    mark: re.Pattern[bytes]  # what is put before each piece that a rank wrote, at the beginning of a line or within one
    begin: bytes  # of that


MPICH = Kind(("-prepend-pattern", "\x1e%r\x1f"), "-hosts", "", re.compile(rb"\x1e(\d+)\x1f"), b"\x1e")
OPEN_MPI = Kind(
    ("--tag-output", "--allow-run-as-root", "--bind-to", "none", "--map-by", ":OVERSUBSCRIBE"),
    "--host",
    "-x",
    re.compile(rb"\[[^\[\],\n]*,(\d+)\]<std(?:out|err)>: ?"),
    b"[",
)
_OWN = ("OMPI_", "PMIX_", "PRTE_")  # what Open MPI says to itself: ranks are told anew
SIGNAL = re.compile(r"\bsignal (\d+)")  # of a rank that was killed, as both say it
PID = re.compile(r"PID (\d+)")


@functools.cache
def kind(path: str) -> Kind:
    """Whose launcher it is: it says so itself."""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=_PATIENCE).stdout
    except (OSError, subprocess.SubprocessError):
        return MPICH
    return OPEN_MPI if re.search("Open MPI|OpenRTE|PRRTE", said) else MPICH


def command(ranks: int, hosts: str | None, options: Sequence[str], names: Iterable[str]) -> tuple[list[str], Kind]:
    """How so many ranks are started, and by what.

    Args:
        options: more for the launcher of MPICH
        names: of variables of the environment that ranks have, on other machines, too

    Raises:
        RuntimeError: there is no launcher, or it is another one
    """
    path = installed.launcher()
    understood = kind(path)
    if options and understood is not MPICH:
        text = f"Slurm and Ray start ranks by the launcher of MPICH, and {os.path.basename(path)} is Open MPI's"
        raise DistributedError(message("run", text, hint=installed.HINT))
    on = [understood.hosts, hosts] if hosts else []
    if hosts and understood.hands_on:
        on[:0] = [each for name in names if not name.startswith(_OWN) for each in (understood.hands_on, name)]
    return [path, *understood.options, *options, *on, "-n", str(ranks)], understood
