"""What each rank does when: a schedule is a list of actions for each rank, and nothing else.

The lists say in which order a rank computes. When it does follows from what it waits for: a forward for that of the stage
before, a backward for its own forward and for the backward of the stage after it. `timetable` lets all ranks run by these
rules, each action taking one unit of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from genesis.base.errors import ArgumentValueError, message


class Action(NamedTuple):
    """One computation: ``F`` forward or ``B`` backward, of a stage for a microbatch.

    >>> Action(2, "F", 0)
    2F0
    """

    stage: int
    kind: str
    microbatch: int

    def __repr__(self) -> str:
        return f"{self.stage}{self.kind}{self.microbatch}"


def each(kind: str, stages: Sequence[int], microbatches: Sequence[int]) -> list[Action]:
    """A stage after the other, all microbatches in each."""
    return [Action(stage, kind, m) for stage in stages for m in microbatches]


def in_rounds(kind: str, stages: Sequence[int], count: int, per_round: int) -> list[Action]:
    """Some microbatches in all stages, then the next ones."""
    rounds = [range(begin, begin + per_round) for begin in range(0, count, per_round)]
    return [action for microbatches in rounds for action in each(kind, stages, microbatches)]


def one_forward_one_backward(forwards: Sequence[Action], backwards: Sequence[Action], ahead: int) -> list[Action]:
    """So many forwards, then one of each in turn, then the backwards that are left.

    >>> one_forward_one_backward(each("F", [0], range(3)), each("B", [0], range(3)), 1)
    [0F0, 0F1, 0B0, 0F2, 0B1, 0B2]
    """
    pairs = zip(forwards[ahead:], backwards, strict=False)
    return [
        *forwards[:ahead],
        *[action for pair in pairs for action in pair],
        *backwards[max(len(forwards) - ahead, 0) :],
    ]


def needs(action: Action, last: int) -> list[Action]:
    """What an action waits for, of stages from 0 to ``last``."""
    stage, kind, m = action
    if kind == "F":
        return [Action(stage - 1, "F", m)] if stage else []
    return [Action(stage, "F", m), *([Action(stage + 1, "B", m)] if stage < last else [])]


def timetable(orders: Sequence[Sequence[Action]], last: int) -> list[list[Action | None]]:
    """For each rank what it does in each unit of time, None where it waits.

    Raises:
        ValueError: ranks wait for each other

    >>> timetable([[Action(0, "F", 0), Action(0, "B", 0)], [Action(1, "F", 0), Action(1, "B", 0)]], 1)
    [[0F0, None, None, 0B0], [None, 1F0, 1B0, None]]
    """
    done: set[Action] = set()
    rows: list[list[Action | None]] = [[] for _ in orders]
    at = [0] * len(orders)
    while any([i < len(order) for i, order in zip(at, orders, strict=True)]):
        following = [order[i] if i < len(order) else None for i, order in zip(at, orders, strict=True)]
        now = [a if a is not None and done.issuperset(needs(a, last)) else None for a in following]
        if not any(now):
            stuck = [a for a in following if a is not None]
            raise ArgumentValueError(message("timetable", f"ranks wait for each other, before {stuck}"))
        for rank, action in enumerate(now):
            rows[rank].append(action)
            at[rank] += action is not None
        done |= {action for action in now if action is not None}
    return rows


def drawn(rows: Sequence[Sequence[Action | None]], one_stage: bool) -> str:
    """A timetable as text, a line for each rank; dots are where it waits. ``one_stage``: ranks have one, which is not said."""
    text = [["." if a is None else f"{a.kind}{a.microbatch}" if one_stage else str(a) for a in row] for row in rows]
    wide = max([len(cell) for row in text for cell in row], default=1)
    return "\n".join(
        [f"rank {rank}  " + " ".join([cell.ljust(wide) for cell in row]).rstrip() for rank, row in enumerate(text)]
    )
