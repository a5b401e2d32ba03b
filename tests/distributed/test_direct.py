"""Files that go to the disk past the system's cache have every byte."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from genesis.distributed.checkpoint import direct


@pytest.mark.parametrize("size", [0, 1, direct.ROOM - 1, direct.ROOM, direct.ROOM + 1, 2 * direct.ROOM + 5000])
@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("where", ["disk", "memory", "short", "refused", "never"])
def test_files_past_the_cache_have_every_byte(tmp_path, monkeypatch, size, where, at_once):
    """In pieces of any size, where the file system knows no other way (memory), takes less than it is given (short), cannot
    do it (refused), or the system has no name for it.
    """
    if where == "memory" and not Path("/dev/shm").is_dir():
        pytest.skip("no file system in memory")
    folder = tempfile.TemporaryDirectory(dir="/dev/shm" if where == "memory" else tmp_path)
    real = os.write

    def short(handle, data):
        return real(handle, data[: max(len(data) // 2, 1)])

    def refused(handle, data):
        if fcntl.fcntl(handle, fcntl.F_GETFL) & direct._DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(handle, data)

    monkeypatch.setattr(direct.os, "write", {"short": short, "refused": refused}.get(where, real))
    monkeypatch.setattr(direct, "_DIRECT", 0 if where == "never" else direct._DIRECT)
    path = Path(folder.name, "file")
    data = np.random.default_rng(0).integers(0, 256, size, np.uint8).tobytes()
    with direct.File(path) as file:
        if at_once:
            memory = direct.large_pages(size)
            memory[:] = np.frombuffer(data, np.uint8)
            file.write_at_once(memory)
        for begin in range(0, 0 if at_once else size, 300_001):
            file.write(data[begin : begin + 300_001])
        file.end()
    assert (path).read_bytes() == data
    assert (file.size, file.crc32) == (size, zlib.crc32(data))
    with pytest.raises(FileExistsError):
        direct.File(path)
    folder.cleanup()
