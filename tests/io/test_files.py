"""Saving and loading: round trips, other readers, damage, and a process killed while it saves."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import genesis
from genesis.base import dtypes


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda d: d.short)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 4)])
def test_round_trip(tmp_path, dtype, shape):
    x = genesis.tensor(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2).to(dtype)
    genesis.save({"x": x, "t": genesis.ones(2, 3).t()}, tmp_path / "a.safetensors")
    back = genesis.load(tmp_path / "a.safetensors")
    assert back["x"].dtype is dtype and back["x"].shape == x.shape and genesis.equal(back["x"], x)
    assert back["t"].tolist() == [[1, 1]] * 3
    back["x"].zero_()  # it can be written to


def test_structures(tmp_path):
    p = genesis.nn.Parameter(genesis.ones(3))
    optimizer = genesis.optim.Adam([p])
    p.sum().backward()
    optimizer.step()
    state = {
        "step": 3,
        "name": "run",
        "nested": [genesis.zeros(1), (1.5, None, True)],
        "optimizer": optimizer.state_dict(),
    }
    genesis.save(state, tmp_path / "s")
    back = genesis.load(tmp_path / "s")
    assert back["step"] == 3 and back["nested"][1] == (1.5, None, True) and back["nested"][0].tolist() == [0]
    assert back["optimizer"]["param_groups"][0]["betas"] == (0.9, 0.999)
    genesis.optim.Adam([p]).load_state_dict(back["optimizer"])
    genesis.save(genesis.arange(3), tmp_path / "one")
    assert genesis.load(tmp_path / "one").tolist() == [0, 1, 2]
    genesis.save({}, tmp_path / "empty")
    assert genesis.load(tmp_path / "empty") == {}


def test_other_readers_and_writers(tmp_path):
    genesis.save({"w": genesis.arange(6.0).reshape(2, 3)}, tmp_path / "a")
    np.testing.assert_array_equal(load_file(tmp_path / "a")["w"], np.arange(6, dtype=np.float32).reshape(2, 3))
    save_file({"w": np.eye(2)}, tmp_path / "b")
    assert genesis.load(tmp_path / "b")["w"].dtype is genesis.float64


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04" + b"x" * 50, "is a zip archive that is cut off or damaged"),
        (b"\x80\x04\x95" + b"y" * 50, "a pickle, which is never loaded"),
        (b'{"a": 1}' * 4, "a text file"),
        (b"\x93NUMPY" + b"\x01" * 50, "a NumPy file"),
    ],
)
def test_foreign_files(tmp_path, content, words):
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(ValueError, match=words):
        genesis.load(tmp_path / "f")


def test_truncated_files(tmp_path):
    genesis.save({"x": genesis.randn(20), "y": genesis.randn(3, 3)}, tmp_path / "f")
    whole = (tmp_path / "f").read_bytes()
    for n in range(0, len(whole), 3):
        (tmp_path / "f").write_bytes(whole[:n])
        with pytest.raises(ValueError, match="load: "):
            genesis.load(tmp_path / "f")


def test_refusals_leave_the_old_file(tmp_path):
    path = tmp_path / "f"
    genesis.save({"x": genesis.ones(1)}, path)
    with pytest.raises(TypeError, match="save: cannot save .*<lambda>"):
        genesis.save({"x": genesis.zeros(1), "y": lambda: 0}, path)
    with pytest.raises(RuntimeError, match="save: a meta tensor has no data"):
        genesis.save({"x": genesis.zeros(1, device="meta")}, path)
    with pytest.raises(OSError, match="No such file"):
        genesis.save({"x": genesis.ones(1)}, tmp_path / "no" / "f")
    assert genesis.load(path)["x"].tolist() == [1] and os.listdir(tmp_path) == ["f"]


SAVER = """
import sys, genesis
big = genesis.ones(50_000)
print("ready", flush=True)
n = 0
while True:
    genesis.save({"n": genesis.tensor(n), "x": big * n}, sys.argv[1])
    n += 1
"""


def test_a_process_killed_at_any_moment_leaves_a_whole_file(tmp_path):
    path = tmp_path / "f"
    genesis.save({"n": genesis.tensor(-1), "x": genesis.ones(50_000) * -1}, path)
    rng = random.Random(0)
    for _ in range(40):
        with subprocess.Popen([sys.executable, "-c", SAVER, str(path)], stdout=subprocess.PIPE) as process:
            ready = process.stdout.readline()
            time.sleep(rng.uniform(0, 0.02))
            process.send_signal(signal.SIGKILL)
        assert ready == b"ready\n"
        back = genesis.load(path)
        assert bool((back["x"] == back["n"]).all()) and len(back["x"]) == 50_000


def test_keys_with_dots_and_nested_keys_do_not_collide(tmp_path):
    given = {
        "a.b": genesis.zeros(1),
        "a": {"b": genesis.ones(2), "c": [genesis.full((3,), 2.0)]},
        "a.c.0": genesis.full((1,), 3.0),
    }
    genesis.save(given, tmp_path / "x.safetensors")
    found = genesis.load(tmp_path / "x.safetensors")
    assert found["a.b"].tolist() == [0.0] and found["a"]["b"].tolist() == [1.0, 1.0]
    assert found["a"]["c"][0].tolist() == [2.0] * 3 and found["a.c.0"].tolist() == [3.0]
