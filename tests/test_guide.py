"""The code of a page of the guide runs from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parent.parent / "docs" / "guide"


@pytest.mark.parametrize("page", sorted(GUIDE.glob("*.md")), ids=lambda p: p.stem)
def test_page(page):
    text = page.read_text()
    blocks = [(m.start(1), m.group(1)) for m in re.finditer(r"```python\n(.*?)```", text, re.S)]
    assert blocks
    names = {"__name__": f"guide_{page.stem}"}
    for start, block in blocks:
        line = text.count("\n", 0, start)
        exec(compile("\n" * line + block, str(page), "exec"), names)  # errors point at the line of the page
