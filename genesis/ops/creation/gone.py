"""Methods that PyTorch has and that only say why they do nothing: of devices that are not there, and of its first years."""

from __future__ import annotations

from typing import Any

from genesis.base.errors import DeviceError, GraphError, message
from genesis.core.graph.tensor import Tensor

_REMOVED = {
    "eig": "genesis.linalg.eig", "symeig": "genesis.linalg.eigh", "lstsq": "genesis.linalg.lstsq",
    "solve": "genesis.linalg.solve", "reinforce": "log_prob(sample) * reward of a distribution as the loss",
}  # fmt: skip


def removed(name: str) -> Any:
    """A function that PyTorch removed, and that raises there, too."""

    def gone(*args: Any, **kwargs: Any) -> Any:
        raise GraphError(message(name, "this function was removed from PyTorch", hint=_REMOVED.get(name, "")))

    gone.__name__ = gone.__qualname__ = name
    gone.__doc__ = "Refused: PyTorch removed it."
    return gone


def _elsewhere(name: str) -> Any:
    def method(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
        raise DeviceError(message(name, "there is no such device here", hint="x.cpu()"))

    method.__name__ = method.__qualname__ = name
    method.__doc__ = "Refused: there is no such device."
    return method


def _module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What `Module.load_state_dict` puts in the place of this parameter when it swaps tensors."""
    return other if assign else self.copy_(other).detach()  # type: ignore[attr-defined, no-any-return]


for _name in _REMOVED:
    setattr(Tensor, _name, removed(_name))
for _name in ("xpu", "ipu", "mtia"):
    setattr(Tensor, _name, _elsewhere(_name))
Tensor.module_load = _module_load
Tensor.grad_dtype = property(lambda self: self.dtype if self.is_floating_point() or self.is_complex() else None)

__all__: list[str] = []
