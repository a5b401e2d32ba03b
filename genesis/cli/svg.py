"""Pictures as inline SVG: line charts, image grids, confusion matrices. Colours come from the page's CSS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np


class Series(NamedTuple):
    """A line of a chart; points that are not finite are left out."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


# colours for a picture that stands alone
STYLE = """text{font:11px sans-serif;fill:#444}.grid{stroke:#ddd}.bar{stroke:#888;stroke-dasharray:5 4}
.line{fill:none;stroke-width:1.6}.line.c0{stroke:#2166ac}.line.c1{stroke:#d6604d}.line.c2{stroke:#4d9221}
.line.c3{stroke:#8073ac}.key.c0{fill:#2166ac}.key.c1{fill:#d6604d}.key.c2{fill:#4d9221}.key.c3{fill:#8073ac}
.ink{fill:#123}.paper,.cell{fill:#fff;stroke:#ddd}.right{fill:#4d9221}.wrong{fill:#d6604d}"""


def standalone(svg: str) -> str:
    """A picture of this file with colours of its own, for a file by itself.

    >>> standalone(line_chart([Series("a", [0, 1], [0, 1])], "a line", "x", "y")).count("<style>")
    1
    """
    return svg.replace("</title>", f"</title><style>{STYLE}</style>", 1)


def _svg(width: float, height: float, title: str, body: str) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" xmlns="http://www.w3.org/2000/svg" '
        f'style="max-width:{width:g}px">'
        f"<title>{escape(title)}</title>{body}</svg>"
    )


def _text(x: float, y: float, text: str, kind: str = "label", anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'


def _ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers from low to high."""
    span = high - low or abs(high) or 1.0
    step = 10 ** math.floor(math.log10(span / count))
    step *= next(m for m in (1, 2, 5, 10) if span / (step * m) <= count)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 10) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def line_chart(series: Sequence[Series], title: str, x_label: str, y_label: str, bar: float | None = None) -> str:
    """Lines over a common axis, with a dashed line at ``bar``."""
    width, height, left, right, top, bottom = 460.0, 260.0, 52.0, 14.0, 14.0, 58.0
    points = [
        (s, [(x, y) for x, y in zip(s.x, s.y, strict=True) if math.isfinite(x) and math.isfinite(y)]) for s in series
    ]
    xs, ys = [x for _, p in points for x, _ in p] or [0.0, 1.0], [y for _, p in points for _, y in p] or [0.0, 1.0]
    ys = ys + ([bar] if bar is not None else [])
    x0, x1, y0, y1 = min(xs), max(xs), min(ys), max(ys)
    x1, y1 = x1 if x1 > x0 else x0 + 1, y1 if y1 > y0 else y0 + 1
    y0, y1 = y0 - 0.04 * (y1 - y0), y1 + 0.04 * (y1 - y0)
    px = lambda x: left + (x - x0) / (x1 - x0) * (width - left - right)  # noqa: E731
    py = lambda y: top + (y1 - y) / (y1 - y0) * (height - top - bottom)  # noqa: E731
    parts = []
    for t in _ticks(y0, y1):
        parts += [
            f'<line class="grid" x1="{left}" x2="{width - right}" y1="{py(t):.1f}" y2="{py(t):.1f}"/>',
            _text(left - 6, py(t) + 4, f"{t:g}", anchor="end"),
        ]
    parts += [_text(px(t), height - bottom + 16, f"{t:g}") for t in _ticks(x0, x1)]
    parts += [
        _text((left + width - right) / 2, height - bottom + 32, x_label, "axis"),
        f'<g transform="rotate(-90)">{_text(-(top + height - bottom) / 2, 13, y_label, "axis")}</g>',
    ]
    if bar is not None:
        parts.append(f'<line class="bar" x1="{left}" x2="{width - right}" y1="{py(bar):.1f}" y2="{py(bar):.1f}"/>')
    for i, (s, p) in enumerate(points):
        if p:
            path = " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in p)
            parts.append(f'<polyline class="line c{i % 4}" points="{path}"/>')
        parts += [
            f'<rect class="key c{i % 4}" x="{left + 120 * i}" y="{height - 14}" width="12" height="4"/>',
            _text(left + 120 * i + 18, height - 8, s.name, anchor="start"),
        ]
    return _svg(width, height, title, "".join(parts))


def image_grid(images: np.ndarray[Any, Any], title: str, captions: Sequence[str] = (), columns: int = 10) -> str:
    """Small greyscale pictures in rows, each with a caption below; as large in every grid of so many columns."""
    n, height, width = images.shape
    pixel, gap, below = 4.0, 8.0, 14.0 if captions else 0.0
    rows = -(-n // columns) if n else 1
    step_x, step_y = width * pixel + gap, height * pixel + gap + below
    parts = []
    for i, image in enumerate(images):
        x0, y0 = gap + (i % columns) * step_x, gap + (i // columns) * step_y
        parts.append(
            f'<rect class="paper" x="{x0 - 1}" y="{y0 - 1}" width="{width * pixel + 2}" height="{height * pixel + 2}"/>'
        )
        for y, x in zip(*np.nonzero(image > 0.03), strict=True):
            ink = float(np.clip(image[y, x], 0, 1))
            parts.append(
                f'<rect class="ink" x="{x0 + x * pixel:g}" y="{y0 + y * pixel:g}" width="{pixel:g}" '
                f'height="{pixel:g}" opacity="{ink:.2f}"/>'
            )
        if captions:
            parts.append(_text(x0 + width * pixel / 2, y0 + height * pixel + 11, captions[i]))
    return _svg(columns * step_x + gap, rows * step_y + gap, title, "".join(parts))


def confusion_matrix(counts: np.ndarray[Any, Any], labels: Sequence[str], title: str) -> str:
    """How often each class (row) was read as each class (column)."""
    n, cell, margin = len(labels), 30.0, 44.0
    size = margin + n * cell + 8
    highest = max(1, int(counts.max())) if counts.size else 1
    parts = [
        _text(margin + n * cell / 2, 13, "read as", "axis"),
        f'<g transform="rotate(-90)">{_text(-(margin + n * cell / 2), 13, "written", "axis")}</g>',
    ]
    for i, label in enumerate(labels):
        parts += [
            _text(margin + (i + 0.5) * cell, margin - 8, label),
            _text(margin - 10, margin + (i + 0.62) * cell, label),
        ]
        for j in range(n):
            count = int(counts[i, j])
            kind = "right" if i == j else "wrong"
            strength = 0.15 + 0.75 * count / highest if count else 0.0
            strength = max(strength, 0.45) if count and i != j else strength
            x, y = margin + j * cell, margin + i * cell
            parts.append(f'<rect class="cell" x="{x}" y="{y}" width="{cell}" height="{cell}"/>')
            if count:
                parts += [
                    f'<rect class="{kind}" x="{x}" y="{y}" width="{cell}" height="{cell}" opacity="{strength:.2f}"/>',
                    _text(x + cell / 2, y + cell * 0.63, str(count), "count on" if i == j else "count"),
                ]
    return _svg(size, size, title, "".join(parts))
