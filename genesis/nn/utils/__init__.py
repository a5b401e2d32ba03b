"""Gradients kept in bounds, and parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from genesis.base.errors import GraphError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor
from genesis.ops.reductions.norms import norm
from genesis.ops.shapes.join import cat, stack


def _grads(parameters: Any) -> list[Tensor]:
    params = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p.grad for p in params if p.grad is not None]


@no_grad()
def get_total_norm(tensors: Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Tensor:
    """The norm of all elements of several tensors."""
    parts = [norm(t, norm_type) for t in tensors]
    from genesis.ops.creation.outside import tensor

    total = norm(stack(parts), norm_type) if parts else tensor(0.0)
    if error_if_nonfinite and not bool(total.isfinite()):  # type: ignore[attr-defined]
        raise GraphError(
            message(
                "clip_grad_norm_", f"the total norm is {float(total)}", hint="error_if_nonfinite=False clips anyway"
            )
        )
    return total


@no_grad()
def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Tensor:
    """Scale gradients in place so that their total norm is at most ``max_norm``; returns the norm before.

    >>> import genesis
    >>> x = genesis.ones(4, requires_grad=True); x.sum().backward()
    >>> genesis.nn.utils.clip_grad_norm_([x], 1.0), x.grad
    (tensor(2.), tensor([0.5000, 0.5000, 0.5000, 0.5000]))
    """
    grads = _grads(parameters)
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    factor = (max_norm / (total + 1e-6)).clamp(max=1.0)  # type: ignore[operator]
    for g in grads:
        g.mul_(factor)  # type: ignore[attr-defined]
    return total


@no_grad()
def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """Limit each gradient element to $\\pm$ ``clip_value``, in place."""
    for g in _grads(parameters):
        g.clamp_(-clip_value, clip_value)  # type: ignore[attr-defined]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters, one after the other, as a vector."""
    return cat([p.reshape(-1) for p in parameters])  # type: ignore[attr-defined, no-any-return]


@no_grad()
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copy a vector into parameters, one after the other."""
    start = 0
    for p in parameters:
        p.copy_(vec[start : start + p.numel()].reshape(p.shape))  # type: ignore[attr-defined, index]
        start += p.numel()


explain_all(globals())
