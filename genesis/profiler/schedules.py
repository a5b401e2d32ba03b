"""Which steps are recorded."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from genesis.base.errors import ArgumentValueError, message


class ProfilerAction(Enum):
    """What a schedule asks for at a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Which steps are recorded: after ``skip_first`` steps, cycles of ``wait``, ``warmup`` and ``active`` steps, ``repeat``
    of them or (0) without end. With ``skip_first_wait`` the first cycle does not wait.

    Raises:
        ValueError: no active step, or a negative number

    >>> from genesis.profiler import schedule
    >>> [schedule(wait=1, warmup=1, active=2)(step).name for step in range(4)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE']
    """
    if active < 1 or min(wait, warmup, repeat, skip_first) < 0:
        text = (
            f"needs active steps and no negative numbers, got {wait=}, {warmup=}, {active=}, {repeat=}, {skip_first=}"
        )
        raise ArgumentValueError(message("schedule", text))
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        index = step - skip_first + (wait if skip_first_wait else 0)
        if step < skip_first or (repeat and index // length >= repeat):
            return ProfilerAction.NONE
        index %= length
        if index < wait:
            return ProfilerAction.NONE
        if index < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if index == length - 1 else ProfilerAction.RECORD

    return action
