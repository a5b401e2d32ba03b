"""A picture of one step of several ranks: when each computed, when its elements were on their way, when it waited."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from genesis.base.late import Late
from genesis.profiler.events import Event

_processes = Late("genesis.distributed")
Span = tuple[float, float]
# what a span is, by the category of its events; and which of a rank's two lanes it is in
KINDS = {
    "cpu_op": "forward",
    "kernel": "forward",
    "backward": "backward",
    "waiting": "waiting",
    "communication": "transfers",
}
COLOURS = {"forward": "#3566c8", "backward": "#c8553d", "waiting": "#c9ced8", "transfers": "#2f8f5b"}
_LEFT, _WIDTH, _LANE, _GAP, _TOP = 64.0, 900.0, 16.0, 12.0, 14.0
_JOINED = 1 / 800  # of the whole time: spans that are closer look like one


def export_ranks(done: Any, path: str | os.PathLike[str], group: Any = None) -> None:
    """Write an SVG of what a profile recorded in each rank; all ranks call it, the first one writes.

    Above, what the program did: ops of forward, nodes of backward, waiting for other ranks. Below, the transfers that were
    on their way. Where they lie below backward, communication is hidden behind it. Clocks are compared by a barrier.

    Args:
        done: a profile that has ended, of one step best
        path: the file
        group: the ranks; all of them by default

    >>> import genesis, tempfile, genesis.distributed as dist
    >>> from genesis.profiler import profile
    >>> dist.init_process_group()
    >>> with profile() as p:
    ...     dist.all_reduce(genesis.ones(3))
    >>> path = tempfile.mkdtemp() + "/step.svg"
    >>> export_ranks(p, path); Path(path).read_text()[:4]
    '<svg'
    >>> dist.destroy_process_group()
    """
    size = _processes.get_world_size(group)
    _processes.barrier(group)
    now = time.perf_counter_ns() / 1e3
    of_all: list[Any] = [None] * size
    _processes.all_gather_object(of_all, spans_of(done.events(), now), group)
    if _processes.get_rank(group) == 0:
        Path(path).write_text(picture(of_all), encoding="utf-8")


def spans_of(events: Sequence[Event], now: float) -> dict[str, list[Span]]:
    """The spans of each kind in microseconds before ``now``; those inside of others, and side by side, are one."""
    kinds: dict[str, list[Span]] = {kind: [] for kind in COLOURS}
    for event in events:
        if event.category in KINDS:
            kinds[KINDS[event.category]].append((event.start - now, event.stop - now))
    times = [time for spans in kinds.values() for span in spans for time in span]
    least = (max(times) - min(times)) * _JOINED if times else 0.0
    return {kind: _joined(spans, least) for kind, spans in kinds.items()}


def _joined(spans: Sequence[Span], least: float) -> list[Span]:
    out: list[Span] = []
    for begin, end in sorted(spans):
        if out and begin - out[-1][1] <= least:
            out[-1] = out[-1][0], max(out[-1][1], end)
        else:
            out.append((begin, end))
    return out


def picture(of_all: Sequence[dict[str, list[Span]]]) -> str:
    """The SVG of the spans of all ranks.

    >>> picture([{"forward": [(0.0, 10.0)], "transfers": [(5.0, 8.0)]}]).count("<rect")
    6
    """
    times = [time for rank in of_all for spans in rank.values() for span in spans for time in span] or [0.0, 1.0]
    begin, whole = min(times), max(max(times) - min(times), 1e-3)
    scale = (_WIDTH - _LEFT - 10) / whole
    height = _TOP + len(of_all) * (2 * _LANE + _GAP) + 50
    parts = []
    for number, rank in enumerate(of_all):
        top = _TOP + number * (2 * _LANE + _GAP)
        parts.append(f'<text x="{_LEFT - 8}" y="{top + _LANE + 4}" text-anchor="end">rank {number}</text>')
        for kind, spans in rank.items():
            y = top + _LANE * (kind == "transfers")
            for first, last in spans:
                x, width = _LEFT + (first - begin) * scale, max((last - first) * scale, 0.5)
                what = f"{kind}, {(last - first) / 1e3:.2f} ms"
                parts.append(
                    f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_LANE - 1:.0f}" fill="{COLOURS[kind]}">'
                    f"<title>{escape(what)}</title></rect>"
                )
    parts += _axis(whole, scale, height - 38)
    for number, (kind, colour) in enumerate(COLOURS.items()):
        x = _LEFT + 120 * number
        parts.append(f'<rect x="{x}" y="{height - 14}" width="12" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{x + 18}" y="{height - 5}">{kind}</text>')
    return (
        f'<svg viewBox="0 0 {_WIDTH:g} {height:g}" role="img" xmlns="http://www.w3.org/2000/svg" '
        f'style="max-width:{_WIDTH:g}px"><title>One step of {len(of_all)} ranks</title>'
        f"<style>text{{font:12px system-ui,sans-serif;fill:#556}}</style>{''.join(parts)}</svg>"
    )


def _axis(whole: float, scale: float, y: float) -> list[str]:
    """Times in milliseconds, at round numbers."""
    step = next(base * 10.0**power for power in range(-1, 9) for base in (1, 2, 5) if whole / (base * 10.0**power) <= 8)
    parts = [f'<line x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{y}" y2="{y}" stroke="#99a"/>']
    for number in range(int(whole / step) + 1):
        x = _LEFT + number * step * scale
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + 4}" stroke="#99a"/>')
        parts.append(f'<text x="{x:.1f}" y="{y + 16}" text-anchor="middle">{number * step / 1e3:g} ms</text>')
    return parts
