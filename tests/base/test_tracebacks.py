"""What is printed of an error that nobody catches: the lines of the program and the message."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import traceback
from types import SimpleNamespace

import pytest

import genesis
from genesis import nn
from genesis.base import tracebacks
from genesis.base.errors import GenesisError
from genesis.core.graph.site import Site

PACKAGE = os.path.dirname(genesis.__file__)


class Wrong(genesis.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g[0:1]


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(5, 2))

    def forward(self, x):
        return self.body(x)


def _twice():
    y = (genesis.ones(2, requires_grad=True) ** 2).sum()
    y.backward()
    y.backward()


x, y = genesis.ones(3, 4), genesis.ones(5)
CASES = {
    "operator": lambda: x + y,
    "matrix product": lambda: x @ y,
    "method": lambda: x.sum(7),
    "index": lambda: x[9],
    "assignment": lambda: x.__setitem__(9, 0),
    "in place": lambda: genesis.ones(3, 4).add_(y),
    "sequential": lambda: nn.Sequential(nn.Linear(4, 3), nn.Linear(5, 2))(x),
    "nested modules": lambda: Nested()(x),
    "rule": lambda: Wrong.apply(genesis.ones(3, requires_grad=True)).sum().backward(),
    "backward twice": _twice,
    "vmap": lambda: genesis.vmap(lambda a: a + y)(x),
    "grad of vmap": lambda: genesis.func.grad(lambda z: genesis.vmap(lambda a: a + y)(z).sum())(x),
    "trace": lambda: genesis.jit.trace(lambda a: a + y, x),
    "meta": lambda: genesis.ones(3, 4, device="meta") + genesis.ones(5, device="meta"),
    "state": lambda: nn.Linear(2, 2).load_state_dict({}),
    "optimizer": lambda: genesis.optim.SGD(nn.Linear(2, 2).parameters(), lr=-1),
    "creation": lambda: genesis.zeros(-1),
}


def printed(error: BaseException) -> str:
    tracebacks.cut(error, GenesisError)
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize("case", CASES)
def test_the_lines_of_the_program_and_the_message(case):
    with pytest.raises(GenesisError) as caught:
        CASES[case]()
    text = printed(caught.value)
    assert f"{PACKAGE}{os.sep}" not in text and "During handling" not in text and "direct cause" not in text
    frames = [line for line in text.split("\n") if line.startswith("  File ")]
    assert all(__file__ in line for line in frames)
    assert len(text.rstrip().split("\n")) - 3 * len(frames) <= 7  # the first line, and the message with its operands


def test_the_module_that_failed_is_named():
    with pytest.raises(GenesisError) as caught:
        Nested()(x)
    printed(caught.value)
    assert printed(caught.value).rstrip().endswith("  in Nested.body.2 (Linear)")
    assert printed(caught.value).count("in Nested") == 1


def test_errors_of_the_program_keep_their_frames_and_their_context():
    class Model(nn.Module):
        def forward(self, x):
            return {}["key"]

    with pytest.raises(KeyError) as caught:
        Model()(x)
    text = printed(caught.value)
    assert f"{PACKAGE}{os.sep}" not in text and "in forward" in text and "in Model" not in text
    with pytest.raises(GenesisError) as caught:
        try:
            {}["key"]
        except KeyError:
            x + y
    assert "KeyError: 'key'" in printed(caught.value) and "During handling" in printed(caught.value)
    with pytest.raises(GenesisError) as caught:
        try:
            x + y
        except GenesisError as first:
            raise ShownTwice("once more") from first
    text = printed(caught.value)
    assert "direct cause" in text and "sizes 4 and 5" in text and f"{PACKAGE}{os.sep}" not in text


class ShownTwice(GenesisError):
    pass


def test_a_fault_of_the_package_is_shown_whole():
    inside = os.path.join(PACKAGE, "ops", "made.py")
    space: dict = {}
    exec(compile("def fault(): raise ZeroDivisionError", inside, "exec"), space)
    with pytest.raises(ZeroDivisionError) as caught:
        space["fault"]()
    assert inside in printed(caught.value)
    with pytest.raises(ZeroDivisionError) as caught:
        genesis.func.grad(lambda t: (t * (1 // 0)).sum())(x)  # raised by the program, below the package
    assert f"{PACKAGE}{os.sep}" not in printed(caught.value)


def test_everything_is_shown_on_demand(monkeypatch):
    monkeypatch.setenv("GENESIS_FULL_TRACEBACK", "1")
    with pytest.raises(GenesisError) as caught:
        x + y
    assert f"{PACKAGE}{os.sep}" in printed(caught.value)


PROGRAM = """
import genesis, sys, threading
x, y = genesis.ones(3, 4), genesis.ones(5)
def run(): x + y
if sys.argv[1] == "thread":
    thread = threading.Thread(target=run); thread.start(); thread.join()
else:
    run()
"""


@pytest.mark.parametrize(("how", "full"), [("script", False), ("thread", False), ("script", True)])
def test_uncaught(tmp_path, how, full):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    env = os.environ | {"GENESIS_FULL_TRACEBACK": "1" if full else ""}
    done = subprocess.run([sys.executable, str(path), how], capture_output=True, text=True, check=False, env=env)
    assert "sizes 4 and 5 differ" in done.stderr and "try: unsqueeze" in done.stderr and str(path) in done.stderr
    assert (f"{PACKAGE}{os.sep}" in done.stderr) == full
    assert full or len(done.stderr.rstrip().split("\n")) <= 15


class Shell:
    """What the package asks of a notebook."""

    class InteractiveTB:
        @staticmethod
        def structured_traceback(kind, error, trace, tb_offset):
            assert tb_offset == 1
            return ["in the shell's style", *traceback.format_exception(kind, error, trace)]

    class compile:
        @staticmethod
        def format_code_name(name):
            return ("Cell", "In[4]") if name == "/tmp/ipykernel_1/2.py" else None


def test_a_notebook_shows_the_same_in_its_own_style(monkeypatch):
    with pytest.raises(GenesisError) as caught:
        Nested()(x)
    assert not any(f"{PACKAGE}{os.sep}" in line for line in caught.value._render_traceback_())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=Shell))
    with pytest.raises(GenesisError) as caught:
        x + y
    lines = caught.value._render_traceback_()
    assert lines[0] == "in the shell's style" and not any(f"{PACKAGE}{os.sep}" in line for line in lines)


def test_lines_of_a_notebook_have_the_names_of_cells(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=Shell))
    assert str(Site("/tmp/ipykernel_1/2.py", 1, "<module>")) == "Cell In[4], line 1 in <module>"
    assert Site("/tmp/ipykernel_1/2.py", 1, "f").short == "Cell In[4], line 1"
    assert (
        str(Site("/home/me/a.py", 7, "f")) == "/home/me/a.py:7 in f" and Site("/home/me/a.py", 7, "f").short == "a.py:7"
    )
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert re.fullmatch(r"/tmp/ipykernel_1/2\.py:1", Site("/tmp/ipykernel_1/2.py", 1, "f").location)
