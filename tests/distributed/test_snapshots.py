"""Snapshots: what is saved comes back, by any number of ranks, and nothing that goes wrong loses the last good one."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import warnings
import zlib

import numpy as np
import pytest
from ranks import needs_mpi, passes

import genesis
import genesis.distributed.checkpoint as dcp
from genesis import nn, optim
from genesis.data import DataLoader, TensorDataset
from genesis.distributed.checkpoint import image, manifest, saving, state_dict


def network(width=4):
    return nn.Sequential(nn.Linear(3, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 2))


class Training:
    """All that a training has, one step after the other."""

    def __init__(self, folder, every=2, **options):
        genesis.manual_seed(0)
        data = TensorDataset(genesis.randn(20, 3), genesis.randn(20, 2), genesis.arange(20))
        self.loader = DataLoader(data, batch_size=4, shuffle=True)
        self.model = network()
        self.optimizer = optim.Adam(self.model.parameters(), 0.05)
        self.scheduler = optim.lr_scheduler.StepLR(self.optimizer, 3, 0.5)
        self.scaler = genesis.amp.GradScaler("cpu", growth_interval=3)
        self.state = {
            "model": self.model, "optimizer": self.optimizer, "scheduler": self.scheduler, "scaler": self.scaler,
            "loader": self.loader, "best": 0.0, "notes": {"seen": [], "where": (1, None)},
        }  # fmt: skip
        self.snapshots = dcp.Snapshots(folder, every, **options)
        self.step = self.snapshots.resume(self.state)

    def run(self, steps):
        while self.step < steps:
            for x, y, numbers in self.loader:
                self.optimizer.zero_grad()
                noisy = x + 0.1 * genesis.randn(4, 3)
                self.scaler.scale(((self.model(noisy) - y) ** 2).mean()).backward()
                self.scaler.step(self.optimizer)
                self.scaler.update()
                self.scheduler.step()
                self.step += 1
                self.state["notes"]["seen"] += numbers.tolist()
                self.state["best"] += float(self.model[0].weight.sum())
                self.snapshots.save(self.step, self.state)
                if self.step == steps:
                    break
        self.snapshots.wait()
        return self


def bits(value):
    """All of a state, so that equal ones have equal bits."""
    tree, pieces = dcp.parts.described(value)
    return tree, {name: piece.host().tobytes() for name, piece in pieces.items()}


@pytest.mark.parametrize("stop", [1, 2, 5, 7, 10, 11])  # 5 and 10 are ends of epochs
def test_a_training_that_stops_goes_on_with_the_same_bits(tmp_path, stop):
    straight = Training(tmp_path / "a", every=4).run(14)
    Training(tmp_path / "b", every=4).run(stop)
    later = Training(tmp_path / "b", every=4)
    assert later.step == stop // 2 * 2  # halfway between, too
    later.run(14)
    assert bits(later.state) == bits(straight.state)
    seen = later.state["notes"]["seen"]
    assert all(sorted(seen[i : i + 20]) == list(range(20)) for i in (0, 20))  # no example twice or never
    assert later.snapshots.steps() == [8, 12, 14]


def values():
    x = genesis.arange(12.0).reshape(3, 4)
    return {
        "half": genesis.tensor([1.5, float("nan"), -0.0], dtype=genesis.float16),
        "brain": genesis.ones(2, dtype=genesis.bfloat16),
        "complex": genesis.tensor([1 + 2j], dtype=genesis.complex128),
        "strided": x.T,
        "part of it": x[1:, ::2],
        "expanded": genesis.ones(1).expand(3),
        "scalar": genesis.tensor(3),
        "empty": genesis.zeros(0, 5),
        "flags": genesis.tensor([True, False]),
        "nested": {"list": [1, 2.5, None, "text", (True, b"bytes")], "array": np.arange(3)},
        "infinite": float("inf"),
        7: genesis.ones(1),
        "a.b": genesis.ones(1),
        "a": {"b": genesis.zeros(1)},
    }


def test_values_of_every_kind_come_back(tmp_path):
    saved = values()
    dcp.save(saved, checkpoint_id=tmp_path)
    loaded = {
        key: genesis.empty_like(v) if isinstance(v, genesis.Tensor) and key != "expanded" else v
        for key, v in values().items()
    }
    loaded["expanded"], loaded["nested"], loaded["infinite"] = genesis.zeros(3), None, None
    dcp.load(loaded, checkpoint_id=str(tmp_path))
    for key in saved:
        np.testing.assert_equal(bits(loaded[key])[1], bits(saved[key])[1], err_msg=str(key))
    assert loaded["nested"]["list"] == saved["nested"]["list"] and loaded["infinite"] == float("inf")
    strided = genesis.zeros(6, 8)[::2, ::2]
    dcp.load({"strided": strided.T}, checkpoint_id=tmp_path)
    assert strided.T.equal(saved["strided"])


def test_what_is_there_stays_as_it_is_where_names_are_read_by_others(tmp_path):
    dcp.save({"w": genesis.ones(2, 2)}, storage_writer=dcp.FileSystemWriter(tmp_path))
    (file,) = tmp_path.glob("*.safetensors")
    assert genesis.load(file)["w"].tolist() == [1, 1, 1, 1]  # a plain file of the format
    state = {"w": genesis.zeros(2, 2)}
    dcp.load(state, storage_reader=dcp.FileSystemReader(tmp_path))
    assert state["w"].tolist() == [[1, 1], [1, 1]]
    with pytest.raises(dcp.CheckpointException, match="no folder is named"):
        dcp.save({})


def test_async_save_takes_the_state_of_its_call(tmp_path):
    x = genesis.zeros(200_000)
    futures = []
    for i in range(3):
        x.fill_(i)
        futures.append(dcp.async_save({"x": x}, checkpoint_id=tmp_path / str(i)))
        x.fill_(-1)
    for i, future in enumerate(futures):
        assert future.result().world_size == 1
        dcp.load({"x": x}, checkpoint_id=tmp_path / str(i))
        assert x.unique().tolist() == [i]


def test_memory_of_copies_is_used_again(tmp_path):
    x, snapshots = genesis.ones(1000), dcp.Snapshots(tmp_path)
    snapshots.save(1, {"x": x})
    snapshots.wait()
    first = snapshots._copies.image
    snapshots.save(2, {"x": x})
    snapshots.wait()
    assert snapshots._copies.image is first and not np.may_share_memory(first.hosts["x"], x._array)
    snapshots.save(3, {"x": genesis.ones(1001)})
    snapshots.wait()
    assert snapshots._copies.image is not first


@pytest.mark.parametrize("fast", [True, False])
def test_the_crc_is_that_of_the_file(tmp_path, monkeypatch, fast):
    """Of large and small tensors beside each other; it is of the copies, or of the thread that writes."""
    if not fast:
        monkeypatch.setattr(image.crc, "is_fast", lambda: False)
    sizes = {"a": 3, "b": 100_001, "c": 0, "d": 70_000, "e": 17, "f": 200_000}
    state = {name: genesis.randn(size) for name, size in sizes.items()}
    snapshots = dcp.Snapshots(tmp_path)
    for step in (1, 2):
        snapshots.save(step, state)
        assert (snapshots._copies.image.crc32 is not None) == (fast and image.crc.is_fast())
        snapshots.wait()
    (file,) = tmp_path.glob("step-00000002/*.safetensors")
    assert manifest.read(file.parent).files[file.name]["crc32"] == zlib.crc32(file.read_bytes())
    assert [
        np.array_equal(host, state[name].numpy())
        for name, host in snapshots._copies.image.hosts.items()
        if name in sizes
    ]


# ---- what goes wrong


def damage_cut(folder):
    text = (folder / manifest.NAME).read_bytes()
    (folder / manifest.NAME).write_bytes(text[: len(text) // 2])


def damage_manifest_value(folder):
    content = json.loads((folder / manifest.NAME).read_text())
    content["world_size"] = 2
    (folder / manifest.NAME).write_text(json.dumps(content))


def damage_empty(folder):
    (folder / manifest.NAME).write_bytes(b"")


def damage_bit(folder):
    (file,) = folder.glob("*.safetensors")
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)


def damage_short(folder):
    (file,) = folder.glob("*.safetensors")
    os.truncate(file, file.stat().st_size - 4)


def damage_gone(folder):
    (file,) = folder.glob("*.safetensors")
    file.unlink()


def damage_other(folder):
    (folder / manifest.NAME).write_text("[1, 2]")


DAMAGES = {
    damage_cut: "is torn or damaged: it is no manifest",
    damage_manifest_value: "its own sha256 differs",
    damage_empty: "is torn or damaged",
    damage_bit: "is damaged: its crc32 is not the one of the manifest",
    damage_short: "is torn: it has",
    damage_gone: "is missing",
    damage_other: "is torn or damaged",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_last_good_snapshot_is_taken(tmp_path, damage):
    first = Training(tmp_path).run(2)
    good = bits(first.state)
    first.run(4)
    damage(tmp_path / "step-00000004")
    with pytest.raises(dcp.CheckpointException, match=DAMAGES[damage]):
        dcp.load(first.state, checkpoint_id=tmp_path / "step-00000004")
    with pytest.warns(UserWarning, match=DAMAGES[damage]):
        later = Training(tmp_path)
    assert later.step == 2 and bits(later.state) == good
    damage(tmp_path / "step-00000002")
    with (
        warnings.catch_warnings(action="ignore"),
        pytest.raises(dcp.CheckpointException, match="no snapshot in .* is whole(.|\n)*remove .* to begin anew"),
    ):
        Training(tmp_path)


def test_another_version_is_no_damage(tmp_path, monkeypatch):
    Training(tmp_path).run(2)
    monkeypatch.setattr(manifest, "VERSION", 3)
    with pytest.raises(dcp.CheckpointException, match="is of version 2, this Genesis reads version 3"):
        Training(tmp_path)


def test_another_model_is_named_and_nothing_is_changed(tmp_path):
    dcp.save({"model": network(), "step": 1}, checkpoint_id=tmp_path)
    for other, words in [
        (network(5), r"another shape: model.0.weight is float32\[4, 3\] in the snapshot, \[5, 3\] here"),
        (nn.Sequential(*network(), nn.Linear(2, 2)), r"not in the snapshot: model.4.weight float32\[2, 2\]"),
        (nn.Sequential(*network()[:2]), r"only in the snapshot: model.3.weight float32\[2, 4\]"),
    ]:
        before = bits(other)
        with pytest.raises(dcp.CheckpointException, match=words):
            dcp.load({"model": other, "step": 0}, checkpoint_id=tmp_path)
        assert bits(other) == before
    for state, words in [
        ({"optimizer": 1}, "not in the snapshot: optimizer"),
        ({"step": genesis.ones(1)}, "not a tensor in the snapshot: step"),
        ({"model": {"0.weight": genesis.ones(4, 3), "x": 1}}, "not in the snapshot: model.x"),
    ]:
        with pytest.raises(dcp.CheckpointException, match=words):
            dcp.load(state, checkpoint_id=tmp_path)
    model = network()
    training = {"model": model, "optimizer": optim.SGD([model[0].weight], 0.1)}
    dcp.save(training, checkpoint_id=tmp_path)
    with pytest.raises(ValueError, match="the state has groups of"):
        dcp.load({"optimizer": optim.SGD(model.parameters(), 0.1)}, checkpoint_id=tmp_path)


def test_what_cannot_be_saved_is_refused_before_anything_is_written(tmp_path):
    dcp.save({"x": 1}, checkpoint_id=tmp_path)
    with pytest.raises(TypeError, match="cannot save object"):
        dcp.save({"x": object()}, checkpoint_id=tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(dcp.CheckpointException, match="there is no snapshot in"):
        dcp.load({}, checkpoint_id=tmp_path / "nowhere")
    assert dcp.Snapshots(tmp_path / "nothing").resume({"x": 1}) == 0
    for options in ({"every": 0}, {"keep": 0}):
        with pytest.raises(ValueError, match="must be at least 1"):
            dcp.Snapshots(tmp_path, **options)


@pytest.mark.parametrize("elements", [100_000, 1_000_000])
def test_a_full_disk_leaves_the_last_good_snapshot(tmp_path, elements):
    """A limit on the size of files stands for the disk: the system's own error, in the middle of a write."""
    x = genesis.ones(elements)
    snapshots = dcp.Snapshots(tmp_path, every=2)
    snapshots.save(2, {"x": x})
    snapshots.wait()
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (elements, before[1]))
    try:
        snapshots.save(4, {"x": x * 2})
        with pytest.raises(dcp.CheckpointException, match="step-00000004 was not written: rank 0: OSError: File too"):
            snapshots.wait()
        with pytest.raises(dcp.CheckpointException, match="was not written"):
            dcp.Snapshots(tmp_path / "each").save(1, {"x": x})  # where each is waited for, `save` says it
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert snapshots.steps() == [2] and not list((tmp_path / "step-00000004").iterdir())
    state = {"x": genesis.zeros(elements)}
    assert snapshots.resume(state) == 2 and state["x"].equal(x)
    snapshots.save(6, {"x": x * 3})
    snapshots.wait()
    assert snapshots.steps() == [2, 6] and not (tmp_path / "step-00000004").exists()


