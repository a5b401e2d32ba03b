"""Modules on several devices of one process, of which there is one here: the CPU."""

from __future__ import annotations

from typing import Any

from genesis.base.errors import ArgumentError, message
from genesis.core.call.refusal import explain_all
from genesis.nn.module import Module


class DataParallel(Module):
    """A module as it is, under the name ``module``, whatever devices are named: without GPUs PyTorch's does nothing else.

    >>> import genesis
    >>> model = genesis.nn.DataParallel(genesis.nn.Linear(2, 3))
    >>> model(genesis.ones(2)).shape, list(model.state_dict())
    (genesis.Size([3]), ['module.weight', 'module.bias'])
    """

    def __init__(self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        if not isinstance(module, Module):
            raise ArgumentError(message("DataParallel", f"expected a module, got {type(module).__name__}"))
        self.module, self.device_ids, self.output_device, self.dim = module, [], output_device, dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Any,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """What a module gives: `DataParallel`, once."""
    parallel = DataParallel(module, device_ids, output_device, dim)
    return parallel(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))


explain_all(globals())

__all__ = ["DataParallel", "data_parallel"]
