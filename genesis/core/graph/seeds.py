"""Where a backward starts: the edge of a result, and the gradient that it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from genesis.base.errors import ArgumentError, DeviceError, GraphError, ShapeError, message
from genesis.core.graph.lost import recent_lines
from genesis.core.graph.node import Edge, Output
from genesis.core.graph.switches import ACTIVE
from genesis.core.graph.tracing import tracer

if TYPE_CHECKING:
    from genesis.core.graph.tensor import Tensor


def seed_for(output: Tensor, gradient: Tensor | None) -> Tensor:
    """The gradient to start from: one for a single element, else what the caller gave, checked."""
    array = output._array
    if gradient is None:
        if array.size != 1:
            raise GraphError(
                message(
                    "backward",
                    f"a gradient is created implicitly only for one element, the output has shape {list(array.shape)}",
                    hint="reduce it (y.sum().backward()) or pass gradient=... of the output's shape",
                )
            )
        if array.dtype.kind == "c":
            raise GraphError(
                message(
                    "backward",
                    f"a gradient is created implicitly only for a real output, it is {output.dtype}",
                    [("output", output._spec())],
                    "y.abs() or y.real, or pass gradient=... for one of the two derivatives",
                )
            )
        return output._ones(array.shape, array.dtype)
    if ACTIVE and tracer.get() is not None:
        tracer.get().capture(gradient)
    if tuple(gradient._array.shape) != tuple(array.shape):
        raise ShapeError(
            message(
                "backward",
                f"the gradient's shape {list(gradient._array.shape)} is not the output's, {list(array.shape)}",
                hint="pass a gradient of the output's shape",
            )
        )
    if gradient.device != output.device:
        raise DeviceError(message("backward", f"the gradient is on {gradient.device}, the output on {output.device}"))
    return gradient if gradient._array.dtype is array.dtype else gradient.to(array.dtype)


def edge_of(output: Tensor) -> Edge:
    """Where backward starts from a tensor; an error that says why when it has no history."""
    if output._node is not None:
        return output._node
    kind = output.dtype
    why = (
        f"its dtype {kind} cannot carry gradients"
        if not (kind.is_floating_point or kind.is_complex)
        else "it was made under no_grad, detached, or from tensors that do not require grad"
    )
    raise GraphError(
        message(
            "backward",
            f"the tensor does not require grad and has no grad_fn: {why}",
            operands=[("output", output._spec()), *recent_lines()],
            hint="call requires_grad_() on an input before computing the output, outside no_grad; "
            "genesis.autograd.explain(x, output) tells more",
        )
    )


def input_edge(x: Any, index: int, op: str) -> Any:
    """The edge of an input (a tensor, or a `GradientEdge`) that a gradient was asked for."""
    from genesis.core.graph.tensor import Tensor

    if not isinstance(x, Tensor):
        if hasattr(x, "output_nr") and hasattr(x, "node"):
            return x.node if x.node._outputs is None else Output(x.node, x.output_nr)
        raise ArgumentError(message(op, f"inputs[{index}] is not a tensor but {type(x).__name__}"))
    if x._node is None:
        raise GraphError(
            message(op, f"inputs[{index}] does not require grad", operands=[(f"inputs[{index}]", x._spec())],
                    hint="call requires_grad_() on it before computing the output")
        )  # fmt: skip
    return x._node


def inputs_of_backward(inputs: Any) -> list[Any]:
    """The edges of the tensors (one, several, or those of a dictionary) that a backward shall accumulate into; those
    that are no leaves retain their gradient from now on.
    """
    from genesis.core.graph.tensor import Tensor

    wanted = [inputs] if isinstance(inputs, Tensor) else list(inputs.values() if hasattr(inputs, "values") else inputs)
    edges = [input_edge(x, i, "backward") for i, x in enumerate(wanted)]
    for x in wanted:
        if isinstance(x, Tensor):
            x.retain_grad()
    return edges
