"""Type checkers know the signature of `apply` from `forward`."""

from __future__ import annotations

import textwrap

import pytest

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
    out, err, _ = api.run([str(file), "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"), "--config-file", ""])
    assert not err
    lines = {int(text.split(":")[1]): text for text in out.splitlines() if text.startswith(str(file))}
    first = next(i for i, text in enumerate(SNIPPET.splitlines(), 1) if text.startswith("reveal_type"))
    assert "def (x: genesis.core.tensor.Tensor, factor: float =) -> genesis.core.tensor.Tensor" in lines[first]
    assert "def (x: genesis.core.tensor.Tensor, n: int) -> tuple[genesis.core.tensor.Tensor, int]" in lines[first + 1].replace("builtins.", "").replace("Tuple", "tuple")
    assert not {first + 2, first + 3, first + 4} & set(lines)
    assert 'incompatible type "str"; expected "float"' in lines[first + 5]
    assert 'Unexpected keyword argument "scale"' in lines[first + 6]
    assert "Too few arguments" in lines[first + 7] or "Missing positional argument" in lines[first + 7]
