"""Jobs of several ranks for tests: a script, run by the launcher that goes with the MPI library."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from genesis.base.errors import DistributedError
from genesis.cli import leftovers
from genesis.distributed import installed

JOBS = Path(__file__).parent / "jobs"
SHARED = Path("/dev/shm")
ALLOWED = {  # what Open MPI refuses by itself: to be started by root, more ranks than processors
    "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":OVERSUBSCRIBE", "PRTE_MCA_hwloc_default_binding_policy": "none",
}  # fmt: skip


def _missing() -> str | None:
    if find_spec("mpi4py") is None:
        return "several ranks need mpi4py, which is not installed"
    try:
        installed.launcher()
    except DistributedError:
        return "several ranks need mpiexec, which is not installed"
    return None


needs_mpi = pytest.mark.skipif(_missing() is not None, reason=str(_missing()))


def job(ranks: int, name: str, *arguments: str, seconds: float = 400) -> subprocess.CompletedProcess[str]:
    """Run a script of the folder ``jobs`` in so many ranks, and wait for its end."""
    command = [installed.launcher(), "-n", str(ranks), sys.executable, str(JOBS / name), *arguments]
    environment = {**os.environ, **ALLOWED, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment)


def passes(ranks: int, name: str, *arguments: str) -> None:
    """A job whose ranks all say ``rank N is done`` and end well."""
    done = job(ranks, name, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    said = sorted(re.findall(r"rank \d+ is done", done.stdout))  # lines of several ranks may be one
    assert said == [f"rank {rank} is done" for rank in range(ranks)], done.stdout + done.stderr


def unused_memory(before: set[Path], until: float) -> set[Path]:
    """Files of shared memory that are new, were there at a time, and that no process has: those of jobs that other tests run
    meanwhile are mapped by them, or younger.
    """
    mapped, left = leftovers._mapped(), set()
    for path in set(SHARED.iterdir()) - before:
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ctime <= until and str(path) not in mapped:
                left.add(path)
    return left
