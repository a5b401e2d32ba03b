"""Frames of modules and closed composites: exact when a function is drawn, by names of parameters otherwise."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET

import pytest

import genesis
from genesis import nn
from genesis.core.graph.modes import ACTIVE, watchers
from genesis.debug.graph import Box
from genesis.debug.layout import arrange
from genesis.debug.scopes import Scope
from genesis.nn import functional as F


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.attn = nn.LayerNorm(8), nn.MultiheadAttention(8, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, x):
        h = self.norm(x)
        x = x + self.attn(h, h, h)[0]
        return x + self.mlp(self.norm(x))


def block(**options):
    return genesis.draw(nn.Sequential(Block(), nn.Linear(8, 2)), genesis.ones(2, 3, 8), **options)


def members(picture, name):
    return [b.name for b in picture._boxes if any(s.name == name for s in b.scope)]


def test_a_linear_is_a_frame_of_three_boxes():
    assert sorted(members(block(), "1 Linear")) == ["1.bias", "1.weight", "Linear"]
    assert {"0.attn.in_proj_weight", "Softmax", "0.attn.out_proj.weight"} <= set(
        members(block(), "0.attn MultiheadAttention")
    )
    assert members(block(), "0.attn.out_proj Linear") and "1 Linear" in block().svg


def test_composites_are_one_box_that_opens():
    closed, opened, some = block(), block(expand=True), block(expand=["gelu"])
    names = [b.name for b in closed._boxes]
    assert (
        names.count("layer_norm") == 2
        and names.count("gelu") == 1
        and "NormalCdf" not in names
        and "Standardized" not in names
    )
    assert "NormalCdf" in opened.text and "Standardized" in opened.text and not any(b.inside for b in opened._boxes)
    assert "NormalCdf" in some.text and "layer_norm" in some.text
    assert block(expand="gelu").text.count("NormalCdf") == 1 and "NormalCdf" not in block(expand="not_gelu").text
    assert sum(b.saved for b in closed._boxes) == sum(b.saved for b in opened._boxes)
    page = ET.fromstring(closed._repr_html_())
    titles = ["".join(s.itertext()) for s in page.iter("summary")]
    assert len(titles) == 3 and any(
        re.fullmatch(r"gelu: \d+ operations, saves .*, test_scopes.py:\d+", t) for t in titles
    )
    assert "NormalCdf" in "".join(page.itertext()) and "NormalCdf" not in closed.svg


def test_clusters_of_dot():
    dot = block().dot
    assert dot.count("subgraph") == dot.count("  }\n") == len(
        {s for b in block()._boxes for s in b.scope}
    ) and dot.count("{") == dot.count("}")
    assert 'label="0.attn MultiheadAttention"' in dot and len(re.findall(r"^  n\d+ \[", dot, re.M)) == len(
        block()._boxes
    )


def test_depth_makes_modules_boxes():
    picture = block(depth=0)
    assert [b.name for b in picture._boxes] == ["result", "1 Linear", "0 Block"]
    assert "0.mlp Sequential" in block(depth=1).text and "0.mlp.0.weight" not in block(depth=1).text
    assert picture._boxes[2].saved + picture._boxes[1].saved == sum(b.saved for b in block(expand=True)._boxes)


@pytest.mark.parametrize("options", [{}, {"expand": True}, {"depth": 1}])
def test_frames_hold_their_boxes_and_nothing_else(options):
    picture = block(**options)
    placed = arrange(picture._boxes)
    assert len(placed.frames) == len({s for b in picture._boxes for s in b.scope})
    inside = lambda p, f: abs(p.x - f.x) <= (f.width - p.width) / 2 and abs(p.y - f.y) <= (f.height - p.height) / 2  # noqa: E731
    apart = lambda p, f: (
        abs(p.x - f.x) >= (f.width + p.width) / 2 - 1e-6 or abs(p.y - f.y) >= (f.height + p.height) / 2 - 1e-6
    )  # noqa: E731
    for name, frame in placed.frames:
        for box in picture._boxes:
            p = placed.where[box]
            assert inside(p, frame) or apart(p, frame)
        assert sum(inside(placed.where[b], frame) for b in picture._boxes) >= 2, name
    for a, b in itertools.combinations([placed.where[b] for b in picture._boxes], 2):
        assert apart(a, b)
    for box in picture._boxes:
        for source, _ in box.inputs:
            assert placed.where[source].y < placed.where[box].y


def test_a_recorded_graph_is_grouped_by_names_of_parameters():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    loss = model(genesis.ones(2, 4)).mean()
    picture = genesis.draw(loss, params=model)
    assert sorted(members(picture, "0 Linear")) == ["0.bias", "0.weight", "Linear"] and "2 Linear" in picture.svg
    attention, x = nn.MultiheadAttention(8, 2), genesis.ones(3, 2, 8)
    names = members(
        genesis.draw(
            nn.Sequential(nn.Linear(8, 8))(attention(x, x, x)[0]).sum(), params=nn.ModuleDict({"a": attention})
        ),
        "a MultiheadAttention",
    )
    assert names.count("Linear") == 1 and "a.in_proj_weight" in names and "Softmax" not in names
    assert not any(b.scope for b in genesis.draw(loss, params=dict(model.named_parameters()))._boxes)


def test_calls_whose_boxes_are_not_together_have_no_frame():
    scope = (Scope("twice", "module"),)
    x, y, z = (Box(name, "operation") for name in "xyz")
    x.scope = z.scope = scope
    y.inputs, z.inputs = [(x, "")], [(y, "")]
    assert arrange([z, y, x]).frames == []


def test_observing_leaves_no_trace_and_an_error_ends_it():
    def wrong(x):
        F.gelu(x)
        raise ValueError("wrong")

    before = list(ACTIVE), watchers.get()
    with pytest.raises(ValueError, match="wrong"):
        genesis.draw(wrong, genesis.ones(2, requires_grad=True))
    assert (list(ACTIVE), watchers.get()) == before


def test_natural_size():
    svg = ET.fromstring(block().svg)
    assert svg.get("viewBox") == f"0 0 {svg.get('width')} {svg.get('height')}" and "max-width:none" in svg.get("style")
    assert "overflow-x:auto" in block()._repr_html_()
