"""Modules of other packages in compiled functions: what their code writes and reads is seen as that of a program is."""

import importlib
import random
import sys
import textwrap

import pytest

import genesis
from genesis import nn

pytest.importorskip("llvmlite")

PACKAGE = """
import functools
import random
from random import random as drawn

import numpy as np

import genesis
from genesis import nn

class Config:
    big = False

class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.calls, self.log = nn.Linear(3, 3), 0, []

    def forward(self, x):
        self.calls += 1
        self.log.append(self.calls)
        return self.layer(x) * (2 if self.calls % 3 == 0 else 1)

class Remembering(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = None

    def forward(self, x):
        before, self.last = self.last, x.detach() * 2
        return x if before is None else x + before

@functools.lru_cache
def numbers(count):
    return genesis.arange(count) * 2

class Caching(nn.Module):
    def forward(self, x):
        kept = [numbers(n) for n in (2, 3)]
        return x[x > 0].sum() + genesis.cat(kept).sum()

class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.log = nn.Linear(3, 3), []
        self.layer.register_forward_hook(self.hook)

    def hook(self, module, inputs, output):
        self.log.append(round(output.detach().sum().item(), 3))
        return output * 2

    def forward(self, x):
        return self.layer(x)

class Adam(genesis.optim.Optimizer):
    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})

    @genesis.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["step"], state["mean"] = 0, genesis.zeros_like(p)
                state["step"] += 1
                state["mean"].mul_(0.9).add_(p.grad, alpha=0.1)
                p.sub_(state["mean"] / (1 - 0.9 ** state["step"]), alpha=group["lr"])

class Halving(genesis.optim.lr_scheduler.LRScheduler):
    def get_lr(self):
        return [base * 0.5**self.last_epoch for base in self.base_lrs]

class Average:
    def __init__(self, module):
        self.count, self.values = 0, [p.detach().clone() for p in module.parameters()]

    def update(self, module):
        self.count += 1
        kept = min(0.9, (1 + self.count) / (10 + self.count))
        for value, p in zip(self.values, module.parameters()):
            value.mul_(kept).add_(p.detach(), alpha=1 - kept)

class Dropping(nn.Module):
    def forward(self, x):
        return x * 2 if drawn() < 0.5 else x

class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.source = random.Random(0)

    def forward(self, x):
        return x * self.source.random()

class OfNumPy(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.source = np.random.default_rng(0) if kind == "Generator" else np.random.RandomState(0)

    def forward(self, x):
        source = self.source
        return x * float(source.normal())

class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.shifts, self.turns, self.config = 1.0, False, 2, Config()

    def forward(self, x):
        y = x * self.scale + self.shifts
        for _ in range(self.turns):
            y = y * 2
        return y + 100 if self.config.big else y
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "a_package_of_modules.py").write_text(textwrap.dedent(PACKAGE))
    monkeypatch.syspath_prepend(str(folder))
    yield importlib.import_module("a_package_of_modules")
    del sys.modules["a_package_of_modules"]


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("name", ["Counting", "Remembering", "Hooked"])
def test_what_they_write_is_written_at_each_call(package, name, inside):
    def run(compiled):
        genesis.manual_seed(0)
        module = getattr(package, name)()
        net = nn.Sequential(module, nn.ReLU()) if inside else module
        net = genesis.compile(net) if compiled else net
        xs = [genesis.randn(2, 3) for _ in range(7)]
        values = [y for x in xs for y in net(x).flatten().tolist()]
        return values, getattr(module, "calls", 0), getattr(module, "log", [])

    for actual, expected in zip(run(True), run(False), strict=True):
        assert actual == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("name", ["Dropping", "Own"])
def test_random_numbers_that_they_draw_are_drawn_at_each_call(package, name):
    def run(compiled):
        random.seed(0)
        module = getattr(package, name)()
        net = genesis.compile(module) if compiled else module
        return [net(genesis.ones(2)).sum().item() for _ in range(8)], random.random()

    assert run(True) == run(False)


@pytest.mark.parametrize("kind", ["Generator", "RandomState"])
def test_a_source_of_numpy_draws_at_each_call(package, kind):
    module, compiled = package.OfNumPy(kind), genesis.compile(package.OfNumPy(kind))
    with pytest.warns(
        UserWarning, match=f"OfNumPy.forward of an installed package may draw random numbers from a {kind}"
    ):
        actual = [compiled(genesis.ones(1)).item() for _ in range(4)]
    assert actual == [module(genesis.ones(1)).item() for _ in range(4)]


@pytest.mark.filterwarnings("ignore:compile")
def test_what_a_failed_trace_leaves_in_their_caches_is_forgotten(package):
    module = package.Caching()
    compiled = genesis.compile(module)
    for n in range(1, 4):
        assert compiled(genesis.ones(2) * n).item() == module(genesis.ones(2) * n).item() == 2 * n + 8


@pytest.mark.parametrize("inside", [False, True])
def test_what_they_read_may_change(package, inside):
    module = package.Scaled()
    function = genesis.compile(nn.Sequential(module, nn.ReLU()) if inside else module)
    x = genesis.ones(1)
    for change in ("pass", "m.scale = 3.0", "m.shifts = True", "m.turns = 1", "m.config.big = True", "pass"):
        exec(change, {"m": module})
        assert function(x).item() == module(x).item(), change
    assert function._compiled._recent


@pytest.mark.filterwarnings("ignore:compile", "ignore:lr_scheduler")
@pytest.mark.parametrize("then", ["nothing", "a schedule", "an average"])
def test_their_optimizers_count_at_each_call(package, then):
    def run(compiled):
        genesis.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = package.Adam(model.parameters())
        schedule, average = package.Halving(optimizer), package.Average(model)

        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            if then == "a schedule":
                schedule.step()
            if then == "an average":
                average.update(model)
            return loss

        called = genesis.compile(step) if compiled else step
        losses = [called(genesis.ones(4, 3) * n).item() for n in range(1, 8)]
        kept = [*losses, *model.weight.flatten().tolist(), *average.values[0].flatten().tolist()]
        return kept, optimizer.state[model.weight]["step"], optimizer.param_groups[0]["lr"], average.count

    for actual, expected in zip(run(True), run(False), strict=True):
        assert actual == pytest.approx(expected, rel=1e-4)
