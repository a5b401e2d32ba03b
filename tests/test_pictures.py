"""The pictures of the guide are what `scripts/pictures` draws, and every page shows pictures that are there."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guide"


def shape_of(path: Path) -> list[tuple[str, ...]]:
    """What is drawn, and every text; numbers may differ in their last digits from machine to machine."""
    root = ElementTree.parse(path).getroot()
    return [(node.tag, node.get("class", ""), node.text or "") for node in root.iter()]


def test_pictures_are_what_the_script_draws(tmp_path):
    subprocess.run([sys.executable, str(ROOT / "scripts" / "pictures"), str(tmp_path)], check=True)
    drawn = {path.name: shape_of(path) for path in tmp_path.iterdir()}
    assert drawn == {path.name: shape_of(path) for path in (GUIDE / "pictures").iterdir()}


def test_pages_show_pictures_that_exist():
    shown = {name for page in GUIDE.glob("*.md") for name in re.findall(r"!\[[^]]+\]\(([^)]+)\)", page.read_text())}
    assert shown == {f"pictures/{path.name}" for path in (GUIDE / "pictures").iterdir()}
