"""Pictures as SVG and in the terminal."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from genesis.cli import svg
from genesis.cli.terminal import Terminal


@pytest.mark.parametrize(
    "picture",
    [
        svg.line_chart([svg.Series("a<b", [1, 2, 3], [1.0, float("nan"), 2.0])], "t & u", "x", "y", 0.5),
        svg.line_chart([svg.Series("one point", [1], [5.0])], "t", "x", "y"),
        svg.line_chart([], "empty", "x", "y"),
        svg.image_grid(np.zeros((0, 8, 8)), "none"),
        svg.image_grid(np.eye(8)[None], "one", ["<1>"]),
        svg.confusion_matrix(np.zeros((2, 2), int), ["a", "b"], "zeros"),
    ],
)
def test_every_picture_is_xml(picture):
    root = ET.fromstring(picture)
    assert root.tag.endswith("svg") and root.get("role") == "img" and root[0].text


def test_confusion_matrix_shows_each_count():
    root = ET.fromstring(svg.confusion_matrix(np.array([[5, 1], [0, 7]]), ["a", "b"], "t"))
    assert sorted(e.text for e in root.iter() if (e.get("class") or "").startswith("count")) == ["1", "5", "7"]


def test_terminal_falls_back():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    terminal = Terminal(stream=stream)
    terminal.images(np.stack([np.eye(8), np.ones((8, 8))]))
    assert list(terminal.progress(range(4), 4, "work")) == [0, 1, 2, 3]
    stream.seek(0)
    text = stream.read()
    assert "##" in text and "work: 4 of 4" in text
    assert list(Terminal(quiet=True, stream=stream).progress(range(2), 2, "x")) == [0, 1]
