"""Adam and AdamW."""

from __future__ import annotations

import math
from typing import Any

from genesis.core.refusal import explain_all
from genesis.core.site import site_here
from genesis.core.tracing import advance, host, tracer
from genesis.core.views import bump
from genesis.kernels.cpu import optim as kernel
from genesis.optim.optimizer import Group, Optimizer, check_options


class Adam(Optimizer):
    """Steps scaled by running averages of the gradient and its square (Kingma and Ba 2014).

    $m \\leftarrow \\beta_1 m + (1 - \\beta_1) g$, $v \\leftarrow \\beta_2 v + (1 - \\beta_2) g^2$,
    $p \\leftarrow p - lr \\cdot \\hat m / (\\sqrt{\\hat v} + eps)$, with both averages corrected for their start at zero.

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

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float | None = None,
                 amsgrad: bool = False, *, foreach: Any = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
                 fused: Any = None, decoupled_weight_decay: bool = False) -> None:  # fmt: skip
        decay = self.decay if weight_decay is None else weight_decay
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": decay, "amsgrad": amsgrad, "maximize": maximize,
                   "decoupled_weight_decay": decoupled_weight_decay or self.decoupled}  # fmt: skip
        super().__init__(params, options)

    def check_group(self, group: Group) -> None:
        check_options(type(self).__name__, **{k: group[k] for k in ("lr", "betas", "eps", "weight_decay")})

    def state_names(self, group: Group) -> tuple[str, ...]:
        return ("step", "exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if group["amsgrad"] else []))

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        b1, b2 = group["betas"]
        lr, decay = group["lr"], group["weight_decay"]
        if not state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = param.new_zeros(param.shape), param.new_zeros(param.shape)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = param.new_zeros(param.shape)
        step = advance(state, "step")
        m, v = state["exp_avg"], state["exp_avg_sq"]
        coupled = decay and not group["decoupled_weight_decay"]
        arrays = param._array, grad._array, m._array, v._array
        if tracer.get() is None and not (coupled or group["amsgrad"] or group["maximize"]) and kernel.fits(*arrays):
            kernel.adam_step(*arrays, step, lr, (b1, b2), group["eps"], 1 - lr * decay)
            site = site_here()
            for written in (param, m, v):
                bump(written, "optimizer.step", site)
            return
        self._composed(param, grad, state, group)

    def _composed(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        """The step in ops: what the kernel is tested against, and what runs for every other option, dtype and layout."""
        b1, b2 = group["betas"]
        decay = group["weight_decay"]
        g = -grad if group["maximize"] else grad
        if decay and group["decoupled_weight_decay"]:
            param.mul_(host(lambda: 1 - group["lr"] * decay))
        elif decay:
            g = g + param * decay
        m, v = state["exp_avg"], state["exp_avg_sq"]
        m.mul_(b1).add_(g * (1 - b1))
        v.mul_(b2).add_((g * g).mul_(1 - b2))
        if group["amsgrad"]:
            v = state["max_exp_avg_sq"].maximum_(v)
        root = v.sqrt().div_(host(lambda: math.sqrt(1 - b2 ** state["step"]))).add_(float(group["eps"]))
        param.sub_((m / root).mul_(host(lambda: group["lr"] / (1 - b1 ** state["step"]))))


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
