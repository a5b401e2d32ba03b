"""`genesis check` finds the names of PyTorch in a program, however they are imported, and says which are there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import genesis
from genesis.pytorch.check import ABSENT, DIFFERS, UNREAD, WORKS, check, report, state_of
from genesis.pytorch.reasons import DIFFERENT, INSTEAD

ROOT = Path(__file__).parents[2]


def states(tmp_path, text):
    script = tmp_path / "script.py"
    script.write_text(text)
    return {use.name: use.state for use in check([str(script)])}


@pytest.mark.parametrize(
    "text, name",
    [
        ("import torch\ntorch.masked.masked_tensor(x)", "torch.masked.masked_tensor"),
        ("import torch as t\nt.masked.masked_tensor(x)", "torch.masked.masked_tensor"),
        ("import torch.masked as masked\nmasked.masked_tensor(x)", "torch.masked.masked_tensor"),
        ("from torch import masked\nmasked.masked_tensor(x)", "torch.masked.masked_tensor"),
        ("from torch.masked import masked_tensor as r\nr(x)", "torch.masked.masked_tensor"),
        ("from torch.masked import *\n", "torch.masked"),
        (
            "import torch.masked\nwith torch.no_grad():\n    y = [torch.masked.masked_tensor(z) for z in x]",
            "torch.masked.masked_tensor",
        ),
        (
            "import torch\nclass A(torch.nn.Module):\n    def f(self):\n        return torch.masked.masked_tensor",
            "torch.masked.masked_tensor",
        ),
        ("import torch\ntorch.Tensor.to_mkldnn(x)", "torch.Tensor.to_mkldnn"),
        ("import torch\ntorch.ones(3).to_mkldnn()", "Tensor.to_mkldnn"),
    ],
)
def test_names_are_found(tmp_path, text, name):
    found = states(tmp_path, text)
    assert found[name] == (WORKS if name == "torch.masked" else ABSENT)


def test_what_every_module_has(tmp_path):
    found = states(tmp_path, "import torch\nprint(torch.__path__, torch.nn.__dict__['ReLU'], torch.optim.__doc__)\n")
    assert set(found.values()) == {WORKS}


def test_what_works_and_what_differs(tmp_path):
    found = states(
        tmp_path,
        "import torch\nfrom torch import nn\nfrom torch.optim.lr_scheduler import StepLR\n"
        "nn.MSELoss()\ntorch.relu(torch.Tensor.add(x, x)).shape\ntorch.relu(x, speed=3)\nmine.masked_tensor()\n",
    )
    assert found["torch.optim.lr_scheduler.StepLR"] == found["torch.Tensor.add"] == found["torch.nn"] == WORKS
    assert found["torch.nn.MSELoss"] == found["torch.relu"] == DIFFERS and "masked_tensor" not in str(found)


def test_names_that_the_program_defines_are_its_own(tmp_path):
    found = states(
        tmp_path,
        "from torch.utils.data import Dataset\nfrom torch import relu, tanh, sigmoid\n"
        "class Dataset(Dataset):\n    def relu(self):\n        pass\n"
        "def tanh(x):\n    pass\n"
        "Dataset(mine=1)\ntanh(mine=1)\nrelu(mine=1)\n",
    )
    assert found["torch.utils.data.Dataset"] == found["torch.tanh"] == WORKS and found["torch.relu"] == DIFFERS


def test_arguments_that_are_taken_beside_those_of_the_signature(tmp_path):
    found = states(
        tmp_path, "import torch\ntorch.stack([x], out=y)\ntorch.gather(x, axis=0, index=i)\ntorch.sum(x, at=0)\n"
    )
    assert found["torch.stack"] == found["torch.gather"] == WORKS and found["torch.sum"] == DIFFERS


def test_arguments_are_known_where_classes_are_asked_first(tmp_path):
    class Kind(genesis.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    genesis.ones(2).as_subclass(Kind).add(1)
    assert states(tmp_path, "import torch\ntorch.stack([x], out=y)\n")["torch.stack"] == WORKS


def test_switches_that_a_program_sets_are_no_names_it_needs(tmp_path):
    text = (
        "import torch\ntorch._inductor.config.coordinate_descent_tuning = True\nprint(torch._inductor.config.unknown)\n"
    )
    found = states(tmp_path, text)
    assert found["torch._inductor.config"] == WORKS and found["torch._inductor.config.unknown"] == ABSENT
    assert "torch._inductor.config.coordinate_descent_tuning" not in found


def test_places_are_files_and_lines(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.py").write_text("import torch\n\ntorch.masked.masked_tensor(x)\ntorch.masked.masked_tensor(x)\n")
    (tmp_path / "inner" / "b.py").write_text("from torch.masked import masked_tensor\n")
    (tmp_path / "inner" / "note.txt").write_text("import torch\n")
    (use,) = [use for use in check([str(tmp_path)]) if use.state == ABSENT]
    assert use.places == (f"{tmp_path}/a.py:3", f"{tmp_path}/a.py:4", f"{tmp_path}/inner/b.py:1")


def test_the_report_and_its_status(tmp_path):
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text("import torch\ntorch.relu(torch.ones(2))\n")
    bad.write_text("import torch\ntorch.masked.masked_tensor(torch.ones(2))\n")
    assert report([str(good)]) == ("3 names of PyTorch: 3 work, 0 differ, 0 are absent", 0)
    text, status = report([str(bad)])
    assert status == 1 and "absent  torch.masked.masked_tensor  masked tensors are left out" in text
    told, status = report([str(bad)], as_json=True)
    assert status == 1 and json.loads(told)[0]["name"] == "torch.masked.masked_tensor"


def test_files_of_a_folder_that_are_no_python_of_today_are_named_and_the_others_read(tmp_path):
    (tmp_path / "a.py").write_text("import torch\ntorch.relu(x)\n")
    (tmp_path / "old.py").write_text("import torch\nprint torch.ones(2)\n")
    text, status = report([str(tmp_path)])
    assert status == 1 and f"{tmp_path}/old.py:2" in text and "Missing parentheses" in text
    assert "2 names of PyTorch: 2 work" in text and text.endswith(
        "1 files are no Python of this version and were not read"
    )
    assert [use.state for use in check([str(tmp_path)])] == [UNREAD, WORKS, WORKS]


def test_the_command(tmp_path):
    bad, broken = tmp_path / "bad.py", tmp_path / "broken.py"
    bad.write_text("import torch\ntorch.masked.masked_tensor\n")
    broken.write_text("def f(:\n")
    for path, status in ((bad, 1), (broken, 2), (tmp_path / "nowhere.py", 2)):
        command = [sys.executable, "-m", "genesis", "check", str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == status and path.name in done.stdout + done.stderr


@pytest.mark.parametrize("name", sorted(INSTEAD.keys() - {"torch.hub.load"}))  # it is there, and says so itself
def test_what_is_there_needs_nothing_instead(name):
    assert state_of(name)[0] == ABSENT


@pytest.mark.parametrize("name", sorted(DIFFERENT))
def test_what_differs_is_there(name):
    assert state_of(name)[0] == DIFFERS


def test_the_page_of_names_is_current():
    command = [sys.executable, str(ROOT / "scripts" / "pytorch_names"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parity
def test_stored_names_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    from genesis.pytorch.names import VERSION, names

    if not torch.__version__.startswith(VERSION):
        pytest.skip(f"PyTorch {torch.__version__} is installed, the names are those of {VERSION}")
    assert {n for n in dir(torch.nn) if n[0].isupper()} >= {n for n in names()["torch.nn"] if n[0].isupper()}
    assert all(hasattr(torch.Tensor, name) for name in names()["torch.Tensor"])
    assert all(hasattr(torch.nn.functional, name) for name in names()["torch.nn.functional"])


def test_a_name_that_means_something_else_is_not_of_pytorch(tmp_path):
    text = """
