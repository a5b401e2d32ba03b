"""Stochastic gradient descent: plain, averaged, and by signs alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy import float32

from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.base.quiet import quietly
from genesis.core.call.halves import F32, F64
from genesis.core.call.refusal import explain_all
from genesis.core.call.writes import bump_all
from genesis.core.graph.switches import ACTIVE, LEVELS, PACKING
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import begins, tracer
from genesis.core.graph.version import INFERENCE, SHARED
from genesis.ops.creation.create import full_like, ones_like
from genesis.ops.learning.update import add_scaled, plus
from genesis.ops.pointwise.choice import where
from genesis.optim import together
from genesis.optim.optimizer import Group
from genesis.optim.options import chosen, number
from genesis.optim.rows import refuse_option, step_down
from genesis.optim.stateful import Stateful


class SGD(Stateful):
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
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, chosen(locals()))

    def check_group(self, group: Group) -> None:
        super().check_group(group)
        momentum, dampening = group["momentum"], group["dampening"]
        if group["nesterov"] and (momentum <= 0 or dampening != 0):
            raise ArgumentValueError(
                message(
                    "SGD",
                    f"nesterov needs momentum and no dampening, got momentum={momentum} and dampening={dampening}",
                )
            )

    def state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ()

    def _update_group(self, group: Group) -> None:
        """`update` of all parameters where nothing is open, no method is another's and all options are numbers: by one
        call of a compiled rule where that pays, else of small ones without the calls of ops (6 us each).
        """
        options = [group[name] for name in ("lr", "weight_decay", "momentum", "dampening")]
        ordinary = type(self).update is SGD.update and all([x.__class__ in (float, int) for x in options])
        if not ordinary or ACTIVE or LEVELS or PACKING or group["differentiable"]:
            super()._update_group(group)
            return
        rows: list[tuple[Any, ...]] = []
        params = [(p, p.grad) for p in group["params"] if p.grad is not None]
        compiled = together.steps_pay([p._array.size for p, _ in params])
        for p, grad in params:
            state = self.state[p]
            buffer = state.get("momentum_buffer") if group["momentum"] else p
            fits = buffer is not None and _own(p) and _own(buffer) and _alike(p, grad, buffer)
            if not fits or (p._array.size > SMALL and not compiled):
                _take(rows, options, group, compiled)
                rows = []
                self._update_one(p, grad, group)
            else:
                rows.append((p, grad, buffer))
        _take(rows, options, group, compiled)

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        g: Any = -grad if group["maximize"] else grad
        if group["weight_decay"]:
            g = plus(g, param, group["weight_decay"])
        if group["momentum"]:
            buffer = state.get("momentum_buffer")
            if buffer is None and tracer.get() is not None and group["dampening"] == 0 and not group["differentiable"]:
                with begins(state, self.state):  # the same step as all others: -0.0 + g is g
                    buffer = state["momentum_buffer"] = full_like(param, -0.0)
            if buffer is None:
                buffer = state["momentum_buffer"] = g.to(g.dtype, copy=True)  # laid out as the gradient is
            else:
                buffer.mul_(group["momentum"])
                buffer.add_(g) if group["dampening"] == 0 else add_scaled(buffer, g, 1 - group["dampening"])
            g = plus(g, buffer, group["momentum"]) if group["nesterov"] else buffer
        add_scaled(param, g, number(group, state, lambda lr, step: -lr))

    def update_sparse(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        for option in ("weight_decay", "fused", "differentiable"):
            if group[option]:
                refuse_option("SGD", option)
        g: Any = -grad if group["maximize"] else grad
        if group["momentum"]:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = g.clone()
            else:  # in order: PyTorch's grows with each step
                buffer = (buffer * group["momentum"] + g * (1 - group["dampening"])).coalesce()
                state["momentum_buffer"] = buffer
            g = g + buffer * group["momentum"] if group["nesterov"] else buffer
        step_down(param, g, number(group, state, lambda lr, step: -lr))


SMALL = 8192  # elements, below which ops have nothing faster than NumPy's functions


def _own(x: Tensor) -> bool:
    """Whether this is an array of NumPy's that may be written to, and nobody else's."""
    array, counter = x._array, x._counter
    return (
        array.__class__ is np.ndarray
        and (array.dtype is F32 or array.dtype is F64)
        and array.flags.carray
        and x._view is None
        and counter is not SHARED
        and counter is not INFERENCE
    )


def _alike(p: Tensor, grad: Tensor, buffer: Tensor) -> bool:
    a, g, b = p._array, grad._array, buffer._array
    shape, dtype = a.shape, a.dtype
    return g.__class__ is np.ndarray and g.shape == shape == b.shape and g.dtype is dtype is b.dtype


def _take(rows: Sequence[tuple[Any, ...]], options: Sequence[float], group: Group, compiled: bool) -> None:
    """The steps of parameters: of each the tensor, the gradient and the buffer of momentum."""
    if rows:
        arrays = [(p._array, grad._array, buffer._array) for p, grad, buffer in rows]
        if compiled:
            quietly(_by_rule, arrays, *options, group["nesterov"], group["maximize"])
        else:
            quietly(_steps, arrays, *options, group["nesterov"], group["maximize"])
        bump_all([p for p, _, _ in rows] + [buffer for p, _, buffer in rows if buffer is not p], "add_")


def _steps(
    rows: Sequence[tuple[Any, ...]],
    lr: float,
    decay: float,
    momentum: float,
    dampening: float,
    nesterov: bool,
    up: bool,
) -> None:
    """`SGD.update` of arrays, in the same order."""
    for p, grad, buffer in rows:
        g = -grad if up else grad
        if decay:
            g = g + p * decay
        if momentum:
            np.multiply(buffer, momentum, buffer)
            np.add(buffer, g if dampening == 0 else g * (1 - dampening), buffer)
            g = g + buffer * momentum if nesterov else buffer
        np.add(p, g * -lr, p)


def _by_rule(
    rows: Sequence[tuple[Any, ...]],
    lr: float,
    decay: float,
    momentum: float,
    dampening: float,
    nesterov: bool,
    up: bool,
) -> None:
    """`_steps` by the compiled rule."""
    numbers = {"rate": -lr}
    options = {"decay": decay, "momentum": momentum, "nesterov": float(nesterov and momentum != 0), "sign": -float(up)}
    numbers |= {name: value for name, value in options.items() if value}
    if momentum and dampening:
        numbers["undamped"] = 1 - dampening
    for dtype in {row[0].dtype: None for row in rows}:
        some = [row if momentum else row[:2] for row in rows if row[0].dtype is dtype]
        together.steps_by_rule("sgd", ("momentum_buffer",) if momentum else (), some, numbers)


class ASGD(Stateful):
    """`SGD` that also keeps the average of the parameters, in its state under "ax" (Polyak and Juditsky 1992).

    The rate of step $t$ is $lr / (1 + \\lambda \\cdot lr \\cdot t)^\\alpha$, each step shrinks the parameter by
    $\\lambda$ times it, and averaging begins at step ``t0``.

    >>> import genesis
    >>> p = genesis.nn.Parameter(genesis.ones(1)); p.sum().backward()
    >>> genesis.optim.ASGD([p], lr=0.1).step(); p.detach()
    tensor([0.9000])
    """

    checked = ("lr", "weight_decay")
    single = ("eta", "mu")
    rule = "asgd"

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, chosen(locals()))

    def first_state(self, group: Mapping[str, Any]) -> dict[str, Any]:
        return {"eta": group["lr"], "mu": 1.0, "ax": 0.0}

    def numbers(self, group: Group, step: int, singles: dict[str, float]) -> dict[str, float]:
        eta, mu = singles["eta"], singles["mu"]
        count = float32(step) if group["foreach"] else step  # PyTorch's loops over lists round there
        singles["eta"] = _slower(group["lr"], count, group["lambd"], group["alpha"])
        singles["mu"] = _share(step, group["t0"])
        numbers = {"left": 1 - eta * group["lambd"], "eta": eta}
        return numbers if mu == 1 else {**numbers, "mu": mu}

    def change(self, param: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        eta, mu, ax = state["eta"].double(), state["mu"], state["ax"]
        param.mul_(1 - eta * group["lambd"]).sub_(g * eta)
        ax.copy_(where(mu == 1, param, ax + (param - ax) * mu))

        def rate(lr: Any, step: Any, lambd: float, alpha: float) -> Any:
            count = float32(step) if group["foreach"] else step  # PyTorch's loops over lists round there
            return _slower(lr, count, lambd, alpha)

        state["eta"].mul_(0).add_(number(group, state, rate, "lambd", "alpha"))
        mu.mul_(0).add_(number(group, state, lambda lr, step, t0: _share(step, t0), "t0"))


def _slower(lr: Any, step: Any, lambd: float, alpha: float) -> Any:
    """The rate of the next step."""
    return lr / (1 + lambd * lr * step) ** alpha


def _share(step: int, t0: float) -> float:
    """What of the difference is added to the average at the next step."""
    return 1 / max(1, step - t0)


class Rprop(Stateful):
    """Steps along the sign of the gradient, of a size of its own for each element, which grows while the sign stays and
    shrinks where it turns (Riedmiller and Braun 1993).

    Args:
        etas: what the size is multiplied by where the sign turned, and where it stayed
        step_sizes: the smallest and the largest size; ``lr`` is the first one

    >>> import genesis
    >>> p = genesis.nn.Parameter(genesis.ones(1)); p.sum().backward()
    >>> genesis.optim.Rprop([p], lr=0.1).step(); p.detach()
    tensor([0.9000])
    """

    rule = "rprop"

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, chosen(locals()))

    def check_group(self, group: Group) -> None:
        super().check_group(group)
        for name in ("etas", "step_sizes"):
            two_numbers("Rprop", name, group[name])
        shrink, grow = group["etas"]
        if not 0 < shrink < 1 < grow:
            raise ArgumentValueError(message("Rprop", f"etas must be a < 1 < b, got {shrink} and {grow}"))

    def first_state(self, group: Mapping[str, Any]) -> dict[str, Any]:
        return {"prev": 0.0, "step_size": group["lr"]}

    def numbers(self, group: Group, step: int, singles: dict[str, float]) -> dict[str, float]:
        (shrink, grow), (low, high) = group["etas"], group["step_sizes"]
        return {"shrink_by": shrink, "grow": grow, "least": low, "most": high}

    def change(self, param: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        (shrink, grow), (least, most) = group["etas"], group["step_sizes"]
        agreement = g * state["prev"]
        turned = agreement < 0
        factor = where(turned, shrink, where(agreement > 0, grow, ones_like(g)))
        size = state["step_size"].mul_(factor).clamp_(least, most)
        g = where(turned, 0.0, g)
        param.sub_(g.sign() * size)
        state["prev"].copy_(g)


def two_numbers(name: str, what: str, values: Any) -> None:
    """Refuse what is not a pair of numbers."""
    pair = isinstance(values, list | tuple) and len(values) == 2
    if not pair or not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        raise ArgumentError(message(name, f"{what} must be two numbers, got {values!r}"))


explain_all(globals(), "SGD", "ASGD", "Rprop")
