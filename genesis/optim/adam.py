"""Adam and AdamW."""

from __future__ import annotations

import math
from typing import Any

from genesis.core.call.refusal import explain_all
from genesis.core.graph.tracing import advance, host
from genesis.ops.learning.update import adam_step
from genesis.optim.optimizer import Group, Optimizer, check_options


class Adam(Optimizer):
    """Steps scaled by running averages of the gradient and its square (Kingma and Ba 2014).

    $m \\leftarrow \\beta_1 m + (1 - \\beta_1) g$, $v \\leftarrow \\beta_2 v + (1 - \\beta_2) g^2$,
    $p \\leftarrow p - lr \\cdot \\hat m / (\\sqrt{\\hat v} + eps)$, with both averages corrected for their start at
    zero.

    Args:
        weight_decay: added to the gradient as ``weight_decay`` $\\cdot p$
        amsgrad: divide by the largest $\\hat v$ so far (Reddi et al. 2018)
        maximize: go up instead of down

    >>> import genesis
    >>> p = genesis.nn.Parameter(genesis.ones(1)); p.sum().backward()
    >>> genesis.optim.Adam([p], lr=0.1).step(); p.detach()
    tensor([0.9000])
    """

    decoupled = False
    decay = 0.0

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float | None = None,
        amsgrad: bool = False,
        *,
        foreach: Any = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: Any = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        decay = self.decay if weight_decay is None else weight_decay
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay or self.decoupled,
        }
        super().__init__(params, options)

    def check_group(self, group: Group) -> None:
        check_options(type(self).__name__, **{k: group[k] for k in ("lr", "betas", "eps", "weight_decay")})

    def state_names(self, group: Group) -> tuple[str, ...]:
        return ("step", "exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if group["amsgrad"] else []))

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        b1, b2 = group["betas"]
        if not state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = param.new_zeros(param.shape), param.new_zeros(param.shape)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = param.new_zeros(param.shape)
        advance(state, "step")
        decay, decoupled = group["weight_decay"], group["decoupled_weight_decay"]
        g = -grad if group["maximize"] else grad
        if decay and not decoupled:
            g = g + param * decay
        adam_step(
            param,
            g,
            state["exp_avg"],
            state["exp_avg_sq"],
            state.get("max_exp_avg_sq"),
            b1,
            b2,
            host(lambda: math.sqrt(1 - b2 ** state["step"])),
            group["eps"],
            host(lambda: group["lr"] / (1 - b1 ** state["step"])),
            host(lambda: 1 - group["lr"] * decay) if decay and decoupled else None,
        )


class AdamW(Adam):
    """`Adam` whose weight decay shrinks the parameter itself, not the gradient (Loshchilov and Hutter 2019).

    >>> import genesis
    >>> p = genesis.nn.Parameter(genesis.ones(1)); p.sum().backward()
    >>> genesis.optim.AdamW([p], lr=0.1).step(); p.detach()
    tensor([0.8990])
    """

    decoupled = True
    decay = 0.01


explain_all(globals())
