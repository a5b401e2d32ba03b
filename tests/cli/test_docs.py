"""`genesis docs`: where the pages are, and that they can be rendered without a broken link."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

import genesis
from genesis.cli import docs, main

ROOT = Path(__file__).parents[2]


def test_without_mkdocs_the_pages_are_named(monkeypatch, capsys):
    monkeypatch.setattr(docs.importlib.util, "find_spec", lambda name: None)
    assert main(["docs", "--no-open"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert Path(out[0]).read_text().startswith("# Guide") and 'pip install -e ".[docs]"' in out[1]


def test_a_package_without_its_source_has_no_pages(tmp_path, capsys):
    assert docs.docs("out", show=False, root=tmp_path) == 1
    assert "the pages come with the source" in capsys.readouterr().err


@pytest.fixture
def pages(monkeypatch):
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    pytest.importorskip("latex2mathml")
    spec = importlib.util.spec_from_file_location("pages_of_docs", ROOT / "scripts" / "pages.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec.loader.exec_module(module)
    return module


def test_docstrings_become_markdown(pages):
    text = pages.markdown_of(
        "A sum.\n\nArgs:\n    x: what to add,\n        element by element\n\n>>> 1 + 1\n2\n\n    a block\n"
    )
    assert text.split("\n\n") == [
        "A sum.",
        "**Args:**",
        "- `x`: what to add, element by element",
        "```pycon\n>>> 1 + 1\n2\n```",
        "```text\na block\n```\n",
    ]


def test_the_reference_has_what_is_made_at_import(pages):
    assert "## exp { #exp }" in pages.reference("genesis") and "## exp { #exp }" in pages.reference_of_tensor()
    assert "| `matmul` | contraction | yes |" in pages.table_of_ops()


def test_the_reference_has_every_part_of_the_package(pages):
    parts = {module.split(".")[0] for module in pages.MODULES}
    assert set(genesis._LAZY) - pages.LEFT_OUT <= parts
    page = pages.reference("genesis")
    assert all(f"## {name} {{ #{name} }}" in page for name in genesis._LAZY_NAMES)


@pytest.mark.slow
def test_no_link_is_broken(pages, tmp_path, capsys):
    assert main(["docs", "--no-open", "--out", str(tmp_path / "site")]) == 0
    for page in ("index.html", "ops.html", "pytorch.html", "guide/index.html", "reference/nn.html"):
        assert "Genesis" in (tmp_path / "site" / page).read_text()
