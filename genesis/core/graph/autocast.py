"""The open autocast region of a thread: which precision ops compute in, see `genesis.amp`; `core/call/casts.py` casts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from genesis.core.graph.switches import ACTIVE

if TYPE_CHECKING:
    from genesis.core.graph.tensor import Tensor


class Autocast(NamedTuple):
    """An open autocast region: the low precision, the parameters already cast in it, and the type of the devices it is
    for.
    """

    dtype: np.dtype[Any]
    cache: dict[Any, tuple[Tensor, Tensor]] | None
    device: str = "cpu"


# False: turned off; None: the default
current: ContextVar[Autocast | bool | None] = ContextVar("genesis_autocast", default=None)
default: list[Autocast] = []  # what `genesis.enable_autocast = True` puts here


def state() -> Autocast | None:
    """The open region, or None."""
    mode = current.get()
    if mode is None:
        return default[0] if default else None
    return mode if isinstance(mode, Autocast) else None


@contextmanager
def restored(mode: Autocast | None) -> Iterator[None]:
    """Open a region again that `state` told of (None: no autocast)."""
    token = current.set(False if mode is None else mode)
    if mode is not None:
        ACTIVE.append(mode)
    try:
        yield
    finally:
        if mode is not None:
            ACTIVE.pop()
        current.reset(token)
