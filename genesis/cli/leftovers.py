"""What jobs leave that were killed at once with their launcher: the next ``genesis run`` takes it away.

A job that ends, however it ends, takes away what it made. But nobody takes anything away of a launcher that was killed
before its ranks began, or of ranks that were killed while MPI began and that nobody waits for.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from genesis.distributed.mpi import files_of

_FOLDER = re.compile(r"genesis-run-(\d+)-\w+")  # of a job: the number of its launcher's process
_MEMORY = Path("/dev/shm")
_NAMES = ("mpich_shm_*", "ucx_shm_posix_*")  # of MPICH and of what it may be built on, until all ranks of a job have it
_TOLD, _TEMPORARY = "hydra_hwloc_xmlfile_*", Path("/tmp")  # in which MPICH's launcher tells ranks of the processors
_TIMES = 20  # a folder is taken away, at most: somebody else may own what is in it
_YOUNG = 2.0  # seconds: what is as young may be about to be used


def folder_of_a_job() -> str:
    """A new folder for the notes of this launcher's ranks: its name says whose it is as soon as it is there."""
    return tempfile.mkdtemp(prefix=f"genesis-run-{os.getpid()}-")


def launcher_of(folder: Path) -> int:
    """The process of a folder's launcher; 0 of another folder."""
    name = _FOLDER.fullmatch(folder.name)
    return 0 if name is None else int(name[1])


def remove(folder: str | Path) -> None:
    """Take a job's folder away, though ranks that are about to end may still write to it."""
    for _ in range(_TIMES):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            return
        time.sleep(0.01)


def sweep() -> None:
    """Remove folders of launchers that are gone, shared memory of MPI that no process has, and what its launchers told."""
    for folder in _own(Path(tempfile.gettempdir()).glob("genesis-run-*")):
        launcher = launcher_of(folder)
        if launcher and not lives(launcher):
            remove(folder)
    _remove_unused([path for names in _NAMES for path in _MEMORY.glob(names)], _mapped)
    if Path("/proc/self/fd").exists():
        _remove_unused(_TEMPORARY.glob(_TOLD), _opened)


def _remove_unused(paths: Iterable[Path], used: Callable[[], str]) -> None:
    files = _own(paths)
    names = used() if files else ""
    for file in files:
        if str(file) not in names:
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
            out.append((process / "maps").read_text(errors="replace"))
    return "\n".join(out)


def _opened() -> str:
    """What files processes have open, as far as this user may know."""
    folders = list(Path("/proc").glob("[0-9]*"))
    return "\n".join([name for each in folders for name in files_of(int(each.name))])


def lives(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