class Lazy(dcp.Snapshots):
    """On a disk that writes nothing until it is waited for: what a process that is killed finds at the worst."""

    step, gate = 0, threading.Event()

    def wait(self):
        assert self.step - max(self.steps(), default=0) <= self.every
        self.gate.set()
        super().wait()
        self.gate.clear()


@pytest.mark.parametrize("every", [1, 2, 3, 10])
def test_at_most_so_many_steps_are_computed_again(tmp_path, monkeypatch, every):
    write = saving.write
    monkeypatch.setattr(saving, "write", lambda *args: Lazy.gate.wait(60) and write(*args))
    snapshots = Lazy(tmp_path, every)
    for snapshots.step in range(1, 4 * every + 2):
        snapshots.save(snapshots.step, {})
        assert snapshots.step - max(snapshots.steps(), default=0) <= every
    snapshots.wait()
    assert snapshots.steps()[:2] == [3 * every, 4 * every] if every > 1 else [4, 5]


def test_random_numbers_of_python_and_numpy_go_on(tmp_path):
    snapshots = dcp.Snapshots(tmp_path)
    random.seed(1), np.random.seed(2)
    random.gauss(0, 1), np.random.standard_normal()  # each keeps the other one of a pair

    def drawn():
        return random.random(), random.gauss(0, 1), random.getrandbits(70), np.random.standard_normal(3).tolist()

    snapshots.save(1, {})
    expected = drawn()
    random.seed(5), np.random.seed(6)
    assert dcp.Snapshots(tmp_path).resume({}) == 1 and drawn() == expected


