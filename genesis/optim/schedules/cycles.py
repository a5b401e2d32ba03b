"""Schedules that go up and down, some of them with the momentum."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from genesis.base.errors import ArgumentValueError, message
from genesis.core.call.refusal import explain_all
from genesis.optim.optimizer import Optimizer
from genesis.optim.options import scalar, whole_number
from genesis.optim.schedules.base import (
    LRScheduler,
    expect_optimizer,
    left_to_calls,
    of_groups,
    one_of,
    real_number,
    step_count,
)
from genesis.optim.schedules.decays import attributes_of
from genesis.optim.schedules.state import check_state


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from the initial rate down to ``eta_min``, again and again (Loshchilov and Hutter 2016).

    Args:
        T_0: steps of the first cosine
        T_mult: each is so many times as long as the one before

    >>> import genesis
    >>> opt = genesis.optim.SGD([genesis.ones(1, requires_grad=True)], lr=1.0)
    >>> s = genesis.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, 2); rates = []
    >>> for _ in range(4): rates += s.get_last_lr(); opt.step(); s.step()
    >>> rates
    [1.0, 0.5, 1.0, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,  # noqa: N803
        T_mult: int = 1,  # noqa: N803
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        name = "CosineAnnealingWarmRestarts"
        self.T_0 = self.T_i = whole_number(name, "T_0", T_0, 1)
        self.T_mult, self.eta_min = whole_number(name, "T_mult", T_mult, 1), real_number(name, "eta_min", eta_min)
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for _, base in self._groups()]

    def step(self, epoch: float | None = None) -> None:  # type: ignore[override]
        """Go on to the next rate, or to that of an epoch, which may be a fraction."""
        if left_to_calls(self, epoch):
            return
        if epoch is not None and not real_number("CosineAnnealingWarmRestarts.step", "epoch", epoch) >= 0:
            raise ArgumentValueError(
                message("CosineAnnealingWarmRestarts.step", f"epoch must be at least 0, got {epoch}")
            )
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch, self.T_cur = self.last_epoch + 1, self.T_cur + 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        else:
            self._jump(epoch)
        self.last_epoch = math.floor(epoch)
        self._apply(self.get_lr())

    def _jump(self, epoch: float) -> None:
        """The cosine that an epoch is in, and where in it."""
        n = epoch // self.T_0
        if self.T_mult > 1:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
        start = n if self.T_mult == 1 else (self.T_mult**n - 1) / (self.T_mult - 1)
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        else:
            self.T_i = self.T_i if self.T_mult == 1 else self.T_0 * self.T_mult**n
            self.T_cur = epoch % self.T_0 if self.T_mult == 1 else epoch - self.T_0 * start


def _with_momentum(
    name: str, optimizer: Optimizer, low: Any, high: Any, starts: bool
) -> tuple[bool, list[float], list[float]]:
    """Whether the momentum is the first beta, and the smallest and the largest one of each group; groups begin with the
    largest.
    """
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ArgumentValueError(
            message(name, f"{type(optimizer).__name__} has neither momentum nor betas", hint="cycle_momentum=False")
        )
    lows = of_groups(name, "base_momentum", low, optimizer)
    highs = of_groups(name, "max_momentum", high, optimizer)
    for group, least, most in zip(optimizer.param_groups, lows, highs, strict=True):
        if starts:
            group.update(max_momentum=most, base_momentum=least)
            _set_momentum(group, "betas" in optimizer.defaults, most)
    return "betas" in optimizer.defaults, lows, highs


def _set_momentum(group: dict[str, Any], is_beta: bool, momentum: float) -> None:
    if is_beta:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


class CyclicLR(LRScheduler):
    """From ``base_lr`` to ``max_lr`` and back, again and again (Smith 2017), the momentum the other way round.

    Args:
        step_size_up: steps up; step_size_down: steps down, as many if it is None
        mode: "triangular", "triangular2" (half as high each time) or "exp_range" (``gamma`` to the power of the step)
        scale_fn: a height of one's own, a function of the number of the cycle or of the step (``scale_mode``
            "iterations")
        cycle_momentum: change the momentum, or the first beta, between ``max_momentum`` and ``base_momentum``

    >>> import genesis
    >>> opt = genesis.optim.SGD([genesis.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> s = genesis.optim.lr_scheduler.CyclicLR(opt, 0.25, 1.25, step_size_up=2); rates = []
    >>> for _ in range(5): rates += s.get_last_lr(); opt.step(); s.step()
    >>> rates
    [0.25, 0.75, 1.25, 0.75, 0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: float = 2000,
        step_size_down: float | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        name = "CyclicLR"
        self.optimizer = expect_optimizer(name, optimizer)
        lows = of_groups(name, "base_lr", base_lr, optimizer)
        self.max_lrs = of_groups(name, "max_lr", max_lr, optimizer)
        up = float(step_count(name, "step_size_up", step_size_up, 1))
        down = up if step_size_down is None else float(step_count(name, "step_size_down", step_size_down, 0))
        self.total_size, self.step_ratio = up + down, up / (up + down)
        if scale_fn is None:
            one_of(name, "mode", mode, ("triangular", "triangular2", "exp_range"))
        self.mode, self.gamma, self._scale_fn_custom = mode, real_number(name, "gamma", gamma), scale_fn
        by_step = mode == "exp_range" if scale_fn is None else scale_mode != "cycle"
        self.scale_mode = "iterations" if by_step else "cycle"
        if last_epoch == -1:
            self._apply(lows)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1, self.base_momentums, self.max_momentums = _with_momentum(
                name, optimizer, base_momentum, max_momentum, last_epoch == -1
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    def scale_fn(self, x: float) -> float:
        """The height of a cycle, or at a step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return {"triangular": 1.0, "triangular2": 0.5 ** (x - 1)}.get(self.mode) or self.gamma**x

    def get_lr(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            for group, low, high in zip(groups, self.base_momentums, self.max_momentums, strict=True):
                _set_momentum(group, self.use_beta1, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """As of every schedule; of a ``scale_fn`` that is an object its attributes, of others None."""
        return {**super().state_dict(), "_scale_fn_custom": attributes_of(self._scale_fn_custom)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        check_state(self, state_dict)
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if state_dict.get("_scale_fn_custom") and self._scale_fn_custom is not None:
            vars(self._scale_fn_custom).update(state_dict["_scale_fn_custom"])


def cosine_between(start: float, end: float, part: float) -> float:
    """From ``start`` to ``end`` by half a cosine."""
    return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


def line_between(start: float, end: float, part: float) -> float:
    """From ``start`` to ``end`` by a line."""
    return (end - start) * part + start


class OneCycleLR(LRScheduler):
    """Up to ``max_lr`` and down to nearly zero, once (Smith and Topin 2018), the momentum the other way round.

    Args:
        total_steps: of the cycle; or ``epochs`` and ``steps_per_epoch``
        pct_start: the part of the steps that go up
        anneal_strategy: "cos" or "linear"
        div_factor: the first rate is ``max_lr`` divided by this, the last one that divided by ``final_div_factor``
        three_phase: back to the first rate in as many steps, before it goes down to the last

    Raises:
        ValueError: no number of steps, an unknown strategy, or a step after the last

    >>> import genesis
    >>> opt = genesis.optim.SGD([genesis.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> s = genesis.optim.lr_scheduler.OneCycleLR(opt, 1.0, total_steps=5, pct_start=0.4, div_factor=4.0); rates = []
    >>> for _ in range(4): rates += s.get_last_lr(); opt.step(); s.step()
    >>> [round(rate, 3) for rate in rates]
    [0.25, 1.0, 0.75, 0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        name = "OneCycleLR"
        self.optimizer = expect_optimizer(name, optimizer)
        self.total_steps = _total(total_steps, epochs, steps_per_epoch)
        if not 0 <= real_number(name, "pct_start", pct_start) <= 1:
            raise ArgumentValueError(message(name, f"pct_start must be in [0, 1], got {pct_start}"))
        self._anneal_func_type = one_of(name, "anneal_strategy", anneal_strategy, ("cos", "linear"))
        self._schedule_phases = _phases(self.total_steps, pct_start, bool(three_phase))
        for what, divisor in (("div_factor", div_factor), ("final_div_factor", final_div_factor)):
            if real_number(name, what, divisor) == 0:
                raise ArgumentValueError(message(name, f"{what} must not be 0"))
        if last_epoch == -1:
            for group, most in zip(optimizer.param_groups, of_groups(name, "max_lr", max_lr, optimizer), strict=True):
                first = most / div_factor
                group.update(initial_lr=first, max_lr=most, min_lr=first / final_div_factor)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _with_momentum(name, optimizer, base_momentum, max_momentum, last_epoch == -1)[0]
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch > self.total_steps:
            raise ArgumentValueError(
                message("OneCycleLR.step", f"step {self.last_epoch} of a cycle of {self.total_steps} steps")
            )
        start, phase = _phase_of(self._schedule_phases, self.last_epoch)
        length = phase["end_step"] - start
        part = (self.last_epoch - start) / length if length else 1.0
        between = cosine_between if self._anneal_func_type == "cos" else line_between
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                momentum = between(group[phase["start_momentum"]], group[phase["end_momentum"]], part)
                _set_momentum(group, self.use_beta1, momentum)
        groups = self.optimizer.param_groups
        return [between(scalar(g[phase["start_lr"]]), scalar(g[phase["end_lr"]]), part) for g in groups]


def _total(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total_steps is not None:
        return whole_number("OneCycleLR", "total_steps", total_steps, 1)
    if epochs is None or steps_per_epoch is None:
        raise ArgumentValueError(
            message("OneCycleLR", "the number of steps is unknown", hint="total_steps, or epochs and steps_per_epoch")
        )
    return whole_number("OneCycleLR", "epochs", epochs, 1) * whole_number(
        "OneCycleLR", "steps_per_epoch", steps_per_epoch, 1
    )


def _phases(steps: int, up: float, three: bool) -> list[dict[str, Any]]:
    """Where each phase ends, and between which entries of a group it goes."""
    names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
    first = (float(up * steps) - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    back = (float(2 * up * steps) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum")
    last = (steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum")
    down = (steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")
    return [dict(zip(names, phase, strict=True)) for phase in ((first, back, last) if three else (first, down))]


def _phase_of(phases: list[dict[str, Any]], step: int) -> tuple[float, dict[str, Any]]:
    """The phase that a step is in, and where it begins."""
    start = 0.0
    for phase in phases[:-1]:
        if step <= phase["end_step"]:
            return start, phase
        start = phase["end_step"]
    return start, phases[-1]


explain_all(globals(), "CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR")
