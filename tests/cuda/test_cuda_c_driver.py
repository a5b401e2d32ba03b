"""NVIDIA's bindings, machine code and its parameters, as far as they go without a GPU: over a driver in C that is the
emulated device (`c_driver.py`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    not (shutil.which("cc") and find_spec("triton") and find_spec("cuda") and find_spec("cuda.bindings")),
    reason="a compiler of C, cuda-bindings or Triton is not installed",
)
HERE = Path(__file__).parent
ROOT = HERE.parents[1]

FIRST = """
import sys
import genesis
from genesis import nn

assert genesis.cuda.is_available() and not genesis.cuda.current_stream().on.driver.emulated
assert genesis.cuda.get_device_name() == "NVIDIA H200"
x = genesis.arange(1000, dtype=genesis.float32).pin_memory().to("cuda", non_blocking=True)
assert (x * 2.5 + x).sum().item() == 3.5 * 999 * 500
side = genesis.cuda.Stream()
side.wait_stream(genesis.cuda.current_stream())
with genesis.cuda.stream(side):
    y = x.exp()
genesis.cuda.current_stream().wait_stream(side)
genesis.testing.assert_close(y.cpu(), x.cpu().exp())
w = nn.Linear(7, 5).to("cuda")
step = genesis.compile(lambda t: genesis.nn.functional.gelu(w(t)).square().mean())
for _ in range(4):
    assert abs(step(x[:70].view(10, 7)).item() - genesis.nn.functional.gelu(w(x[:70].view(10, 7))).square().mean().item()) < 1
try:
    genesis.empty(1 << 40, device="cuda")
except genesis.cuda.OutOfMemoryError as error:
    print(str(error).splitlines()[0])
try:
    x[genesis.tensor([2000], device="cuda")].tolist()
except IndexError as error:
    print(str(error).splitlines()[0])
"""


def run(*arguments, **environment):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GENESIS_CUDA": "", **environment}
    command = [sys.executable, HERE / "c_driver.py", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = done.stdout.strip().splitlines()
    launches, wrong = told[-1].split(" launches by C, wrong in it: ")
    assert wrong == "[]", done.stdout
    return told[:-1], int(launches)


def test_programs_run_through_the_bindings(tmp_path):
    (tmp_path / "first.py").write_text(FIRST)
    said, launches = run(tmp_path / "first.py")
    assert launches > 10 and said == [
        "cuda: out of memory, 4194304.0 MiB were asked for",
        "index: index 2000 is out of range for dimension 0 of size 1000",
    ]


@pytest.mark.slow
def test_the_first_run_on_a_gpu(tmp_path):
    """What `scripts/gpu/run smoke` does on a GPU: no more and no less than that machine code is run by Python."""
    _, launches = run("--small", ROOT / "scripts/gpu/run", "smoke", "--out", tmp_path)
    report = json.loads((tmp_path / "smoke.json").read_text())
    assert report["wrong"] == 0 and report["driver"] == 13000 and launches > 1000
