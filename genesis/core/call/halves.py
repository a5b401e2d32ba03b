"""16-bit floats: what takes several steps is computed in float32 and rounded once, forward and backward.

- A composite that says ``halves="wide"`` gets its 16-bit operands as float32, by recorded conversions, and its results
  are rounded to what the operands promote to, or with ``"input"`` to the dtype of the first (`in_float32`). A device's
  fused kernel is asked first, with the operands as they are; it takes them only if it computes so, too. Between the
  two everything is float32: what is recorded and saved, tangents, samples and traces; a gradient is rounded where it
  leaves towards an operand.
- A primitive's kernel widens by itself. Its gradient rule may take several steps, too: the node of a 16-bit result
  (``op.half_node``, see `core/call/op.py`) gives it its gradient and what was saved as float32 (`HalfNode`), and the
  engine rounds what comes out to the operand's dtype. Forward mode does the same (`core/layers/duals.py`). A rule that
  gives numbers as it got them, or zeros, as that of `relu`, says ``halves="exact"`` and gets 16-bit floats as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.arrays.memory import DeviceArray
from genesis.base import dtypes
from genesis.base.device import CPU
from genesis.core.graph import autocast
from genesis.core.graph.node import Node
from genesis.core.graph.tensor import Tensor

if TYPE_CHECKING:
    from genesis.core.call.op import Op

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
HALVES = (np.dtype(np.float16), dtypes.as_np("bfloat16"))


def wide(value: Any) -> Any:
    """16-bit floating tensors as float32, in lists and tuples, too; anything else as it is."""
    if isinstance(value, Tensor):
        return value.to(F32) if value._array.dtype in HALVES else value
    if value.__class__ is list or value.__class__ is tuple:
        return value.__class__([wide(item) for item in value])
    return value


class HalfNode(Node):
    """A node with a 16-bit result: its rules get float32, and the engine rounds what they give.

    Gradients of products are products: those of a device get their operands as they are, its kernels sum in float32.
    What two rules ask for is converted once, so that what a second backward sends to it meets before it is rounded.
    """

    __slots__ = ()

    def _pull(self, g: Any) -> Sequence[Any]:
        as_they_are = self.op.kind == "contraction" and isinstance(g._array, DeviceArray)
        if self.op.halves == "exact" and g._array.__class__ is not np.ndarray:  # NumPy would widen, with more copies
            as_they_are = True
        if as_they_are and g._array.dtype in HALVES:
            return super()._pull(g)
        saved, g = [wide(value) for value in self._unpack()], wide(g)
        if self.op.variadic:
            fn, picks = self.rules[0]  # type: ignore[misc]
            return fn(g, *[saved[i] for i in picks])  # type: ignore[no-any-return]
        pairs = zip(self.rules, self._edges, strict=True)
        return [
            None if rule is None or edge is None else rule.fn(g, *[saved[i] for i in rule.picks])
            for rule, edge in pairs
        ]


def in_float32(
    op: Op, function: Callable[..., Any], args: tuple[Any, ...], fused: Callable[..., Any] | None = None
) -> Any:
    """A composite on 16-bit operands: its kernel or the function on float32 ones, its results rounded."""
    names = list(op.signature.parameters)
    tensors = [
        t for a in args for t in (a if isinstance(a, list | tuple) else (a,)) if isinstance(t, Tensor) and _floating(t)
    ]
    if not any([t._array.dtype in HALVES for t in tensors]):  # integers of 16 bits
        return called(op, function, args)
    if op.halves == "alike" and any([t._array.dtype is not tensors[0]._array.dtype for t in tensors]):
        return called(op, function, args)  # products refuse mixed dtypes
    if fused is not None and tensors[0].device != CPU:
        given = fused(*args)  # kernels of devices may take them as they are
        if given is not NotImplemented:
            return given
    kind = tensors[0]._array.dtype if op.halves == "input" else dtypes.result_np_dtype([t._array for t in tensors])
    dtype = args[names.index("dtype")] if "dtype" in names else None
    once: dict[int, Any] = {}  # an operand given twice is converted once, so that its gradient is rounded once
    operands = tuple([a if name in op.written else _widened(a, once) for name, a in zip(names, args, strict=True)])
    out = NotImplemented if fused is None else fused(*operands)
    if out is NotImplemented:
        # the operands have the precision that autocast wants
        with nullcontext() if autocast.state() is None else autocast.restored(None):
            out = called(op, function, operands)
    return out if dtype is not None or kind not in HALVES else _rounded(out, kind)


def _floating(t: Tensor) -> bool:
    return t._array.dtype.kind in "fc" or t._array.dtype in HALVES


def called(op: Op, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    positional: list[Any] = []
    keywords = {}
    for p, a in zip(op.signature.parameters.values(), args, strict=True):
        if p.kind is p.KEYWORD_ONLY:
            keywords[p.name] = a
        elif p.kind is p.VAR_POSITIONAL:
            positional.extend(a)
        else:
            positional.append(a)
    return function(*positional, **keywords)


def _widened(value: Any, once: dict[int, Any]) -> Any:
    if isinstance(value, Tensor):
        if id(value) not in once:
            once[id(value)] = wide(value)
        return once[id(value)]
    if value.__class__ is list or value.__class__ is tuple:
        return value.__class__([_widened(item, once) for item in value])
    return value


def _rounded(value: Any, dtype: Any) -> Any:
    if isinstance(value, Tensor):
        return value.to(dtype) if value._array.dtype is F32 else value
    if isinstance(value, tuple):
        parts = [_rounded(item, dtype) for item in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value
