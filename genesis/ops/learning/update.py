"""Steps of optimizers: what they do to a parameter, written in ops, so that a trace can take them apart and a kernel
can do them at once.
"""

from __future__ import annotations

from typing import Any

from genesis.core.call.kinds import composite
from genesis.core.graph.tensor import Tensor


@composite(method=False, torch_name="", dtypes="fc", written=("param", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"))
def adam_step(
    param: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    max_exp_avg_sq: Tensor | None,
    beta1: float,
    beta2: float,
    root: float,
    eps: float,
    rate: float,
    shrink: float | None,
) -> None:
    """One step of Adam (Kingma and Ba 2014), in place: both averages, then $p \\leftarrow s p + r m / (\\sqrt v / c +
    eps)$.

    Args:
        max_exp_avg_sq: the largest average so far, which then stands in the place of v (Reddi et al. 2018)
        root: c, the root of the correction of v for its start at zero
        rate: r, minus the learning rate divided by the correction of m
        shrink: s, what decoupled weight decay multiplies the parameter by; None is 1

    >>> import genesis
    >>> p, m, v = genesis.ones(1), genesis.zeros(1), genesis.zeros(1)
    >>> genesis.ops.learning.update.adam_step(p, genesis.ones(1), m, v, None, 0.9, 0.999, 0.001 ** 0.5, 1e-8, -0.01 / 0.1, None)
    >>> p
    tensor([0.9900])
    """
    if shrink is not None:
        param.mul_(shrink)  # type: ignore[attr-defined]
    average(exp_avg, grad, 1 - beta1)
    add_square(exp_avg_sq.mul_(beta2), grad, 1 - beta2)  # type: ignore[attr-defined]
    largest = exp_avg_sq if max_exp_avg_sq is None else max_exp_avg_sq.maximum_(exp_avg_sq)  # type: ignore[attr-defined]
    add_quotient(param, exp_avg, largest.sqrt().div_(root).add_(eps), rate)  # type: ignore[attr-defined]


# ---- what steps are made of: in place, without a copy of the result, and in 16 bits rounded once


def _halves(x: Any) -> bool:
    return x._array.dtype.itemsize == 2  # type: ignore[no-any-return]


def add_scaled(x: Any, y: Any, factor: Any) -> Any:
    """``x += factor * y``. The factor is a number, or where the step is differentiable a tensor."""
    if _halves(x) and not isinstance(factor, Tensor):
        return x.add_(y, alpha=factor)
    return x.add_(y * factor)


def plus(x: Any, y: Any, factor: Any) -> Any:
    """``x + factor * y``, a new tensor."""
    return x.add(y, alpha=factor) if _halves(x) else x + y * factor


def add_square(x: Any, y: Any, factor: float) -> Any:
    """``x += factor * y ** 2``."""
    if _halves(x):
        return x.addcmul_(y, y, value=factor)
    one = factor.__class__ in (int, float) and factor == 1
    return x.add_(y * y if one else (y * y).mul_(factor))


def add_quotient(x: Any, y: Any, size: Any, factor: Any) -> Any:
    """``x += factor * y / size``. The factor is a number, or where the step is differentiable a tensor."""
    if _halves(x) and not isinstance(factor, Tensor):
        return x.addcdiv_(y, size, value=factor)
    return x.add_((y / size).mul_(factor))


def average(x: Any, y: Any, weight: Any) -> Any:
    """``x += weight * (y - x)``: a running average."""
    return x.lerp_(y, weight) if _halves(x) else x.add_((y - x).mul_(weight))


__all__: list[str] = []
