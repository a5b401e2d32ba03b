"""What ``genesis run`` is asked for, and why it cannot be done, which is said before anything starts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from genesis.base.text import visible

_LEAST = 30 * 2**20  # bytes that a rank takes at least: Python, NumPy and MPI


class Job(NamedTuple):
    """What is to be run, and how."""

    script: str
    arguments: Sequence[str]
    ranks: int
    torch: bool = False
    hosts: str | None = None
    logs: str | None = None
    max_restarts: int = 0
    options: Sequence[str] = ()  # more for mpiexec: how it starts processes on other machines


def refusal(job: Job) -> str | None:
    """What is wrong with a job that would not begin, as a sentence; the folder for logs is made."""
    return _of_numbers(job) or _of_script(job.script) or _of_logs(job.logs)


def _of_numbers(job: Job) -> str | None:
    if job.ranks < 1:
        return f"-n {job.ranks}, expected at least 1"
    if job.max_restarts < 0:
        return f"--max-restarts {job.max_restarts}, expected 0 or more"
    if job.hosts is not None and not all([name.partition(":")[0].strip() for name in job.hosts.split(",")]):
        return f"--hosts {visible(job.hosts)!r}, expected names of machines with commas between them"
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if job.hosts is None and not job.options and "SLURM_JOB_ID" not in os.environ and job.ranks * _LEAST > there:
        return f"-n {job.ranks}, which takes more than the {there / 2**30:.0f} GiB of this machine's memory"
    return None


def _of_script(script: str) -> str | None:
    path = Path(script, "__main__.py") if Path(script).is_dir() else Path(script)
    try:
        path.open("rb").close()
    except (OSError, ValueError) as error:  # a name with a zero byte in it
        return f"{visible(str(path))}: {getattr(error, 'strerror', None) or error}"
    return None


def _of_logs(logs: str | None) -> str | None:
    if logs is None:
        return None
    if not logs:
        return "--logs '', expected the name of a folder"
    try:
        Path(logs).mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        return f"--logs {visible(logs)}: this is a file, expected a folder, or a name for one"
    except (OSError, ValueError) as error:
        return f"--logs {visible(logs)}: {getattr(error, 'strerror', None) or error}"
    if not os.access(logs, os.W_OK | os.X_OK):
        return f"--logs {visible(logs)}: nothing can be written there"
    return None
