"""What a GPU is asked for (`scripts/gpu/run`) runs on the emulated device, so that it works when there is one."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

COUNT = 37  # of kernels, steps, and looks at clocks, that `benchmark` measures
SCRIPT = Path(__file__).parents[2] / "scripts" / "gpu" / "run"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["correctness", "benchmark"])
def test_a_call_runs_and_leaves_a_record(name, tmp_path):
    environment = {**os.environ, "GENESIS_CUDA": "emulate", "GENESIS_GPU_OPS": "0.01"}
    command = [sys.executable, SCRIPT, name, "--out", tmp_path, "--budget", "300"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / f"{name}.json").read_text())
    assert report["wrong"] == 0 and report["emulated"] and not report["not reached"]
    assert report["versions"]["numpy"] and report["device"]["major"] == 9 and report["driver"] == 13000
    if name == "correctness":
        assert "one graph" in report["checks"]["fifty steps"]["said"] and len(report["checks"]) > 10
    else:  # no times of an emulated device
        assert len(report["checks"]) == COUNT and '"ms"' not in json.dumps(report["checks"])


@pytest.mark.slow
def test_nothing_is_begun_behind_the_budget(tmp_path):
    environment = {**os.environ, "GENESIS_CUDA": "emulate"}
    command = [sys.executable, SCRIPT, "benchmark", "--out", tmp_path, "--budget", "0"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    report = json.loads((tmp_path / "benchmark.json").read_text())
    assert report["checks"] == {} and len(report["not reached"]) == COUNT


@pytest.mark.slow
def test_everything_at_once(tmp_path):
    """All parts; what is carried is found by each process."""
    carried = tmp_path / "carried"
    carried.mkdir()
    with zipfile.ZipFile(carried / "a_package-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("a_package.py", "there = 1")
    environment = {**os.environ, "GENESIS_CUDA": "emulate", "GENESIS_GPU_OPS": "0.01"}
    command = [sys.executable, SCRIPT, "all", "--out", tmp_path / "out", "--budget", "400", "--carried", carried]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert told["wrong"] == told["not reached"] == [] and told["checks"] > 80
    records = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text().splitlines()]
    done = {(r["part"], r["check"]): r["said"] for r in records if r["state"] == "done"}
    assert done["facts", "carried"]["wheels"] == ["a_package-1.0-py3-none-any.whl"]
    assert {"facts", "smoke", "benchmark", "correctness"} <= {part for part, _ in done}
    assert len([r for r in records if r["state"] == "done"]) == len(done)  # each once, by whichever process


CHECKS = """
import os, sys, time
sys.path.insert(0, sys.argv.pop(1))
import everything
class StickyError(Exception): pass
def sticky(): raise StickyError("an address that is none")
def wrong(): assert 1 == 2, "one is not two"
checks = [("fine", lambda: 1), ("ends", lambda: os._exit(9)), ("wrong", wrong), ("sticky", sticky),
          ("hangs", lambda: time.sleep(600)), ("last", lambda: 2)]
given = dict(zip(sys.argv[3::2], sys.argv[4::2]))
number, count = map(int, given["--share"].split("/"))
sys.exit(everything.part("smoke", iter(checks), everything.Path(given["--out"]), float(given["--until"]), (number, count)))
"""


@pytest.mark.parametrize("count", [1, 2])
def test_no_failure_stops_the_others(count, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    everything = importlib.import_module("everything")
    (tmp_path / "checks.py").write_text(CHECKS)
    monkeypatch.setattr(everything, "PATIENCE", {"smoke": 5.0})
    monkeypatch.setattr(everything, "PARTS", {"smoke": (count, 1.0)})
    monkeypatch.setattr(everything, "sys", SimpleNamespace(executable=sys.executable))
    real = subprocess.Popen
    started = []

    def popen(command, **options):
        started.append(command)
        return real([command[0], str(tmp_path / "checks.py"), str(SCRIPT.parent), *command[2:]], **options)

    monkeypatch.setattr(everything.subprocess, "Popen", popen)
    assert everything.everything(tmp_path / "out", 300.0, tmp_path / "nothing", ["smoke"]) == 1
    told = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert {each["check"]: each["said"] for each in told["wrong"]} == {
        "ends": "its process ended with 9",
        "wrong": "AssertionError: one is not two",
        "sticky": "StickyError: an address that is none",
        "hangs": "it took too long",
    }
    assert told["checks"] == 7 and len(started) >= 4  # with what was carried
    assert everything.everything(tmp_path / "out", -1.0, tmp_path / "nothing", ["smoke"]) == 0
    assert len(json.loads((tmp_path / "out" / "summary.json").read_text())["not reached"]) == 6


def test_a_machine_needs_no_package_to_begin():
    """What was carried is unpacked by a process that has nothing but Python."""
    done = subprocess.run(
        [sys.executable, "-E", "-S", SCRIPT, "all", "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "--carried" in done.stdout, done.stderr


def test_packages_that_a_machine_has_are_its_own(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    everything = importlib.import_module("everything")
    there = [name for name in ("ml_dtypes-1.0-any.whl", "nvmath_python-1.0-any.whl") if everything.is_there(Path(name))]
    assert there == ["ml_dtypes-1.0-any.whl"]


def test_what_was_printed_stays_small(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    everything = importlib.import_module("everything")
    log = tmp_path / "log.txt"
    everything.cut(log)  # there is none
    log.write_text("begin" + "x" * 5000 + "end")
    everything.cut(log, 10_000)
    assert log.stat().st_size == 5008
    everything.cut(log, 100)
    text = log.read_text()
    assert len(text) == 107 and text.startswith("begin") and text.endswith("end")
