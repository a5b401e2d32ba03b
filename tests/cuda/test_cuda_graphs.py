"""Graphs that programs record (`genesis.cuda.CUDAGraph`), on an emulated device."""

from __future__ import annotations

import gc
import warnings

import numpy as np
import pytest

import genesis
from genesis import cuda, nn
from genesis.cuda.kernels.host import HostWarning
from genesis.cuda.runtime.connection import using
from genesis.cuda.runtime.emulated import Emulated
from genesis.kernels.llvm import loops
from genesis.nn import functional as F


@pytest.fixture
def gpu():
    with using(Emulated(1, memory=64 << 20)) as driver, warnings.catch_warnings():
        warnings.simplefilter("ignore", HostWarning)
        yield driver


def recorded(work, warm=True):
    """A graph of ``work()``, and what it returned."""
    if warm:
        work()
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        result = work()
    return g, result


def test_what_is_recorded_is_done_at_each_replay_and_not_before(gpu):
    x = genesis.zeros(4, device="cuda")
    g, y = recorded(lambda: x * 2 + 1)
    for i in range(4):
        x.fill_(float(i))
        launches = gpu.calls["launch"]
        g.replay()
        assert y.tolist() == [2.0 * i + 1] * 4 and gpu.calls["launch"] == launches


def test_writes_are_repeated(gpu):
    x = genesis.zeros(3, device="cuda")
    g, _ = recorded(lambda: x.add_(1))
    assert x.tolist() == [1.0] * 3
    for _ in range(3):
        g.replay()
    assert x.tolist() == [4.0] * 3


def test_forward_and_backward_in_one_graph(gpu):
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2)).to("cuda")
    x = genesis.zeros(3, 4, device="cuda")

    def work():
        for p in model.parameters():
            p.grad = None
        loss = model(x).square().mean()
        loss.backward()
        return loss

    g, loss = recorded(work)
    for i in range(3):
        given = genesis.full((3, 4), 1.0 + i, device="cuda")
        x.copy_(given)
        g.replay()
        gradients = [p.grad.cpu().numpy() for p in model.parameters()]
        expected = genesis.autograd.grad(model(given).square().mean(), list(model.parameters()))
        for a, b in zip(gradients, expected, strict=True):
            np.testing.assert_allclose(a, b.cpu().numpy(), rtol=1e-6)
        assert loss.item() == model(given).square().mean().item()


def test_random_numbers_go_on(gpu):
    x = genesis.ones(500, device="cuda")
    g, y = recorded(lambda: F.dropout(x, 0.3) + genesis.rand(500, device="cuda"))
    genesis.manual_seed(5)
    there = []
    for _ in range(3):
        g.replay()
        there.append(y.tolist())
    end = genesis.get_rng_state().tolist()
    genesis.manual_seed(5)
    here = [(F.dropout(genesis.ones(500), 0.3) + genesis.rand(500)).tolist() for _ in range(3)]
    assert there == here and there[0] != there[1] and genesis.get_rng_state().tolist() == end


def test_a_recording_draws_nothing(gpu):
    genesis.rand(10, device="cuda")
    before = genesis.get_rng_state().tolist()
    recorded(lambda: genesis.rand(10, device="cuda"), warm=False)
    assert genesis.get_rng_state().tolist() == before


def test_eager_work_does_not_get_the_memory_of_a_graph(gpu):
    """What the recording made and dropped is the graph's: nobody else's memory is written to at a replay."""
    x = genesis.ones(1 << 16, device="cuda")
    g, y = recorded(lambda: ((x + 1) * (x + 2)).sum())
    cuda.empty_cache()
    others = [genesis.full((1 << 16,), 7.0, device="cuda") for _ in range(20)]
    g.replay()
    assert y.item() == 6.0 * (1 << 16) and all([o.eq(7.0).all().item() for o in others])


def test_the_memory_of_a_graph_is_given_back(gpu):
    x = genesis.ones(1 << 20, device="cuda")
    g, y = recorded(lambda: (x * 2).relu())
    del y
    cuda.empty_cache()
    held = cuda.memory_reserved()
    g.reset()
    del g
    gc.collect()
    cuda.empty_cache()
    assert cuda.memory_reserved() < held


def test_graphs_share_a_pool(gpu):
    x = genesis.ones(8, device="cuda")
    first, second, pool = cuda.CUDAGraph(), cuda.CUDAGraph(), cuda.graph_pool_handle()
    (x + 1) * 2
    with cuda.graph(first, pool=pool):
        y = x + 1
    with cuda.graph(second, pool=first.pool()):
        z = y * 2
    first.replay()
    second.replay()
    assert first.pool() == second.pool() == pool and z.tolist() == [4.0] * 8


