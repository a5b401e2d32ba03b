"""What a save does to the file system: links, pipes, modes, owners, temporary files."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time

import pytest

import genesis
from genesis.io.atomic import replacing, write_atomically


def test_symbolic_links_are_followed(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to(tmp_path / "deep" / "real")
    for n in (1, 2):  # first the target does not exist, then it does
        genesis.save({"n": genesis.tensor(n)}, tmp_path / "one")
        assert (tmp_path / "one").is_symlink() and (tmp_path / "two").is_symlink()
        assert genesis.load(tmp_path / "deep" / "real")["n"].item() == n
    assert os.listdir(tmp_path / "deep") == ["real"]
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="symbolic links"):
        genesis.save({}, tmp_path / "loop")


def test_pipes_are_written_to_and_read_from(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=genesis.save, args=({"x": genesis.arange(100_000)}, tmp_path / "pipe"))
    writer.start()
    back = genesis.load(tmp_path / "pipe")
    writer.join()
    assert genesis.equal(back["x"], genesis.arange(100_000)) and stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
    genesis.save({"x": genesis.ones(3)}, os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_folders_and_sockets_are_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="folder is a folder"):
        genesis.save({}, tmp_path / "folder")
    import socket

    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(tmp_path / "socket"))
        with pytest.raises(OSError, match="socket is a socket"):
            genesis.save({}, tmp_path / "socket")
    assert sorted(os.listdir(tmp_path)) == ["folder", "socket"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_the_mode_is_kept(tmp_path, mode):
    write_atomically(tmp_path / "f", b"old")
    os.chmod(tmp_path / "f", mode)
    genesis.save({}, tmp_path / "f")
    assert stat.S_IMODE(os.stat(tmp_path / "f").st_mode) == mode


def test_a_new_file_obeys_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        genesis.save({}, tmp_path / "f")
        assert stat.S_IMODE(os.stat(tmp_path / "f").st_mode) == 0o640
    finally:
        os.umask(before)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_the_owner_is_kept(tmp_path):
    write_atomically(tmp_path / "f", b"old")
    os.chown(tmp_path / "f", 1234, 2345)
    genesis.save({}, tmp_path / "f")
    found = os.stat(tmp_path / "f")
    assert (found.st_uid, found.st_gid) == (1234, 2345)


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anything")
def test_a_read_only_file_is_left_alone(tmp_path):
    write_atomically(tmp_path / "f", b"old")
    os.chmod(tmp_path / "f", 0o444)
    with pytest.raises(PermissionError, match="f is read-only"):
        genesis.save({}, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == b"old"


def test_names_of_255_bytes(tmp_path):
    for name in ("x" * 255, "ä" * 127):
        for _ in range(2):
            genesis.save({"x": genesis.ones(1)}, tmp_path / name)
        assert genesis.load(tmp_path / name)["x"].item() == 1
        os.unlink(tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_an_error_in_the_middle_leaves_the_old_file_alone(tmp_path):
    write_atomically(tmp_path / "f", b"old")
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "f") as file:
        file.write(b"new")
        raise KeyboardInterrupt
    assert (tmp_path / "f").read_bytes() == b"old" and os.listdir(tmp_path) == ["f"]


HALF = """
import sys, time
from genesis.io.atomic import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("half", flush=True)
    time.sleep(600)
"""


def test_temporary_files_of_killed_saves_are_removed_and_those_of_live_ones_are_not(tmp_path):
    processes = [
        subprocess.Popen([sys.executable, "-c", HALF, str(tmp_path / name)], stdout=subprocess.PIPE) for name in "ab"
    ]
    try:
        for process in processes:
            assert process.stdout.readline() == b"half\n"
        assert len(os.listdir(tmp_path)) == 2
        genesis.save({}, tmp_path / "mine")
        assert len(os.listdir(tmp_path)) == 3  # both writers live
        processes[0].send_signal(signal.SIGKILL)
        processes[0].wait()
        genesis.save({}, tmp_path / "mine")
        assert len(os.listdir(tmp_path)) == 2
        (kept,) = [name for name in os.listdir(tmp_path) if name != "mine"]
        assert (tmp_path / kept).read_bytes() == b"half" and len(kept) < 40
    finally:
        for process in processes:
            process.kill()
            process.wait()
            process.stdout.close()
    genesis.save({}, tmp_path / "mine")
    assert os.listdir(tmp_path) == ["mine"]


def test_many_threads_save_to_one_name(tmp_path):
    stop = time.monotonic() + 0.5

    def work(n):
        while time.monotonic() < stop:
            genesis.save({"n": genesis.full((100,), n)}, tmp_path / "f")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    back = genesis.load(tmp_path / "f")["n"]
    assert bool((back == back[0]).all()) and os.listdir(tmp_path) == ["f"]
