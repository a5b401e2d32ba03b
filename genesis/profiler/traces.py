"""Files of what was recorded: traces for Perfetto and chrome://tracing, lines for flame graphs."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from typing import Any

from genesis.profiler.events import Event


def write_chrome_trace(path: str | os.PathLike[str], events: Sequence[Event], metadata: dict[str, Any]) -> None:
    """A trace file; gzipped if the name ends in ``.gz``."""
    data = json.dumps({"schemaVersion": 1, **metadata, "displayTimeUnit": "ms", "traceEvents": _entries(events)})
    name = os.fspath(path)
    with gzip.open(name, "wt", encoding="utf-8") if name.endswith(".gz") else open(name, "w", encoding="utf-8") as file:
        file.write(data)


def write_stacks(path: str | os.PathLike[str], events: Sequence[Event], metric: str) -> None:
    """Lines ``line;name microseconds``."""
    with open(path, "w", encoding="utf-8") as file:
        for event in events:
            if event.stack:
                line = ";".join([*event.stack, event.name]).replace(" ", "_")
                file.write(f"{line} {int(getattr(event, metric))}\n")


def _entries(events: Sequence[Event]) -> list[dict[str, Any]]:
    pid = os.getpid()
    out: list[dict[str, Any]] = [{"name": "process_name", "ph": "M", "pid": pid, "tid": 0, "args": {"name": "python"}}]
    for thread in dict.fromkeys(event.thread for event in events):
        out.append({"name": "thread_name", "ph": "M", "pid": pid, "tid": thread, "args": {"name": f"thread {thread}"}})
    forward = {e.sequence_nr: e for e in events if e.category == "cpu_op" and e.sequence_nr >= 0}
    for event in events:
        whole = {"ph": "X", "name": event.name, "cat": "cpu_op" if event.category == "backward" else event.category}
        where = {"pid": pid, "tid": event.thread, "ts": event.start}
        out.append({**whole, **where, "dur": event.cpu_time_total, "args": _arguments(event)})
        source = forward.get(event.sequence_nr) if event.category == "backward" else None
        if source is not None:
            flow = {"name": "fwdbwd", "cat": "fwdbwd", "id": event.sequence_nr, "pid": pid}
            out.append({**flow, "ph": "s", "tid": source.thread, "ts": source.start})
            out.append({**flow, "ph": "f", "bp": "e", "tid": event.thread, "ts": event.start})
    return out


def _arguments(event: Event) -> dict[str, Any]:
    values = {"Sequence number": event.sequence_nr, "Input Dims": event.shapes, "Call stack": "; ".join(event.stack)}
    values["Threads"] = event.threads or -1
    return {key: value for key, value in values.items() if value not in (-1, [], "")}
