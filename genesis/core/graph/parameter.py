"""Tensors that belong to a module."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.base.errors import ArgumentError, message
from genesis.core.graph.switches import ACTIVE
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import tracer
from genesis.core.graph.version import INFERENCE


class Parameter(Tensor):
    """A tensor that a module learns: assigned to a module's attribute, it appears in ``parameters()``.

    Shares memory with ``data`` and requires grad unless told otherwise.

    Raises:
        TypeError: ``data`` is not a tensor

    >>> import genesis
    >>> genesis.nn.Parameter(genesis.zeros(2))
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    """

    __slots__ = ()

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        if data is None:
            data = Tensor([])
        if not isinstance(data, Tensor):
            raise ArgumentError(
                message("Parameter", f"expected a tensor, got {type(data).__name__}", hint="genesis.tensor(...)")
            )
        if not isinstance(requires_grad, int | np.bool_):
            raise ArgumentError(
                message("Parameter", f"requires_grad must be True or False, got {type(requires_grad).__name__}")
            )
        active = tracer.get() if ACTIVE else None
        _shares_memory(self, data)
        if active is not None:
            self._array = active.aliased(data)
        if data._layout is not None:  # a rank's part of a tensor: it is such a part of the parameter
            data._become(self)  # type: ignore[attr-defined]
        if requires_grad:
            self.requires_grad_()

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor):
    """A tensor that is part of a module's state but not learned.

    >>> import genesis
    >>> m = genesis.nn.Module(); m.count = genesis.nn.Buffer(genesis.zeros(1)); list(m.state_dict())
    ['count']
    """

    __slots__ = ()

    def __init__(self, data: Any = None, *, persistent: bool = True) -> None:
        if data is not None and not isinstance(data, Tensor):
            raise ArgumentError(
                message("Buffer", f"expected a tensor, got {type(data).__name__}", hint="genesis.tensor(...)")
            )
        _shares_memory(self, Tensor([]) if data is None else data)
        self.persistent = persistent


def _shares_memory(x: Tensor, data: Tensor) -> None:
    """Make a new tensor one on the memory of another: a write to either is one to both."""
    counter = data._shared_counter()  # first: a gradient that others may read gets memory of its own
    x._array, x._counter = data._array, None if counter is INFERENCE else counter
    x._node = x._view = None
