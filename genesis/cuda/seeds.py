"""Random numbers on GPUs: those of the CPU's stream, so that one seed gives the same numbers everywhere.

There is one default generator for all devices. These functions are PyTorch's names for its; without a GPU they do
nothing, as there.
"""

from __future__ import annotations

from typing import Any

from genesis.core.graph import generator
from genesis.core.graph.tensor import Tensor
from genesis.cuda.runtime import connection
from genesis.cuda.runtime.devices import device_at, index_of


def manual_seed(seed: int) -> None:
    """Begin the stream of a seed, where there is a GPU."""
    if connection.available():
        generator.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """The same: all devices draw from one stream."""
    manual_seed(seed)


def seed() -> None:
    """Begin a stream that nobody can guess, where there is a GPU."""
    if connection.available():
        generator.seed()


def seed_all() -> None:
    """The same: all devices draw from one stream."""
    seed()


def initial_seed() -> int:
    """The seed of the stream."""
    device_at()
    return generator.initial_seed()


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The state of the stream, for `set_rng_state`.

    Raises:
        RuntimeError: there is no such GPU
    """
    device_at(index_of(device))
    return generator.get_rng_state()


def get_rng_state_all() -> list[Tensor]:
    """The state of the stream, for each device."""
    return [get_rng_state(index) for index in range(connection.driver().count() if connection.available() else 0)]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Put the stream back into a state, where there is a GPU."""
    if connection.available():
        generator.set_rng_state(new_state)


def set_rng_state_all(new_states: list[Tensor]) -> None:
    """Put the stream back into a state: that of the last one."""
    for state in new_states[-1:]:
        set_rng_state(state)


__all__ = [
    "get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all",
    "set_rng_state", "set_rng_state_all",
]  # fmt: skip
