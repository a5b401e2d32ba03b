"""Totals of events, and their table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.base.errors import ArgumentValueError, message
from genesis.base.text import for_stream
from genesis.profiler.events import Event


class Average:
    """How often something ran, and how long: totals and means in microseconds, as PyTorch has them."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.key, self.count = events[0].name, len(events)
        self.input_shapes, self.stack = events[0].shapes, events[0].stack
        self.cpu_time_total = sum(event.cpu_time_total for event in events)
        self.self_cpu_time_total = sum(event.self_cpu_time_total for event in events)
        self.cpu_time = self.cpu_time_total / self.count
        self.cpu_memory_usage = self.self_cpu_memory_usage = sum(event.memory for event in events)

    def __repr__(self) -> str:
        return f"<{self.key}: {self.count} calls, {self.cpu_time_total:.0f} us>"


SORTS = (
    "cpu_time", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "count",
)  # fmt: skip


class Averages(list[Average]):
    """What `profile.key_averages` returns: a list that can be printed as a table."""

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all of it."""
        return sum(each.self_cpu_time_total for each in self)

    def total_average(self) -> float:
        """The mean time of an event."""
        return self.self_cpu_time_total / max(sum(each.count for each in self), 1)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        **options: Any,
    ) -> str:
        """The totals as text, in the order of a column: "self_cpu_time_total", "cpu_time_total", "cpu_time", "count",
        "cpu_memory_usage"; the last is shown where it was recorded.

        Raises:
            ValueError: no column of that name
        """
        if sort_by is not None and sort_by not in SORTS:
            text = f"sort_by must be one of {', '.join(SORTS)}, got {sort_by!r}"
            raise ArgumentValueError(message("table", text))
        rows = sorted(self, key=lambda e: -getattr(e, sort_by)) if sort_by is not None else list(self)
        rows = rows[:row_limit] if row_limit >= 0 else rows
        memory, shapes = any(e.cpu_memory_usage for e in self), any(e.input_shapes for e in self)
        titles = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls"]
        titles += ["CPU Mem"] * memory + ["Input Shapes"] * shapes
        whole = self.self_cpu_time_total or 1.0
        cells = [
            [
                e.key[:max_name_column_width], f"{e.self_cpu_time_total / whole:.2%}", _time(e.self_cpu_time_total),
                f"{e.cpu_time_total / whole:.2%}", _time(e.cpu_time_total), _time(e.cpu_time), str(e.count),
                *[_bytes(e.cpu_memory_usage)] * memory, *[str(e.input_shapes)[:max_shapes_column_width]] * shapes,
            ]
            for e in rows
        ]  # fmt: skip
        text = _columns([titles, *cells]) + f"\nSelf CPU time total: {_time(self.self_cpu_time_total)}"
        return for_stream(text if header is None else f"{header}\n{text}")

    def __str__(self) -> str:
        return self.table()


def _columns(rows: list[list[str]]) -> str:
    widths = [max([len(row[i]) for row in rows]) for i in range(len(rows[0]))]
    line = "  ".join("-" * width for width in widths)
    body = [
        "  ".join([row[0].ljust(widths[0]), *[c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)]])
        for row in rows
    ]
    return "\n".join([line, body[0], line, *body[1:], line])


def _time(microseconds: float) -> str:
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3f}s"
    return f"{microseconds / 1e3:.3f}ms" if microseconds >= 1e3 else f"{microseconds:.3f}us"


def _bytes(count: int) -> str:
    for unit, size in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if count >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} B"
