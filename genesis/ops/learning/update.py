"""Steps of optimizers: what they do to a parameter, written in ops, so that a trace can take them apart and a kernel
can do them at once.
"""

from __future__ import annotations

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
    """One step of Adam (Kingma and Ba 2014), in place: both averages, then $p \\leftarrow s p - r m / (\\sqrt v / c +
    eps)$.

    Args:
        max_exp_avg_sq: the largest average so far, which then stands in the place of v (Reddi et al. 2018)
        root: c, the root of the correction of v for its start at zero
        rate: r, the learning rate divided by the correction of m
        shrink: s, what decoupled weight decay multiplies the parameter by; None is 1

    >>> import genesis
    >>> p, m, v = genesis.ones(1), genesis.zeros(1), genesis.zeros(1)
    >>> genesis.ops.learning.update.adam_step(p, genesis.ones(1), m, v, None, 0.9, 0.999, 0.001 ** 0.5, 1e-8, 0.01 / 0.1, None)
    >>> p
    tensor([0.9900])
    """
    if shrink is not None:
        param.mul_(shrink)  # type: ignore[attr-defined]
    exp_avg.mul_(beta1).add_(grad * (1 - beta1))  # type: ignore[attr-defined]
    exp_avg_sq.mul_(beta2).add_((grad * grad).mul_(1 - beta2))  # type: ignore[attr-defined]
    largest = exp_avg_sq if max_exp_avg_sq is None else max_exp_avg_sq.maximum_(exp_avg_sq)  # type: ignore[attr-defined]
    scale = largest.sqrt().div_(root).add_(float(eps))  # type: ignore[attr-defined]
    param.sub_((exp_avg / scale).mul_(rate))  # type: ignore[attr-defined]


__all__: list[str] = []
