"""The code of a page of the guide runs from top to bottom."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

GUIDE = Path(__file__).parent.parent / "docs" / "guide"


@pytest.mark.parametrize("page", sorted(p for p in GUIDE.glob("*.md") if p.stem != "README"), ids=lambda p: p.stem)
def test_page(page, monkeypatch):
    text = page.read_text()
    blocks = [(m.start(1), m.group(1)) for m in re.finditer(r"```python\n(.*?)```", text, re.S)]
    assert blocks
    module = ModuleType(f"guide_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look their module up
    names = vars(module)
    for start, block in blocks:
        line = text.count("\n", 0, start)
        exec(compile("\n" * line + block, str(page), "exec"), names)  # errors point at the line of the page
