"""The recorded graph from outside: what nodes save (`saved_tensors_hooks`, `save_on_cpu`) and what they are (`Node`)."""

from __future__ import annotations

from genesis.core.node import Node
from genesis.core.saved import disable_saved_tensors_hooks, saved_tensors_hooks


class save_on_cpu(saved_tensors_hooks):
    """Context manager: what is saved for backward is kept in the memory of the CPU, and brought back when it is needed.

    Args:
        pin_memory: keep it in memory that a GPU copies from faster (of no effect while there is no GPU)
        device_type: accepted for PyTorch's sake

    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> with genesis.autograd.graph.save_on_cpu():
    ...     y = x.exp().sum()
    >>> y.backward(); x.grad
    tensor([2.7183, 2.7183])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda t: (t.device, t.to("cpu")), lambda packed: packed[1].to(packed[0]))


__all__ = ["Node", "disable_saved_tensors_hooks", "save_on_cpu", "saved_tensors_hooks"]
