"""RMSprop, Adagrad and Adadelta: steps divided by the size of the gradients so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from genesis.base.errors import ArgumentValueError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import advance
from genesis.ops.learning.update import add_quotient, add_scaled, add_square, average
from genesis.optim.optimizer import Group
from genesis.optim.options import chosen, number
from genesis.optim.rows import refuse_option
from genesis.optim.stateful import Stateful


class RMSprop(Stateful):
    """Steps divided by the root of a running average of squared gradients (Tieleman and Hinton 2012).

    Args:
        alpha: what the average is multiplied by at each step
        centered: divide by the root of the running variance instead (Graves 2013)

    >>> import genesis
    >>> p = genesis.nn.Parameter(genesis.ones(1)); p.sum().backward()
    >>> genesis.optim.RMSprop([p], lr=0.01).step(); p.detach()
    tensor([0.9000])
    """

    checked = ("lr", "alpha", "eps", "weight_decay", "momentum")
    rule = "rmsprop"

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, chosen(locals()))

    def first_state(self, group: Mapping[str, Any]) -> dict[str, Any]:
        names = ["square_avg", *(["momentum_buffer"] if group["momentum"] else [])]
        return dict.fromkeys([*names, *(["grad_avg"] if group["centered"] else [])], 0.0)

    def numbers(self, group: Group, step: int, singles: dict[str, float]) -> dict[str, float]:
        alpha = group["alpha"]
        numbers = {"alpha": alpha, "alpha_rest": 1 - alpha, "eps": group["eps"], "rate": -group["lr"]}
        return {**numbers, "momentum": group["momentum"]} if group["momentum"] else numbers

    def change(self, param: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        alpha = group["alpha"]
        squares = add_square(state["square_avg"].mul_(alpha), g, 1 - alpha)
        if group["centered"]:
            mean = average(state["grad_avg"], g, 1 - alpha)
            squares = squares.addcmul(mean, mean, value=-1)
        size = squares.sqrt().add_(group["eps"])
        rate = number(group, state, lambda lr, step: -lr)
        if group["momentum"]:
            add_scaled(param, add_quotient(state["momentum_buffer"].mul_(group["momentum"]), g, size, 1), rate)
        else:
            add_quotient(param, g, size, rate)


class Adagrad(Stateful):
    """Steps divided by the root of the sum of all squared gradients (Duchi et al. 2011).

    Args:
        lr_decay: the rate of step $t$ is $lr / (1 + (t - 1) \\cdot$ ``lr_decay`` $)$
        initial_accumulator_value: what the sum begins with

    >>> import genesis
    >>> p = genesis.nn.Parameter(genesis.ones(1)); p.sum().backward()
    >>> genesis.optim.Adagrad([p], lr=0.1).step(); p.detach()
    tensor([0.9000])
    """

    checked = ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")
    rule = "adagrad"

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, chosen(locals()))
        for group in self.param_groups:
            for p in group["params"]:
                self.begin(p, self.state[p], group)

    def first_state(self, group: Mapping[str, Any]) -> dict[str, Any]:
        return {"sum": group["initial_accumulator_value"]}

    def numbers(self, group: Group, step: int, singles: dict[str, float]) -> dict[str, float]:
        return {"eps": group["eps"], "rate": _decayed(group["lr"], step, group["lr_decay"])}

    def change(self, param: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        size = add_square(state["sum"], g, 1).sqrt().add_(group["eps"])
        add_quotient(param, g, size, number(group, state, _decayed, "lr_decay"))

    def update_sparse(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        for option in ("weight_decay", "fused", "differentiable"):
            if group[option]:
                refuse_option("Adagrad", option)
        if not state:
            self.begin(param, state, group)
        advance(state, "step")
        g = (-grad if group["maximize"] else grad).coalesce()
        at, values = tuple(g.indices()), g.values()
        if values.numel():
            state["sum"][at] = squares = state["sum"][at] + values * values
            rate = number(group, state, _decayed, "lr_decay")
            param[at] = param[at] + values / squares.sqrt().add_(group["eps"]) * rate


def _decayed(lr: Any, step: int, decay: float) -> Any:
    """Minus the learning rate of a step."""
    return -lr / (1 + (step - 1) * decay)


class Adadelta(Stateful):
    """Steps with the size of those before, by a running average of their squares: no unit is left over (Zeiler 2012).

    $p \\leftarrow p - lr \\cdot g \\sqrt{u + eps} / \\sqrt{v + eps}$, with the running averages $v$ of $g^2$ and $u$ of
    the squared steps.

    >>> import genesis
    >>> p = genesis.nn.Parameter(genesis.ones(1)); p.sum().backward()
    >>> genesis.optim.Adadelta([p]).step(); p.detach()
    tensor([0.9968])
    """

    checked = ("lr", "rho", "eps", "weight_decay")
    rule = "adadelta"

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, chosen(locals()))

    def check_group(self, group: Group) -> None:
        super().check_group(group)
        if group["rho"] > 1:
            raise ArgumentValueError(message("Adadelta", f"rho must be in [0, 1], got {group['rho']}"))

    def first_state(self, group: Mapping[str, Any]) -> dict[str, Any]:
        return {"square_avg": 0.0, "acc_delta": 0.0}

    def numbers(self, group: Group, step: int, singles: dict[str, float]) -> dict[str, float]:
        return {"rho": group["rho"], "rho_rest": 1 - group["rho"], "eps": group["eps"], "rate": -group["lr"]}

    def change(self, param: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        rho, eps = group["rho"], group["eps"]
        size = add_square(state["square_avg"].mul_(rho), g, 1 - rho).add(eps).sqrt_()
        delta = state["acc_delta"].add(eps).sqrt_().div_(size).mul_(g)
        add_square(state["acc_delta"].mul_(rho), delta, 1 - rho)
        add_scaled(param, delta, number(group, state, lambda lr, step: -lr))


explain_all(globals(), "RMSprop", "Adagrad", "Adadelta")
