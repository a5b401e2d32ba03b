"""Write a file so that at every moment the name stands for the whole old file or the whole new one.

The new content goes to a temporary file beside the target, which is locked (`flock`) as long as its writer lives. The
system drops the lock with the process, whatever ended it: a temporary file that can be locked is a killed writer's, and
the next writer removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

PREFIX, SUFFIX = ".genesis-", ".tmp"  # of temporary files: a fixed length, whatever the target's name


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` as the whole content of a file; see `replacing`.

    Raises:
        OSError: the folder cannot be written to; nothing is left behind
    """
    with replacing(path) as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file whose content becomes that of ``path`` at the end of the ``with``, or never.

    Symbolic links are followed, and a file that exists keeps its mode and (where the system allows it) its owner. Pipes
    and character devices cannot be replaced: they are written to.

    Raises:
        OSError: a folder, a socket or a block device, a file that may not be written to; no space, no permission
    """
    status = _status(path)
    if status is not None and (stat.S_ISFIFO(status.st_mode) or stat.S_ISCHR(status.st_mode)):
        with open(path, "wb") as stream:
            yield stream
        return
    target = Path(os.path.realpath(path))
    if status is not None:
        _require_replaceable(target, status)
    remove_orphans(target.parent)
    handle, name = _temporary(target.parent, 0o666 if status is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            if status is not None:
                _keep_owner_and_mode(handle, status)
            os.fsync(handle)
            os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    sync(target.parent)


def remove_orphans(folder: Path) -> None:
    """Remove the temporary files that killed writers left; those of live ones are locked."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.name.endswith(SUFFIX) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):  # somebody else's, locked, or gone by now
                    _remove_unless_locked(entry.path)


def _remove_unless_locked(name: str) -> None:
    handle = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name)
    finally:
        os.close(handle)


def _temporary(folder: Path, mode: int) -> tuple[int, str]:
    """A new file, open and locked. The umask is the system's business: it applies to ``mode``."""
    while True:
        name = str(folder / f"{PREFIX}{secrets.token_hex(8)}{SUFFIX}")
        try:
            handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        except FileExistsError:
            continue
        with contextlib.suppress(OSError):  # a file system without locks: orphans stay, too
            fcntl.flock(handle, fcntl.LOCK_EX)  # waits for whoever took it for an orphan, and has removed it then
        if _is(name, handle):
            return handle, name
        os.close(handle)


def _is(name: str, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(name), os.fstat(handle))
    except FileNotFoundError:
        return False


def _status(path: str | os.PathLike[str]) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _require_replaceable(target: Path, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(f"save: {target} is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"save: {target} is a socket or a block device")
    if not os.access(target, os.W_OK):
        raise PermissionError(f"save: {target} is read-only")


def _keep_owner_and_mode(handle: int, status: os.stat_result) -> None:
    """What the old file had. If its group cannot be kept, another group gets no rights."""
    mode, mine = stat.S_IMODE(status.st_mode), os.fstat(handle)
    if (mine.st_uid, mine.st_gid) != (status.st_uid, status.st_gid):
        mode &= 0o777
        try:
            os.fchown(handle, status.st_uid, status.st_gid)
        except PermissionError:
            try:
                os.fchown(handle, -1, status.st_gid)
            except PermissionError:
                mode &= ~0o070
    os.fchmod(handle, mode)


def sync(folder: str | os.PathLike[str]) -> None:
    """Wait until the names in a folder are on the disk."""
    with contextlib.suppress(OSError):  # some file systems cannot sync a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
