"""Steps along sparse gradients: only the rows that a gradient names are read and written."""

from __future__ import annotations

from typing import Any

from genesis.base.errors import UnsupportedError, message


def moved(average: Any, at: Any, values: Any, share: float) -> Any:
    """The rows of a running average, moved towards these values by a share of the way, in place."""
    before = average[at]
    average[at] = after = before + (values - before) * share
    return after.clone()


def step_down(param: Any, g: Any, rate: Any) -> None:
    """``param += rate * g`` of a sparse ``g``, at its coordinates."""
    g = g.coalesce()
    at = tuple(g.indices())
    if g.values().numel():
        param[at] = param[at] + g.values() * rate


def refuse_option(name: str, option: str) -> None:
    """An option that sparse gradients do not go with."""
    raise UnsupportedError(
        message(name, f"{option} is not compatible with sparse gradients", hint=f"leave {option} out")
    )
