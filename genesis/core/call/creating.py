"""What every function that makes a tensor out of nothing takes: ``layout=``, ``pin_memory=``, ``requires_grad=``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from genesis.base.device import MEMORIES
from genesis.base.errors import ArgumentError, DeviceError, UnsupportedError, message
from genesis.base.layouts import strided
from genesis.core.call.generated import compiled, defined, generated, passed
from genesis.core.call.out import write_out


def expect_plain(name: str, layout: Any, pin_memory: Any) -> bool:
    """Refuse memory of another kind than there is; whether it is to be memory that a GPU copies from.

    Raises:
        TypeError: ``pin_memory`` is no bool
        NotImplementedError: a layout that is sparse
        RuntimeError: memory that a GPU copies from, and there is none
    """
    if layout is not None and layout is not strided:
        problem = f"tensors are made with layout={strided}, got {layout}"
        raise UnsupportedError(message(name, problem, hint=f"{name}(...).to_sparse()"))
    if pin_memory is not None and not isinstance(pin_memory, bool):
        raise ArgumentError(message(name, f"pin_memory must be a bool, got {type(pin_memory).__name__}"))
    if pin_memory and "cuda" not in MEMORIES:
        problem = "pin_memory=True, and there is no GPU that would copy from there"
        raise DeviceError(message(name, problem, hint="pin_memory=genesis.cuda.is_available()"))
    return bool(pin_memory)


def pinned(out: Any, requires_grad: bool) -> Any:
    """A tensor that was made just now, in memory that a GPU copies from."""
    return out.detach().pin_memory().requires_grad_(requires_grad)


def creates(function: Callable[..., Any] | None = None, *, out: bool = True) -> Any:
    """Give a function that makes a tensor the keywords ``layout``, ``pin_memory``, ``requires_grad`` and ``out``, as far as
    it has them not.
    """
    if function is None:
        return functools.partial(creates, out=out)
    name = function.__name__
    scope: dict[str, Any] = {
        "_make": function,
        "_expect": expect_plain,
        "_pinned": pinned,
        "_write": write_out,
        "_name": name,
    }

    def source() -> str:
        parameters = list(inspect.signature(compiled(function)).parameters.values())
        known = {p.name for p in parameters}
        parts = defined(parameters, scope)
        more = ["layout=None", "pin_memory=False", *([] if "requires_grad" in known else ["requires_grad=False"])]
        parts += [
            *([] if any([part.startswith("*") for part in parts]) else ["*"]),
            *more,
            *(["out=None"] if out else []),
        ]
        lines = [f"def call({', '.join(parts)}):", "    if layout is not None or pin_memory is not False: _expect(_name, layout, pin_memory)",
                 f"    result = _make({passed(parameters)})"]  # fmt: skip
        lines += ["    if pin_memory: result = _pinned(result, requires_grad)"]
        lines += [] if "requires_grad" in known else ["    if requires_grad: result.requires_grad_()"]
        lines += [f"    return {'result if out is None else _write(_name, result, out)' if out else 'result'}"]
        return "\n".join(lines) + "\n"

    call = generated(source, name, f"<genesis {name}>", scope)
    call.__doc__, call.__module__, call.__annotations__ = (
        function.__doc__,
        function.__module__,
        function.__annotations__,
    )
    return call
