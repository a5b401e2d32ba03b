"""The fastest of several ways: what is tried, when, and what is kept of it. The emulated device has no times: the tests say them."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_of import emulated, same
from library_stand_ins import CublasLt

import genesis
from genesis import cuda
from genesis.cuda.kernels import choose, products
from genesis.cuda.launch import tuning
from genesis.cuda.libraries import cublaslt, loading
from genesis.cuda.runtime.devices import device_at
from genesis.cuda.runtime.errors import CudaError


@pytest.fixture
def tried(monkeypatch, tmp_path):
    """Everything is large; the ways that were tried, whose times are 9, 8, 7, 1, 2, ..."""
    monkeypatch.setenv("GENESIS_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("GENESIS_CUDA_TUNE", "1")
    monkeypatch.setattr(tuning, "LARGE", 1)
    monkeypatch.setattr(cublaslt, "LARGE", 1)
    monkeypatch.setattr(tuning, "_known", {})
    monkeypatch.setattr(choose, "_chosen", {})  # what it remembers of products
    times, ways = [9.0, 8.0, 7.0, 1.0, 2.0, 3.0, 4.0, 5.0], []

    def measured(on, way):
        ways.append(way)
        way()
        return times[(len(ways) - 1) % 8]

    monkeypatch.setattr(tuning, "measured", measured)
    return ways


def tensors(dtype=genesis.float32):
    genesis.manual_seed(1)
    return genesis.randn(5, 7).to(dtype), genesis.randn(7, 3).to(dtype)


def tiles_of(function):
    """The tiles that a function's products have."""
    found, real = [], products.Tiled.made

    def made(self, *args):
        found.append(self.kernel.tile)
        return real(self, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products.Tiled, "made", made)
        function()
    return found


def test_the_fastest_tile_is_used_and_kept(tried, monkeypatch):
    with emulated():
        x, y = [t.to("cuda") for t in tensors()]
        every = products.TILES[4]
        assert tiles_of(lambda: x @ y) == [*every, every[3]] and len(tried) == len(every)
        assert tiles_of(lambda: x @ y) == [every[3]] and len(tried) == len(every)
        same(lambda x, y: x @ y, *tensors(), tolerance=1e-5)
    monkeypatch.setattr(tuning, "_known", {})  # another process
    monkeypatch.setattr(choose, "_chosen", {})
    monkeypatch.delenv("GENESIS_CUDA_TUNE")
    before = tuning.tried["kept"]
    with emulated():
        x, y = [t.to("cuda") for t in tensors()]
        assert tiles_of(lambda: x @ y) == [every[3]] and tuning.tried["kept"] == before + 1
        assert tiles_of(lambda: x.t() @ x) == [products.tile_of(7, 7, np.dtype("f"))]  # was never tried
    assert len(tried) == len(every)


def test_a_way_that_the_device_refuses_is_left_out(tried, monkeypatch):
    measured = tuning.measured

    def refused(on, way):
        if len(tried) == 3:
            tried.append(way)
            raise CudaError("launch: too much shared memory")
        return measured(on, way)

    monkeypatch.setattr(tuning, "measured", refused)
    with emulated():
        x, y = [t.to("cuda") for t in tensors(genesis.float16)]
        assert tiles_of(lambda: x @ y)[-1] == products.TILES[2][4]


def test_steps_and_graphs(tried):
    """A compiled step records what was found in its first call; nothing is tried while something is recorded."""
    with emulated():
        w = genesis.randn(7, 3, device="cuda")
        step = genesis.compile(lambda x: (x @ w).relu())
        for _ in range(3):
            x = genesis.randn(5, 7)
            there = step(x.to("cuda")).cpu()
            np.testing.assert_allclose(there.numpy(), (x @ w.cpu()).relu().numpy(), rtol=1e-5, atol=1e-6)
        assert len(tried) == len(products.TILES[4])
        assert all(entry.step.graphs == 1 for entry in step._recent)
        x, y = genesis.randn(4, 4, device="cuda"), genesis.randn(4, 4, device="cuda")
        tuning._known.clear()
        g = cuda.CUDAGraph()
        with cuda.graph(g):
            z = x @ y
        g.replay()
        np.testing.assert_allclose(z.cpu().numpy(), x.cpu().numpy() @ y.cpu().numpy(), rtol=1e-5)
        assert len(tried) == len(products.TILES[4])


@pytest.mark.parametrize(("there", "chosen"), [(8, 3), (3, 2), (1, None)])
def test_the_fastest_algorithm_of_the_library(there, chosen, tried):
    with emulated() as driver:
        lt = CublasLt(driver, algorithms=there)
        with loading.standing_in(cublaslt=lt):
            for _ in range(2):
                same(lambda x, y: x @ y, *tensors(), tolerance=1e-5)
            assert len(tried) == (there if chosen is not None else 0)
            (plan,) = [each for plans in device_at(0).keep("cublaslt", None).plans.values() for each in plans.values()]
            assert chosen is None or plan.chosen is plan.others[chosen]
            assert len(lt.products) == 2 + len(tried)


def test_nothing_is_tried_unless_it_is_asked_for(tried, monkeypatch):
    monkeypatch.delenv("GENESIS_CUDA_TUNE")
    with emulated() as driver:
        same(lambda x, y: x @ y, *tensors(), tolerance=1e-5)
        lt = CublasLt(driver, algorithms=8)
        with loading.standing_in(cublaslt=lt):
            same(lambda x, y: x @ y, *tensors(), tolerance=1e-5)
    assert tried == [] and len(lt.algorithms) == 1


def test_times_are_of_several_rounds(monkeypatch):
    with emulated():
        calls = []
        assert (
            tuning.measured(
                genesis.ones(1, device="cuda")._array.on, lambda: calls.append(genesis.ones(1, device="cuda"))
            )
            > 0
        )
        assert len(calls) == 1 + tuning.ROUNDS
