"""Examples and the README run as they are printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_example(path, tmp_path):
    picture = tmp_path / "picture.svg"
    command = [sys.executable, str(path), *([str(picture)] if "[picture.svg]" in path.read_text() else [])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert len(command) == 2 or ElementTree.parse(picture).getroot().tag.endswith("svg")
    assert done.stdout and not done.stderr
    expected = {
        "attention": r"\[(\d), (\d), (\d), (\d), (\d), (\d)\] reversed is \[\6, \5, \4, \3, \2, \1\]",
        "classify_images": r"epoch 3  loss \d.\d+  held-out accuracy 9\d",
        "digits_ranks": r"epoch 10  loss \d.\d+  held-out accuracy 9\d(.*\n)rank 0 of 1 has weights of norm",
        "flow_matching": r"flowed  distance to the moons 0\.0",
        "gan_numbers": r"made: mean -?\d\.\d+, spread (1\.[4-9]|2)",
        "graph_network": r"epoch 60  .*others [89]\d%",
        "hf_models": r"the next tokens: \[\d+(, \d+){7}\]",
        "neural_ode": r"differs by \de-0[5-9]( .*\n)(.*\n)*step 200  loss 0\.0",
        "reinforce": r"episode 30  the poles stood (100\.0| [89]\d\.\d)",
        "sharded_training": r"1 rank: a rank may hold 32 MB, and needs [34]\d",
        "sparse_variational": r"step 300  nats per point -?0\.\d+  noise 0\.[12]",
        "vae_digits": r"epoch 14  nats per digit 2\d\.",
        "custom_gradient": r"straight through: tensor\(\[1., 1., 1.\]\)\nthe rule of Power is right: True\nsecond "
        r"derivative, 6 x: tensor\(\[-12.,   3.,  18.\]\)",
        "gpt_ranks": r"epoch 5  loss 0\.[0-3]\d+\nthe old tree.{60}",
        "gpt_text": r"step 150  loss 0\.[0-3]\d+\nthe old tree.{60}",
        "lstm_text": r"step 150  loss 0\.[0-2]\d+\nthe old tree.{60}",
        "train_digits": r"epoch 10  loss \d.\d+  held-out accuracy 9\d",
    }
    assert re.search(expected[path.stem], done.stdout), done.stdout


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_loops_of_training_show_how_far_they_are(path):
    loops = re.findall(r"^ *for (?:step|epoch|episode) in (\w+)", path.read_text(), re.M)
    assert set(loops) <= {"tqdm"}


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
