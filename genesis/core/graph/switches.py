"""The process-wide switches of the call path: is anything open, in any thread, that needs the longer way?

Each is a list (one `OVERRIDES`, a dictionary) that is empty unless something of its kind is open somewhere; looking at
one costs 5 ns. What is open in *this* thread or task is in a context variable beside the code that opens it. So nobody
reads the
entries: who opens something appends one, who closes it pops one, each a single step that other threads cannot divide.
An entry too many would make calls slower, never wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# a mode in which ops take their general form: inference, autocast, traces, overrides, ...
ACTIVE: list[object] = []
# those of them that only look on, as a profile does: kernels of composites run as they do without
ONLOOKERS: list[object] = []
# of these, those that are told of the phases of compiled steps: (what it computes, its chunks, a function that runs it)
PHASES: list[Callable[[str, int, Callable[[], Any]], None]] = []
# ... and of the messages between processes: (what it is, its name, when it began and ended in microseconds)
TRANSFERS: list[Callable[[str, str, float, float], None]] = []
PACKING: list[object] = []  # hooks on saved tensors: `core/graph/saved.py`
LEVELS: list[object] = []  # a transform: `core/graph/levels.py`
ESCAPES: list[object] = []  # a watch for values that leave the recorded world: `core/graph/escapes.py`
# a block without recording in which nothing with history was used yet, or a watch for what is: `core/graph/lost.py`
HISTORY_WATCHES: list[object] = []
# users' functions instead of ops, by the op's name, the last one counts: `core/call/overrides.py`
OVERRIDES: dict[str, tuple[Callable[..., Any], ...]] = {}
