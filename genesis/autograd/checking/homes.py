"""Functions of tensors on devices, checked from the host: there numbers are changed a little, and compared."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from genesis.base.pytree import tree_flatten, tree_map, tree_unflatten
from genesis.core.graph.tensor import Tensor


def from_the_host(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function, which computes where it did, of arguments with tensors of the CPU in the place of those on devices."""
    leaves, structure = tree_flatten(args)
    homes = [x.device if isinstance(x, Tensor) and x.device.type not in ("cpu", "meta") else None for x in leaves]
    if not any([home is not None for home in homes]):
        return function, args

    @functools.wraps(function)
    def moved(*values: Any) -> Any:
        given = zip(tree_flatten(values)[0], homes, strict=True)
        there = tree_unflatten([v if home is None else v.to(home) for v, home in given], structure)
        return tree_map(_on_the_cpu, function(*there))

    return moved, tuple(tree_map(_on_the_cpu_anew, list(args)))


def _on_the_cpu(x: Any) -> Any:
    return x.cpu() if isinstance(x, Tensor) else x


def _on_the_cpu_anew(x: Any) -> Any:
    if not isinstance(x, Tensor) or x.device.type in ("cpu", "meta"):
        return x
    return x.detach().cpu().requires_grad_(x.requires_grad)
