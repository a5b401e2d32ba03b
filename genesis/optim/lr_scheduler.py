"""Learning rates over time. Each schedule gives the rate of a step from its number and the initial rate."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, GraphError, message
from genesis.core.tracing import tracer
from genesis.optim.optimizer import Optimizer


class LRScheduler:
    """Base class: `rate(base, step)` is the learning rate of a step; call ``step()`` after each epoch (or batch)."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(message(type(self).__name__, f"expected an Optimizer, got {type(optimizer).__name__}"))
        self.optimizer, self.last_epoch = optimizer, last_epoch
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.step()

    def rate(self, base: float, step: int) -> float:
        raise NotImplementedError(f"{type(self).__name__} defines no rate")

    def step(self) -> None:
        """Go on to the next learning rate.

        Raises:
            RuntimeError: a trace is being made, which would not see it
        """
        if tracer.get() is not None:
            raise GraphError(message(f"{type(self).__name__}.step", "a schedule is no part of a traced step: replays would not go on with it",
                                     hint="call step() between replays; they read the learning rate each time"))  # fmt: skip
        self.last_epoch += 1
        for i, (group, base) in enumerate(zip(self.optimizer.param_groups, self.base_lrs, strict=True)):
            group["lr"] = self.group_rate(i, base, self.last_epoch)

    def group_rate(self, group: int, base: float, step: int) -> float:
        return self.rate(base, step)

    def get_last_lr(self) -> list[float]:
        """The learning rates in use."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "optimizer" and not callable(v)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update(state_dict)


class LambdaLR(LRScheduler):
    """The initial rate times a function of the step.

    >>> import genesis
    >>> opt = genesis.optim.SGD([genesis.ones(1, requires_grad=True)], lr=1.0)
    >>> s = genesis.optim.lr_scheduler.LambdaLR(opt, lambda step: 0.5 ** step); s.step(); s.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]], last_epoch: int = -1) -> None:
        count = len(optimizer.param_groups)
        self.lr_lambdas = [lr_lambda] * count if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != count:
            raise ArgumentValueError(message("LambdaLR", f"{len(self.lr_lambdas)} functions for {count} parameter groups"))
        super().__init__(optimizer, last_epoch)

    def group_rate(self, group: int, base: float, step: int) -> float:
        return base * self.lr_lambdas[group](step)


class StepLR(LRScheduler):
    """The rate times ``gamma`` every ``step_size`` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return base * self.gamma ** (step // self.step_size)


class MultiStepLR(LRScheduler):
    """The rate times ``gamma`` at each milestone."""

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return base * self.gamma ** bisect_right(self.milestones, step)


class ExponentialLR(LRScheduler):
    """The rate times ``gamma`` every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return base * self.gamma**step


class LinearLR(LRScheduler):
    """From ``start_factor`` to ``end_factor`` times the rate in ``total_iters`` even steps."""

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5, last_epoch: int = -1) -> None:
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        done = min(step, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * done)


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the rate down to ``eta_min`` in ``T_max`` steps (Loshchilov and Hutter 2016).

    >>> import genesis
    >>> opt = genesis.optim.SGD([genesis.ones(1, requires_grad=True)], lr=1.0)
    >>> s = genesis.optim.lr_scheduler.CosineAnnealingLR(opt, 2); s.step(); round(s.get_last_lr()[0], 6)
    0.5
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:  # noqa: N803 (PyTorch's name)
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * step / self.T_max)) / 2
