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
    monkeypatch.setattr(tuning, "ASKED", "1")
    monkeypatch.setattr(tuning, "LARGE", 1)
    monkeypatch.setattr(cublaslt, "LARGE", 1)
    monkeypatch.setattr(tuning, "_known", {})
    monkeypatch.setattr(choose, "_chosen", {})  # what it remembers of products
    tried = []

    def measured(on, ways):
        tried.extend(ways)
        for way in ways:
            way()
        return [9.0, 8.0, 7.0, 1.0, 2.0, 3.0, 4.0, 5.0][: len(ways)]

    monkeypatch.setattr(tuning, "measured", measured)
    return tried


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
        assert tiles_of(lambda: x @ y) == [*every, *every, every[3]] and len(tried) == len(every)
        assert tiles_of(lambda: x @ y) == [every[3]] and len(tried) == len(every)
        same(lambda x, y: x @ y, *tensors(), tolerance=1e-5)
    monkeypatch.setattr(tuning, "_known", {})  # another process
    monkeypatch.setattr(choose, "_chosen", {})
    before = tuning.tried["kept"]
    with emulated():
        x, y = [t.to("cuda") for t in tensors()]
        assert tiles_of(lambda: x @ y) == [every[3]] and tuning.tried["kept"] == before + 1
        monkeypatch.setattr(tuning, "ASKED", "")
        assert tiles_of(lambda: x.t() @ x) == [products.tile_of(7, 7, np.dtype("f"))]
    assert len(tried) == len(every)


def test_a_way_that_the_device_refuses_is_left_out(tried, monkeypatch):
    real = products.Tiled.made

    def made(self, *args):
        if self.kernel.tile == products.TILES[2][3]:
            raise CudaError("launch: too much shared memory")
        return real(self, *args)

    monkeypatch.setattr(products.Tiled, "made", made)
    with emulated():
        x, y = [t.to("cuda") for t in tensors(genesis.float16)]
        assert tiles_of(lambda: x @ y)[-1] == products.TILES[2][4]


def test_another_way_is_faster_by_more_than_times_are_apart(tried, monkeypatch):
    ways = [lambda: None] * 3
    with emulated():
        on = genesis.ones(1, device="cuda")._array.on
        for times, number in (([3.0, 2.97, 4.0], 0), ([3.0, 2.9, 2.8], 2)):
            monkeypatch.setattr(tuning, "measured", lambda on, ways, times=times: times)
            assert tuning.fastest(on, ways) == number


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
            assert chosen_of(lt) == [chosen or 0] * 2
            assert len(lt.products) == 2 + 2 * len(tried)


def test_algorithms_without_a_workspace_are_tried_too(tried):
    """Each once: the library offers some of them in either case."""
    with emulated() as driver:
        lt = CublasLt(driver, algorithms=3, bare=5)
        with loading.standing_in(cublaslt=lt):
            same(lambda x, y: x @ y, *tensors(), tolerance=1e-5)
    assert len(tried) == 5 and list(lt.algorithms).index(lt.taken[-1]) == 3


def chosen_of(lt):
    """Which algorithms the last two products had, of those that were offered for them."""
    (plan,) = [each for plans in device_at(0).keep("cublaslt", None).plans.values() for each in plans.values()]
    assert not plan.others
    offered = list(lt.algorithms)
    return [offered.index(each) for each in lt.taken[-2:]]


def test_what_adds_is_not_tried(tried):
    """It would add again and again."""
    with emulated() as driver:
        lt = CublasLt(driver, algorithms=8)
        with loading.standing_in(cublaslt=lt):
            x, y = [t.to("cuda")._array for t in tensors()]
            out = genesis.ones(5, 3, device="cuda")
            assert cublaslt.multiplied(x, y, None, out._array, 1, (0, 0), adds=True)
            np.testing.assert_allclose(out.cpu().numpy(), (lambda x, y: x @ y + 1)(*tensors()).numpy(), rtol=1e-5)
    assert not tried


