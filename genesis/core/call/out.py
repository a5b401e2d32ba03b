"""out=: a result is put into memory that is there."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

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
from genesis.core.call.generated import defined, generated, passed
from genesis.core.call.writes import same_device
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.site import user_level
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import tracer


def write_out(name: str, result: Any, out: Any) -> Any:
    """Put a result into ``out=``, resized where its shape is another; the dtype must fit, and neither side may be
    recorded.
    """
    if isinstance(result, tuple):
        return _write_all(name, result, out)
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


def _write_all(name: str, results: tuple[Any, ...], out: Any) -> Any:
    """`write_out` of several results; they come back under the names that they have."""
    if not isinstance(out, list | tuple) or len(out) != len(results):
        raise ArgumentError(message(name, f"out= must be {len(results)} tensors, got {type(out).__name__}"))
    written = [write_out(name, result, target) for result, target in zip(results, out, strict=True)]
    return type(results)(*written) if hasattr(results, "_fields") else tuple(written)


def takes_out(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function that is no op a keyword ``out``."""
    scope: dict[str, Any] = {"function": function, "write_out": write_out, "name": function.__name__}

    def source() -> str:
        parameters = inspect.signature(function).parameters.values()
        parts = defined(parameters, scope)
        at = len(parts) - any([p.kind is p.VAR_KEYWORD for p in parameters])
        parts.insert(at, "out=None" if any([part.startswith("*") for part in parts[:at]]) else "*, out=None")
        body = f"    result = function({passed(parameters)})\n    return result if out is None else write_out(name, result, out)\n"
        return f"def call({', '.join(parts)}):\n{body}"

    call = generated(source, function.__name__, f"<genesis {function.__name__}>", scope)
    call.__doc__, call.__module__ = function.__doc__, function.__module__
    call.__annotations__ = function.__annotations__  # what wrong arguments are explained from
    return call


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
