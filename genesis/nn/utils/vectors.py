"""Parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable

from genesis.base.errors import ArgumentError, ShapeError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor
from genesis.ops.shapes.join import cat


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters, one after the other, as a vector.

    >>> import genesis
    >>> genesis.nn.utils.parameters_to_vector([genesis.ones(1, 2), genesis.zeros(1)])
    tensor([1., 1., 0.])
    """
    return cat([p.reshape(-1) for p in parameters])  # type: ignore[attr-defined, no-any-return]


@no_grad()
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copy a vector into parameters, one after the other.

    Raises:
        RuntimeError: the vector has fewer elements than they; nothing is written then
    """
    params = list(parameters)
    for p in params:
        if not isinstance(p, Tensor):
            raise ArgumentError(message("vector_to_parameters", f"expected tensors, got {type(p).__name__}"))
    needed = sum(p.numel() for p in params)
    if vec.ndim != 1 or vec.numel() < needed:
        raise ShapeError(
            message("vector_to_parameters", f"needs a vector of {needed} elements", [("vec", vec._spec())])
        )
    start = 0
    for p in params:
        p.copy_(vec[start : start + p.numel()].reshape(p.shape))  # type: ignore[attr-defined, index]
        start += p.numel()


explain_all(globals())
