"""What a GPU is asked for (`scripts/gpu/run`) runs on the emulated device, so that it works when there is one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
        assert len(report["steps"]) == 3 and '"ms"' not in json.dumps(report["kernels"])


@pytest.mark.slow
def test_nothing_is_begun_behind_the_budget(tmp_path):
    environment = {**os.environ, "GENESIS_CUDA": "emulate"}
    command = [sys.executable, SCRIPT, "benchmark", "--out", tmp_path, "--budget", "0"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    report = json.loads((tmp_path / "benchmark.json").read_text())
    assert report["kernels"] == report["steps"] == {} and len(report["not reached"]) == 18
