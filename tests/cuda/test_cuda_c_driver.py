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


STEP = """
import genesis
from genesis import nn
from genesis.cuda.launch import cubins, workers
from genesis.nn import functional as F

print("begun")
workers.processors = lambda: 2
model = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8)).to("cuda")
optimizer = genesis.optim.AdamW(model.parameters(), fused=True)
x, y = genesis.rand(16, 32, device="cuda"), genesis.arange(16, device="cuda") % 8

@genesis.compile
def step(x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss

compiled, kept = cubins.triton.compiled, cubins.keep
here, there = [], []
cubins.triton.compiled = lambda *code: here.append(code) or compiled(*code)
cubins.keep = lambda code, made: there.append(code) or kept(code, made)
losses = [step(x, y).item() for _ in range(4)]
assert losses == sorted(losses, reverse=True) and losses[3] < losses[0]
assert here == [] and len(there) > 5 and cubins._ready == {}, (len(here), len(there))
"""


def test_a_step_is_compiled_by_processes_that_run_nothing_of_the_program(tmp_path):
    (tmp_path / "step.py").write_text(STEP)
    said, _ = run(tmp_path / "step.py", GENESIS_CACHE_DIR=str(tmp_path / "kept"))
    assert said == ["begun"]


LIBRARIES = """
import sys, tempfile
import c_libraries
import genesis
from genesis.cuda.launch import tuning
from genesis.cuda.libraries import cublaslt, loading
from genesis.cuda.libraries import nccl as between
from genesis.nn import functional as F

driver = sys.modules["__main__"].driver
lt, nccl = (make(driver.emulated, tempfile.mkdtemp()) for make in (c_libraries.cublaslt, c_libraries.nccl))
lt.counts = True
genesis.manual_seed(0)
for dtype, tolerance in ((genesis.bfloat16, 6e-2), (genesis.float16, 1e-2), (genesis.float32, 1e-5), (genesis.float64, 1e-12)):
    x, w, b = (genesis.randn(*shape, dtype=dtype) for shape in ((24, 40), (16, 40), (16,)))
    y, wanted = F.linear(*[t.to("cuda") for t in (x, w, b)]), F.linear(x.double(), w.double(), b.double())
    assert (y.cpu().double() - wanted).abs().max().item() < tolerance
    z = genesis.stack([x, x]).to("cuda") @ genesis.stack([w.t(), w.t()]).to("cuda")
    assert (z[1].cpu().double() - x.double() @ w.t().double()).abs().max().item() < tolerance
assert loading.why_none("cublaslt") == loading.why_none("nccl") == ""
assert len(lt.products) == 7, "all but the one that is small and of float32"
lt.most, cublaslt.LARGE = 8, 1
y = genesis.compile(lambda x: x @ x.t())(x.to("cuda"))  # one of eight algorithms is chosen
assert (y.cpu() - x @ x.t()).abs().max().item() < 1e-12 and tuning.tried == {"ways": 8, "kept": 0}
step = genesis.compile(lambda x: x @ x.t() @ x @ x.t())
for scale in range(1, 5):
    y = step(x.to("cuda") / scale)
    assert (y.cpu() - x @ x.t() @ x @ x.t() / scale**4).abs().max().item() < 1e-11
graphs = [[work.what for work in works] for works in driver.emulated._graphs.values()]
assert ["fill", "kernel", "kernel", "kernel"] in graphs, graphs  # all counters at once
a, out = genesis.ones(64, device="cuda"), genesis.zeros(64, device="cuda")
world = between.communicator(a._array, 0, 1, lambda content: content)
world.all_reduce(a._array, "sum").join()
world.all_gather(out._array, a._array).join()
world.reduce_scatter(out._array, a._array, "sum").join()
world.reduce(a._array, "max", 0).join()
world.broadcast(a._array, 0).join()
assert out.sum().item() == 64 and len(nccl.done) == 5
world.close()
"""


@pytest.mark.skipif(not (find_spec("nvmath") and find_spec("nccl")), reason="nvmath-python or nccl4py is not installed")
def test_packages_of_libraries_hand_over_what_they_are_given(tmp_path):
    (tmp_path / "libraries.py").write_text(LIBRARIES)
    run(tmp_path / "libraries.py", GENESIS_CACHE_DIR=str(tmp_path / "kept"))


NUMERICAL = """
import sys, tempfile
import c_numerical_libraries as libraries
import genesis
from genesis.cuda.kernels.host import computed_on_host
from genesis.cuda.libraries import loading

driver, folder = sys.modules["__main__"].driver, tempfile.mkdtemp()
fft, blas, dn = (make(driver.emulated, folder) for make in (libraries.cufft, libraries.cublas, libraries.cusolver))
L, fft_of = genesis.linalg, genesis.fft
genesis.manual_seed(0)


def near(function, *inputs):
    here, there = function(*inputs), function(*[x.to("cuda") for x in inputs])
    for x, y in zip(here, there) if isinstance(here, tuple) else [(here, there)]:
        assert y.device.type == "cuda" and (y.cpu() - x).abs().max().item() < 1e-3 * max(1, x.abs().max().item()), function


for dtype in (genesis.float32, genesis.float64, genesis.complex64, genesis.complex128):
    for batch in ((), (3,)):
        x = genesis.randn(*batch, 4, 4, dtype=dtype) + 4 * genesis.eye(4, dtype=dtype)
        spd, b = x @ x.mH, genesis.randn(*batch, 4, 2, dtype=dtype)
        near(L.cholesky, spd), near(L.solve, x, b), near(lambda x: tuple(L.lu_factor(x)), x), near(L.det, x)
        near(lambda x, b: L.solve_triangular(x, b, upper=True), x, b)
        near(lambda x: L.qr(x[..., :3]).R, x), near(lambda x: L.qr(x[..., :3], "complete").Q.mH @ x, x)
        near(L.eigvalsh, spd), near(lambda x: L.svd(x[..., :3]).S, x), near(L.svdvals, x)
        near(fft_of.fft, x), near(lambda x: fft_of.fft(x, dim=0), x), near(fft_of.fft2, x), near(fft_of.irfft, x)
        near(fft_of.rfft2, x.real)
assert not computed_on_host and not any([loading.why_none(name) for name in ("cufft", "cusolver", "cublas")])
wanted = {"potrf", "potrf_batched", "getrf", "getrs", "geqrf", "orgqr", "syevd", "xsyev_batched", "gesvdj", "gesvdj_batched"}
assert wanted == set(dn.done) and {kind for kind, *_ in fft.done} == {41, 42, 44, 105, 106, 108}
assert set(blas.done) == {"trsm", "trsm_batched", "getrf_batched", "getrs_batched"}
"""


@pytest.mark.skipif(not find_spec("nvmath"), reason="nvmath-python is not installed")
def test_numerical_libraries_are_called_as_their_bindings_say(tmp_path):
    """Their functions in C get what they take, in its place, from the package itself."""
    (tmp_path / "numerical.py").write_text(NUMERICAL)
    run(tmp_path / "numerical.py")


@pytest.mark.slow
def test_the_first_run_on_a_gpu(tmp_path):
    """What `scripts/gpu/run smoke` does on a GPU: no more and no less than that machine code is run by Python."""
    _, launches = run("--small", ROOT / "scripts/gpu/run", "smoke", "--out", tmp_path)
    report = json.loads((tmp_path / "smoke.json").read_text())
    assert report["wrong"] == 0 and report["driver"] == 13000 and launches > 250
