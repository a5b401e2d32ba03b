"""The code of a page of the guide runs from top to bottom, and prints what the page shows below it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

NEEDS = {"onnx": "onnx", "sklearn": "sklearn"}  # packages that a page is about
GUIDE = Path(__file__).parent.parent / "docs" / "guide"


@pytest.mark.parametrize("page", sorted(p for p in GUIDE.glob("*.md") if p.stem != "README"), ids=lambda p: p.stem)
def test_page(page, monkeypatch, capsys):
    if page.stem in NEEDS:
        pytest.importorskip(NEEDS[page.stem], reason="the page is about it")
    text = page.read_text()
    blocks = list(re.finditer(r"```python\n(.*?)```(?:\n+```(?:text)?\n(.*?)```)?", text, re.S))
    assert blocks
    module = ModuleType(f"guide_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look their module up
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        capsys.readouterr()
        exec(compile("\n" * line + block[1], str(page), "exec"), vars(module))  # errors point at the line of the page
        if block[2] is not None:
            assert capsys.readouterr().out.strip() == block[2].strip()
