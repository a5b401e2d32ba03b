"""Modules of other packages in compiled functions: what their code writes and reads is seen as that of a program is."""

import importlib
import sys
import textwrap

import pytest

import genesis
from genesis import nn

pytest.importorskip("llvmlite")

PACKAGE = """
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
@pytest.mark.parametrize("name", ["Counting", "Remembering"])
def test_what_they_write_is_written_at_each_call(package, name, inside):
    def run(compiled):
        genesis.manual_seed(0)
        module = getattr(package, name)()
        net = nn.Sequential(module, nn.ReLU()) if inside else module
        net = genesis.compile(net) if compiled else net
        xs = [genesis.randn(2, 3) for _ in range(7)]
        return [net(x).tolist() for x in xs], getattr(module, "calls", 0), getattr(module, "log", [])

    assert run(True) == run(False)


@pytest.mark.parametrize("inside", [False, True])
def test_what_they_read_may_change(package, inside):
    module = package.Scaled()
    function = genesis.compile(nn.Sequential(module, nn.ReLU()) if inside else module)
    x = genesis.ones(1)
    for change in ("pass", "m.scale = 3.0", "m.shifts = True", "m.turns = 1", "m.config.big = True", "pass"):
        exec(change, {"m": module})
        assert function(x).item() == module(x).item(), change
    assert function._compiled._recent
