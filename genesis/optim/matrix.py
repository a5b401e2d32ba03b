"""Optimizers of matrices: Adafactor and Muon."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from genesis.base.dtypes import bfloat16, finfo
from genesis.base.errors import ArgumentError, ArgumentValueError, DTypeError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import begins
from genesis.ops.creation.create import zeros_like
from genesis.ops.learning.update import add_scaled, average
from genesis.optim.optimizer import Group
from genesis.optim.options import check_options, chosen, number
from genesis.optim.stateful import Stateful


def _refuse_complex(name: str, param: Tensor) -> None:
    if param.is_complex():
        raise DTypeError(message(name, "complex parameters are not supported", [("parameter", param._spec())]))


class Adafactor(Stateful):
    """Steps divided by the size of the gradients, of which matrices keep the averages of rows and columns only; their
    length is relative to the parameter's (Shazeer and Stern 2018).

    Args:
        beta2_decay: the averages of step $t$ forget $t$ to this power
        eps: the smallest size of a gradient (None for that of the dtype), and of a parameter
        d: steps are at most so long, relative to the learning rate

    >>> import genesis
    >>> p = genesis.nn.Parameter(genesis.ones(1)); p.sum().backward()
    >>> genesis.optim.Adafactor([p], lr=0.1).step(); p.detach()
    tensor([0.9000])
    """

    checked = ("lr", "weight_decay")

    elementwise = False

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, chosen(locals()))

    def check_group(self, group: Group) -> None:
        super().check_group(group)
        eps = group["eps"]
        if not isinstance(eps, list | tuple) or len(eps) != 2:
            raise ArgumentError(message("Adafactor", f"eps must be two numbers, the first may be None, got {eps!r}"))
        check_options("Adafactor", **{"eps[0]": 0.0 if eps[0] is None else eps[0], "eps[1]": eps[1]})
        check_options("Adafactor", d=group["d"], **{"-beta2_decay": -group["beta2_decay"]})
        if group["d"] < 1:
            raise ArgumentValueError(message("Adafactor", f"d must be at least 1, got {group['d']}"))

    def decoupled(self, group: Group) -> bool:
        return True

    def state_shape(self, name: str, param: Tensor) -> tuple[int, ...]:
        shape = param.shape
        return {"row_var": (*shape[:-1], 1), "col_var": (*shape[:-2], 1, *shape[-1:])}.get(name, shape)

    def begin(self, param: Any, state: dict[str, Any], group: Group) -> None:
        _refuse_complex("Adafactor", param)
        state["step"] = 0
        for name in ("row_var", "col_var") if param.ndim > 1 else ("variance",):
            state[name] = param.new_zeros(self.state_shape(name, param))

    def change(self, param: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        least, smallest = group["eps"]
        least = finfo(param.dtype).eps if least is None else least
        new = number(group, state, lambda lr, step, forget: float(step) ** forget, "beta2_decay")
        length = _root_mean_square(param).clamp(min=smallest)
        if group["weight_decay"]:
            param.mul_(number(group, state, lambda lr, step, decay: 1 - lr * decay, "weight_decay"))
        update = self._squares(g, state, new, least).clamp_(min=least * least).rsqrt_().mul_(g)
        excess = (_root_mean_square(update) / group["d"]).clamp(min=1.0)
        param.sub_(update * (length / excess * number(group, state, lambda lr, step: min(lr, step**-0.5))))

    def _squares(self, g: Any, state: dict[str, Any], new: float, least: float) -> Any:
        """The running average of the squared gradient; of matrices, the product of those of rows and columns."""
        if g.ndim < 2:
            return average(state["variance"], g * g, new).clone()
        for name, dim in (("row_var", -1), ("col_var", -2)):
            average(state[name], g.norm(dim=dim, keepdim=True).square_().div_(g.shape[dim]), new)
        rows = state["row_var"]
        return (rows * state["col_var"]).div_(rows.mean(-2, keepdim=True).clamp_(min=least))


def _root_mean_square(x: Any) -> Any:
    return x.norm().double() / x.numel() ** 0.5


class Muon(Stateful):
    """Momentum, made orthogonal: all singular values of a step are about the same (Jordan et al. 2024). For matrices.

    Args:
        ns_coefficients: of the odd polynomial that brings singular values towards one, applied ``ns_steps`` times
        adjust_lr_fn: "original" multiplies the rate by $\\sqrt{\\max(1, rows / columns)}$, "match_rms_adamw" by $0.2
            \\sqrt{\\max(rows, columns)}$ (Liu et al. 2025); None is the first

    Raises:
        ValueError: a parameter is no matrix

    >>> import genesis
    >>> p = genesis.nn.Parameter(genesis.ones(1, 1)); p.sum().backward()
    >>> genesis.optim.Muon([p], lr=0.1, weight_decay=0.0).step(); p.shape
    genesis.Size([1, 1])
    """

    elementwise = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        super().__init__(params, chosen(locals()))

    def check_group(self, group: Group) -> None:
        super().check_group(group)
        coefficients, kind = group["ns_coefficients"], group["adjust_lr_fn"]
        if not isinstance(coefficients, list | tuple) or len(coefficients) != 3:
            raise ArgumentValueError(message("Muon", f"ns_coefficients must be three numbers, got {coefficients!r}"))
        if kind not in (None, "original", "match_rms_adamw"):
            raise ArgumentValueError(
                message("Muon", f"unknown adjust_lr_fn {kind!r}", hint="original, match_rms_adamw")
            )
        if not 0 <= group["ns_steps"] < 100:
            raise ArgumentValueError(message("Muon", f"ns_steps must be in [0, 100), got {group['ns_steps']}"))

    def add_param_group(self, param_group: Group) -> None:
        super().add_param_group(param_group)
        for p in self.param_groups[-1]["params"]:
            if p.ndim != 2:
                self.param_groups.pop()
                raise ArgumentValueError(
                    message("Muon", f"parameters must be matrices, got {p.ndim} dimensions", [("parameter", p._spec())])
                )

    def state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ("momentum_buffer",)

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        _refuse_complex("Muon", param)
        if not state:
            with begins(state, self.state):
                state["momentum_buffer"] = zeros_like(grad)
        momentum = group["momentum"]
        buffer = average(state["momentum_buffer"], grad, 1 - momentum)
        step = _orthogonal(grad.lerp(buffer, momentum) if group["nesterov"] else buffer, group)
        scale = _scale(group["adjust_lr_fn"], *param.shape)
        param.mul_(number(group, state, lambda lr, _, decay: 1 - lr * decay, "weight_decay"))
        add_scaled(param, step.to(param.dtype), number(group, state, lambda lr, _: -lr * scale))


def _orthogonal(x: Any, group: Group) -> Any:
    """About $U V^T$ of $x = U S V^T$, by a polynomial that is applied several times, in 16 bits."""
    (a, b, c), upright = group["ns_coefficients"], x.shape[0] > x.shape[1]
    x = x.to(bfloat16)
    x = x.T if upright else x
    x = x / x.norm().clamp(min=group["eps"])
    for _ in range(group["ns_steps"]):
        gram = x @ x.T
        x = x.addmm(gram.addmm(gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if upright else x


def _scale(kind: str | None, rows: int, columns: int) -> float:
    """What the learning rate of a matrix is multiplied by."""
    if kind == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns)) if columns else 1.0


explain_all(globals(), "Adafactor", "Muon")
