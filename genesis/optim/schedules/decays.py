"""Schedules that are functions of the step: steps down, lines, powers, cosines."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.core.call.refusal import explain_all
from genesis.optim.optimizer import Optimizer
from genesis.optim.options import scalar, whole_number
from genesis.optim.schedules.base import LRScheduler, expect_optimizer, real_number, step_count
from genesis.optim.schedules.state import check_state
from genesis.optim.state import StateDictError


def step_numbers(name: str, steps: Any) -> list[float]:
    """Steps in their order, or an error that says what is none."""
    if isinstance(steps, str | bytes) or not hasattr(steps, "__iter__"):
        raise ArgumentError(message(name, f"milestones must be a list of step numbers, got {type(steps).__name__}"))
    return sorted(_reached(name, step) for step in steps)


def _reached(name: str, step: Any) -> float:
    """A step's number; one with a fraction is allowed, as programs compute them, and never comes."""
    if isinstance(step, float) and math.isfinite(step) and step >= 0 and not step.is_integer():
        return step
    return whole_number(name, "a milestone", int(step) if isinstance(step, float) and step.is_integer() else step, 0)


class _ByFunctions(LRScheduler):
    """A schedule of functions of the step, one for each parameter group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        name = type(self).__name__
        count = len(expect_optimizer(name, optimizer).param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * count
        self._check_count(count)
        for f in self.lr_lambdas:
            if not callable(f):
                raise ArgumentError(message(name, f"lr_lambda must be a function, got {type(f).__name__}"))
        super().__init__(optimizer, last_epoch)

    def _check_count(self, groups: int) -> None:
        if len(self.lr_lambdas) != groups:
            raise ArgumentValueError(
                message(type(self).__name__, f"{len(self.lr_lambdas)} functions for {groups} parameter groups")
            )

    def _factors(self) -> Iterator[tuple[Any, float, float]]:
        """Groups, their initial rates, and what the functions give."""
        groups = list(self._groups())
        self._check_count(len(groups))
        for (group, base), f in zip(groups, self.lr_lambdas, strict=True):
            yield group, base, f(self.last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """As of every schedule; of functions that are objects their attributes, of others None."""
        return {**super().state_dict(), "lr_lambdas": [attributes_of(f) for f in self.lr_lambdas]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        check_state(self, state_dict)
        saved = state_dict["lr_lambdas"]
        if len(saved) != len(self.lr_lambdas):
            raise StateDictError(
                message(
                    f"{type(self).__name__}.load_state_dict",
                    f"{len(saved)} functions in the state, {len(self.lr_lambdas)} in the schedule",
                )
            )
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for f, attributes in zip(self.lr_lambdas, saved, strict=True):
            if attributes:
                vars(f).update(attributes)


def attributes_of(f: Any) -> dict[str, Any] | None:
    """What is saved of a function that is an object; nothing of others."""
    return None if f is None or isinstance(f, FunctionType) else dict(vars(f))


class LambdaLR(_ByFunctions):
    """The initial rate times a function of the step.

    >>> import genesis
    >>> opt = genesis.optim.SGD([genesis.ones(1, requires_grad=True)], lr=1.0)
    >>> s = genesis.optim.lr_scheduler.LambdaLR(opt, lambda step: 0.5 ** step); opt.step(); s.step(); s.get_last_lr()
    [0.5]
    """

    def get_lr(self) -> list[float]:
        return [base * factor for _, base, factor in self._factors()]


class MultiplicativeLR(_ByFunctions):
    """The rate times a function of the step.

    >>> import genesis
    >>> opt = genesis.optim.SGD([genesis.ones(1, requires_grad=True)], lr=1.0)
    >>> s = genesis.optim.lr_scheduler.MultiplicativeLR(opt, lambda step: 0.5); opt.step(); s.step(); s.get_last_lr()
    [0.5]
    """

    def get_lr(self) -> list[float]:
        if self._is_initial:
            return [scalar(group["lr"]) for group in self.optimizer.param_groups]
        return [scalar(group["lr"]) * factor for group, _, factor in self._factors()]


def part_done(step: int, steps: float) -> float:
    return min(step, steps) / steps if steps else 1.0


class StepLR(LRScheduler):
    """The rate times ``gamma`` every ``step_size`` steps.

    Two schedules on one optimizer both change its rate:

    >>> import genesis
    >>> from genesis.optim.lr_scheduler import ExponentialLR, StepLR
    >>> opt = genesis.optim.SGD([genesis.ones(1, requires_grad=True)], lr=1.0)
    >>> both = ExponentialLR(opt, 0.9), StepLR(opt, 1, 0.5); opt.step()
    >>> for schedule in both: schedule.step()
    >>> opt.param_groups[0]["lr"]
    0.45
    """

    def __init__(self, optimizer: Optimizer, step_size: float, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = (
            step_count("StepLR", "step_size", step_size, 1),
            real_number("StepLR", "gamma", gamma),
        )
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return base * self.gamma ** (step // self.step_size)

    def next_rate(self, rate: float, base: float, step: int) -> float:
        return rate * self.gamma if step and step % self.step_size == 0 else rate


class MultiStepLR(LRScheduler):
    """The rate times ``gamma`` at each milestone."""

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(step_numbers("MultiStepLR", milestones))
        self.gamma = real_number("MultiStepLR", "gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return base * self.gamma ** bisect_right(sorted(self.milestones.elements()), step)

    def next_rate(self, rate: float, base: float, step: int) -> float:
        return rate * self.gamma ** self.milestones[step]

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        check_state(self, state_dict)
        saved = Counter(state_dict["milestones"])
        step_numbers("MultiStepLR.load_state_dict", saved.elements())
        self.__dict__.update({**state_dict, "milestones": saved})


class ConstantLR(LRScheduler):
    """``factor`` times the rate for ``total_iters`` steps, then the rate.

    >>> import genesis
    >>> opt = genesis.optim.SGD([genesis.ones(1, requires_grad=True)], lr=1.0)
    >>> s = genesis.optim.lr_scheduler.ConstantLR(opt, 0.5, total_iters=1); rates = s.get_last_lr()
    >>> opt.step(); s.step(); rates + s.get_last_lr()
    [0.5, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: float = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= real_number("ConstantLR", "factor", factor) <= 1:
            raise ArgumentValueError(message("ConstantLR", f"factor must be in [0, 1], got {factor}"))
        self.factor, self.total_iters = factor, step_count("ConstantLR", "total_iters", total_iters, 0)
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return base * (1.0 if step >= self.total_iters else self.factor)

    def next_rate(self, rate: float, base: float, step: int) -> float:
        if step == 0:
            return rate * self.factor
        if step != self.total_iters:
            return rate
        return rate * (1.0 / self.factor) if self.factor else base


class PolynomialLR(LRScheduler):
    """From the rate to zero in ``total_iters`` steps, $lr \\cdot (1 - t / n)^{power}$.

    >>> import genesis
    >>> opt = genesis.optim.SGD([genesis.ones(1, requires_grad=True)], lr=1.0)
    >>> s = genesis.optim.lr_scheduler.PolynomialLR(opt, total_iters=4); opt.step(); s.step(); s.get_last_lr()
    [0.75]
    """

    def __init__(self, optimizer: Optimizer, total_iters: float = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = step_count("PolynomialLR", "total_iters", total_iters, 0)
        self.power = real_number("PolynomialLR", "power", power)
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return base * (1.0 - part_done(step, self.total_iters)) ** self.power

    def next_rate(self, rate: float, base: float, step: int) -> float:
        if self._is_initial or step > self.total_iters:
            return rate
        left = (1.0 - step / self.total_iters) / (1.0 - (step - 1) / self.total_iters)
        return rate * left**self.power


class ExponentialLR(LRScheduler):
    """The rate times ``gamma`` every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = real_number("ExponentialLR", "gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return base * self.gamma**step

    def next_rate(self, rate: float, base: float, step: int) -> float:
        return rate if self._is_initial else rate * self.gamma


class LinearLR(LRScheduler):
    """From ``start_factor`` to ``end_factor`` times the rate in ``total_iters`` even steps.

    Raises:
        ValueError: ``start_factor`` is not in (0, 1], ``end_factor`` not in [0, 1], or ``total_iters`` negative
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: float = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < real_number("LinearLR", "start_factor", start_factor) <= 1:
            raise ArgumentValueError(message("LinearLR", f"start_factor must be in (0, 1], got {start_factor}"))
        if not 0 <= real_number("LinearLR", "end_factor", end_factor) <= 1:
            raise ArgumentValueError(message("LinearLR", f"end_factor must be in [0, 1], got {end_factor}"))
        self.start_factor, self.end_factor, self.total_iters = (
            start_factor,
            end_factor,
            step_count("LinearLR", "total_iters", total_iters, 0),
        )
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        done = part_done(step, self.total_iters)
        return base * (self.start_factor + (self.end_factor - self.start_factor) * done)

    def next_rate(self, rate: float, base: float, step: int) -> float:
        if step == 0:
            return rate * self.start_factor
        if self._is_initial or step > self.total_iters:
            return rate
        slope = self.end_factor - self.start_factor
        return rate * (1.0 + slope / (self.total_iters * self.start_factor + (step - 1) * slope))


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the rate down to ``eta_min`` in ``T_max`` steps (Loshchilov and Hutter 2016).

    >>> import genesis
    >>> opt = genesis.optim.SGD([genesis.ones(1, requires_grad=True)], lr=1.0)
    >>> s = genesis.optim.lr_scheduler.CosineAnnealingLR(opt, 2); opt.step(); s.step(); round(s.get_last_lr()[0], 6)
    0.5
    """

    # PyTorch's name
    def __init__(self, optimizer: Optimizer, T_max: float, eta_min: float = 0.0, last_epoch: int = -1) -> None:  # noqa: N803
        self.T_max, self.eta_min = (
            step_count("CosineAnnealingLR", "T_max", T_max, 1),
            real_number("CosineAnnealingLR", "eta_min", eta_min),
        )
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * step / self.T_max)) / 2

    def next_rate(self, rate: float, base: float, step: int) -> float:
        if self._is_initial:
            return rate
        if (step - 1 - self.T_max) % (2 * self.T_max) == 0:  # the turning point, where the ratio below is 0 / 0
            return rate + (base - self.eta_min) * (1 - math.cos(math.pi / self.T_max)) / 2
        ratio = (1 + math.cos(math.pi * step / self.T_max)) / (1 + math.cos(math.pi * (step - 1) / self.T_max))
        return ratio * (rate - self.eta_min) + self.eta_min


explain_all(
    globals(),
    "_ByFunctions",
    "StepLR",
    "MultiStepLR",
    "ConstantLR",
    "LinearLR",
    "ExponentialLR",
    "PolynomialLR",
    "CosineAnnealingLR",
)
