"""`genesis.draw`: the recorded graph as a picture."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Collection
from dataclasses import replace
from html import escape
from pathlib import PurePath
from typing import Any

from genesis.base.errors import ArgumentValueError, message
from genesis.base.pytree import tree_flatten
from genesis.base.text import Printed, visible
from genesis.core.graph.tensor import Tensor
from genesis.debug.graph import Box, fold, graph
from genesis.debug.layout import LINE, Rectangle, arrange, lines_of, short
from genesis.debug.memory import size
from genesis.debug.scopes import by_parameters, close, observe, of_leaves, without_single
from genesis.io.atomic import write_atomically
from genesis.jit.binding import Graph

_STYLE = (
    """
.gd{--page:#fff;--ink:#1f2933;--soft:#5b6875;--line:#9aa5b1;--operation:#e8eef6;--function:#fdebd3;--leaf:#dff3e4;--result:#e9e3f7;--folded:#f1f3f5;--composite:#dcecf2}
@media (prefers-color-scheme:dark){.gd{--page:#0d1117;--ink:#e6e9ec;--soft:#a7b1bb;--line:#66727f;--operation:#26364a;--function:#4a3720;--leaf:#1f4029;--result:#372d55;--folded:#2d333b;--composite:#1d3f4d}}
.gd{background:var(--page)}
.gd text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:var(--soft);text-anchor:middle}
.gd .name{fill:var(--ink);font-weight:600}.gd rect{stroke:var(--line);stroke-width:1}.gd path{fill:none;stroke:var(--line);stroke-width:1.3}
.gd .tip{fill:var(--line);stroke:none}.gd .edge{font-size:10px;paint-order:stroke;stroke:var(--page);stroke-width:3px}
"""
    + "".join(
        f".gd .{kind}{{fill:var(--{kind})}}"
        for kind in ("operation", "function", "composite", "leaf", "result", "folded")
    )
    + "\n.gd .frame{fill:none;stroke-dasharray:4 3}.gd .frame-name{text-anchor:start;font-size:11px}"
)


class Drawing(Printed):
    """A picture of a graph: shown by notebooks as SVG, printed as text, saved as either or as DOT."""

    def __init__(self, boxes: list[Box], total: int) -> None:
        self._boxes, self._total = boxes, total

    @property
    def svg(self) -> str:
        """A complete SVG document."""
        return _svg(self._boxes)

    @property
    def text(self) -> str:
        """A tree from the results upwards; what was shown before is referred to by its number."""
        return _text(self._boxes)

    @property
    def dot(self) -> str:
        """The graph for Graphviz."""
        return _dot(self._boxes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture; the suffix says how: .svg, .dot or .txt.

        Raises:
            ValueError: another suffix
        """
        kinds = {".svg": "svg", ".dot": "dot", ".txt": "text"}
        suffix = PurePath(path).suffix
        if suffix not in kinds:
            raise ArgumentValueError(
                message("Drawing.save", f"unknown suffix {suffix!r}", hint=f"use {', '.join(kinds)}")
            )
        write_atomically(path, getattr(self, kinds[suffix]).encode())

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        opened = "".join(_details(box) for box in self._boxes if box.inside)
        return f'<div style="overflow-x:auto;max-width:100%">{self.svg}{opened}</div>'

    def _text(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<drawing of {self._total} nodes: print it, save it, or show it in a notebook>"


def draw(
    output: Any,
    *more: Any,
    params: Any = None,
    max_nodes: int = 200,
    depth: int | None = None,
    expand: bool | Collection[str] = False,
) -> Drawing:
    """Draw the graph behind one or several results: operations, shapes, bytes saved for backward, lines of the program.

    Args:
        output: a tensor with history, a graph that `genesis.jit.trace` recorded, or a module or function to call: then
            frames show the modules, and a composite (`gelu`, `cross_entropy`) is one box
        more: further results in the same picture, or the arguments of the call
        params: a module or a dict of tensors, to name the leaves
        max_nodes: larger graphs end in a box that says how many nodes it stands for
        depth: modules so deep inside others are one box each: 0 for those of the first level
        expand: the names of composites to show with all that is inside, or True for all of them

    Returns:
        a `Drawing`: ``.svg``, ``.text``, ``.dot``, ``.save(path)``; a notebook shows it

    Raises:
        TypeError: not tensors
        RuntimeError: nothing to draw, no tensor has a graph
        ValueError: ``max_nodes`` is smaller than 2

    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> print(genesis.draw((x * x).sum(), params={"x": x}))
    result  float32[]
    └─ Sum  float32[]
       └─ Mul  float32[2]
          ├─ x  float32[2]
          └─ x  float32[2]  (shown above)
    """
    if max_nodes < 2:
        raise ArgumentValueError(message("draw", f"max_nodes must be at least 2, got {max_nodes}"))
    if isinstance(output, Graph):
        return output.draw(max_nodes)  # type: ignore[no-any-return]
    if callable(output) and not isinstance(output, Tensor):
        result, scopes = observe(output, more, params)
        tensors = [t for t in tree_flatten(result)[0] if isinstance(t, Tensor)]
        boxes = graph(tensors, output if params is None and hasattr(output, "named_parameters") else params, scopes)
        of_leaves(boxes)
    else:
        boxes = graph((output, *more), params)
        by_parameters(boxes, params)
    without_single(boxes)
    named = {expand} if isinstance(expand, str) else set() if isinstance(expand, bool) else set(expand)
    opened = lambda name: expand is True or name in named  # noqa: E731
    boxes = close(
        boxes,
        lambda scope, level: (
            not opened(scope.name) if scope.kind == "composite" else depth is not None and level >= depth
        ),
    )
    without_single(boxes)
    return Drawing(fold(boxes, max_nodes), sum(box.kind != "result" for box in boxes))


# ---- SVG


def _svg(boxes: list[Box]) -> str:
    picture = arrange(boxes)
    where, routes, width, height = picture.where, picture.routes, picture.width, picture.height
    arrows = [
        _arrow(where[source], where[box], label, _beside(box, i), i, routes[id(box), i])
        for box in boxes
        for i, (source, label) in enumerate(box.inputs)
    ]
    body = "".join(
        [*[_frame(name, p) for name, p in picture.frames], *arrows, *[_box(box, where[box]) for box in boxes]]
    )
    legend, low = _legend(boxes, height)
    wide = max(width, 330)  # natural size: what is wider than the page scrolls
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="gd" viewBox="0 0 {wide:.0f} {low:.0f}" width="{wide:.0f}" '
        f'height="{low:.0f}" style="width:{wide:.0f}px;height:{low:.0f}px;max-width:none" role="img">'
        f"<title>Computation graph of {len(boxes)} nodes</title><style>{_STYLE}</style>{body}{legend}</svg>"
    )


def _frame(name: str, p: Rectangle) -> str:
    x, y = p.x - p.width / 2, p.y - p.height / 2
    return (
        f'<rect class="frame" x="{x:.1f}" y="{y:.1f}" width="{p.width:.1f}" height="{p.height:.1f}" rx="8"/>'
        f'<text class="frame-name" x="{x + 8:.1f}" '
        f'y="{y + 14:.1f}">{escape(short(name, int((p.width - 16) / 6.7)))}</text>'
    )


def _details(box: Box) -> str:
    """What a closed box holds, to be opened below the picture; what comes from outside ends in boxes of its own."""
    known: dict[Box, Box] = {}
    outside: dict[Box, Box] = {}
    for each in box.inside:
        known[each] = replace(each, inputs=[], scope=(), inside=[])
    for each in box.inside:
        for source, label in each.inputs:
            if source not in known:
                outside.setdefault(source, Box(source.name, "folded", source.shape, source.dtype))
            known[each].inputs.append((known.get(source) or outside[source], label))
    count = sum(each.kind != "leaf" for each in box.inside)
    where = f", {box.where.short}" if box.where is not None else ""
    title = f"{box.name}: {count} operations" + (f", saves {size(box.saved)}" if box.saved else "") + where
    return f"<details><summary>{escape(visible(title))}</summary>{_svg([*known.values(), *outside.values()])}</details>"


def _beside(box: Box, index: int) -> float:
    """Where an arrow enters a box of several inputs, from -0.5 (left) to 0.5."""
    return (index + 1) / (len(box.inputs) + 1) - 0.5


def _box(box: Box, p: Rectangle) -> str:
    tip = [
        box.name,
        box.detail,
        f"saves {size(box.saved)}" if box.saved else "",
        "freed by a backward" if box.freed else "",
        str(box.where or ""),
    ]
    parts = [f"<g><title>{escape(chr(10).join(t for t in tip if t))}</title>"]
    radius = 6 if box.kind in ("operation", "function", "composite") else 14
    parts.append(
        f'<rect class="{box.kind}" x="{p.x - p.width / 2:.1f}" y="{p.y - p.height / 2:.1f}" width="{p.width:.1f}" '
        f'height="{p.height:.1f}" rx="{radius}"/>'
    )
    lines = lines_of(box)
    top = p.y - len(lines) * LINE / 2 + 12
    for i, line in enumerate(lines):
        parts.append(
            f'<text{" class=" + chr(34) + "name" + chr(34) if i == 0 else ""} x="{p.x:.1f}" '
            f'y="{top + i * LINE:.1f}">{escape(line)}</text>'
        )
    return "".join([*parts, "</g>"])


def _arrow(source: Rectangle, target: Rectangle, label: str, beside: float, index: int, bends: list[Rectangle]) -> str:
    x, y = source.x, source.y + source.height / 2
    line = [f"M{x:.1f},{y:.1f}"]
    for bend in bends:  # through the layer in between, from its upper edge to its lower one
        line.append(_curve(x, y, bend.x, bend.y - bend.height / 2) + f" L{bend.x:.1f},{bend.y + bend.height / 2:.1f}")
        x, y = bend.x, bend.y + bend.height / 2
    x1, y1 = target.x + beside * target.width, target.y - target.height / 2
    line.append(_curve(x, y, x1, y1 - 6))
    parts = [
        f'<path d="{" ".join(line)}"/>',
        f'<path class="tip" d="M{x1 - 4:.1f},{y1 - 7:.1f} L{x1 + 4:.1f},{y1 - 7:.1f} L{x1:.1f},{y1:.1f} z"/>',
    ]
    if label:
        parts.append(
            f'<text class="edge" x="{x1 + 8 * (1 if beside > 0 else -1 if beside < 0 else 0):.1f}" '
            f'y="{y1 - 11 - 11 * (index % 2):.1f}">{escape(label)}</text>'
        )
    return "".join(parts)


def _curve(x0: float, y0: float, x1: float, y1: float) -> str:
    half = max((y1 - y0) / 2, 14)
    return f"C{x0:.1f},{y0 + half:.1f} {x1:.1f},{y1 - half:.1f} {x1:.1f},{y1:.1f}"


def _legend(boxes: list[Box], top: float) -> tuple[str, float]:
    kinds = [
        k for k in ("leaf", "operation", "function", "composite", "result", "folded") if any(b.kind == k for b in boxes)
    ]
    words = {
        "leaf": "leaf",
        "operation": "operation",
        "function": "Function of yours",
        "composite": "several operations",
        "result": "result",
        "folded": "not shown",
    }
    parts, x = [], 16.0
    for kind in kinds:
        parts.append(f'<rect class="{kind}" x="{x:.0f}" y="{top + 2:.0f}" width="12" height="12" rx="3"/>')
        parts.append(
            f'<text class="edge" x="{x + 17:.0f}" y="{top + 12:.0f}" style="text-anchor:start">{words[kind]}</text>'
        )
        x += 30 + 6.4 * len(words[kind])
    return "".join(parts), top + 24


# ---- text and DOT


def _text(boxes: list[Box]) -> str:
    lines: list[str] = []
    shown: set[Box] = set()
    ahead: list[tuple[Box, str, str, tuple[Any, ...]]] = [
        (box, "", "", ()) for box in reversed(boxes) if box.kind == "result"
    ]
    while ahead:
        box, lead, below, around = ahead.pop()
        again = box in shown
        facts = [
            box.name,
            box.detail,
            f"saves {size(box.saved)}" if box.saved else "",
            "freed" if box.freed else "",
            "(shown above)" if again else "",
        ]
        where = (
            f"  {box.where.short}"
            if box.where is not None and not again and not box.where.filename.startswith("<")
            else ""
        )
        inside = f"  in {box.scope[-1].name}" if box.scope and not again and box.scope != around else ""
        lines.append(lead + "  ".join(f for f in facts if f) + where + inside)
        if again:
            continue
        shown.add(box)
        last = len(box.inputs) - 1
        deep = len(below) > 90  # a chain is not indented for ever
        for i, (source, _) in reversed(list(enumerate(box.inputs))):
            mark, bar = ("└─ ", "   ") if i == last else ("├─ ", "│  ")
            ahead.append((source, below + mark, below if deep and last == 0 else below + bar, box.scope))
    return "\n".join(lines)


def _dot_node(box: Box, number: int, colour: str, quoted: Callable[[str], str]) -> str:
    label, tip = quoted(chr(10).join(lines_of(box))), quoted(str(box.where or box.name))
    return f"  n{number} [label={label}, fillcolor={quoted(colour)}, tooltip={tip}];"


def _dot(boxes: list[Box]) -> str:
    colours = {
        "operation": "#e8eef6",
        "function": "#fdebd3",
        "composite": "#dcecf2",
        "leaf": "#dff3e4",
        "result": "#e9e3f7",
        "folded": "#f1f3f5",
    }
    number = {box: i for i, box in enumerate(boxes)}
    quoted = lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'  # noqa: E731
    lines = ["digraph genesis {", '  node [shape=box, style="rounded,filled", fontname="monospace"];']
    clusters = itertools.count()

    def declare(inside: list[Box], level: int) -> None:
        """The boxes of one call are a cluster."""
        for scope in dict.fromkeys(box.scope[level] for box in inside if len(box.scope) > level):
            lines.append(f"  subgraph cluster{next(clusters)} {{ label={quoted(scope.name)};")
            declare([box for box in inside if len(box.scope) > level and box.scope[level] is scope], level + 1)
            lines.append("  }")
        for box in inside:
            if len(box.scope) <= level:
                lines.append(_dot_node(box, number[box], colours[box.kind], quoted))

    declare(boxes, 0)
    lines += [
        f"  n{number[source]} -> n{number[box]}{f' [label={quoted(label)}]' if label else ''};"
        for box in boxes
        for source, label in box.inputs
    ]
    return "\n".join([*lines, "}"]) + "\n"
