"""What operators are in versions of ONNX before 18, for which the lowerings are written: axes were attributes then, and
what did not exist is made of others.

A form takes what `Builder.node` was given, where the version is older than the one it is entered for; `Builder.emit`
writes an operator as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from genesis.onnx.builder import Builder

Form = Callable[..., Any]
FORMS: dict[str, tuple[int, Form]] = {}
INT64 = np.dtype(np.int64)


def before(opset: int, *names: str) -> Callable[[Form], Form]:
    """Enter a form of operators for versions before ``opset``."""

    def enter(form: Form) -> Form:
        FORMS.update(dict.fromkeys(names, (opset, form)))
        return form

    return enter


@before(13, "ReduceSum")
@before(18, "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL2", "ReduceLogSumExp")
def _reduced(b: Builder, op: str, x: Any, axes: str | None = None, *, keepdims: int, **_: Any) -> Any:
    dims = None if axes is None else b.numbers(axes)
    return b.emit("Identity", x) if dims == [] else b.emit(op, x, axes=dims, keepdims=keepdims)


@before(13, "Squeeze", "Unsqueeze")
def _axes(b: Builder, op: str, x: Any, axes: str) -> Any:
    return b.emit(op, x, axes=b.numbers(axes))


@before(13, "Resize")
def _resized(b: Builder, op: str, x: Any, roi: Any, scales: Any, sizes: Any = None, **attributes: Any) -> Any:
    """What was left out had to be there, empty."""
    nothing = b.constant([], np.dtype(np.float32))
    rest = () if sizes is None else (sizes,)
    return b.emit(op, x, nothing, nothing if scales is None else scales, *rest, **attributes)


@before(15, "Shape")
def _shape(b: Builder, op: str, x: Any, start: int | None = None) -> Any:
    whole = b.emit(op, x)
    return whole if start is None else b.slice(whole, 0, start, np.iinfo(np.int64).max)


@before(18, "ScatterND", "ScatterElements")
def _scattered(b: Builder, op: str, *inputs: Any, reduction: str = "none", **attributes: Any) -> Any:
    since, what = {"none": (0, ""), "add": (16, "adds"), "mul": (16, "multiplies")}.get(reduction, (18, "compares"))
    if b.opset < since:
        raise b.lacks(f"{op} that {what}", since)
    return b.emit(op, *inputs, **({"reduction": reduction} if b.opset >= 16 else {}), **attributes)


@before(12, "GreaterOrEqual", "LessOrEqual")
def _or_equal(b: Builder, op: str, x: Any, y: Any) -> Any:
    return b.node("Or", b.node(op.removesuffix("OrEqual"), x, y), b.node("Equal", x, y))


@before(12, "Celu")
def _celu(b: Builder, op: str, x: Any, alpha: float) -> Any:
    factor = b.constant(alpha, x.dtype)
    return b.node("Mul", b.node("Elu", b.node("Div", x, factor), alpha=1.0), factor)


@before(14, "HardSwish")
def _hardswish(b: Builder, op: str, x: Any) -> Any:
    return b.node("Mul", x, b.node("HardSigmoid", x, alpha=1 / 6, beta=0.5))


@before(18, "Mish")
def _mish(b: Builder, op: str, x: Any) -> Any:
    return b.node("Mul", x, b.node("Tanh", b.node("Softplus", x)))


@before(14, "Trilu")
def _triangle(b: Builder, op: str, x: Any, diagonal: str, upper: int) -> Any:
    zero, one = b.constant(0, INT64), b.constant(1, INT64)
    rows, columns = (b.node("Range", zero, b.extent(n), one) for n in x.shape[-2:])
    behind = b.node("Sub", columns, b.unsqueeze(rows, 1))
    kept = b.node("GreaterOrEqual" if upper else "LessOrEqual", behind, diagonal)
    return b.node("And", kept, x) if x.dtype.kind == "b" else b.node("Where", kept, x, b.constant(0, x.dtype))


@before(12, "Max", "Min")
def _extreme(b: Builder, op: str, x: Any, y: Any) -> Any:
    """Of integers by comparison."""
    if b.out is None or b.out.dtype.kind not in "iu":
        return b.emit(op, x, y)
    return b.node("Where", b.node("Greater" if op == "Max" else "Less", x, y), x, y)


@before(12, "Clip")
def _clip(b: Builder, op: str, x: Any, low: Any = None, high: Any = None) -> Any:
    x = x if low is None else b.node("Max", x, low)
    return x if high is None else b.node("Min", x, high)
