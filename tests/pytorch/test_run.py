"""`genesis run` runs a script as Python does, and with `--torch` with Genesis in PyTorch's place."""

from __future__ import annotations

import subprocess
import sys

import pytest

TRAINING = """
import sys
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from helper import classes

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(64, 4)
y = (x.sum(1) > 0).long()
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, classes)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for epoch in range(int(sys.argv[1])):
    for a, b in DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(a.to(device)), b)
        loss.backward()
        optimizer.step()
print(__name__, type(loss).__module__, loss.item() < 0.3, sys.argv[1:])
"""


def started(folder, *arguments):
    command = [sys.executable, "-m", "genesis", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.py").write_text(TRAINING)
    (tmp_path / "helper.py").write_text("classes = 2\n")
    return tmp_path


@pytest.mark.parametrize(
    "arguments", [("--torch", "train.py", "12", "--fast"), ("train.py", "--torch", "12", "--fast")]
)
def test_a_program_trains(folder, arguments):
    done = started(folder, "run", *arguments)
    assert done.stdout == "__main__ genesis.core.graph.tensor True ['12', '--fast']\n", done.stderr
    assert done.returncode == 0 and done.stderr == ""


def test_a_folder_with_a_main(folder):
    (folder / "train.py").rename(folder / "__main__.py")
    assert started(folder.parent, "run", "--torch", folder.name, "12").returncode == 0


def test_an_error_shows_the_lines_of_the_script(folder):
    (folder / "wrong.py").write_text("import torch\n\ndef f(x):\n    return x @ x\n\nf(torch.ones(2, 3))\n")
    done = started(folder, "run", "--torch", "wrong.py")
    assert done.returncode == 1 and "matmul: inner sizes differ, 3 and 2" in done.stderr
    files = [line for line in done.stderr.splitlines() if line.startswith("  File")]
    assert [line.split('"')[1] for line in files] == ["wrong.py", "wrong.py"]


@pytest.mark.parametrize(
    "text, status, printed",
    [
        ("import sys; sys.exit(7)", 7, ""),
        ("import sys; sys.exit()", 0, ""),
        ("import sys; sys.exit('no data')", 1, "no data\n"),
        ("x = = 1", 1, "SyntaxError"),
    ],
)
def test_how_it_ends(folder, text, status, printed):
    (folder / "ends.py").write_text(text)
    done = started(folder, "run", "ends.py")
    assert done.returncode == status and printed in done.stderr


def test_a_script_that_is_not_there(folder):
    done = started(folder, "run", "nowhere.py")
    assert done.returncode == 2 and done.stderr == "genesis run: nowhere.py: No such file or directory\n"


def test_dtypes_and_shapes_are_printed_under_pytorchs_name(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\nx = torch.zeros(2, dtype=torch.int32)\nprint(x.dtype, x.shape, x, torch.strided, x.type())\n"
        "print(str(x.to_sparse()).split()[-1])\n"
        "assert getattr(torch, str(x.dtype).replace('torch.', '')) is torch.int32\n"
    )
    for options, name in (["--torch"], "torch"), ([], "genesis"):
        text = script.read_text() if options else script.read_text().replace("import torch", "import genesis as torch")
        script.write_text(text.replace("'torch.'", f"'{name}.'"))
        run = [sys.executable, "-m", "genesis", "run", str(script), *options]
        done = subprocess.run(run, capture_output=True, text=True)
        expected = f"{name}.int32 {name}.Size([2]) tensor([0, 0], dtype={name}.int32) {name}.strided torch.IntTensor\n"
        expected += f"layout={name}.sparse_coo)\n"
        assert done.stdout == expected and not done.stderr


def test_results_with_names_are_printed_as_pytorch_prints_them(tmp_path):
    (tmp_path / "script.py").write_text(
        "import torch\nx = torch.eye(2)\nprint(x.max(0))\n"
        "print(*[str(r).partition('(')[0] for r in (torch.linalg.qr(x), torch.geqrf(x), torch.svd(x))])\n"
    )
    told = started(tmp_path, "run", "--torch", "script.py").stdout
    assert told == (
        "torch.return_types.max(\nvalues=tensor([1., 1.]),\nindices=tensor([0, 1]))\n"
        "torch.return_types.linalg_qr torch.return_types.geqrf torch.return_types.svd\n"
    )


def test_nodes_are_printed_under_pytorchs_names(tmp_path):
    (tmp_path / "script.py").write_text(
        "import torch\nfrom torch import nn\n"
        "x = torch.ones(1, 3, requires_grad=True)\n"
        "print(x * 2, (x @ x.T).grad_fn.name(), nn.Linear(3, 1)(x).grad_fn.name(), str((x + 1).grad_fn).split()[0])\n"
    )
    told = started(tmp_path, "run", "--torch", "script.py").stdout
    assert told == "tensor([[2., 2., 2.]], grad_fn=<MulBackward0>) MmBackward0 AddmmBackward0 <AddBackward0\n"


def test_losses_of_different_shapes_warn_as_pytorch_does(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import torch\nprint(torch.nn.functional.mse_loss(torch.ones(2, 1), torch.zeros(2)).item())\n")
    done = subprocess.run(
        [sys.executable, "-m", "genesis", "run", str(script), "--torch"], capture_output=True, text=True
    )
    assert done.stdout == "1.0\n" and "BroadcastWarning: Using a target size (torch.Size([2])) that is" in done.stderr


CHILDREN = """
import multiprocessing
import sys
import torch

def own(i):
    print(i, torch.Tensor.__module__, torch.float32, flush=True)

if __name__ == "__main__":
    for method in ("spawn", "forkserver", "fork"):
        process = multiprocessing.get_context(method).Process(target=own, args=(method,))
        process.start()
        process.join()
        assert process.exitcode == 0
    torch.multiprocessing.spawn(own)
"""


def test_processes_of_a_program_have_genesis_in_pytorchs_place(tmp_path):
    (tmp_path / "script.py").write_text(CHILDREN)
    done = started(tmp_path, "run", "--torch", "script.py")
    expected = [f"{method} genesis.core.graph.tensor torch.float32" for method in ("spawn", "forkserver", "fork", 0)]
    assert done.stdout.splitlines() == expected and not done.stderr


LAUNCHER = """
import subprocess
import sys
import torch

subprocess.run([sys.executable, "child.py"], check=True)
subprocess.run([sys.executable, "-c", "import torch.nn.functional as F; print(F.__name__, F.relu.__module__)"], check=True)
"""


def test_programs_that_a_program_starts_have_it_too(tmp_path):
    """As trainers do that start the script again for each rank."""
    (tmp_path / "script.py").write_text(LAUNCHER)
    (tmp_path / "child.py").write_text(
        "import torch\nfrom torch import nn\nprint(torch.__version__, nn.Linear.__module__)\n"
    )
    done = started(tmp_path, "run", "--torch", "script.py")
    own, inner = done.stdout.splitlines()
    assert "+genesis" in own and own.endswith(" genesis.nn.linear"), done.stderr
    assert inner.startswith("torch.nn.functional genesis."), done.stderr
