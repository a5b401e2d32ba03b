"""`scripts/mutate`: which changes it makes of a file."""

from __future__ import annotations

import ast
import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "mutate"
CODE = '''
from typing import Any

@op(samples=lambda t: [t(0)], fails=[1 < 2], limit=2)
def f(x: Any, flag: bool = True) -> Any:
    """A line with 1 < 2."""
    assert x != 3
    if not flag and x < 1:
        g(x)
    return x == 0 or f"{x[1]}"
'''


@pytest.fixture
def mutate():
    loader = SourceFileLoader("mutate", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", loader))
    import sys

    sys.modules["mutate"] = module  # dataclasses look their module up
    loader.exec_module(module)
    yield module
    del sys.modules["mutate"]


def test_every_small_change_and_no_other(mutate, tmp_path, monkeypatch):
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    path = tmp_path / "code.py"
    path.write_text(CODE)
    found = list(mutate.mutants(path))
    assert {(m.before, m.after) for m in found} == {
        ("2", "3"), ("True", "False"), ("not flag and x < 1", "(not flag or x < 1)"), ("not flag", "flag"), ("x < 1", "(x <= 1)"),
        ("1", "2"), ("g(x)", "pass"), ('x == 0 or f"{x[1]}"', "(x == 0 or f'{x[1]}')".replace(" or ", " and ")), ("x == 0", "(x != 0)"), ("0", "1"),
    }  # fmt: skip
    data = CODE.encode()
    for m in found:
        changed = data[: m.start] + m.after.encode() + data[m.end :]
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(data))
    assert len({m.id for m in found}) == len(found)


def test_a_change_has_the_lines_of_its_statement(mutate, tmp_path, monkeypatch):
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    path = tmp_path / "code.py"
    path.write_text("def f(x):\n    y = [\n        1,\n        x,\n    ]\n    return lambda z: (\n        z + 2)\n")
    lines = {m.before: m.lines for m in mutate.mutants(path)}
    assert lines == {"1": (2, 5), "2": (6, 7)}
