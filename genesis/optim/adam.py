"""Adam and its relatives: running averages of the gradient and of its size."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from numpy import float32

from genesis.core.call.fused import call_many
from genesis.core.call.refusal import explain_all
from genesis.core.graph.switches import ACTIVE
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import tracer
from genesis.ops.learning.update import adam_step, add_quotient, add_square, average
from genesis.ops.pointwise.choice import maximum
from genesis.optim.optimizer import Group
from genesis.optim.options import chosen, number, scalar
from genesis.optim.stateful import Stateful


class Adam(Stateful):
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

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(params, chosen(locals()))

    def first_state(self, group: Mapping[str, Any]) -> dict[str, Any]:
        names = ["exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if group["amsgrad"] else [])]
        return dict.fromkeys(names, 0.0)

    def change(self, param: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        b1, b2 = group["betas"] if group["differentiable"] else map(scalar, group["betas"])
        decay = group["weight_decay"] if group["decoupled_weight_decay"] else 0
        if group["lr"].__class__ is float and tracer.get() is None:
            root, rate, shrink = _scales(group["lr"], state["step"], b1, b2, decay)
        else:
            root = number(group, state, lambda lr, step, betas: (1 - betas[1] ** step) ** 0.5, "betas")
            rate = number(group, state, lambda lr, step, betas: -lr / (1 - betas[0] ** step), "betas")
            shrink = number(group, state, lambda lr, step, decay: 1 - lr * decay, "weight_decay") if decay else None
        averages = state["exp_avg"], state["exp_avg_sq"], state.get("max_exp_avg_sq")
        adam_step(param, g, *averages, b1, b2, root, group["eps"], rate, shrink)

    def _update_group(self, group: Group) -> None:
        """The steps of all parameters with the same numbers by one call, where nothing is open and no method is another's."""
        ordinary = type(self).change is Adam.change and type(self).update is Stateful.update
        if not ordinary or ACTIVE or group["differentiable"] or group["lr"].__class__ is not float:
            super()._update_group(group)
            return
        b1, b2 = map(scalar, group["betas"])
        lr, decay = group["lr"], group["weight_decay"] if group["decoupled_weight_decay"] else 0
        as_it_is = not group["maximize"] and (not group["weight_decay"] or self.decoupled(group))
        rows: list[Any] = []
        numbers = step = None
        for p in group["params"]:
            grad = p.grad
            if grad is None:
                continue
            if grad.__class__ is not Tensor or p._array.dtype.kind != "f":  # a sparse gradient, a complex parameter
                call_many(adam_step, rows, *numbers or ())
                rows = []
                self._update_one(p, grad, group)
                continue
            state = self.state[p]
            if as_it_is and state:  # `_prepare`, written out
                state["step"] += 1
                g = grad
            else:
                g = self._prepare(p, grad, state, group)
            if state["step"] != step:
                call_many(adam_step, rows, *numbers or ())
                step = state["step"]
                root, rate, shrink = _scales(lr, step, b1, b2, decay)
                rows, numbers = [], (b1, b2, root, group["eps"], rate, shrink)
            rows.append((p, g, state["exp_avg"], state["exp_avg_sq"], state.get("max_exp_avg_sq")))
        call_many(adam_step, rows, *numbers or ())


@functools.lru_cache(maxsize=16)
def _scales(lr: float, step: Any, b1: Any, b2: Any, decay: Any) -> tuple[Any, Any, Any]:
    """The same numbers for all parameters: the root of the correction of v, minus the learning rate divided by the
    correction of m, and what is left by weight decay.
    """
    return (1 - b2**step) ** 0.5, -lr / (1 - b1**step), 1 - lr * decay if decay else None