def test_what_no_graph_can_hold_is_an_error(gpu):
    x = genesis.ones(4, device="cuda")
    x.add_(1)
    for work in (lambda: x.sum().item(), cuda.synchronize, lambda: x.cpu(), lambda: genesis.tensor([1.0]).to("cuda")):
        with pytest.raises(RuntimeError, match="CAPTURE|captur"), cuda.graph(cuda.CUDAGraph()):
            work()
        assert not cuda.is_current_stream_capturing() and x.tolist() == [2.0] * 4  # and work goes on


def test_a_step_of_adam_is_for_compile(gpu):
    w = nn.Parameter(genesis.ones(3, device="cuda"))
    optimizer = genesis.optim.Adam([w])
    w.grad = genesis.ones(3, device="cuda")
    optimizer.step()
    with (
        pytest.raises(RuntimeError, match=r"the learning rate and the number of steps of its recording"),
        cuda.graph(cuda.CUDAGraph()),
    ):
        optimizer.step()


def test_a_user_error_inside_ends_the_recording(gpu):
    g = cuda.CUDAGraph()
    with pytest.raises(ZeroDivisionError), cuda.graph(g):
        1 / 0
    assert not cuda.is_current_stream_capturing()
    with pytest.raises(RuntimeError, match="nothing was recorded"):
        g.replay()
    x = genesis.ones(2, device="cuda")
    x + 1
    with cuda.graph(g):
        y = x + 1
    g.replay()
    assert y.tolist() == [2.0, 2.0]


def test_wrong_use(gpu):
    g = cuda.CUDAGraph()
    for call in (g.replay, g.capture_end, g.pool):
        with pytest.raises(RuntimeError, match="nothing"):
            call()
    with pytest.raises(RuntimeError, match="another stream than the default one"):
        g.capture_begin()
    with cuda.stream(cuda.Stream()), pytest.raises(ValueError, match="capture_error_mode is one of"):
        g.capture_begin(capture_error_mode="never")
    with cuda.stream(cuda.Stream()), pytest.raises(TypeError, match="a pool is a pair of ints"):
        g.capture_begin(pool=3)
    with pytest.raises(TypeError, match="expected a CUDAGraph"):
        cuda.graph(None)
    with cuda.graph(g), pytest.raises(RuntimeError, match="being recorded in this thread already"):
        cuda.CUDAGraph().capture_begin()


@pytest.mark.skipif(not loops.available(), reason="functions are compiled where there is llvmlite")
def test_graphed_callables(gpu):
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh()).to("cuda")
    other = nn.Linear(8, 2).to("cuda")
    x = genesis.randn(3, 4, device="cuda")
    expected = other(model(x))
    gradients = genesis.autograd.grad(expected.sum(), [*model.parameters(), *other.parameters()])
    samples = (genesis.randn(3, 4, device="cuda"),), (genesis.randn(3, 8, device="cuda", requires_grad=True),)
    assert cuda.make_graphed_callables((model, other), samples) == (model, other)
    launches = gpu.calls["launch"]
    y = other(model(x))
    y.sum().backward()
    assert gpu.calls["launch"] - launches < 4  # the sum and its gradient; all else are two graphs forward, two backward
    np.testing.assert_allclose(y.tolist(), expected.tolist(), rtol=1e-6)
    for p, g in zip([*model.parameters(), *other.parameters()], gradients, strict=True):
        np.testing.assert_allclose(p.grad.tolist(), g.tolist(), rtol=1e-5)
    double = cuda.make_graphed_callables(lambda t: t * 2, (genesis.ones(2, device="cuda"),))
    assert double(genesis.full((2,), 3.0, device="cuda")).tolist() == [6.0, 6.0]
    with pytest.raises(TypeError, match="expected a tuple of tensors for each of 1 callables"):
        cuda.make_graphed_callables(other, x)


def test_two_streams_in_one_graph(gpu):
    x, side = genesis.ones(4, device="cuda"), cuda.Stream()

    def work():
        here = cuda.current_stream()
        side.wait_stream(here)
        with cuda.stream(side):
            a = x * 2
        b = x * 3
        here.wait_stream(side)
        return a + b

    g, y = recorded(work)
    x.fill_(2.0)
    g.replay()
    assert y.tolist() == [10.0] * 4


# ---- compiled functions in a graph of the program

compiles = pytest.mark.skipif(not loops.available(), reason="functions are compiled where there is llvmlite")


def called(function, *arguments):
    """A compiled function that is as it is after some calls: traced, noted, recorded."""
    made = genesis.compile(function)
    for _ in range(4):
        made(*arguments)
    return made


