"""The in-place methods of ops, ``x.add_(y)``, and the operators ``x += y``.

While nothing is recorded, that of a ufunc writes straight into the tensor's memory; the others, and whatever does not
fit, go to `inplace` (`core/call/writes.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray, memory_of
from genesis.base.errors import ArgumentError, message
from genesis.base.quiet import unnamed
from genesis.core.call.generated import defined, generated
from genesis.core.call.op import Op
from genesis.core.call.operands import KNOWN
from genesis.core.call.writes import bump, inplace
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.node import Node, recorded
from genesis.core.graph.switches import ACTIVE
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.version import INFERENCE, SHARED


class StepBackward(Node):
    """A value on which what it was computed from has no influence, as far as derivatives go: all of that gets zeros."""

    __slots__ = ()
    op_name = "step"

    def _pull(self, g: Any) -> Any:
        return tuple([None if edge is None else g.new_zeros(edge._shape) for edge in self._edges])


def stepwise(op: Op) -> Callable[..., Tensor]:
    """``Tensor.eq_``: the answers as numbers, recorded as a function that is constant between its steps."""
    name = op.name + "_"

    def compared(old: Tensor, other: Any) -> Tensor:
        result: Tensor = op.call(old, other)
        if not old.dtype.is_floating_point and not old.dtype.is_complex:
            return result
        result = result.to(old._array.dtype)
        edges = tuple([x._node if isinstance(x, Tensor) else None for x in (old, other)])
        if grad_mode.get() and any([edge is not None for edge in edges]):
            result._node = recorded(StepBackward, edges, result._array)
        return result

    def method(self: Tensor, other: Any) -> Tensor:
        return inplace(name, compared, self, (other,), {})

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"In-place form of `{op.name}`: writes the result into this tensor and returns it."
    return method


def inplace_operator(op: Op, method: Callable[..., Any]) -> Callable[..., Any]:
    """``x += y``: Python asks the other side where its class is not known."""

    def operator(self: Tensor, other: Any) -> Any:
        return method(self, other) if isinstance(other, KNOWN) else NotImplemented

    operator.__name__ = operator.__qualname__ = op.name + "_"
    return operator


def inplace_method(op: Op, name: str | None = None) -> Callable[..., Tensor]:
    """``Tensor.op_``: without recording the kernel writes straight into the tensor's memory."""
    name, kernel = name or op.name + "_", op.kernel
    direct = op.kind.aligned and isinstance(kernel, np.ufunc) and op.result == "same"
    method = _direct_method(op, name, kernel) if direct and kernel.nin == 2 else _composed_method(op, name)  # type: ignore[attr-defined]
    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"In-place form of `{op.name}`: writes the result into this tensor and returns it."
    return method


def _expect_tensor(name: str, target: Any) -> None:
    """Refuse something else as what is written to, which the function ``relu_(x)`` can be given."""
    if not isinstance(target, Tensor):
        raise ArgumentError(message(name, f"expected a tensor to write to, got {type(target).__name__}")) from None


def _composed_method(op: Op, name: str) -> Callable[..., Tensor]:
    """With the parameters of the function, but for ``out`` and ``inplace``."""
    scope: dict[str, Any] = {"inplace": inplace, "expect_tensor": _expect_tensor, "op": op, "name": name}
    return generated(lambda: _composed_source(op, scope), name, f"<genesis in-place {op.name}>", scope)


def _composed_source(op: Op, scope: dict[str, Any]) -> str:
    parameters = [p for n, p in op.signature.parameters.items() if n not in ("out", "inplace")]
    written = defined(parameters, scope)
    given = [
        ("*" if p.kind is p.VAR_POSITIONAL else "") + p.name
        for p in parameters
        if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)
    ]
    named = [
        f"**{p.name}" if p.kind is p.VAR_KEYWORD else f"{p.name!r}: {p.name}"
        for p in parameters
        if p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD)
    ]
    first, *others = given
    call = f"inplace(name, op.call, {first}, ({''.join(o + ', ' for o in others)}), {{{', '.join(named)}}})"
    return f"def call({', '.join(written)}):\n    try:\n        return {call}\n    except AttributeError:\n        expect_tensor(name, {first})\n        raise\n"


def _direct_method(op: Op, name: str, kernel: Any) -> Callable[..., Tensor]:
    ndarray, scales = np.ndarray, op.name in ("add", "sub")
    kinds_of_int = {"add": "fiu", "sub": "fiu", "mul": "fiu", "div": "f"}.get(op.name, "")  # an int is what they are
    kinds_of_arrays = kinds_of_int or "f"

    def rebind(attached: Any) -> None:
        nonlocal kernel
        # only these write into memory that they are given
        kernel = attached if isinstance(attached, np.ufunc) else None

    op.shortcuts.append(rebind)

    def general(x: Tensor, other: Any, alpha: Any) -> Tensor:
        return inplace(name, op.call, x, (other,), {} if alpha is None else {"alpha": alpha})

    def method(self: Tensor, other: Any, *, alpha: Any = None) -> Tensor:
        x = self._array
        y, edge = (other._array, other._node) if isinstance(other, Tensor) else (other, None)
        if alpha is not None:
            if not scales:
                raise TypeError(f"{name}() got an unexpected keyword argument 'alpha'")
            if alpha.__class__ is not float or y.__class__ is not ndarray or ACTIVE:
                return general(self, other, alpha)
        if ACTIVE or x.__class__ is not ndarray or self._counter is INFERENCE or kernel is None:
            if alpha is None and _updated(op, self, y, edge):
                bump(self, name)
                return self
            return general(self, other, alpha)
        # to be recorded, or a view of what may be: else a third of the time
        if (edge is not None or self._node is not None or self._view is not None) and grad_mode.get():
            return general(self, other, alpha)
        if y.__class__ is ndarray:
            if (
                y.dtype is not x.dtype
                or x.dtype.kind not in kinds_of_arrays
                or (alpha is not None and x.dtype.itemsize == 2)
            ):
                return general(self, other, alpha)
        elif x.dtype.kind not in ("f" if y.__class__ is float else kinds_of_int if y.__class__ is int else ""):
            return general(self, other, alpha)
        if self._counter is SHARED:
            self._own_memory()
            x = self._array
        try:
            kernel(x, y if alpha is None else y * alpha, out=x)
        except (ValueError, TypeError, OverflowError):
            return general(self, other, alpha)
        # where they are errors: raised after the loop, which has written to x
        except (RuntimeWarning, FloatingPointError):
            if _number_overflows(kernel, x, y):
                return inplace(name, op.call, self, (other,), {})
        bump(self, name)
        return self

    return unnamed(method)  # type: ignore[no-any-return]


def _updated(op: Op, self: Tensor, y: Any, edge: Any) -> bool:
    """Let the device write into a tensor's memory, where nothing is recorded and nobody else has it; whether it did."""
    x = self._array
    if ACTIVE or not isinstance(x, DeviceArray) or self._counter is INFERENCE or self._counter is SHARED:
        return False
    if (edge is not None or self._node is not None or self._view is not None) and grad_mode.get():
        return False
    return memory_of(x).update(op, x, y)


def _number_overflows(kernel: Any, x: Any, y: Any) -> bool:
    """Whether a ufunc refuses the number ``y`` in the dtype of ``x``, which it does before its loop."""
    try:
        kernel(np.empty(0, x.dtype), y if y.__class__ is float else np.empty(0, x.dtype))
    except (RuntimeWarning, FloatingPointError):
        return True
    return False
