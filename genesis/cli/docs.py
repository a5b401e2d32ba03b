"""``genesis docs``: the pages in a browser, rendered where mkdocs is installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import webbrowser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def docs(out: str, show: bool = True, root: Path = ROOT) -> int:
    """Render the pages into a folder and open them; without mkdocs, open the folder of pages as they are written."""
    pages = root / "docs"
    if not (root / "mkdocs.yml").exists():
        print("genesis docs: the pages come with the source, not with the installed package", file=sys.stderr)
        return 1
    if importlib.util.find_spec("material") is None:
        print(f'{pages / "guide" / "README.md"}\nrendered, with search: pip install -e ".[docs]"')
        return _opened(pages, show)
    if _rendered(root, Path(out).resolve()):
        print("genesis docs: mkdocs failed", file=sys.stderr)
        return 1
    index = Path(out).resolve() / "index.html"
    print(index)
    return _opened(index, show)


def _rendered(root: Path, out: Path) -> int:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--config-file", "mkdocs.yml"]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run([*command, "--site-dir", str(out)], cwd=root, env=environment).returncode


def _opened(path: Path, show: bool) -> int:
    if show:
        webbrowser.open(path.as_uri())
    return 0
