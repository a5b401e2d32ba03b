"""Examples and the README run as they are printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_example(path):
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout and not done.stderr
    expected = {
        "attention": r"\[(\d), (\d), (\d), (\d), (\d), (\d)\] reversed is \[\6, \5, \4, \3, \2, \1\]",
        "custom_gradient": r"straight through: tensor\(\[1., 1., 1.\]\)\nthe rule of Power is right: True\nsecond "
        r"derivative, 6 x: tensor\(\[-12.,   3.,  18.\]\)",
        "gpt_text": r"step 150  loss 0\.[0-3]\d+\nthe old tree.{60}",
        "lstm_text": r"step 150  loss 0\.[0-2]\d+\nthe old tree.{60}",
        "train_digits": r"epoch 10  loss \d.\d+  held-out accuracy 9\d",
    }
    assert re.search(expected[path.stem], done.stdout), done.stdout


def test_readme_code():
    code = "".join(re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(re.search(r"print\(.*\)  # (.*)", code)[1])
    for words in (
        "tensor([1., 2., 3.])\n",
        "verify Round: 1 of",
        "the gradient of `x` is not zero, but the outputs do not depend on it",
        "history was cut by detach() of a leaf of shape [2]",
        "└─ Round  float32[2]",
    ):
        assert words in done.stdout


def test_readme_has_the_figures_of_the_benchmarks():
    figures = re.findall(r"[\d.]+ us", (ROOT / "README.md").read_text())
    table = (ROOT / "benchmarks" / "README.md").read_text()
    assert figures and all(f" {figure} " in table for figure in figures)
