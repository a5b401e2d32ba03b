"""The ten scripts print what they should, need nothing but NumPy, and their page is true."""

from __future__ import annotations

import contextlib
import importlib
import io
import operator
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STEPS = sorted((ROOT / "examples" / "tiny").glob("*.py"))
GUIDE = (ROOT / "docs" / "guide" / "tiny.md").read_text()

PRINTED = {
    "step01_variable": "1.0\n2.0\n",
    "step02_function": "<class '__main__.Variable'>\n100\nNotImplementedError: Function.forward is not written\n",
    "step03_composition": "1.648721270700128\n",
    "step04_numerical_diff": "4.000000000004\n3.2974426293330694\n",
    "step05_chain_rule": "from the result: 3.297442541400256\nfrom the input:  3.297442541400256\n"
    "numbers carried from the result: 1000\nnumbers carried from the inputs: 1000000\nx used twice: 6.0\n",
    "step06_manual_backward": "3.297442541400256\n",
    "step07_creator": "3.297442541400256\nRecursionError after 100000 functions\n",
    "step08_loop": "3.297442541400256\n64.0\nafter 100000 functions: 1.0\n",
    "step09_convenient": "3.297442541400256\n12.0 7.0\n1.0\nTypeError: <class 'float'> is not supported\n",
}


def test_there_are_ten():
    assert [path.stem[:6] for path in STEPS] == [f"step{n:02d}" for n in range(1, 11)]


@pytest.mark.parametrize("path", STEPS, ids=lambda p: p.stem)
def test_step(path):
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, cwd=path.parent, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    if path.stem == "step10_tests":
        cases = re.findall(r"^(test_\w+) .* ok$", done.stdout, re.M)
        assert cases == ["test_backward", "test_forward", "test_gradient_check"]
        assert "Ran 3 tests" in done.stdout and done.stdout.rstrip().endswith("OK")
    else:
        assert done.stdout == PRINTED[path.stem]


@pytest.mark.parametrize("path", STEPS, ids=lambda p: p.stem)
def test_step_holds_all_of_its_code(path):
    imported = set(re.findall(r"^(?:import|from) (\S+)", path.read_text(), re.M))
    assert "numpy" in imported and imported <= {"numpy", "sys", "unittest"}


@pytest.mark.parametrize(
    "block",
    re.findall(r"```python\n(.*?)```", GUIDE, re.S),
    ids=lambda b: f"line{GUIDE[: GUIDE.index(b)].count(chr(10)) + 1}",
)
def test_guide_code(block):
    """Each block runs by itself and prints its comments."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(block, "docs/guide/tiny.md", "exec"), {"__name__": "__main__"})
    expected = re.findall(r"print\(.*\)  # (.*)", block)
    assert expected and out.getvalue().splitlines() == expected


def test_guide_names_what_exists():
    found = re.findall(r"`genesis/(\w+(?:/\w+)+)\.py` \(([^)]*)\)", GUIDE.replace("`: `", "` (`").replace("`)", "`)"))
    assert len(found) >= 10
    for file, names in found:
        module = importlib.import_module("genesis." + file.replace("/", "."))
        for name in re.findall(r"`([\w.]+)`", names):
            operator.attrgetter(name)(module)


def test_guide_links_lead_somewhere():
    links = re.findall(r"\]\(([^)]+)\)", GUIDE)
    assert links and all((ROOT / "docs" / "guide" / link).exists() for link in links)
