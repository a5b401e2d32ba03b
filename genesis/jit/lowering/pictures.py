"""Pictures of a step, as SVG: its memory over time, the times of its phases, and how near they are to the fastest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from genesis.jit.lowering.layouts import size_of
from genesis.jit.lowering.plan import Plan
from genesis.jit.program import Program

WIDTH, HEIGHT = 720, 160
_BOX = 'fill="#7aa6da" stroke="#39597d" stroke-width="0.3"'


def memory(program: Program, plan: Plan) -> str:
    """The arena: phases go to the right, memory down; a value is a rectangle."""
    ends = 1 + max([life.last for life in plan.lives.values()], default=0)
    boxes = []
    for var, life in plan.lives.items():
        x, w = WIDTH * life.first / ends, WIDTH * (life.last + 1 - life.first) / ends
        y, h = HEIGHT * plan.where[var].index / max(plan.size, 1), HEIGHT * size_of(var.spec) / max(plan.size, 1)
        boxes.append(_box(x, y, w, h, f"{program.name_of(var)}: {var.spec}, {bytes_text(size_of(var.spec))}"))
    return _svg(f"<g {_BOX}>{''.join(boxes)}</g>", f"memory, {bytes_text(plan.size)}; phases to the right")


def timeline(entries: Sequence[Any]) -> str:
    """The phases one after the other, each as wide as it takes long."""
    whole, x, boxes = sum([entry.seconds for entry in entries]) or 1.0, 0.0, []
    for i, entry in enumerate(entries):
        w = WIDTH * entry.seconds / whole
        shade = "#7aa6da" if entry.phase.stages else "#d9a05b"  # what the host computes
        title = f"phase {i}: {entry.ops}, {time_text(entry.seconds)}, {entry.seconds / whole:.0%}"
        boxes.append(f'<g fill="{shade}" stroke="#39597d" stroke-width="0.3">{_box(x, 0, w, HEIGHT / 4, title)}</g>')
        x += w
    return _svg("".join(boxes), f"time, {time_text(whole)}", HEIGHT / 4)


def roofline(entries: Sequence[Any]) -> str:
    """A point for each phase: operations for each byte to the right, operations in a second upwards, both logarithmic.
    The roof is what the phases of this step reach at most: of bytes in a second (the slope), and of operations (the top).
    """
    known = [e for e in entries if e.phase.stages and e.seconds > 0 and e.work and e.moved]
    if not known:
        return _svg("", "no phase was measured that computes")
    points = [(math.log2(e.work / e.moved), math.log2(e.work / e.seconds)) for e in known]
    fastest, top = max([y - x for x, y in points]), max([y for _, y in points])
    left, right = min([x for x, _ in points]) - 1, max([*[x for x, _ in points], top - fastest]) + 1
    low = min([*[y for _, y in points], fastest + left]) - 1

    def at(x: float, y: float) -> tuple[float, float]:
        return WIDTH * (x - left) / (right - left), HEIGHT * (1 - (y - low) / (top + 1 - low))

    corners = [at(left, left + fastest), at(top - fastest, top), at(right, top)]
    line = " ".join([f"{x:.1f},{y:.1f}" for x, y in corners])
    marks = []
    for e, point in zip(known, points, strict=True):
        x, y = at(*point)
        title = escape(f"{e.ops}: {e.work / e.moved:.2g} operations a byte, {count_text(int(e.work / e.seconds))}/s")
        marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{title}</title></circle>')
    body = f'<polyline points="{line}" fill="none" stroke="#39597d"/><g {_BOX}>{"".join(marks)}</g>'
    return _svg(body, f"at most {count_text(int(2**top))} operations and {bytes_text(int(2**fastest))} a second")


def _box(x: float, y: float, w: float, h: float, title: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(w - 0.5, 0.5):.1f}" height="{max(h - 0.5, 0.5):.1f}">'
        f"<title>{escape(title)}</title></rect>"
    )


def _svg(body: str, caption: str, height: float = HEIGHT) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height + 16:g}" width="{WIDTH}" '
        f'height="{height + 16:g}" style="max-width:100%">{body}<text x="0" y="{height + 12:g}" font-size="11" '
        f'fill="currentColor">{escape(caption)}</text></svg>'
    )


def time_text(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def bytes_text(count: int) -> str:
    return (
        f"{count} B" if count < 1024 else f"{count / 1024:.1f} KiB" if count < 1 << 20 else f"{count / 2**20:.1f} MiB"
    )


def count_text(number: int) -> str:
    """Operations, in words."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.1f} {unit}"
    return str(number)
