"""Snapshots of several ranks: each writes its share, another number reads."""

from __future__ import annotations

import random
import resource
import signal
import sys
import warnings
from pathlib import Path

import numpy as np

import genesis
import genesis.distributed as dist
import genesis.distributed.checkpoint as dcp

folder = Path(sys.argv[1])
dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
WHOLE = genesis.arange(21.0).reshape(7, 3)


def part(fill=None):
    begin, end = 21 * rank // size, 21 * (rank + 1) // size
    own = WHOLE.reshape(-1)[begin:end].clone()
    return dcp.Part(own if fill is None else genesis.full_like(own, fill), (7, 3), begin)


def state(fill=None):
    shared = genesis.ones(5) if fill is None else genesis.full((5,), float(fill))
    return {"w": part(fill), "shared": shared, "rank": rank if fill is None else -1}


def check(read, same):
    assert read["w"].tensor.equal(part().tensor) and read["shared"].tolist() == [1] * 5
    assert read["rank"] == (rank if same else 0)


def writes():
    saved = state() | {f"of {rank}": rank}
    dcp.save(saved, checkpoint_id=folder / "parts")
    read = state(-2)
    dcp.load(read, checkpoint_id=folder / "parts")
    check(read, same=True)
    future = dcp.async_save(saved, checkpoint_id=folder / "parts")  # replaced, while it is there
    future.result()
    dcp.load(read, checkpoint_id=folder / "parts")


def folders():
    """As programs have it that make a temporary one in each rank."""
    try:
        dcp.save(state(), checkpoint_id=folder / f"of {rank}")
    except dcp.CheckpointException as error:
        text = f"save: ranks name different folders: rank 0 {folder}/of 0, rank 1 {folder}/of 1\n"
        assert str(error).startswith(text), error
    else:
        raise AssertionError("one waits for the other")
    assert not list(folder.glob("of *"))


def snapshots():
    genesis.manual_seed(rank)  # generators that differ
    random.seed(rank), np.random.seed(rank)
    made = dcp.Snapshots(folder / "steps", every=2)
    expected = None
    for step in range(1, 7):
        genesis.rand(1)
        made.save(step, state())
        if step == 6:
            expected = genesis.rand(3), random.random(), np.random.rand()
    made.wait()
    dist.barrier()
    assert made.steps() == [4, 6]
    read = state(-2)
    assert made.resume(read) == 6
    check(read, same=True)
    assert genesis.rand(3).equal(expected[0])
    assert (random.random(), np.random.rand()) == expected[1:]


def buffers():
    """Parameters are the same in all ranks; buffers may not be, and those of rank 0 count."""
    model = genesis.nn.BatchNorm1d(1000)
    model.running_mean += rank
    dcp.save({"model": model}, checkpoint_id=folder / "buffers")
    dcp.load({"model": model}, checkpoint_id=folder / "buffers")
    assert model.running_mean.unique().tolist() == [0]


def full():
    """The disk is full for one rank; all hear of it, and what was there stays."""
    made = dcp.Snapshots(folder / "full", every=2)
    x = genesis.ones(100_000)
    y = genesis.ones(100_000)
    made.save(2, {"x": x, "y": y})
    made.wait()
    if rank == 1:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    made.save(4, {"x": x * 2, "y": y})
    try:
        made.wait()
    except dcp.CheckpointException as error:
        assert "rank 1: OSError: File too large" in str(error), error
    else:
        raise AssertionError("no error")
    dist.barrier()
    assert made.steps() == [2]
    if rank == 1:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.getrlimit(resource.RLIMIT_FSIZE)[1],) * 2)
    made.save(6, {"x": x * 3, "y": y})
    made.wait()
    dist.barrier()
    read = {"x": x, "y": y}
    assert made.resume(read) == 6 and read["x"].unique().tolist() == [3]


def damaged():
    """Rank 0 decides for all which snapshot is whole."""
    made = dcp.Snapshots(folder / "damaged")
    for step in (1, 2):
        made.save(step, {"x": genesis.full((3,), float(step))})
    made.wait()
    dist.barrier()
    if rank == 0:
        (folder / "damaged" / "step-00000002" / "manifest.json").write_text("{")
    dist.barrier()
    read = {"x": genesis.zeros(3)}
    with warnings.catch_warnings(action="ignore"):
        assert made.resume(read) == 1
    assert read["x"].tolist() == [1, 1, 1]
    dist.barrier()
    if rank == 0:
        (folder / "damaged" / "step-00000001" / "manifest.json").write_text("{")
    dist.barrier()
    try:
        with warnings.catch_warnings(action="ignore"):
            made.resume(read)
    except dcp.CheckpointException as error:
        assert "is whole" in str(error)
    else:
        raise AssertionError("no error")


def reads():
    read = state(-2)
    dcp.load(read, checkpoint_id=folder / "parts")
    check(read, same=False)
    read = state(-2)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert dcp.Snapshots(folder / "steps").resume(read) == 6
    assert any("ranks are those of rank 0" in str(each.message) for each in said)
    check(read, same=False)
    np.testing.assert_array_equal(read["shared"].numpy(), 1)


for check_of in [reads] if "reads" in sys.argv else [writes, folders, snapshots, buffers, full, damaged]:
    check_of()
    dist.barrier()
print(f"rank {rank} is done")
