"""Modules whose parameters are not initialised."""

from __future__ import annotations

import inspect
from typing import Any

from genesis.base.errors import ArgumentError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.modes import no_grad
from genesis.nn.module import Module
from genesis.ops.creation.create import empty_like


def skip_init(module_cls: type, *args: Any, **kwargs: Any) -> Any:
    """A module with parameters and buffers of any values, for those that are loaded anyway.

    Raises:
        TypeError: no class of modules, or one that takes no ``device``

    >>> from genesis import nn
    >>> nn.utils.skip_init(nn.Linear, 3, 2).weight.shape
    genesis.Size([2, 3])
    """
    if not isinstance(module_cls, type) or not issubclass(module_cls, Module):
        raise ArgumentError(message("skip_init", f"expected a class of modules, got {module_cls!r}"))
    if "device" not in inspect.signature(module_cls).parameters:
        raise ArgumentError(message("skip_init", f"{module_cls.__name__} takes no device"))
    device = kwargs.pop("device", None)
    module = module_cls(*args, **kwargs, device="meta")
    with no_grad():
        return module._apply(lambda x: empty_like(x, device="cpu" if device is None else device))


explain_all(globals())
