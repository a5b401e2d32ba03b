"""Walking through the arguments and results of calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from genesis.core.graph.tensor import Tensor


def tensors_in(value: Any) -> Iterator[Tensor]:
    """All tensors in arguments or results, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)


def replace(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """Arguments with every tensor changed."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {k: replace(v, change) for k, v in value.items()}
    if isinstance(value, list | tuple):
        parts = [replace(v, change) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value
