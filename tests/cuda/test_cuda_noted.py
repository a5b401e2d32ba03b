"""What work would want is noted without doing it, and compiled and built by many at once."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from kernels_of import emulated
from library_stand_ins import Cudnn

import genesis
from genesis.cuda.launch import cubins, workers
from genesis.cuda.launch.cubins import Code
from genesis.cuda.launch.noted import noting
from genesis.cuda.libraries import loading
from genesis.cuda.runtime.devices import device_at
from genesis.nn import functional as F

triton = pytest.mark.skipif(not find_spec("triton"), reason="Triton is not installed")
SOURCE = """
import triton
import triton.language as tl


@triton.jit
def kernel(x, n):
    at = tl.program_id(0) * 128 + tl.arange(0, 128)
    tl.store(x + at, tl.load(x + at, mask=at < n) + {number}, mask=at < n)
"""


def codes(count, source=SOURCE):
    return [Code(source.format(number=i), ("*fp32", "i32"), (0,), 4, 90) for i in range(count)]


@pytest.fixture
def kept(monkeypatch, tmp_path):
    monkeypatch.setenv("GENESIS_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cubins, "_ready", {})
    monkeypatch.setattr(workers, "processors", lambda: 2)
    monkeypatch.setattr(workers, "SILENT", 1e6)
    began, real = [], workers._started
    monkeypatch.setattr(workers, "_started", lambda: began.append(real()) or began[-1])
    return began


def test_noted_work_is_not_done():
    with emulated():
        x, before = genesis.rand(5, 3, device="cuda"), dict(cubins.made)
        held = x.tolist()
        with noting(device_at(0)) as notes:
            x.add_(1)
            x.zero_()
            x.copy_(genesis.ones(5, 3, device="cuda"))
            for _ in range(2):
                (x.exp() @ x.t())[genesis.zeros(2, dtype=genesis.int64, device="cuda")].sum()
            reached = True
            x.tolist()
            reached = "more than can be"
        assert reached is True and x.tolist() == held and cubins.made == before
        assert len(notes.codes) > 2 and all([c.capability == 90 for c in notes.codes])
        y = x.cpu()
        at = (x.exp() @ x.t())[genesis.zeros(2, dtype=genesis.int64, device="cuda")]  # what was noted is loaded, then
        genesis.testing.assert_close(at.cpu(), (y.exp() @ y.t())[genesis.zeros(2, dtype=genesis.int64)])


def test_what_is_kept_on_the_device_is_there():
    """Tables of windows are made once: by work that was only noted, too."""
    with emulated():
        x = genesis.rand(2, 3, 7, 9)
        work = lambda x: F.interpolate(F.max_pool2d(x, 3, 2, 1), size=(5, 6), mode="bilinear")
        with noting(device_at(0)) as notes:
            work(x.to("cuda"))
        assert notes.codes
        genesis.testing.assert_close(work(x.to("cuda")).cpu(), work(x))


def test_graphs_of_a_library_are_built_by_several_threads():
    with emulated() as driver:
        dnn = Cudnn(driver)
        with loading.standing_in(cudnn=dnn):
            x, w = (genesis.rand(2, 8, n, n, device="cuda").to(genesis.bfloat16) for n in (6, 3))
            work = lambda: F.conv2d(F.conv2d(x, w, padding=1)[:, :2], w[:, :2])
            with noting(device_at(0)) as notes:
                work()
            assert dnn.graphs == 0 and dnn.done == [] and len(notes.builds) == 2
            workers.prepare(notes)
            assert dnn.graphs == 2 and len(dnn.streams) > 1  # each thread has a handle
            there = work()
            assert dnn.graphs == 2 and dnn.done == ["conv_fprop"] * 2
        expected = F.conv2d(F.conv2d(x.cpu(), w.cpu(), padding=1)[:, :2], w.cpu()[:, :2])
    assert (there.cpu().float() - expected.float()).abs().max() < 0.05 * expected.float().abs().max()


@triton
def test_kernels_are_compiled_by_processes(kept, capsys):
    before, wanted = dict(cubins.made), codes(5)
    workers.compile_all(wanted)
    assert len(kept) == 2 and all([process.poll() is not None for process in kept])
    assert cubins.made["compiled"] - before["compiled"] == 5 and all(map(cubins.is_kept, wanted))
    by_process = cubins.cubin(*wanted[0].parts)
    assert cubins._ready.keys() == {*wanted[1:]}
    assert cubins.cubin(*wanted[0].parts) == by_process and cubins.made["loaded"] - before["loaded"] == 1
    workers.compile_all(wanted)
    workers.compile_all(codes(7))  # two more: few
    assert len(kept) == 2 and capsys.readouterr() == ("", "")


@triton
def test_what_no_process_compiles_is_left(kept, monkeypatch):
    wanted = [*codes(4), *codes(1, SOURCE.replace("tl.arange", "tl.no_such"))]
    workers.compile_all(wanted)
    assert [cubins.is_kept(code) for code in wanted] == [True] * 4 + [False]
    monkeypatch.setattr(workers, "COMMAND", "raise SystemExit")
    others = [Code(*code.parts[:3], 8, 90) for code in wanted[:4]]
    workers.compile_all(others)
    assert not any(map(cubins.is_kept, others)) and cubins.cubin(*others[0].parts).warps == 8


def test_long_work_says_how_far_it_is(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(workers.time, "monotonic", lambda: now[0])
    told = workers.Told("kernels compiled for the GPU", 40)
    for second in range(11):
        now[0] = float(second)
        told.one_more()
    said = capsys.readouterr().err.splitlines()
    assert said == [f"genesis: {n} of 40 kernels compiled for the GPU" for n in (6, 11)]
