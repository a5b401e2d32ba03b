"""Type checkers know the signature of `apply` from `forward`."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import genesis

SNIPPET = """
from typing import Any
import genesis

class Scale(genesis.Function):
    @staticmethod
    def forward(ctx: genesis.autograd.FunctionCtx, x: genesis.Tensor, factor: float = 1.0) -> genesis.Tensor:
        ctx.factor = factor
        return x

    @staticmethod
    def backward(ctx: genesis.autograd.FunctionCtx, g: genesis.Tensor) -> Any:
        return g, None

class Split(genesis.Function):
    @staticmethod
    def forward(x: genesis.Tensor, n: int) -> tuple[genesis.Tensor, int]:
        return x, n

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

x = genesis.ones(2)
reveal_type(Scale.apply)
reveal_type(Split.apply)
Scale.apply(x, 2.0)
Scale.apply(x, factor=2.0)
Split.apply(x, 3)
Scale.apply(x, "two")
Scale.apply(x, scale=2.0)
Split.apply(x)
"""


def test_apply_has_the_signature_of_forward(tmp_path):
    api = pytest.importorskip("mypy.api")
    file = tmp_path / "snippet.py"
    file.write_text(textwrap.dedent(SNIPPET))
    out, err, _ = api.run(
        [str(file), "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"), "--config-file", ""]
    )
    assert not err
    lines = {int(text.split(":")[1]): text for text in out.splitlines() if text.startswith(str(file))}
    first = next(i for i, text in enumerate(SNIPPET.splitlines(), 1) if text.startswith("reveal_type"))
    assert (
        "def (x: genesis.core.graph.tensor.Tensor, factor: float =) -> genesis.core.graph.tensor.Tensor" in lines[first]
    )
    assert "def (x: genesis.core.graph.tensor.Tensor, n: int) -> tuple[genesis.core.graph.tensor.Tensor, int]" in lines[
        first + 1
    ].replace("builtins.", "").replace("Tuple", "tuple")
    assert not {first + 2, first + 3, first + 4} & set(lines)
    assert 'incompatible type "str"; expected "float"' in lines[first + 5]
    assert 'Unexpected keyword argument "scale"' in lines[first + 6]
    assert "Too few arguments" in lines[first + 7] or "Missing positional argument" in lines[first + 7]


PROGRAM = """
import genesis
import genesis.nn.functional as F
from genesis import Tensor, nn, optim

class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(2, width)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = F.relu(self.first(x))
        return y

def train() -> float:
    model = Net(16)
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    x, labels = genesis.randn(8, 2), genesis.tensor([0, 1] * 4)
    loss = F.cross_entropy(model(x), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    y = (x @ x.T + 1.0).softmax(-1).sum(dim=0, keepdim=True)[0] * -x.mT[0, 0] > 0
    x.add_(1).mul_(genesis.cat([x, x])[:8])
    return 0.0 if y.any() else float(x.double().mean())

reveal_type(genesis.ones(2).sum(0))
reveal_type(1 / genesis.ones(2) ** 2)
reveal_type(F.gelu(genesis.ones(2)))
genesis.ones(2).summ()
genesis.summ(genesis.ones(2))
F.gellu(genesis.ones(2))
genesis.ones(2).sum(dim="a")
"""


def test_a_program_passes_a_strict_check_and_slips_are_found(tmp_path):
    api = pytest.importorskip("mypy.api")
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    out, err, _ = api.run(
        [str(file), "--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"), "--config-file", ""]
    )
    assert not err
    first = next(i for i, text in enumerate(PROGRAM.splitlines(), 1) if text.startswith("reveal_type"))
    lines = {int(text.split(":")[1]): text for text in out.splitlines() if text.startswith(str(file))}
    assert set(lines) == set(range(first, first + 7)), out
    for line in range(first, first + 3):
        assert '"genesis.core.graph.tensor.Tensor"' in lines[line]
    for line, words in enumerate(
        ('"Tensor" has no attribute "summ"', 'no attribute "summ"', 'no attribute "gellu"', 'Argument "dim" to "sum"'),
        first + 3,
    ):
        assert words in lines[line]


def test_the_signatures_are_those_of_the_ops():
    script = Path(genesis.__file__).parent.parent / "scripts" / "signatures"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_editor_finds_the_documentation_of_methods():
    stub = ast.parse((Path(genesis.__file__).parent / "core" / "graph" / "methods.pyi").read_text())
    (methods,) = [node for node in stub.body if isinstance(node, ast.ClassDef)]
    documented = {node.name: ast.get_docstring(node) for node in methods.body if isinstance(node, ast.FunctionDef)}
    assert documented["softmax"] == inspect.getdoc(genesis.softmax)
    assert {name for name in dir(genesis.Tensor) if not name.startswith("_")} <= set(documented) | set(
        vars(genesis.Tensor)
    )
