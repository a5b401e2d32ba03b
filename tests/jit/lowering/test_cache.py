"""Steps that are kept on disk: the same numbers, and nothing is planned or compiled again."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from by_elements import Stepped, phases

import genesis
from genesis import jit
from genesis.cli import main
from genesis.jit.lowering import cache, plan, regions
from genesis.kernels.llvm import loops, native, objects
from genesis.testing import fuzz_traces

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    where = tmp_path / "kept"
    monkeypatch.setenv("GENESIS_CACHE_DIR", str(where))
    return where


@pytest.fixture
def uses(monkeypatch):
    """How often something was planned, and how often compiled."""
    counts = {"planned": 0, "compiled": 0}

    def counted(module, name, key):
        inner = getattr(module, name)

        def outer(*args):
            counts[key] += 1
            return inner(*args)

        monkeypatch.setattr(module, name, outer)

    counted(plan, "planned", "planned")
    counted(native, "_compiled", "compiled")
    return counts


@pytest.mark.parametrize("seed", range(8))
def test_random_steps_out_of_files(seed, folder, uses, monkeypatch):
    monkeypatch.setattr(regions, "phases", lambda program: phases(program, seed))
    replays, seen = jit.Graph.replay, []

    def replayed(graph, *args):
        if "_lowered" not in graph.__dict__:
            after, compiled = cache.lowered(graph)
            after.__dict__["_plan"] = Stepped(after.program, compiled)
            graph.__dict__["_lowered"] = after
        return replays(graph.__dict__["_lowered"], *args)

    monkeypatch.setattr(jit.Graph, "replay", replayed)
    for _ in range(2):
        counts, wrong = fuzz_traces.check(1, 2 * seed)
        assert not wrong, counts
        seen.append(dict(uses))
    assert seen[0] == seen[1] and (uses["planned"] == 1 or not counts["equal"])


def _graph(factor=2.0):
    x = genesis.tensor([1.0, 2.0, 3.0])
    w = genesis.tensor([4.0, 5.0, 6.0])

    def function(x):
        w.mul_(x)
        return w * factor + x

    return jit.trace(function, x), (x._array, w._array)


def test_other_programs_are_other_files(folder, uses):
    for factor, want in [(2.0, [9.0, 22.0, 39.0]), (3.0, [13.0, 32.0, 57.0]), (2.0, [9.0, 22.0, 39.0])]:
        graph, arrays = _graph(factor)
        _, compiled = cache.lowered(graph)
        assert compiled.run(arrays)[0].tolist() == want
        assert arrays[1].tolist() == [4.0, 10.0, 18.0]
    assert uses["planned"] == 2


def test_names_and_lines_are_those_of_the_function(folder, uses):
    def first(x):
        return x * 3 + x

    def second(x):
        return x * 3 + x

    kept = [cache.lowered(jit.trace(f, genesis.ones(2)))[0].program for f in (first, second)]
    assert uses["planned"] == 1
    assert [program.name for program in kept] == ["first", "second"]
    lines = [{call.site.line for call in program.calls} for program in kept]
    assert lines == [{f.__code__.co_firstlineno + 1} for f in (first, second)]


def test_what_is_damaged_is_made_again(folder, uses):
    graph, arrays = _graph()
    cache.lowered(graph)
    for path in [p for p in objects.files() if p.suffix == objects.STEP]:
        content = path.read_bytes()
        path.write_bytes(content[:50] + b"?" + content[51:])
    _, compiled = cache.lowered(graph)
    assert uses["planned"] == 2 and compiled.run(arrays)[0].tolist() == [9.0, 22.0, 39.0]


def test_the_machine_code_is_gone(folder, uses):
    graph, arrays = _graph()
    cache.lowered(graph)
    for path in [p for p in objects.files() if p.suffix == objects.CODE]:
        path.unlink()
    _, compiled = cache.lowered(graph)
    assert uses["planned"] == 2 and compiled.run(arrays)[0].tolist() == [9.0, 22.0, 39.0]


def test_without_a_folder_nothing_is_kept(folder, uses, monkeypatch):
    monkeypatch.setenv("GENESIS_CACHE_DIR", "")
    graph, arrays = _graph()
    for _ in range(2):
        _, compiled = cache.lowered(graph)
    assert uses["planned"] == 2 and compiled.run(arrays)[0].tolist() == [9.0, 22.0, 39.0]


def test_the_command_shows_and_clears(folder, capsys):
    cache.lowered(_graph()[0])
    assert any(path.suffix == objects.STEP for path in objects.files())
    assert main(["cache", "--clear"]) == 0
    assert not objects.files()


def test_another_process(folder):
    source = """
import genesis
from genesis import jit
from genesis.jit.lowering import cache, plan
if {second}:
    plan.planned = None
w = genesis.tensor([1.0, 2.0])
graph = jit.trace(lambda x: (x * w + w).exp(), genesis.ones(2))
graph, compiled = cache.lowered(graph)
print(compiled.run([genesis.ones(2).numpy(), *[t.numpy() for t in graph.binding.captured]])[0].tolist())
"""
    seen = [
        subprocess.run(
            [sys.executable, "-c", source.format(second=second)], env=dict(os.environ), capture_output=True, text=True
        )
        for second in (False, True)
    ]
    assert [run.returncode for run in seen] == [0, 0], seen[1].stderr
    assert seen[0].stdout == seen[1].stdout
    assert np.allclose(eval(seen[0].stdout), np.exp([2.0, 4.0]))


SCRIPT = """
import sys
import genesis
compiled = genesis.compile(lambda x: (x * 2).sum())
compiled(genesis.ones(3)), compiled(genesis.ones(3))
late = [name for name in ("regions", "stacked", "plan", "tables", "halves", "explain") if type(sys.modules["genesis.jit.lowering." + name]).__name__ == "LateModule"]
print(late, "genesis.jit.lowering.emit_llvm" in sys.modules)
"""


def test_a_step_out_of_a_file_imports_no_planner(tmp_path):
    env = {**os.environ, "GENESIS_CACHE_DIR": str(tmp_path)}
    first, second = [
        subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert first == "['explain'] True\n"
    assert second == "['regions', 'stacked', 'plan', 'tables', 'halves', 'explain'] False\n"
