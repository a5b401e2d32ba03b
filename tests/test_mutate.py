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

samples(f, lambda t: [case(t(0), 1)])
wrong_inputs(f, (lambda t: case(t(2)), RuntimeError, "f: 2"))
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
        ("2", "3"),
        ("True", "False"),
        ("not flag and x < 1", "(not flag or x < 1)"),
        ("not flag", "flag"),
        ("x < 1", "(x <= 1)"),
        ("1", "2"),
        ("g(x)", "pass"),
        ('x == 0 or f"{x[1]}"', "(x == 0 or f'{x[1]}')".replace(" or ", " and ")),
        ("x == 0", "(x != 0)"),
        ("0", "1"),
    }
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


def test_the_nearest_and_fastest_tests_come_first_and_changed_files_before_them(mutate):
    mutant = mutate.Mutant("genesis/ops/shape.py", "flatten", 3, 0, 1, "0", "1", (3, 3))
    took = {
        "tests/nn/test_a.py::far": 0.1,
        "tests/ops/test_a.py::slow": 2.0,
        "tests/ops/test_a.py::fast": 0.1,
        "tests/ops/test_a.py::fast[2]": 0.2,
        "tests/ops/test_b.py::middle": 1.0,
        "tests/nn/test_a.py::flatten": 3.0,
        "tests/ops/test_new.py::old": 0.1,
        "tests/cli/test_a.py::starts": 0.1,
    }
    reached = [test for test in took if "starts" not in test] + ["tests/ops/test_a.py::failed"]
    reach = mutate.Reach(
        {"genesis/ops/shape.py": {3: reached, 4: ["tests/ops/test_a.py::other"]}},
        took,
        ["tests/cli/test_a.py::starts"],
        ["tests/ops/test_new.py"],
    )
    tests = reach.tests(mutant)
    assert tests == [
        "tests/ops/test_new.py",
        "tests/nn/test_a.py::flatten",
        "tests/ops/test_a.py::fast",
        "tests/ops/test_b.py::middle",
        "tests/ops/test_a.py::slow",
        "tests/ops/test_a.py::fast[2]",
        "tests/nn/test_a.py::far",
        "tests/cli/test_a.py::starts",
    ]
    assert mutate._part(tests, reach, 1, 6, 14.5) == tests[1:4]  # 10 s for what was not measured, then 3.1 and 1.0
    assert mutate._part(tests, reach, 4, 6, 1e9) == tests[4:6]


def test_results_are_kept_and_the_page_tells_old_ones_from_new_ones(mutate, tmp_path, monkeypatch):
    monkeypatch.setattr(mutate, "commit", lambda: "abc")
    sample = [mutate.Mutant(f"genesis/ops/{name}.py", name, 3, 0, 1, "0", "1", (3, 3)) for name in "abcd"]
    kept = mutate.Kept(tmp_path / "study.jsonl", sample)
    a, b, c, _ = (mutant.id for mutant in sample)
    kept.add(mutate.Result(a, "abc", "1", True, "tests/test_a.py::a", 3, 9))
    for mutant in (b, c):
        kept.add(mutate.Result(mutant, "abc", "1", False, "", 5, 9))
        kept.add(mutate.Result(mutant, "abc", "1", False, "", 9, 9))
    kept.add(mutate.Result(c, "def", "2", True, "tests/test_c.py::c", 1, 9))

    again = mutate.Kept(tmp_path / "study.jsonl", [])
    assert again.sample == sample and again.results == kept.results and again.commit == "abc"
    page = mutate.written(again, {b: "it is the same"}, {c}, "scripts/mutate")
    assert (
        "drawn at abc; the last result is at abc for 2, at def for 1" in page
        and "**1 of them have not met all tests" in page
    )
    assert (
        "At abc 1 of 3 were noticed (33 %)" in page
        and "**2 of 3 are noticed** (67 %)" in page
        and "the 1 that make no difference, 2 of 2 (100 %)" in page
    )
    assert (
        f"| {b} | genesis/ops/b.py: b | `0` to `1` | it is the same |" in page
        and f"| {c} | genesis/ops/c.py: c | `0` to `1` | `tests/test_c.py::c` |" in page
    )
    assert f"| {b} | genesis/ops/b.py: b | `0` to `1` | a test is missing |" in mutate.written(
        again, {}, set(), "scripts/mutate"
    )
    assert f"| {b} | genesis/ops/b.py: b | `0` to `1` | the code is gone" in mutate.written(
        again, {}, {b}, "scripts/mutate"
    )


def test_a_change_is_noticed_by_a_test_that_fails_or_never_ends(mutate, tmp_path, monkeypatch):
    for name in ("ROOT", "COPIED"):
        monkeypatch.setattr(mutate, name, {"ROOT": tmp_path / "project", "COPIED": ("genesis", "tests")}[name])
    (mutate.ROOT / "genesis").mkdir(parents=True)
    (mutate.ROOT / "tests").mkdir()
    code = "def upto(n):\n    i = 0\n    while i != n:\n        i += 2\n    return i\n"
    (mutate.ROOT / "genesis" / "__init__.py").write_text(code)
    tests = "import genesis, pytest\ndef test_a(): assert genesis.upto(4) > 0\n@pytest.mark.parametrize('n', range(genesis.upto(2)))\ndef test_b(n): pass\n"
    (mutate.ROOT / "tests" / "test_a.py").write_text(tests)

    def change(before, after):
        return mutate.Mutant(
            "genesis/__init__.py",
            "upto",
            1,
            code.index(before),
            code.index(before) + len(before),
            before,
            after,
            (1, 1),
        )

    tree = mutate.Tree(tmp_path / "tree")
    names = ["tests/test_a.py::test_a", "tests/test_a.py::test_b[1]"]
    assert tree.failing(names, 0) is None
    monkeypatch.setattr(mutate, "SLACK", 2)
    file = tree.folder / "genesis" / "__init__.py"
    time = file.stat().st_mtime
    for after, by in (("i == n", names[0]), ("(i != n and n > 2)", None), ("i != -1", "takes too long")):
        with tree.changed(change("i != n", after)):
            # else the bytecode of a source of this length passes for that of this one
            assert int(file.stat().st_mtime) != int(time)
            assert tree.failing(names, 0) == by
    assert tree.failing(names, 0) is None and file.stat().st_mtime == time
    tree.close()
