"""Composites: functions of other ops. Everything about them is derived from those; a fused kernel may be attached
(`core/call/kernels.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from genesis.core.call import inplace_methods, operands, writes
from genesis.core.call.casts import as_autocast, on_its_own
from genesis.core.call.generated import LateSignature, passed
from genesis.core.call.halves import in_float32
from genesis.core.call.kind import Kind
from genesis.core.call.op import Op, attach_methods, public_function, register
from genesis.core.call.out import write_out
from genesis.core.graph import autocast
from genesis.core.graph.switches import ACTIVE
from genesis.core.graph.tensor import Tensor


class Composite(Kind):
    """Functions of other ops."""

    composed = True


COMPOSITE = Composite("composite")


def composite(
    *,
    method: bool = True,
    inplace: bool = False,
    out: bool = False,
    operators: Iterable[str] = (),
    dtypes: str = "f",
    **options: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a function of other ops: everything about it is derived from them.

    The function itself is what users call, so its signature and documentation are theirs. (Where autocast is to cast
    all of its arguments, a step before it looks whether a mode is open.) With ``inplace=True`` there is an in-place
    form; a parameter ``inplace`` of the function asks for it, and never reaches the function. One that computes, and
    does not only move elements, says ``halves="wide"``: 16-bit floats are then computed in float32 and rounded once, see
    `core/call/halves.py`. With ``out=True`` there is a keyword ``out``: the tensor, or tuple of them, for the results.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        op = Op(function.__name__, COMPOSITE, LateSignature(lambda: function), function, dtypes=dtypes, **options)
        op.kernel = op.call = call = function
        names: dict[str, Any] = {
            "fused": None,
            "cast": operands.autocast_arguments,
            "alone": on_its_own,
            "widest": as_autocast,
            "off": autocast.restored,
            "ACTIVE": ACTIVE,
            "function": function,
            "Tensor": Tensor,
            "in_float32": in_float32,
        }
        op.call = call = _in_front_of(function, op, lambda: _steps(op), names)
        if out:
            names |= {"write_out": write_out, "computed": call}
            op.call = call = _in_front_of(function, op, lambda: _write_out(op) + _steps(op), names, "out=None")
        if inplace and "inplace" in op.names:
            names |= {"write": writes.inplace, "name": op.name + "_", "computed": call}
            op.call = call = _in_front_of(function, op, lambda: _write_inplace(op) + _steps(op), names)
        call.op = op  # type: ignore[attr-defined]
        if method:
            attach_methods(op, call, operators, inplace_methods.inplace_method(op) if inplace else None)
        register(op, function.__module__)
        return call

    return declare


def _in_front_of(
    function: Callable[..., Any], op: Op, body: Callable[[], str], names: Mapping[str, Any], extra: str = ""
) -> Callable[..., Any]:
    """The public function of a composite, with the steps before it."""
    call = public_function(op, body, names, extra)
    call.__qualname__, call.__module__, call.__wrapped__ = op.name, function.__module__, function  # type: ignore[attr-defined]
    return call


def _write_out(op: Op) -> str:
    given = passed(op.signature.parameters.values())
    return f"    if out is not None: return write_out(_op.name, computed({given}), out)\n"


def _write_inplace(op: Op) -> str:
    first, *others = [name for name in op.signature.parameters if name != "inplace"]
    return f"    if inplace: return write(name, computed, {first}, ({', '.join([*others, ''])}), {{}})\n"


def _steps(op: Op) -> str:
    """The call of a composite's function, and what comes before: what autocast does, the look for 16-bit operands (60 ns
    each), the fused kernel.
    """
    parameters = op.signature.parameters.values()
    body = _under_autocast(op)
    if op.halves:
        size = "isinstance({0}, Tensor) and {0}._array.dtype.itemsize == 2"
        looks = [
            f"any([{size.format('x')} for x in {p.name}])" if p.kind is p.VAR_POSITIONAL else size.format(p.name)
            for p in parameters
            if p.name != "out" and ("Tensor" in str(p.annotation) or p.kind is p.VAR_POSITIONAL)
        ]
        body += f"    if {' or '.join(looks)}: return in_float32(_op, function, ARGS, fused)\n"
    body += "    if fused is not None:\n        r = fused(*ARGS)\n        if r is not NotImplemented: return r\n"
    return body + f"    return function({passed(parameters)})\n"


def _under_autocast(op: Op) -> str:
    """Casts, which products of two operands leave to the ops that they are made of; or the call without autocast."""
    parameters, body = op.signature.parameters.values(), ""
    tensors = [str(p.annotation) for p in parameters if "Tensor" in str(p.annotation)]
    many = op.halves or len(tensors) > 2 or any(["Sequence" in text for text in tensors])
    names = f"{', '.join(op.signature.parameters)},"
    if "own" in op.autocast:
        body += f"    if ACTIVE and alone(_op):\n        {names} = widest('promote', *ARGS)\n"
        body += f"        with off(None): return _op.call({passed(parameters)})\n"
    if "float32" in op.autocast or ("low" in op.autocast and many):
        body += f"    if ACTIVE: {names} = cast(_op, ARGS)\n"
    return body
