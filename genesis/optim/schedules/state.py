"""States of schedules: whether they fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from genesis.base.errors import ArgumentError, message
from genesis.core.graph.tracing import changes
from genesis.optim.state import StateDictError


def check_state(schedule: Any, state: Any) -> None:
    """Refuse a state that lacks, or has more than, what a schedule of this class is made of. Names with an underscore
    are PyTorch's own. It is about to be loaded.
    """
    changes(schedule, f"a state is loaded into a {type(schedule).__name__}")
    name = f"{type(schedule).__name__}.load_state_dict"
    if not isinstance(state, Mapping):
        raise ArgumentError(
            message(name, f"expected a mapping, got {type(state).__name__}", hint="scheduler.state_dict()")
        )
    mine = schedule.state_dict()
    problems = [
        f"{key}: expected {_kind(mine[key])}, got {state[key]!r}"
        for key in mine
        if key in state and None not in (mine[key], state[key]) and _kind(mine[key]) != _kind(state[key])
    ]
    if (
        "base_lrs" in mine
        and isinstance(state.get("base_lrs"), list)
        and len(state["base_lrs"]) != len(schedule.base_lrs)
    ):
        problems.append(
            f"base_lrs: {len(state['base_lrs'])} parameter groups in the state, {len(schedule.base_lrs)} in the "
            "optimizer"
        )
    for what, here, there in (("missing", mine, state), ("unexpected", state, mine)):
        keys = [str(key) for key in here if key not in there and not str(key).startswith("_") and key != "verbose"]
        problems += [f"{what}: {', '.join(keys)}"] if keys else []
    if problems:
        raise StateDictError(
            f"{name}: the state does not fit\n  "
            + "\n  ".join(problems)
            + "\n  try: the state of a schedule of the same class and options"
        )


def _kind(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return "a number" if number else "a list" if isinstance(value, list | tuple | Mapping) else type(value).__name__
