"""Pictures of graphs: complete, readable, nothing on top of anything else; and what graphs keep in memory."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import genesis
from genesis import Function, nn
from genesis.debug import saved_memory
from genesis.debug.layout import positions

NS = "{http://www.w3.org/2000/svg}"


class Two(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.kept = x.exp()
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, g, h):
        return 2 * g + 3 * h


def leaf(*shape):
    return genesis.ones(*(shape or (3,)), requires_grad=True)


def branching():
    x, w = leaf(2, 3), leaf(3)
    a, b = Two.apply(x * w)
    return (a.exp() + b * a).sum(), {"x": x, "w": w}


def texts(svg):
    return [t.text for t in ET.fromstring(svg).iter(f"{NS}text")]


def test_every_node_is_in_every_form():
    y, params = branching()
    picture = genesis.draw(y, params=params)
    for form in (picture.svg, picture.text, picture.dot):
        for name in ("x", "w", "Two", "Exp", "Mul", "Add", "Sum", "result", "float32[2, 3]", "float32[3]"):
            assert name in form
    assert texts(picture.svg).count("Two") == 1
    assert "output 1" in picture.svg
    assert re.search(r"test_draw\.py:\d+", picture.svg)
    assert picture.text.count("(shown above)") >= 2
    assert picture._repr_svg_() == picture.svg
    assert str(picture) == picture.text


def test_boxes_do_not_overlap_and_texts_fit():
    y, params = branching()
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 2))
    for picture in (genesis.draw(y, params=params), genesis.draw(model(genesis.ones(1, 4)).sum(), params=model)):
        where, _, width, height = positions(picture._boxes)
        for a, b in itertools.combinations(where.values(), 2):
            apart = (
                abs(a.x - b.x) >= (a.width + b.width) / 2 - 1e-6 or abs(a.y - b.y) >= (a.height + b.height) / 2 - 1e-6
            )
            assert apart
        for p in where.values():
            assert p.x - p.width / 2 >= 0
            assert p.x + p.width / 2 <= width
            assert p.y + p.height / 2 <= height
        for group in ET.fromstring(picture.svg).iter(f"{NS}g"):
            rect, lines = group.find(f"{NS}rect"), group.findall(f"{NS}text")
            assert all(len(t.text) * 7.25 < float(rect.get("width")) for t in lines)


def test_arrows_pass_no_box():
    x = leaf()
    y = x
    for _ in range(5):
        y = y.sin()
    picture = genesis.draw((y + x).sum())
    where, routes, _, _ = positions(picture._boxes)
    boxes = [p for b, p in where.items() if b.kind != "bend"]
    for bend in itertools.chain.from_iterable(routes.values()):
        assert all(abs(bend.x - p.x) > p.width / 2 or abs(bend.y - p.y) > p.height / 2 for p in boxes)
    assert any(len(r) >= 5 for r in routes.values())


def test_values_flow_downwards():
    y, params = branching()
    boxes = genesis.draw(y, params=params)._boxes
    where, _, _, _ = positions(boxes)
    for box in boxes:
        for source, _ in box.inputs:
            assert where[source].y + where[source].height / 2 < where[box].y - where[box].height / 2


def test_names_with_special_characters_are_escaped(tmp_path):
    odd = type('Less<"&\\', (Two,), {})
    x = leaf()
    a, _ = odd.apply(x)
    picture = genesis.draw(a.sum(), params={'quote"<': x})
    assert 'Less<"&\\' in texts(picture.svg)
    assert re.search(r'label="Less<\\"&\\\\\\n', picture.dot)
    assert 'quote"<' in picture.text
    for suffix in ("svg", "dot", "txt"):
        picture.save(tmp_path / f"graph.{suffix}")
        assert (tmp_path / f"graph.{suffix}").stat().st_size > 100
    with pytest.raises(ValueError, match=r"unknown suffix '.png'.*\n.*\.svg"):
        picture.save(tmp_path / "graph.png")


def test_dot_has_every_node_and_arrow_once():
    y, params = branching()
    picture = genesis.draw(y, params=params)
    declared = re.findall(r"^  (n\d+) \[", picture.dot, re.M)
    arrows = re.findall(r"^  (n\d+) -> (n\d+)", picture.dot, re.M)
    assert len(declared) == len(set(declared)) == len(picture._boxes)
    assert len(arrows) == sum(len(b.inputs) for b in picture._boxes)
    assert {n for a in arrows for n in a} == set(declared)


def test_large_graphs_are_folded_and_say_so():
    x = leaf()
    y = x
    for _ in range(50_000):
        y = y + 1
    picture = genesis.draw(y.sum(), max_nodes=10)
    assert "49994 more nodes" in picture.svg
    assert "49994 more nodes" in picture.text
    assert len(texts(picture.svg)) < 60
    assert repr(picture) == "<drawing of 50002 nodes: print it, save it, or show it in a notebook>"
    small = genesis.draw((x * 2).sum(), max_nodes=200)
    assert "more nodes" not in small.text


def test_a_leaf_and_several_results():
    x = leaf()
    assert genesis.draw(x, params={"x": x}).text == "result  float32[3]\n└─ x  float32[3]"
    y = x.exp()
    text = genesis.draw(y.sum(), y.mean()).text
    assert text.count("result") == 2
    assert text.count("Exp") == 2
    assert text.count("(shown above)") == 1


def test_a_graph_that_was_freed():
    x = leaf()
    y = (x * x).sum()
    assert "saves" not in genesis.draw(y).svg.replace("saves for", "")
    z = x.exp().sum()
    assert "saves 12 B" in genesis.draw(z).svg
    z.backward()
    assert "freed" in genesis.draw(z).svg
    assert saved_memory(z).total == 0


def test_saved_bytes_in_closed_form():
    x, w = leaf(4, 8), leaf(8, 16)
    h = x @ w  # saves two leaves: nothing of its own
    y = h.exp()  # its result: 4 * 16 floats
    z = (y * y).sum()  # the same memory again
    assert saved_memory(z).total == 4 * 16 * 4
    s = Two.apply(h)[0].sum()  # h, and exp(h) on an attribute
    assert saved_memory(s).total == 2 * 4 * 16 * 4
    assert saved_memory(z, s).total == 3 * 4 * 16 * 4
    report = saved_memory(z, s)
    assert sum(report.lines.values()) == report.total
    assert list(report.lines.values()) == sorted(report.lines.values(), reverse=True)
    assert str(report).startswith("768 B saved for backward\n  512 B  ")
    v = x.exp()[1:]  # a view holds the whole array
    assert saved_memory((v * v).sum()).total == x.numel() * 4


@pytest.mark.parametrize(
    "call, error, sentence",
    [
        (lambda: genesis.draw(3), TypeError, "expected tensors, got int"),
        (lambda: genesis.draw(genesis.ones(1)), RuntimeError, "has no graph.*explain"),
        (lambda: genesis.draw(leaf(), max_nodes=1), ValueError, "max_nodes must be at least 2, got 1"),
        (lambda: saved_memory(np.ones(2)), TypeError, "expected tensors, got ndarray"),
    ],
)
def test_wrong_arguments(call, error, sentence):
    with pytest.raises(error, match=f"(?s){sentence}"):
        call()
