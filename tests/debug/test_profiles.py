"""Profiles under the names of torch.profiler."""

from __future__ import annotations

import gzip
import json
import threading
import time

import pytest

import genesis
from genesis import nn
from genesis.core.graph import switches
from genesis.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)


def train(steps, p=None):
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.SiLU(), nn.Linear(8, 3))
    optimizer = genesis.optim.AdamW(model.parameters(), lr=0.1)
    for _ in range(steps):
        with record_function("forward"):
            loss = nn.functional.cross_entropy(model(genesis.ones(2, 4)), genesis.tensor([0, 2]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if p is not None:
            p.step()
    return [w.tolist() for w in model.parameters()]


def test_a_profile_changes_nothing():
    want = train(3)
    with profile() as p:
        assert train(3) == want
    names = {e.key for e in p.key_averages()}
    assert {"forward", "linear", "layer_norm", "cross_entropy", "LinearBackward"} <= names
    assert "standardized" not in names  # the kernel that runs without a profile ran
    assert not switches.ACTIVE and not switches.ONLOOKERS


def test_events_are_nested():
    with profile() as p, record_function("outer"):
        with record_function("inner"):
            time.sleep(0.002)
        genesis.ones(3) + 1
    by_key = {e.key: e for e in p.events()}
    outer, inner, add = by_key["outer"], by_key["inner"], by_key["add"]
    assert outer.start <= inner.start <= inner.stop <= add.start <= add.stop <= outer.stop
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - inner.cpu_time_total - add.cpu_time_total)
    total = p.key_averages().self_cpu_time_total
    assert total == pytest.approx(outer.cpu_time_total)


def test_schedule_and_handlers(tmp_path):
    plan = schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2)
    N, W, R, S = (ProfilerAction[n] for n in ("NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"))
    assert [plan(i) for i in range(11)] == [N, N, W, R, S, N, W, R, S, N, N]
    seen = []
    with profile(schedule=plan, on_trace_ready=lambda p: seen.append([e.key for e in p.events()])) as p:
        train(11, p)
    assert len(seen) == 2
    steps = [[k for k in keys if k.startswith("ProfilerStep")] for keys in seen]
    assert steps == [["ProfilerStep#3", "ProfilerStep#4"], ["ProfilerStep#7", "ProfilerStep#8"]]
    assert all(keys.count("forward") == 2 for keys in seen)
    with profile(on_trace_ready=tensorboard_trace_handler(tmp_path, "me", use_gzip=True)):
        train(1)
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("me.") and file.name.endswith(".pt.trace.json.gz")
    assert json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]


def test_a_plan_that_ends_in_the_middle_is_saved_at_the_end():
    seen = []
    with profile(schedule=schedule(wait=0, warmup=0, active=5), on_trace_ready=seen.append) as p:
        train(2, p)
    assert seen == [p] and p.key_averages()


def test_the_trace_file(tmp_path):
    with profile(record_shapes=True, with_stack=True) as p:
        train(1)
    p.add_metadata("run", "one")
    p.add_metadata_json("sizes", "[1, 2]")
    p.export_chrome_trace(tmp_path / "trace.json")
    data = json.loads((tmp_path / "trace.json").read_text())
    assert data["run"] == "one" and data["sizes"] == [1, 2]
    events = data["traceEvents"]
    for e in events:
        assert {"ph", "pid", "tid", "name"} <= e.keys()
        assert e["ph"] == "M" or e["ts"] >= 0
        assert e["ph"] != "X" or e["dur"] >= 0
    starts, ends = ({e["id"] for e in events if e["ph"] == ph} for ph in "sf")
    assert starts == ends and len(starts) >= 4
    linear = next(e for e in events if e["name"] == "linear")
    assert linear["args"]["Input Dims"] == [[2, 4], [8, 4], [8]] and "test_profiles.py" in linear["args"]["Call stack"]
    p.export_stacks(tmp_path / "stacks.txt")
    assert "linear " in (tmp_path / "stacks.txt").read_text()


def test_tables():
    with profile(record_shapes=True, profile_memory=True, activities=[ProfilerActivity.CPU]) as p:
        for n in (2, 2, 300):
            genesis.ones(n, 4) @ genesis.ones(4, n)
    averages = p.key_averages(group_by_input_shape=True)
    counts = {str(e.input_shapes): e.count for e in averages if e.key == "matmul"}
    assert counts == {"[[2, 4], [4, 2]]": 2, "[[300, 4], [4, 300]]": 1}
    text = averages.table(sort_by="cpu_memory_usage", row_limit=1)
    title, row = text.splitlines()[1], text.splitlines()[3]
    assert title.split()[0] == "Name" and "Self CPU %" in title and "CPU Mem" in title and row.startswith("matmul")
    assert "351.56 KB" in row and "Self CPU time total" in text and str(p.key_averages()) == p.key_averages().table()
    with pytest.raises(ValueError, match="table: sort_by must be one of"):
        averages.table(sort_by="cuda_time")
    with pytest.raises(ValueError, match="schedule: needs active steps"):
        schedule(wait=1, warmup=0, active=0)
    assert supported_activities() == {ProfilerActivity.CPU}


def test_threads_and_two_profiles():
    def work():
        with record_function("elsewhere"):
            genesis.ones(2).exp()

    with profile() as outer, profile() as inner:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        genesis.ones(2).sin()
    for p in (outer, inner):
        assert [e.key for e in p.events()].count("sin") == 1
        assert "elsewhere" in [e.key for e in p.events()] and "exp" not in [e.key for e in p.events()]


def test_an_error_inside_leaves_nothing_open():
    with pytest.raises(RuntimeError), profile() as p:
        genesis.ones(2, 3) @ genesis.ones(2, 3)
    assert not switches.ACTIVE and p.events()
    decorated = record_function("f")(lambda: 3)
    assert decorated() == 3
