"""Gradients of outputs with respect to inputs, returned or accumulated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.base.errors import ArgumentError, GraphError, message
from genesis.core import engine
from genesis.core.tensor import Tensor, input_edge


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, Tensor) or value is None else list(value)


def _seeds(name: str, outputs: list[Tensor], gradients: Any) -> list[Tensor]:
    given = [None] * len(outputs) if gradients is None else _listed(gradients)
    if len(given) != len(outputs):
        raise ArgumentError(message(name, f"{len(given)} gradients for {len(outputs)} outputs"))
    return [engine.seed_for(y, g) for y, g in zip(outputs, given, strict=True)]


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Differentiate several outputs in one pass, accumulating into ``.grad`` of the leaves (or of ``inputs`` only).

    Raises:
        RuntimeError: an output without history, or an implicit gradient for many elements

    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> genesis.autograd.backward([x.sum(), (x * 2).sum()]); x.grad
    tensor([3., 3.])
    """
    outputs = _listed(tensors)
    edges = [engine.edge_of(y) for y in outputs]
    wanted = None if inputs is None else [input_edge(x, i, "backward") for i, x in enumerate(_listed(inputs))]
    engine.run(
        edges,
        _seeds("backward", outputs, grad_tensors),
        keep_graph=create_graph if retain_graph is None else retain_graph,
        create_graph=create_graph,
        inputs=wanted,
    )


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of (the sum of) ``outputs`` with respect to ``inputs``, as a tuple; ``.grad`` is left alone.

    Args:
        grad_outputs: what to start from, one for each output
        allow_unused: give None for an input that the outputs do not depend on, instead of an error
        materialize_grads: give zeros for it

    Raises:
        RuntimeError: an input that the outputs do not depend on

    >>> import genesis
    >>> x = genesis.tensor(3.0, requires_grad=True)
    >>> (g,) = genesis.autograd.grad(x ** 2, x, create_graph=True)
    >>> g, genesis.autograd.grad(g, x)
    (tensor(6., grad_fn=<MulBackward>), (tensor(2.),))
    """
    results, wanted = _listed(outputs), _listed(inputs)
    if materialize_grads and allow_unused is False:
        raise ArgumentError(message("grad", "materialize_grads gives zeros for unused inputs, allow_unused=False refuses them"))
    edges = [engine.edge_of(y) for y in results]
    places = [input_edge(x, i, "grad") for i, x in enumerate(wanted)]
    found = engine.run(
        edges,
        _seeds("grad", results, grad_outputs),
        keep_graph=create_graph if retain_graph is None else retain_graph,
        create_graph=create_graph,
        inputs=places,
        accumulate=False,
    )
    for i, (x, g) in enumerate(zip(wanted, found, strict=True)):
        if g is None and materialize_grads:
            found[i] = x._zeros(tuple(x._array.shape), x._array.dtype)
        elif g is None and not allow_unused:
            raise GraphError(
                message("grad", f"the outputs do not depend on inputs[{i}]", [(f"inputs[{i}]", x._spec())],
                        "allow_unused=True gives None for it, materialize_grads=True zeros")
            )  # fmt: skip
    return tuple([g if g is None or create_graph else g._alias(None) for g in found])
