"""Stores: keys and values in memory, in a file, at an address; what PyTorch's do with the same calls."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest

import genesis.distributed as dist
from genesis.distributed.stores import FileStore, HashStore, PrefixStore
from genesis.distributed.tcp_store import TCPStore

KINDS = ("hash", "file", "prefix", "tcp")


def made(kind, tmp_path, module=dist):
    if kind == "tcp":
        return module.TCPStore("localhost", 0, 1, True)
    if kind == "file":
        return module.FileStore(str(tmp_path / module.__name__), 1)
    return module.HashStore() if kind == "hash" else module.PrefixStore("job", module.HashStore())


def used(store):
    """What all calls give."""
    out = []
    store.set("a", "1")
    store.set("b", b"\\x00\\xff\\n\\x80".decode("unicode_escape").encode("latin-1"))
    out += [store.get("a"), store.get("b"), store.add("a", 4), store.get("a"), store.add("n", 2), store.add("n", -5)]
    out += [store.compare_set("k", "", "v"), store.compare_set("k", "x", "w"), store.compare_set("no", "x", "w")]
    out += [store.compare_set("k", "v", "w"), store.get("k"), store.check(["a", "k"]), store.check(["a", "no"])]
    store.multi_set(["p", "q"], ["1", "2"])
    store.append("p", "3")
    return [*out, store.multi_get(["p", "q"]), store.has_extended_api()]


@pytest.mark.parametrize("kind", KINDS)
def test_calls_of_a_store(kind, tmp_path):
    store = made(kind, tmp_path)
    before = store.num_keys()
    binary = b"\x00\xff\n\x80"
    assert used(store) == [
        b"1", binary, 5, b"5", 2, -3, b"v", b"v", b"x", b"w", b"w", True, False, [b"13", b"2"], True,
    ]  # fmt: skip
    assert store.num_keys() - before == 6 and store.delete_key("q") and not store.delete_key("q")
    start = time.monotonic()
    with pytest.raises(dist.DistStoreError, match=r"waited 0.05 s, and nobody set no, q"):
        store.wait(["no", "a", "q"], timedelta(seconds=0.05))
    store.set_timeout(timedelta(seconds=0.05))
    with pytest.raises(RuntimeError, match="nobody set no"):
        store.get("no")
    assert time.monotonic() - start < 5 and store.timeout == timedelta(seconds=0.05)
    with pytest.raises(TypeError, match="a value is int"):
        store.set("a", 1)


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["hash", "tcp"])
def test_as_pytorch_does(kind, tmp_path):
    theirs = pytest.importorskip("torch.distributed", reason="compares with PyTorch, which is not installed")
    assert used(made(kind, tmp_path)) == used(made(kind, tmp_path, theirs))


def test_who_waits_hears_of_another(tmp_path):
    master = TCPStore("localhost", 0, 1, True)
    pairs = [
        (TCPStore("localhost", master.port), master),
        (FileStore(tmp_path / "f"), FileStore(tmp_path / "f")),
        (PrefixStore("a", shared := HashStore()), PrefixStore("a", shared)),
    ]
    for one, other in pairs:
        threading.Timer(0.1, one.set, ("late", "1")).start()
        assert other.get("late") == b"1"


def test_many_processes_add_to_a_file(tmp_path):
    code = "import sys; from genesis.distributed import FileStore; s = FileStore(sys.argv[1]); [s.add('n', 1) for _ in range(50)]"
    jobs = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "f")]) for _ in range(3)]
    assert [job.wait() for job in jobs] == [0] * 3
    store = FileStore(tmp_path / "f")
    assert store.get("n") == b"150"
    with open(tmp_path / "f", "ab") as file:
        file.write(b'["add", "n", 1')  # of one that was killed
    assert store.add("n", 1) == 151 and FileStore(tmp_path / "f").add("n", 1) == 152
    (tmp_path / "f").unlink()
    assert not store.check(["n"]) and not (tmp_path / "f").exists() and store.add("n", 1) == 1


def test_the_master_of_a_store(tmp_path):
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RuntimeError, match=f"cannot listen at port {port}: "):
            TCPStore("localhost", port, 1, True)
    with pytest.raises(RuntimeError, match=f"waited 0.2 s for the store at localhost:{port}"):
        TCPStore("localhost", port, timeout=timedelta(seconds=0.2))
    with pytest.raises(RuntimeError, match="waited 0.2 s, and 1 of 2 processes came"):
        TCPStore("localhost", 0, 2, True, timedelta(seconds=0.2))
    store = TCPStore("localhost", 0, 1, True)
    port, client = store.port, TCPStore("localhost", store.port)
    del store
    socket.create_server(("localhost", port)).close()  # the port is free again
    with pytest.raises(ValueError, match="port is 0"):
        TCPStore("localhost", 0)
    assert client.check(["a"]) is False  # those that came are answered
    with pytest.raises(TypeError, match="store is dict"):
        dist.init_process_group(store={}, rank=0, world_size=2)
