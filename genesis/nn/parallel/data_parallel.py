"""Modules on several GPUs of one process.

The batch is divided among the devices, each of which has its part computed by a replica: the same module with copies of its
parameters. Copies are recorded, so all gradients come together in the parameters of the first device.
"""

from __future__ import annotations

from typing import Any

from genesis.autograd.func.stateless import functional_call
from genesis.base.device import device, memory_named, names_device
from genesis.base.errors import ArgumentError, DeviceError, message
from genesis.core.call.refusal import explain_all
from genesis.nn.module import Module
from genesis.nn.parallel.scattering import gather, scatter


class DataParallel(Module):
    """A module, under the name ``module``, that several GPUs compute, each for a part of the batch; where there is no GPU, the
    module as it is. One process for each GPU is faster: `DistributedDataParallel`.

    Args:
        device_ids: which GPUs; None: all. The module's parameters are on the first of them
        output_device: where results are; None: on the first
        dim: along which arguments are divided, and results joined

    >>> import genesis
    >>> model = genesis.nn.DataParallel(genesis.nn.Linear(2, 3))
    >>> model(genesis.ones(4, 2)).shape, list(model.state_dict())
    (genesis.Size([4, 3]), ['module.weight', 'module.bias'])
    """

    def __init__(self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        if not isinstance(module, Module):
            raise ArgumentError(message("DataParallel", f"expected a module, got {type(module).__name__}"))
        memory = memory_named("cuda")
        count = 0 if memory is None else memory.count()
        asked = list(range(count)) if device_ids is None else list(device_ids)
        self.module, self.dim = module, dim
        self.device_ids = [_index(each) for each in asked] if count else []
        if not self.device_ids:
            self.output_device = output_device
            return
        self.output_device = self.device_ids[0] if output_device is None else _index(output_device)
        if len(self.device_ids) == 1:
            module.to(device("cuda", self.device_ids[0]))

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module gives.

        Raises:
            RuntimeError: a parameter of the module is not on the first device
        """
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        devices = [device("cuda", i) for i in self.device_ids]
        self._check(devices[0])
        parts = list(zip(scatter(inputs, devices, self.dim), scatter(kwargs, devices, self.dim), strict=False))
        outs = [self._part(at, i, *given) for i, (at, given) in enumerate(zip(devices, parts, strict=False))]
        return gather(outs, device("cuda", self.output_device), self.dim) if len(devices) > 1 else outs[0]

    def _part(self, at: device, number: int, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the replica on a device gives; that of the first one is the module itself, whose buffers are written to."""
        if not number:
            return self.module(*inputs, **kwargs)
        named = {**dict(self.module.named_parameters()), **dict(self.module.named_buffers())}
        return functional_call(self.module, {name: x.to(at) for name, x in named.items()}, tuple(inputs), kwargs)

    def _check(self, first: device) -> None:
        for name, x in (*self.module.named_parameters(), *self.module.named_buffers()):
            if x.device != first:
                text = f"{name} is on {x.device}, and the first of device_ids is {first}"
                raise DeviceError(message("DataParallel", text, hint=f"module.to('{first}')"))


def _index(named: Any) -> int:
    """The number of a GPU."""
    given = device(named) if names_device(named) else None
    if given is None or given.type != "cuda" or given.index is None:
        raise ArgumentError(message("DataParallel", f"expected the number of a GPU, got {named!r}"))
    return given.index


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