from torch.utils import data
import torch

def f(data):
    return data.to(3), [data.x for data in data], (lambda data: data.y)(3)

def g(x):
    for data in x:
        data.read()
    return torch.data_of_torch

def h():
    return data.nowhere

data = data.DataLoader(3)
data.next()
"""
    found = states(tmp_path, text)
    assert [name for name in found if found[name] == ABSENT] == ["torch.data_of_torch", "torch.utils.data.nowhere"]


def test_arguments_of_a_method_are_not_those_of_its_class(tmp_path):
    text = "from torch import nn\nnn.Embedding.from_pretrained(x, freeze=True)\nnn.Embedding(3, 4, max_norm=1.0)\n"
    assert states(tmp_path, text)["torch.nn.Embedding"] == WORKS


@pytest.mark.parametrize("line", ["from torch.nn import Linear", "import torch.nn as nn", "from torch import *"])
def test_an_import_of_torch_beside_genesis_under_its_name(tmp_path, line):
    script = tmp_path / "script.py"
    script.write_text(f"import genesis as torch\n{line}\n")
    text, status = report([str(script)])
    assert status == 1 and "genesis.as_torch()" in text and "script.py:2" in text
    script.write_text(f"import torch\n{line}\n")
    assert "genesis.as_torch()" not in report([str(script)])[0]


def test_the_table_of_all_names_on_request(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import torch\ntorch.relu(torch.masked.masked_tensor(x))\n")
    short, long = report([str(script)])[0], report([str(script)], every=True)[0]
    assert (
        "torch.relu" not in short and "works   torch.relu" in long and long.splitlines()[-1] == short.splitlines()[-1]
    )