class AdamW(Adam):
    """`Adam` whose weight decay shrinks the parameter itself, not the gradient (Loshchilov and Hutter 2019).

    >>> import genesis
    >>> p = genesis.nn.Parameter(genesis.ones(1)); p.sum().backward()
    >>> genesis.optim.AdamW([p], lr=0.1).step(); p.detach()
    tensor([0.8990])
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, decoupled_weight_decay=True, **chosen(locals()))


def _averages(g: Any, state: dict[str, Any], group: Group) -> tuple[Any, Any]:
    """The running averages of the gradient and of its square, with this one."""
    b1, b2 = group["betas"]
    return average(state["exp_avg"], g, 1 - b1), add_square(state["exp_avg_sq"].mul_(b2), g, 1 - b2)


def _shrink(param: Any, state: dict[str, Any], group: Group) -> None:
    """The weight decay that is no part of the gradient."""
    decay = group["weight_decay"]
    if decay and group["decoupled_weight_decay"]:
        param.mul_(number(group, state, lambda lr, step, decay: 1 - lr * decay, "weight_decay"))


class Adamax(Stateful):
    """`Adam` with the largest gradient, which decays, in the place of the root of the average square (Kingma and Ba
    2014).

    >>> import genesis
    >>> p = genesis.nn.Parameter(genesis.ones(1)); p.sum().backward()
    >>> genesis.optim.Adamax([p], lr=0.1).step(); p.detach()
    tensor([0.9000])
    """

    rule = "adamax"

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, chosen(locals()))

    def first_state(self, group: Mapping[str, Any]) -> dict[str, Any]:
        return {"exp_avg": 0.0, "exp_inf": 0.0}

    def numbers(self, group: Group, step: int, singles: dict[str, float]) -> dict[str, float]:
        b1, b2 = group["betas"]
        rate = _corrected(group["lr"], step, group["betas"])
        return {"beta1_rest": 1 - b1, "beta2": b2, "eps": group["eps"], "rate": rate}

    def change(self, param: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        b1, b2 = group["betas"]
        mean, largest = average(state["exp_avg"], g, 1 - b1), state["exp_inf"]
        largest.copy_(maximum(largest * b2, g.abs().add_(group["eps"])))
        add_quotient(param, mean, largest, number(group, state, _corrected, "betas"))


def _corrected(lr: Any, step: Any, betas: Any) -> Any:
    """Minus the learning rate, divided by the correction of the average for its start at zero."""
    return -lr / (1 - betas[0] ** step)


def _four(b1: float, b2: float, eps: float) -> dict[str, float]:
    """The numbers of `_averages`, and eps."""
    return {"beta1_rest": 1 - b1, "beta2": b2, "beta2_rest": 1 - b2, "eps": eps}


class NAdam(Stateful):
    """`Adam` with Nesterov's momentum: a step ahead, along the gradient and the average as it will be (Dozat 2016).

    Args:
        momentum_decay: how fast the momentum of step $t$, $\\beta_1 (1 - 0.96^{t \\psi} / 2)$, grows
        decoupled_weight_decay: shrink the parameter itself, as `AdamW` does

    >>> import genesis
    >>> p = genesis.nn.Parameter(genesis.ones(1)); p.sum().backward()
    >>> genesis.optim.NAdam([p], lr=0.1).step(); p.detach()
    tensor([0.8944])
    """

    checked = ("lr", "eps", "weight_decay", "betas", "momentum_decay")
    single = ("mu_product",)
    rule = "nadam"

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, chosen(locals()))

    def first_state(self, group: Mapping[str, Any]) -> dict[str, Any]:
        return {"mu_product": 1.0, "exp_avg": 0.0, "exp_avg_sq": 0.0}

    def numbers(self, group: Group, step: int, singles: dict[str, float]) -> dict[str, float]:
        lr, (b1, b2) = group["lr"], group["betas"]
        mu, after = _momenta(step, b1, group["momentum_decay"])
        product = singles["mu_product"] = float(float32(singles["mu_product"]) * float32(mu))
        rates = {"now": lr * (1 - mu) / (1 - product), "then": lr * after / (1 - product * after)}
        return {**_four(b1, b2, group["eps"]), "correction": 1 - b2**step, **rates}

    def change(self, param: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        def asked(formula: Callable[[Any, float, float], float]) -> Any:
            """``formula(learning rate, momentum now, momentum of the next step)``"""

            def of(lr: Any, step: int, betas: Any, psi: float) -> float:
                return formula(lr, *_momenta(step, betas[0], psi))

            return number(group, state, of, "betas", "momentum_decay")

        _shrink(param, state, group)
        mean, squares = _averages(g, state, group)
        correction = number(group, state, lambda lr, step, betas: 1 - betas[1] ** step, "betas")
        size = squares.div(correction).sqrt_().add_(group["eps"])
        product = state["mu_product"].mul_(asked(lambda lr, mu, after: mu)).double()
        ahead = product * asked(lambda lr, mu, after: after)
        now = asked(lambda lr, mu, after: lr * (1 - mu)) / (1 - product)
        then = asked(lambda lr, mu, after: lr * after) / (1 - ahead)
        param.sub_(g / size * now).sub_(mean / size * then)


def _momenta(step: int, b1: float, psi: float) -> tuple[float, float]:
    """The momentum of a step, and of the next."""
    now, after = [b1 * (1 - 0.5 * 0.96 ** (t * psi)) for t in (step, step + 1)]
    return now, after


class RAdam(Stateful):
    """`Adam` that divides by the size of the gradients only as far as its variance is known: at first it does not (Liu
    et al. 2020).

    >>> import genesis
    >>> p = genesis.nn.Parameter(genesis.ones(1)); p.sum().backward()
    >>> genesis.optim.RAdam([p], lr=0.1).step(); p.detach()
    tensor([0.9000])
    """

    rule = "radam"

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, chosen(locals()))

    def first_state(self, group: Mapping[str, Any]) -> dict[str, Any]:
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def numbers(self, group: Group, step: int, singles: dict[str, float]) -> dict[str, float]:
        b1, b2 = group["betas"]
        known = float(_rectification(b2, step) > 0)
        rate = _rectified(group["lr"], step, group["betas"])
        return {**_four(b1, b2, group["eps"]), "known": known, "unknown": 1 - known, "rate": rate}

    def change(self, param: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        _shrink(param, state, group)
        mean, squares = _averages(g, state, group)
        known = number(group, state, lambda lr, step, betas: float(_rectification(betas[1], step) > 0), "betas")
        unknown = number(group, state, lambda lr, step, betas: float(_rectification(betas[1], step) == 0), "betas")
        # by the size where that is known, else by one; a replay may begin in one case and end in the other
        size = squares.sqrt().add_(group["eps"]).mul_(known).add_(unknown)
        add_quotient(param, mean, size, number(group, state, _rectified, "betas"))


def _rectified(lr: Any, step: int, betas: Any) -> Any:
    return _corrected(lr, step, betas) * (_rectification(betas[1], step) or 1)


def _rectification(b2: float, step: int) -> float:
    """The root of the ratio of variances, with the correction of the average square; 0 while that is too uncertain."""
    most = 2 / (1 - b2) - 1
    length = most - 2 * step * b2**step / (1 - b2**step)
    if length <= 5:
        return 0.0
    ratio = (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)
    return float((ratio * (1 - b2**step)) ** 0.5)


explain_all(globals())
