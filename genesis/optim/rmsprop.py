"""RMSprop and Adagrad."""

from __future__ import annotations

from typing import Any

from genesis.core.call.refusal import explain_all
from genesis.core.graph.tracing import advance, host
from genesis.optim.optimizer import Group, Optimizer, check_options


class RMSprop(Optimizer):
    """Steps divided by the root of a running average of squared gradients (Tieleman and Hinton 2012).

    >>> import genesis
    >>> p = genesis.nn.Parameter(genesis.ones(1)); p.sum().backward()
    >>> genesis.optim.RMSprop([p], lr=0.01).step(); p.detach()
    tensor([0.9000])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        maximize: bool = False,
        foreach: Any = None,
    ) -> None:
        options = {
            "lr": lr,
            "alpha": alpha,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "centered": centered,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def check_group(self, group: Group) -> None:
        check_options("RMSprop", **{k: group[k] for k in ("lr", "alpha", "eps", "weight_decay", "momentum")})

    def state_names(self, group: Group) -> tuple[str, ...]:
        return (
            "step",
            "square_avg",
            *(["momentum_buffer"] if group["momentum"] else []),
            *(["grad_avg"] if group["centered"] else []),
        )

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        g = -grad if group["maximize"] else grad
        if group["weight_decay"]:
            g = g + param * group["weight_decay"]
        if not state:
            state["step"] = 0
            for name, used in (
                ("square_avg", True),
                ("momentum_buffer", group["momentum"]),
                ("grad_avg", group["centered"]),
            ):
                if used:
                    state[name] = param.new_zeros(param.shape)
        advance(state, "step")
        alpha = group["alpha"]
        v = state["square_avg"].mul_(alpha).add_((g * g).mul_(1 - alpha))
        if group["centered"]:
            mean = state["grad_avg"].mul_(alpha).add_(g * (1 - alpha))
            v = v - mean * mean
        step = g / (v.sqrt().add_(float(group["eps"])))
        if group["momentum"]:
            step = state["momentum_buffer"].mul_(group["momentum"]).add_(step)
        param.sub_(step * host(lambda: group["lr"]))


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients (Duchi et al. 2011).

    >>> import genesis
    >>> p = genesis.nn.Parameter(genesis.ones(1)); p.sum().backward()
    >>> genesis.optim.Adagrad([p], lr=0.1).step(); p.detach()
    tensor([0.9000])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        foreach: Any = None,
    ) -> None:
        options = {
            "lr": lr,
            "lr_decay": lr_decay,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "eps": eps,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def check_group(self, group: Group) -> None:
        check_options(
            "Adagrad", **{k: group[k] for k in ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")}
        )

    def state_names(self, group: Group) -> tuple[str, ...]:
        return "step", "sum"

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        g = -grad if group["maximize"] else grad
        if group["weight_decay"]:
            g = g + param * group["weight_decay"]
        if not state:
            state["step"], state["sum"] = (
                0,
                param.new_full(tuple(param.shape), float(group["initial_accumulator_value"])),
            )
        advance(state, "step")
        rate = host(lambda: group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"]))
        total = state["sum"].add_(g * g)
        param.sub_((g / total.sqrt().add_(float(group["eps"]))).mul_(rate))


explain_all(globals())
