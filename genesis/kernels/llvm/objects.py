"""Machine code kept on disk, so that the next process need not compile it: one file for each piece of code.

It is in `folder`: ``$GENESIS_CACHE_DIR``, or ``genesis`` in the user's folder for such things; with an empty
``GENESIS_CACHE_DIR`` nothing is kept. A file's name is a digest of the code, of the processor and of the compiler, and
it begins with a digest of its content. What is damaged, or could have been written by somebody else, is not used, and
what cannot be written is compiled again. `genesis cache` shows and clears it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from typing import TYPE_CHECKING

from genesis.base.late import Late

if TYPE_CHECKING:
    import hashlib
    import tempfile
    from pathlib import Path
else:  # 6 ms, and most programs compile nothing
    hashlib, tempfile = Late("hashlib"), Late("tempfile")

LIMIT = 64 << 20  # bytes that are kept, about; the oldest files go first
EVERY = 64  # files, after which it is looked how large all of them are
CODE, STEP = ".o", ".step"  # machine code, and what uses it
CUBIN = ".cubin"  # machine code of GPUs
CHOICE = ".choice"  # the number of the fastest way to do something there
HOST = ".host"  # what the processor can do
_DIGEST = 32


def folder() -> Path | None:
    """Where machine code is kept; None if it is not."""
    from pathlib import Path

    asked = os.environ.get("GENESIS_CACHE_DIR")
    if asked is not None:
        return Path(asked) if asked else None
    if sys.platform == "darwin":
        base = Path("~/Library/Caches")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    try:
        return base.expanduser() / "genesis"
    except RuntimeError:  # there is no home
        return None


def name_of(*parts: str, suffix: str = CODE) -> str:
    """The name of the file for what these say together."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest() + suffix


def load(name: str) -> bytes | None:
    """The machine code in a file; None if there is none that can be trusted."""
    where = folder()
    if where is None:
        return None
    try:
        if not (_is_ours(where) and _is_ours(where / name)):
            return None
        content = (where / name).read_bytes()
    except OSError:
        return None
    digest, code = content[:_DIGEST], content[_DIGEST:]
    return code if digest == hashlib.sha256(code).digest() else None


def _is_ours(path: Path) -> bool:
    """Whether nobody else can write to it."""
    if not hasattr(os, "getuid"):
        return True
    seen = path.lstat()
    return seen.st_uid == os.getuid() and not stat.S_ISLNK(seen.st_mode) and not seen.st_mode & 0o022


def save(name: str, code: bytes) -> None:
    """Keep machine code; a file is there whole or not at all."""
    where = folder()
    if where is None:
        return
    with contextlib.suppress(OSError):
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_ours(where):
            return
        handle, temporary = tempfile.mkstemp(dir=where, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(code).digest() + code)
            os.replace(temporary, where / name)
        except BaseException:
            os.unlink(temporary)
            raise
        if len(os.listdir(where)) % EVERY == 0:
            _make_room()


def _make_room() -> None:
    kept = sorted([(path.stat(), path) for path in files()], key=lambda each: each[0].st_mtime)
    size = sum([seen.st_size for seen, _ in kept])
    for seen, oldest in kept:
        if size <= LIMIT:
            break
        size -= seen.st_size
        oldest.unlink(missing_ok=True)


def files() -> list[Path]:
    """All files that are kept."""
    where = folder()
    if where is None or not where.is_dir():
        return []
    return sorted([where / name for name in os.listdir(where) if name.endswith((CODE, STEP, CUBIN, CHOICE))])


def clear() -> int:
    """Remove all files; how many there were."""
    kept = files()
    where = folder()
    for path in [*kept, *(() if where is None else where.glob(f"*{HOST}"))]:
        path.unlink(missing_ok=True)
    return len(kept)
