"""What is set up once, at a first call, as the state of an optimizer: the trace of that call makes it, and the call uses it, or
does not get there.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import forget_begun


class Begun:
    """A dictionary that a trace has filled, the one that it is in, and what it holds as long as no call has used it."""

    __slots__ = ("_held", "state", "states")

    def __init__(self, state: MutableMapping[str, Any], states: MutableMapping[Any, Any]) -> None:
        self.state, self.states, self._held = state, states, _held(state)

    def forget_unused(self) -> bool:
        """Forget it if no call has used it; whether that was so."""
        unused = bool(self.state) and _held(self.state) == self._held
        if unused:
            forget_begun(self.state, self.states)
        return unused


def _held(state: MutableMapping[str, Any]) -> dict[str, Any]:
    """What a dictionary holds: numbers, and tensors as they are after the writes so far."""
    return {name: (id(x), x._write_count) if isinstance(x, Tensor) else x for name, x in state.items()}
