"""Several GPUs of one process, on the emulated driver: copies between them, each with its own streams, graphs and steps."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import genesis
from genesis import cuda, nn
from genesis.cuda.runtime.connection import using
from genesis.cuda.runtime.emulated import Emulated
from genesis.kernels.llvm import loops
from genesis.nn import functional as F

DEVICES = "cuda:0", "cuda:1"


@pytest.fixture
def gpus():
    with using(Emulated(2, memory=64 << 20)) as driver, warnings.catch_warnings():
        warnings.simplefilter("error")
        yield driver


def model():
    genesis.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(0.3), nn.Linear(16, 4))


def losses(device, compiled=False):
    """Those of a training on a device."""
    net = model().to(device)
    optimizer = genesis.optim.AdamW(net.parameters(), lr=0.1)
    x, t = genesis.randn(6, 8).to(device), genesis.randint(0, 4, (6,)).to(device)

    def step(x, t):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), t)
        loss.backward()
        optimizer.step()
        return loss

    run = genesis.compile(step) if compiled else step
    return [run(x, t).item() for _ in range(5)]


def test_copies_go_from_one_to_the_other(gpus):
    x = genesis.randn(4, 6)
    a, b = [x.to(device) for device in DEVICES]
    assert a.to("cuda:1").equal(b) and b.to("cuda:0").equal(a) and a.t().to("cuda:1").equal(b.t())
    assert genesis.zeros(6, 4, device="cuda:1").t().copy_(a).equal(b)
    assert genesis.zeros(4, 6, device="cuda:1", dtype=genesis.float64).copy_(a).equal(b.double())
    with pytest.raises(RuntimeError, match="operands are on cuda:0 and cuda:1"):
        a + b
    assert cuda.can_device_access_peer(0, 1)


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.skipif(not loops.available(), reason="needs llvmlite"))])  # fmt: skip
def test_each_trains_to_the_same_bits(gpus, compiled):
    assert losses("cuda:0", compiled) == losses("cuda:1", compiled)


def test_a_graph_of_the_second(gpus):
    with cuda.device(1):
        x, g = genesis.ones(4, device="cuda"), cuda.CUDAGraph()
        assert x.device.index == 1
        x * 2
        with cuda.graph(g):
            y = x * 2
        x.fill_(5.0)
        g.replay()
        assert y.tolist() == [10.0] * 4
    assert genesis.ones(1, device="cuda").device.index == 0


def test_layers_on_several(gpus):
    first, second = nn.Linear(8, 5), nn.Linear(5, 2)
    x = genesis.randn(3, 8)
    expected = genesis.autograd.grad(second(first(x).relu()).sum(), [first.weight, second.weight])
    first.to("cuda:0"), second.to("cuda:1")
    y = second(first(x.to("cuda:0")).relu().to("cuda:1"))
    y.sum().backward()
    for p, g in zip((first.weight, second.weight), expected, strict=True):
        assert p.grad.device == p.device
        np.testing.assert_allclose(p.grad.tolist(), g.tolist(), rtol=1e-5, atol=1e-6)


# ---- DataParallel


class Several(nn.Module):
    """A module that takes and gives values of several kinds, and writes to a buffer."""

    def __init__(self):
        super().__init__()
        self.inner, self.seen = nn.Linear(4, 3), []
        self.register_buffer("calls", genesis.zeros(1))

    def forward(self, x, *, others, scale=1.0):
        self.seen.append((x.device.index, len(x)))
        self.calls += 1
        y = self.inner(x) * scale + others["bias"]
        return {"out": y, "parts": (y.sum(), [y.mean(1)])}


def test_a_batch_is_divided_and_gradients_come_together(gpus):
    net, x = Several(), genesis.randn(5, 4)
    given = {"bias": genesis.randn(5, 3)}
    expected = net(x, others=given, scale=2.0)
    gradients = genesis.autograd.grad(expected["out"].square().sum(), list(net.parameters()))
    net.seen.clear()
    net.calls.zero_()
    net.to("cuda:0")
    parallel = nn.DataParallel(net)
    assert parallel.device_ids == [0, 1] and parallel.output_device == 0
    result = parallel(x, others=given, scale=2.0)  # the arguments are on the CPU
    assert net.seen == [(0, 3), (1, 2)] and net.calls.tolist() == [1.0]
    total, (means,) = result["parts"]
    assert result["out"].device.index == 0 and total.shape == (2,) and means.shape == (5,)
    np.testing.assert_allclose(result["out"].tolist(), expected["out"].tolist(), rtol=1e-5)
    np.testing.assert_allclose(total.sum().item(), expected["parts"][0].item(), rtol=1e-5)
    result["out"].square().sum().backward()
    for p, g in zip(net.parameters(), gradients, strict=True):
        assert p.grad.device.index == 0
        np.testing.assert_allclose(p.grad.tolist(), g.tolist(), rtol=1e-5, atol=1e-6)


def test_which_devices_compute(gpus):
    net = nn.Linear(4, 2)
    x = genesis.randn(4, 4)
    expected = net(x).tolist()
    there = nn.DataParallel(net, device_ids=[1])
    assert net.weight.device.index == 1 and there(x).device.index == 1
    turned = nn.DataParallel(net, device_ids=["cuda:1", 0], output_device=0)
    y = turned(x)
    assert y.device.index == 0
    np.testing.assert_allclose(y.tolist(), expected, rtol=1e-5)
    assert turned(x[:1]).shape == (1, 2)  # fewer rows than devices
    columns = nn.DataParallel(nn.Flatten().to("cuda:1"), [1, 0], dim=1)(genesis.arange(8.0).reshape(2, 4))
    assert columns.tolist() == [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]
    with pytest.raises(RuntimeError, match="weight is on cuda:1, and the first of device_ids is cuda:0"):
        nn.DataParallel(net)(x)
    with pytest.raises(TypeError, match="expected the number of a GPU, got 'cpu'"):
        nn.DataParallel(net, ["cpu"])


def test_parts_of_values(gpus):
    x = genesis.arange(6.0).reshape(3, 2)
    parts = nn.parallel.scatter([x, {"y": x, "n": 3}, ()], [0, 1])
    assert [(p[0].device.index, p[0].shape[0], p[1]["n"], p[2]) for p in parts] == [(0, 2, 3, ()), (1, 1, 3, ())]
    back = nn.parallel.gather([p[:2] and [p[0], {"y": p[1]["y"]}] for p in parts], "cpu")
    assert back[0].equal(x) and back[1]["y"].equal(x)
    with pytest.raises(TypeError, match="a tensor without dimensions cannot be split"):
        nn.parallel.scatter(genesis.tensor(1.0), [0, 1])
    with pytest.raises(TypeError, match="expected tensors, got a int"):
        nn.parallel.gather([1, 2], 0)
