"""What jobs leave that were killed at once with their launcher: the next ``genesis run`` takes it away.

A job that ends, however it ends, takes away what it made. But nobody takes anything away of a launcher that was killed
before its ranks began, or of ranks that were killed while MPI began and that nobody waits for.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from genesis.cli.rank import LAUNCHER

PREFIX = "genesis-run-"
_MEMORY = Path("/dev/shm")
_NAMES = ("mpich_shm_*", "ucx_shm_posix_*")  # of MPICH and of what it may be built on, until all ranks of a job have it
_YOUNG = 2.0  # seconds: what is as young may be about to be used


def sweep() -> None:
    """Remove folders of launchers that are gone, and shared memory of MPI that no process has."""
    for folder in _own(Path(tempfile.gettempdir()).glob(PREFIX + "*")):
        with contextlib.suppress(OSError, ValueError):
            if not lives(int((folder / LAUNCHER).read_text())):
                shutil.rmtree(folder, ignore_errors=True)
    files = _own([path for names in _NAMES for path in _MEMORY.glob(names)])
    mapped = _mapped() if files else ""
    for file in files:
        if str(file) not in mapped:
            with contextlib.suppress(OSError):
                file.unlink()


def _own(paths: Iterable[Path]) -> list[Path]:
    """Those of this user that are not young."""
    own = []
    for path in paths:
        with contextlib.suppress(OSError):
            facts = path.stat()
            if facts.st_uid == os.getuid() and time.time() - facts.st_ctime > _YOUNG:
                own.append(path)
    return own


def _mapped() -> str:
    """What files processes have in their memory, as far as this user may know."""
    out = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            out.append((process / "maps").read_text())
    return "\n".join(out)


def lives(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
