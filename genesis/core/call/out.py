"""out=: a result is put into memory that is there."""

from __future__ import annotations

import warnings

from genesis.arrays.memory import memory_of
from genesis.arrays.protocol import Virtual
from genesis.base import dtypes
from genesis.base.errors import (
    ArgumentError,
    DTypeError,
    GraphError,
    ShapeError,
    message,
)
from genesis.core.call.views import same_device
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.site import user_level
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import tracer


def write_out(name: str, result: Tensor, out: Tensor) -> Tensor:
    """Put a result into ``out=``, resized where its shape is another; the dtype must fit, and neither side may be
    recorded.
    """
    if not isinstance(out, Tensor):
        raise ArgumentError(message(name, f"out= must be a tensor, got {type(out).__name__}"))
    if grad_mode.get() and (result._node is not None or out._node is not None):
        raise GraphError(message(name, "out= does not support differentiation", hint="leave out= away, or use no_grad"))
    if not dtypes.can_cast(result.dtype, out.dtype):
        raise DTypeError(message(name, f"the result {result.dtype} cannot be cast to out's {out.dtype}"))
    same_device(name, out, result, "out is on {}, the result on {}")
    if tuple(out._array.shape) != tuple(result._array.shape):
        _resize(name, out, tuple(result._array.shape))
    out.copy_(result)
    return out


def _resize(name: str, out: Tensor, shape: tuple[int, ...]) -> None:
    """Other memory for ``out``: an empty tensor takes any shape, another with a warning, as in PyTorch."""
    if out._view is not None or isinstance(out._array, Virtual) or tracer.get() is not None:
        raise ShapeError(
            message(
                name,
                f"out has shape {list(out.shape)}, the result {list(shape)}",
                hint="a tensor of that shape, or an empty one",
            )
        )
    if out._array.size:
        text = message(
            name,
            f"out of shape {list(out.shape)} is resized to {list(shape)}, which is deprecated",
            hint="out.resize_(0), or a tensor of that shape",
        )
        warnings.warn(text, UserWarning, stacklevel=user_level())
    out._array = memory_of(out._array).empty(shape, out._array.dtype, out.device)
