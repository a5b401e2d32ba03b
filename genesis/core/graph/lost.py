"""The lines of a user's program at which values with history left the graph, and the backwards that freed one.

They are noted as they happen, one note for each line of the program, so that an error or `genesis.autograd.explain` can
say where a gradient was lost. A note holds no tensor and no graph.
"""

from __future__ import annotations

import itertools
import sys
import weakref
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from types import CodeType, FrameType
from typing import Any, NamedTuple

from genesis.core.graph.site import LIBRARY, Site, site_of, user_site
from genesis.core.graph.switches import HISTORY_WATCHES as HISTORY_WATCHES

LIMIT = 64  # lines of the program

Position = tuple[CodeType | None, int]
# what it was, in the block that was opened where, and of which node; the newest last
_cuts: dict[Position, tuple[str, Position | None, weakref.ref[Any]]] = {}
BLOCKS = [0]  # how many no_grad blocks a program has opened


# An open block without recording, which waits for the first use of something with history: what opened it, where, what
# was open before, and a list that is not empty while it waits. (A tuple: a class of its own would cost 0.2 us.)
Block = tuple[str, Position, Any, list[bool]]


class Reads:
    """The edges of tensors with history that a forward uses, apart from those it may: its arguments', and those of nodes
    whose numbers are from ``start``, which it made itself, in a graph of its own.
    """

    __slots__ = ("allowed", "outer", "reads", "start")

    def __init__(self, allowed: set[Any], start: int) -> None:
        self.allowed, self.start = allowed, start
        self.reads: dict[Any, Any] = {}

    def __enter__(self) -> dict[Any, Any]:
        self.outer = _innermost.get()
        HISTORY_WATCHES.append(self)
        _innermost.set(self)
        return self.reads

    def __exit__(self, *_: object) -> None:
        _innermost.set(self.outer)
        HISTORY_WATCHES.pop()


_innermost: ContextVar[Block | Reads | None] = ContextVar("genesis_history_watches", default=None)

# the last backwards, by the number that the nodes they freed have; in plain lists, so that nothing is allocated for one
_KEPT = 512
_next_number = itertools.count(-11, -1).__next__  # small negative epochs have other meanings
_numbers: list[int] = [0] * _KEPT
_codes: list[CodeType | None] = [None] * _KEPT
_positions: list[int] = [-1] * _KEPT


class Cut(NamedTuple):
    """A line at which a value with history gave one without."""

    what: str  # detach(), no_grad, a conversion to int64, ...
    where: Site | None
    node: Any  # where the value came from, while that is alive

    def __str__(self) -> str:
        name = "" if self.node is None else f" of {_described(self.node)}"
        return f"{self.what}{name}, {self.where}"


def _described(node: Any) -> str:
    if node.is_leaf:
        return f"a leaf of shape {list(node._shape)}"
    site = node.where()
    return f"the {type(node).__name__} of shape {list(node._shape)}" + (
        f" from line {site.line}" if site is not None else ""
    )


def note(what: str, edge: Any, frame: FrameType | None, block: Position | None = None) -> None:
    """A value from ``edge`` left the graph in (or above) this frame, in a block that was opened at ``block``."""
    position = user_site(frame)
    if position[0] is None:
        return
    with suppress(KeyError, RuntimeError, StopIteration):  # another thread was at it
        _cuts.pop(position, None)
        _cuts[position] = (what, block, weakref.ref(getattr(edge, "node", edge)))
        if len(_cuts) > LIMIT:
            del _cuts[next(iter(_cuts))]


def cuts() -> list[Cut]:
    """What was noted, the newest first."""
    return [
        Cut(what + _of_block(block), site_of(*position), ref())
        for position, (what, block, ref) in reversed(list(_cuts.items()))
    ]


def _of_block(position: Position | None) -> str:
    block = None if position is None else site_of(*position)
    return "" if block is None else f" (the block of {block.location})"


def forget_cuts() -> None:
    _cuts.clear()


# ---- no_grad


def block_opened(what: str, frame: FrameType | None) -> Block | None:
    """A mode that records nothing was switched on; by the library itself it is no cut."""
    if frame is None or (LIBRARY[frame.f_code.co_filename] and frame.f_code.co_name != "wrapped"):
        return None
    BLOCKS[0] += 1
    block = (what, user_site(frame), _innermost.get(), [True])
    HISTORY_WATCHES.append(block)
    _innermost.set(block)
    return block


def block_closed(block: Block | None) -> None:
    """What `block_opened` gave is over."""
    if block is not None:
        _settle(block)
        _innermost.set(block[2])


def _settle(block: Block) -> bool:
    """Let a block wait no longer; whether it did."""
    try:
        block[3].pop()  # one thread gets it, if several share a context
    except IndexError:
        return False
    HISTORY_WATCHES.pop()
    return True


def switched_on(what: str) -> None:
    """Recording was switched on for good: a block of this kind ends."""
    block = _innermost.get()
    if block.__class__ is tuple and block[0] == what:
        block_closed(block)


def history_used(*edges: Any) -> None:
    """Something with history is used in a mode that records nothing: the first time in a block it is noted."""
    entry = _innermost.get()
    while entry is not None:
        if isinstance(entry, Reads):
            for e in edges:
                if e is None:
                    continue
                node = getattr(e, "node", e)
                key = (node, e.index) if hasattr(e, "index") else e
                if key not in entry.allowed and node._number < entry.start:
                    entry.reads[key] = e
            return
        what, position, outer, _ = entry
        if _settle(entry):
            note(what, next(e for e in edges if e is not None), sys._getframe(2), position)
            return
        entry = outer


# ---- backwards


def number_of_run(frame: FrameType | None) -> int:
    """A number for a backward that starts now, by which `run_site` finds the line that called it."""
    number = _next_number()
    slot = number % _KEPT
    _numbers[slot] = number
    _codes[slot], _positions[slot] = user_site(frame)
    return number


def run_site(number: int) -> Site | None:
    """Where the backward of this number was called, if it is one of the last ones."""
    slot = number % _KEPT
    return site_of(_codes[slot], _positions[slot]) if _numbers[slot] == number else None


def recent_lines(limit: int = 3) -> Iterator[tuple[str, object]]:
    """For an error: where history was last cut."""
    for cut in cuts()[:limit]:
        yield "history was last cut by", cut
