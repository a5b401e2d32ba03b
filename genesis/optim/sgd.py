"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from genesis.base.errors import ArgumentValueError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import host
from genesis.optim.optimizer import Group, Optimizer, check_options


class SGD(Optimizer):
    """$v \\leftarrow \\mu v + (1 - d) g$, $p \\leftarrow p - lr \\cdot v$, with $g$ including ``weight_decay`` $\\cdot
    p$.

    Args:
        momentum: $\\mu$; dampening: $d$; nesterov: step along $g + \\mu v$ (Sutskever et al. 2013)
        maximize: go up instead of down

    >>> import genesis
    >>> p = genesis.nn.Parameter(genesis.ones(1)); p.sum().backward()
    >>> genesis.optim.SGD([p], lr=0.1).step(); p.detach()
    tensor([0.9000])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: Any = None,
        differentiable: bool = False,
        fused: Any = None,
    ) -> None:
        options = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def check_group(self, group: Group) -> None:
        check_options("SGD", **{k: group[k] for k in ("lr", "momentum", "weight_decay")})
        momentum, dampening = group["momentum"], group["dampening"]
        if group["nesterov"] and (momentum <= 0 or dampening != 0):
            raise ArgumentValueError(
                message(
                    "SGD",
                    f"nesterov needs momentum and no dampening, got momentum={momentum} and dampening={dampening}",
                )
            )

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        g: Tensor = -grad if group["maximize"] else grad
        if group["weight_decay"]:
            g = g + param * group["weight_decay"]
        if group["momentum"]:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = g.clone()  # type: ignore[attr-defined]
            else:
                buffer.mul_(group["momentum"]).add_(g if group["dampening"] == 0 else g * (1 - group["dampening"]))
            g = g + buffer * group["momentum"] if group["nesterov"] else buffer
        param.sub_(g * host(lambda: group["lr"]))


explain_all(globals())
