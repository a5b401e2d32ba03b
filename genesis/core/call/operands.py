"""What the arguments of a call become before it is computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.protocol import Layer
from genesis.arrays.spec import Spec
from genesis.base.errors import ArgumentError, message
from genesis.core.call.casts import cast_for, policy_in
from genesis.core.call.halves import F32
from genesis.core.call.op import Op
from genesis.core.graph import autocast
from genesis.core.graph.boundary import all_in_one, lift_all
from genesis.core.graph.levels import check_at_home
from genesis.core.graph.modes import ACTIVE
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import tracer

KNOWN = (Tensor, int, float, complex, np.generic, np.ndarray)  # what operators compute with


def scalar_of(op: Op, value: Any) -> Any:
    if isinstance(value, np.generic):  # np.float64 is a float, but NumPy would not treat it as a plain number
        return value.item()
    if value is None or isinstance(value, bool | int | float | complex):
        return value
    if isinstance(value, np.ndarray):
        return value
    raise unknown_operand(op, value)


def unknown_operand(op: Op, value: Any) -> ArgumentError:
    text = message(
        op.name, f"expected a tensor or a number, got {type(value).__name__}", hint="genesis.tensor(...) makes one"
    )
    return ArgumentError(text)


def lifted(op: Op, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
    """The arguments, and the array whose class interprets the op, if any; operands with history join its transform."""
    tensors = args[0] if op.variadic else args if op.plain else [args[i] for i in op.tensors]
    top = None
    for x in tensors:
        if isinstance(x, Tensor) and x._array.__class__ is not np.ndarray:
            top = _outer(top, x._array)
    if not isinstance(top, Layer):
        return args, top if not ACTIVE or tracer.get() is None else tracing_tensors(tensors)
    check_at_home(top, op.name)
    if all_in_one(top, tensors) or not any([isinstance(x, Tensor) and x._node is not None for x in tensors]):
        return args, top
    operands = lift_all(list(tensors))
    if op.variadic:
        return (operands, *args[1:]), top
    changed = list(args)
    for i, x in zip(op.tensors, operands, strict=True):
        changed[i] = x
    return tuple(changed), top


def tracing_tensors(tensors: Any) -> Any:
    """While a trace is made it records every op; the tensors are inputs of the graph."""
    active = tracer.get()
    for x in tensors:
        if isinstance(x, Tensor):
            active.capture(x)
    return active.marker


def _outer(top: Any, array: Any) -> Any:
    if array.__class__ is Spec or (
        isinstance(top, Layer) and (not isinstance(array, Layer) or array.level <= top.level)
    ):
        return top
    return array


def array_of(op: Op, x: Any) -> Any:
    if isinstance(x, Tensor):
        return x._array
    if x is None:
        return None
    raise ArgumentError(
        message(op.name, f"expected a tensor, got {type(x).__name__}", hint="wrap it in genesis.tensor(...)")
    )


def autocast_arguments(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments in the precision that autocast gives the op, where it is on."""
    mode = autocast.state()
    if mode is None:
        return args
    policy = policy_in(mode, op.autocast)
    if policy not in ("low", "float32"):
        return args
    given, args = args, cast_for(policy, args, mode)
    # the result's dtype was worked out from the tensor as it came
    if policy == "float32" and "dtype" in op.signature.parameters:
        index = list(op.signature.parameters).index("dtype")
        if isinstance(given[0], Tensor) and given[index] == given[0]._array.dtype and args[0] is not given[0]:
            args = (*args[:index], F32, *args[index + 1 :])
    return args
