"""Modules in other dtypes, on other devices and in shared memory: all parameters and buffers, in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from genesis.base import dtypes
from genesis.base.errors import ArgumentError, message
from genesis.base.layouts import FORMAT_DIMS, preserve_format
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import changes
from genesis.ops.creation.create import empty_like

if TYPE_CHECKING:
    from genesis.nn.module import Module


def destination(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The device, the dtype and the order of dimensions that arguments of ``to`` name, in any of its forms.

    >>> destination(("cpu", dtypes.float64), {})[:2]
    ('cpu', genesis.float64)
    """
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    for arg in args:
        if isinstance(arg, dtypes.dtype):
            dtype = arg
        elif isinstance(arg, Tensor):
            dtype, device = arg.dtype, arg.device
        elif arg is not None and not isinstance(arg, bool):
            device = arg
    return device, dtype, kwargs.get("memory_format", preserve_format)


class Conversions:
    """The part of `Module` that converts its tensors."""

    def to(self, *args: Any, **kwargs: Any) -> Module:
        """Convert floating parameters and buffers to a dtype, all of them to a device, and those of four (five)
        dimensions to ``memory_format=genesis.channels_last`` (``channels_last_3d``); in place, returns the module.
        """
        device, dtype, order = destination(args, kwargs)
        if dtype is not None and not (dtypes.as_dtype(dtype).is_floating_point or dtypes.as_dtype(dtype).is_complex):
            raise ArgumentError(message("Module.to", f"only floating or complex dtypes, got {dtypes.as_dtype(dtype)}"))

        def convert(t: Any) -> Any:
            kind = dtype if t.is_floating_point() or t.is_complex() else None
            return t.to(dtype=kind, device=device, memory_format=order if fits(t) else preserve_format)

        def fits(t: Any) -> bool:
            return t.ndim == FORMAT_DIMS.get(order, t.ndim)

        return self._apply(convert)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Module:
        if recurse:
            for module in self.children():
                module._apply(fn)  # a class of users may do more in its own
        with no_grad():
            for p in self._parameters.values():
                if p is not None:
                    g = p.grad
                    p.grad = None
                    p.data = fn(p.detach())
                    p.grad = None if g is None else fn(g.detach())
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    converted = fn(buffer)
                    if converted is not buffer:
                        changes(self, f"a buffer of a {type(self).__name__} is converted")
                    self._buffers[name] = converted
        return self

    def float(self) -> Module:
        return self.to(dtypes.float32)

    def double(self) -> Module:
        return self.to(dtypes.float64)

    def half(self) -> Module:
        return self.to(dtypes.float16)

    def bfloat16(self) -> Module:
        return self.to(dtypes.bfloat16)

    def cpu(self) -> Module:
        return self._apply(lambda t: t.to("cpu"))

    def cuda(self, device: Any = None) -> Module:
        return self._apply(lambda t: t.to("cuda" if device is None else device))

    def xpu(self, device: Any = None) -> Module:
        return self.to("xpu")

    def ipu(self, device: Any = None) -> Module:
        return self.to("ipu")

    def mtia(self, device: Any = None) -> Module:
        return self.to("mtia")

    def type(self, dst_type: Any) -> Module:
        """Convert all parameters and buffers to a dtype; in place, returns the module."""
        return self._apply(lambda t: t.type(dst_type))  # type: ignore[attr-defined]

    def to_empty(self, *, device: Any, recurse: bool = True) -> Module:
        """Move parameters and buffers to a device without their values; in place, returns the module.

        >>> import genesis
        >>> genesis.nn.Linear(2, 1, device="meta").to_empty(device="cpu").weight.device
        device(type='cpu')
        """
        return self._apply(lambda t: empty_like(t, device=device), recurse)  # type: ignore[arg-type]  # type: ignore[attr-defined]

    def share_memory(self) -> Module:
        """Put parameters and buffers into memory that processes share; in place, returns the module."""
        return self._apply(lambda t: t.share_memory_())  # type: ignore[attr-defined]