@compiles
def test_a_compiled_function_draws_on_at_each_replay_beside_eager_draws(gpu):
    x = genesis.ones(300, device="cuda")
    drop = called(lambda x: F.dropout(x, 0.5) * F.dropout(x, 0.25), x)
    work = lambda: (drop(x), genesis.rand(7, device="cuda"), drop(x))
    g, results = recorded(work)
    genesis.manual_seed(3)
    there = []
    for _ in range(3):
        g.replay()
        there.append([y.tolist() for y in results])
    end = genesis.get_rng_state().tolist()
    genesis.manual_seed(3)
    assert there == [[y.tolist() for y in work()] for _ in range(3)] and there[0] != there[1]
    assert genesis.get_rng_state().tolist() == end


@compiles
def test_recording_a_compiled_function_draws_nothing(gpu):
    x = genesis.ones(30, device="cuda")
    drop = called(lambda x: F.dropout(x, 0.5), x)
    before = genesis.get_rng_state().tolist()
    recorded(lambda: drop(x), warm=False)
    assert genesis.get_rng_state().tolist() == before


@compiles
def test_later_calls_write_nothing_that_a_graph_reads(gpu):
    """Learning rates of more calls than a step has pinned memory for: that of a graph is the one of its recording."""
    w = nn.Parameter(genesis.zeros(4, device="cuda"))
    optimizer = genesis.optim.SGD([w], lr=0.5)

    def fit(x):
        optimizer.zero_grad()
        loss = (w * x).sum()
        loss.backward()
        optimizer.step()
        return loss

    x = genesis.ones(4, device="cuda")
    step = called(fit, x)
    graph, loss = recorded(lambda: step(x), warm=False)
    for i in range(100):
        optimizer.param_groups[0]["lr"] = float(i)
        step(x)
    with genesis.no_grad():
        w.fill_(0.0)
    graph.replay()
    assert w.tolist() == [-0.5] * 4 and loss.item() == 0.0
    graph.replay()
    assert w.tolist() == [-1.0] * 4 and loss.item() == -2.0
    optimizer.param_groups[0]["lr"] = 2.0
    assert step(x).item() == -4.0 and w.tolist() == [-3.0] * 4


@compiles
def test_a_compiled_step_of_training_in_a_graph(gpu):
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2)).to("cuda")
    same = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2)).to("cuda")
    same.load_state_dict(model.state_dict())
    x = genesis.randn(3, 4, device="cuda")

    def stepper(model):
        optimizer = genesis.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        return step

    step, plain = called(stepper(model), x), stepper(same)
    for _ in range(4):
        plain(x)
    g, loss = recorded(lambda: step(x), warm=False)
    for i in range(3):
        x.fill_(1.0 + i)
        g.replay()
        assert loss.item() == pytest.approx(plain(x).item(), rel=1e-5)
    for a, b in zip(model.parameters(), same.parameters(), strict=True):
        np.testing.assert_allclose(a.tolist(), b.tolist(), rtol=1e-5)
    expected = plain(x).item()
    assert step(x).item() == pytest.approx(expected, rel=1e-5)  # and calls outside of the graph go on


@compiles
def test_a_graph_has_the_constants_of_a_function_that_is_gone(gpu):
    x, table = genesis.ones(4, device="cuda"), np.arange(4, dtype=np.float32)
    functions = [called(lambda x: x + genesis.tensor(table, device="cuda"), x)]
    g, y = recorded(lambda: functions[0](x))
    functions.clear()
    gc.collect()
    others = [genesis.full((4,), 9.0, device="cuda") for _ in range(50)]
    g.replay()
    assert y.tolist() == [1.0, 2.0, 3.0, 4.0] and len(others) == 50


@compiles
def test_compiled_functions_that_no_graph_can_hold(gpu):
    x = genesis.ones(4, device="cuda")
    new = genesis.compile(lambda x: x * 3 + 1)
    with pytest.raises(RuntimeError, match=r"for the first time|CAPTURE"), cuda.graph(cuda.CUDAGraph()):
        new(x)
    assert new(x).tolist() == [4.0] * 4 and new(x).tolist() == [4.0] * 4
    w = nn.Parameter(genesis.ones(4, device="cuda"))
    optimizer = genesis.optim.Adam([w])

    def adam(x):
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()

    step = called(adam, x)
    before, steps = w.tolist(), optimizer.state_dict()["state"][0]["step"]
    with pytest.raises(RuntimeError, match="the number of steps of its recording"), cuda.graph(cuda.CUDAGraph()):
        step(x)
    assert w.tolist() == before and optimizer.state_dict()["state"][0]["step"] == steps
    step(x)
    assert optimizer.state_dict()["state"][0]["step"] == steps + 1
    mixed = called(lambda x, y: x + y.to("cuda"), x, genesis.ones(4))
    with pytest.raises(RuntimeError, match="the CPU has a part|CAPTURE"), cuda.graph(cuda.CUDAGraph()):
        mixed(x, genesis.ones(4))
    assert mixed(x, genesis.ones(4)).tolist() == [2.0] * 4