@pytest.fixture
def steps(tried, monkeypatch):
    """As on a GPU, where nothing asks for it: what gives the algorithms of the second of two products in a step's first call, of
    both in what is recorded, and of the first one outside of it, by their numbers in the order in which they were offered.
    """
    monkeypatch.setattr(tuning, "ASKED", "")

    def run():
        monkeypatch.setattr(tuning, "_known", {})  # another process
        monkeypatch.setattr(choose, "_chosen", {})
        with emulated() as driver:
            lt = CublasLt(driver, algorithms=8)
            with loading.standing_in(cublaslt=lt):
                x, w = [t.to("cuda") for t in tensors()]
                step = genesis.compile(lambda x: x @ w @ w.t())  # nothing that a compiler is wanted for
                expected = (x @ w @ w.t()).cpu().numpy()
                monkeypatch.setattr(driver, "emulated", False)
                for _ in range(3):
                    np.testing.assert_allclose(step(x).cpu().numpy(), expected, rtol=1e-5, atol=1e-6)
                assert step._recent and all(entry.step.graphs == 1 for entry in step._recent)
                calls = lt.taken[-3:]
                x @ w
                monkeypatch.setattr(driver, "emulated", True)
            offered = list(lt.algorithms)
            return [offered.index(each) for each in (*calls, lt.taken[-1])]

    return run


FIRST, FASTEST = [1, 0, 1, 0], [10 + 3, 2 + 3, 10 + 3, 0]  # the first two are of the eager calls


def test_a_compiled_step_has_the_fastest(steps, tried, monkeypatch):
    """... that is kept for other processes; calls outside of steps have the library's own, and always the same."""
    assert steps() == FASTEST and len(tried) == 16
    before = tuning.tried["kept"]
    assert steps() == FASTEST and len(tried) == 16 and tuning.tried["kept"] == before + 2
    monkeypatch.setattr(tuning, "ASKED", "0")
    assert steps() == FIRST and len(tried) == 16


def test_a_program_that_wants_the_same_bits_has_nothing_chosen_for_it(steps, tried):
    genesis.use_deterministic_algorithms(True)
    try:
        assert steps() == FIRST and not tried
    finally:
        genesis.use_deterministic_algorithms(False)


def test_a_step_stays_with_what_was_wanted_first(tried, monkeypatch):
    """... whatever is said later: its graph asks for the memory of the first call."""
    monkeypatch.setattr(tuning, "ASKED", "")
    with emulated() as driver:
        lt = CublasLt(driver, algorithms=8, bare=2)
        with loading.standing_in(cublaslt=lt):
            x, w = [t.to("cuda") for t in tensors()]
            step = genesis.compile(lambda x: x @ w @ w.t())
            monkeypatch.setattr(driver, "emulated", False)
            step(x)
            genesis.use_deterministic_algorithms(True)
            try:
                for _ in range(3):
                    step(x)
            finally:
                genesis.use_deterministic_algorithms(False)
            monkeypatch.setattr(driver, "emulated", True)
            assert [(entry.step.graphs, entry.step.why) for entry in step._recent] == [(1, "")]


def test_nothing_is_tried_while_work_is_only_noted(steps, tried, monkeypatch):
    """What compiles for the first call goes through the same products, and computes none of them."""
    noted = []
    real = cublaslt.Products._start

    def start(self, plan, *args):
        noted.append((self.on.enter().notes is not None, bool(plan.others)))
        real(self, plan, *args)

    monkeypatch.setattr(cublaslt.Products, "_start", start)
    assert steps() == FASTEST
    assert noted[2:6] == [(True, True), (True, True), (False, False), (False, False)]


def test_nothing_is_tried_unless_it_is_asked_for(tried, monkeypatch):
    monkeypatch.setattr(tuning, "ASKED", "")
    with emulated() as driver:
        same(lambda x, y: x @ y, *tensors(), tolerance=1e-5)
        lt = CublasLt(driver, algorithms=8)
        with loading.standing_in(cublaslt=lt):
            same(lambda x, y: x @ y, *tensors(), tolerance=1e-5)
    assert tried == [] and len(lt.algorithms) == 1


@pytest.mark.parametrize(("long", "rounds", "runs"), [(1e9, tuning.ROUNDS, tuning.RUNS), (0.0, tuning.FEWER, 1)])
def test_times_are_of_several_rounds(long, rounds, runs, monkeypatch):
    """... of fewer where one takes long."""
    monkeypatch.setattr(tuning, "LONG", long)
    with emulated():
        calls = []
        on = genesis.ones(1, device="cuda")._array.on
        ways = [lambda n=n: calls.append((n, genesis.ones(1, device="cuda"))) for n in range(2)]
        assert [time > 0 for time in tuning.measured(on, ways)] == [True, True]
        assert [n for n, _ in calls] == [0, 1, *[n for _ in range(rounds) for n in range(2) for _ in range(runs)]]