def test_a_manifest_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    dcp.save({"x": genesis.ones(2)}, checkpoint_id=tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(manifest.os, "replace", full)
    with pytest.raises(dcp.CheckpointException, match="No space left(.|\n)*try: free space"):
        dcp.save({"x": genesis.zeros(2)}, checkpoint_id=tmp_path)
    monkeypatch.undo()
    state = {"x": genesis.zeros(2)}
    dcp.load(state, checkpoint_id=tmp_path)
    assert state["x"].tolist() == [1, 1] and len(list(tmp_path.iterdir())) == 2


def test_a_snapshot_becomes_a_file_and_a_file_a_snapshot(tmp_path):
    model = nn.Linear(2, 3)
    optimizer = optim.Adam(model.parameters())
    model(genesis.ones(1, 2)).sum().backward()
    optimizer.step()
    dcp.save({"app": {"model": model, "optimizer": optimizer}, "step": 4}, checkpoint_id=tmp_path / "a")
    dcp.format_utils.dcp_to_torch_save(tmp_path / "a", tmp_path / "a.pt")
    state = genesis.load(tmp_path / "a.pt")
    assert state["step"] == 4 and genesis.equal(state["app"]["model"]["weight"], model.weight)
    assert state["app"]["optimizer"]["param_groups"][0]["lr"] == 0.001
    dcp.format_utils.torch_save_to_dcp(tmp_path / "a.pt", tmp_path / "b")
    other = nn.Linear(2, 3)
    dcp.load({"app": {"model": other}}, checkpoint_id=tmp_path / "b")
    assert genesis.equal(other.weight, model.weight)
    with pytest.raises(dcp.CheckpointException, match="there is no snapshot"):
        dcp.format_utils.dcp_to_torch_save(tmp_path, tmp_path / "c.pt")


KILLED = """
import os, signal, sys
import genesis, genesis.distributed.checkpoint as dcp
from genesis.distributed.checkpoint import manifest
at, folder = sys.argv[1:]
dcp.save({"x": genesis.ones(1000)}, checkpoint_id=folder)
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
if at == "fsync":
    os.fsync = die
elif at == "manifest":
    manifest.put = die
elif at == "replace":
    os.replace = die
dcp.async_save({"x": genesis.zeros(1000)}, checkpoint_id=folder).result()
"""


@pytest.mark.parametrize("at", ["fsync", "replace", pytest.param("manifest", marks=pytest.mark.slow)])
def test_a_save_that_is_killed_leaves_the_old_snapshot(tmp_path, at):
    done = subprocess.run([sys.executable, "-c", KILLED, at, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    state = {"x": genesis.zeros(1000)}
    dcp.load(state, checkpoint_id=tmp_path)
    assert state["x"].sum() == 1000
    dcp.save({"x": genesis.full((1000,), 3.0)}, checkpoint_id=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2  # nothing of the killed one is left


# ---- parts, names, ranks


def test_parts_are_put_together(tmp_path):
    whole = genesis.arange(20.0).reshape(4, 5)
    tree, _ = dcp.parts.described({"w": whole})
    made = manifest.Manifest("token", 3, trees=[tree])
    for rank, (begin, end) in enumerate([(0, 7), (7, 8), (8, 20)]):
        part = dcp.Part(whole.reshape(-1)[begin:end], (4, 5), begin)
        name = f"rank{rank}-token.safetensors"
        genesis.save({"w": part.tensor}, tmp_path / name)
        size = (tmp_path / name).stat().st_size

        made.files[name] = {"bytes": size, "crc32": zlib.crc32((tmp_path / name).read_bytes())}
        entry = made.tensors.setdefault("w", {"dtype": "float32", "shape": [4, 5], "pieces": []})
        entry["pieces"].append([begin, end, name, "w"])
    made.write(tmp_path)
    state = {"w": genesis.zeros(4, 5)}
    dcp.load(state, checkpoint_id=tmp_path)
    assert state["w"].equal(whole)
    mine = {"w": dcp.Part(genesis.zeros(9), (4, 5), 3)}
    dcp.load(mine, checkpoint_id=tmp_path)
    assert mine["w"].tensor.tolist() == list(range(3, 12))
    made.tensors["w"]["pieces"].pop(1)
    made.write(tmp_path)
    with pytest.raises(dcp.CheckpointException, match="manifest.json is damaged"):
        dcp.load(state, checkpoint_id=tmp_path)
    with pytest.raises(RuntimeError, match="elements 18 to 26 are not within a tensor of shape"):
        dcp.Part(genesis.zeros(9), (4, 5), 18)


def test_states_by_names():
    model = network()
    first, last = list(model[0].parameters()), list(model[3].parameters())
    optimizers = [optim.Adam(first, 0.1), optim.SGD([{"params": last[:1]}, {"params": last[1:], "lr": 1.0}], 0.1)]
    model(genesis.randn(4, 3)).sum().backward()
    for each in optimizers:
        each.step()
    weights, moments = state_dict.get_state_dict(model, optimizers)
    assert set(moments["state"]) == {"0.weight", "0.bias"}
    assert [g["params"] for g in moments["param_groups"]] == [["0.weight", "0.bias"], ["3.weight"], ["3.bias"]]
    other = network()
    groups = [{"params": [other[3].bias]}, {"params": [other[3].weight]}]  # in another order
    others = [optim.SGD(groups, 0.1), optim.Adam(other[0].parameters(), 0.5)]
    state_dict.set_state_dict(other, others, model_state_dict=weights, optim_state_dict=moments)
    assert bits(other) == bits(model) and [g["lr"] for g in others[0].param_groups] == [1.0, 0.1]
    assert others[1].param_groups[0]["lr"] == 0.1
    assert others[1].state[other[0].weight]["exp_avg"].equal(optimizers[0].state[first[0]]["exp_avg"])
    model[0].requires_grad_(False)
    trained = state_dict.get_model_state_dict(model, options=state_dict.StateDictOptions(ignore_frozen_params=True))
    assert "0.weight" not in trained and "3.weight" in trained and "1.running_mean" in trained
    with pytest.raises(TypeError, match="parameter 0 of the Adam is not one of the model"):
        state_dict.get_optimizer_state_dict(network(), optimizers)
    with pytest.raises(TypeError, match="no group with the parameter 1.weight"):
        state_dict.set_optimizer_state_dict(other, optim.SGD(other[1].parameters(), 1), moments)


@needs_mpi
@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_several_ranks_write_and_other_numbers_read(tmp_path, ranks):
    passes(ranks, "checkpoint.py", str(tmp_path))
    x = {"w": genesis.zeros(7, 3), "shared": genesis.zeros(5), f"of {ranks - 1}": 0, "rank": -1}
    folder = tmp_path / "parts"
    dcp.load(x, checkpoint_id=folder)
    assert x["w"].equal(genesis.arange(21.0).reshape(7, 3)) and x["shared"].tolist() == [1] * 5
    assert x[f"of {ranks - 1}"] == ranks - 1 and x["rank"] == 0
    files = sorted(path.name.partition("-")[0] for path in folder.glob("*.safetensors"))
    assert files == [f"rank{rank}" for rank in range(ranks)]
    assert len(list(folder.iterdir())) == ranks + 1
    passes(5 - ranks, "checkpoint.py", str(tmp_path), "reads")


def test_one_thread_writes_all_and_a_child_has_one_of_its_own(tmp_path):
    """To begin a thread for each snapshot costs the training a tenth of the call; a child of `fork` has none of its parent's."""
    threads = []
    for step in range(3):
        dcp.async_save({"x": genesis.ones(2)}, checkpoint_id=tmp_path / str(step)).result()
        threads += [each.ident for each in threading.enumerate() if each.name.startswith("snapshot")]
    assert len(threads) == 3 and len(set(threads)) == 1
    child = os.fork()
    if not child:
        try:
            dcp.async_save({"x": genesis.zeros(2)}, checkpoint_id=tmp_path / "child").result(60)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    state = {"x": genesis.ones(2)}
    dcp.load(state, checkpoint_id=tmp_path / "child")
    assert state["x"].tolist() == [0, 0]
