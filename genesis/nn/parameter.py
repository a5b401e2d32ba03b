"""Tensors that belong to a module; they live in the core, because files hold them, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from genesis.base.errors import ArgumentError, message
from genesis.core.graph.parameter import Buffer, Parameter

__all__ = ["Buffer", "Parameter", "factory_kwargs"]


def factory_kwargs(kwargs: Any) -> dict[str, Any]:
    """Of a layer's arguments ``device``, ``dtype`` and ``memory_format``, those that are given; they may stand in
    ``factory_kwargs``, too.

    Raises:
        TypeError: there are others

    >>> import genesis
    >>> genesis.nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": genesis.float64}})
    {'dtype': genesis.float64, 'device': 'cpu'}
    """
    if kwargs is None:
        return {}
    if not isinstance(kwargs, Mapping):
        raise ArgumentError(message("factory_kwargs", f"expected a dictionary, got {type(kwargs).__name__}"))
    factory = dict(kwargs.get("factory_kwargs", {}))
    for name, value in kwargs.items():
        if name not in ("device", "dtype", "memory_format", "factory_kwargs"):
            raise ArgumentError(message("factory_kwargs", f"unexpected argument {name!r}"))
        if name in factory:
            raise ArgumentError(message("factory_kwargs", f"{name!r} is given twice"))
        if name != "factory_kwargs":
            factory[name] = value
    return factory
