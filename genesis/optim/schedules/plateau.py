"""A schedule that goes by a measure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, GraphError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.site import warn_user
from genesis.core.graph.tensor import Tensor
from genesis.optim.optimizer import Optimizer
from genesis.optim.options import scalar
from genesis.optim.schedules.base import (
    LRScheduler,
    expect_optimizer,
    left_to_calls,
    of_groups,
    one_of,
    real_number,
    step_count,
)


class ReduceLROnPlateau(LRScheduler):
    """The rate times ``factor`` where a measure, given to ``step()``, has not become better for ``patience`` steps.

    Args:
        mode: whether less is better ("min") or more ("max")
        threshold: by how much it has to be better, relative to the best ("rel") or by itself ("abs")
        cooldown: how many steps to wait after a change before steps are counted again
        min_lr: the smallest rate, one or one for each group
        eps: changes that are not larger are not made

    Raises:
        ValueError: ``factor`` is not less than 1, an unknown mode, or ``min_lr`` for another number of groups

    >>> import genesis
    >>> opt = genesis.optim.SGD([genesis.ones(1, requires_grad=True)], lr=1.0)
    >>> s = genesis.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0): s.step(loss)
    >>> s.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: float = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: float = 0,
        min_lr: float | Sequence[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        name = "ReduceLROnPlateau"
        self.optimizer = expect_optimizer(name, optimizer)
        if not real_number(name, "factor", factor) < 1.0:
            raise ArgumentValueError(message(name, f"factor must be less than 1, got {factor}"))
        self.factor = factor
        self.default_min_lr = None if isinstance(min_lr, list | tuple) else min_lr
        self.min_lrs = of_groups(name, "min_lr", min_lr, optimizer)
        self.patience, self.cooldown = (
            step_count(name, "patience", patience, 0),
            step_count(name, "cooldown", cooldown, 0),
        )
        self.eps, self.last_epoch = real_number(name, "eps", eps), 0
        self.mode = one_of(name, "mode", mode, ("min", "max"))
        self.threshold = real_number(name, "threshold", threshold)
        self.threshold_mode = one_of(name, "threshold_mode", threshold_mode, ("rel", "abs"))
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self._note_rates()
        self._reset()

    def _reset(self) -> None:
        self.best, self.cooldown_counter, self.num_bad_epochs = self.mode_worse, 0, 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take a measure into account, a number or a tensor of one element."""
        if left_to_calls(self, metrics, epoch):
            return
        value = _measure(metrics)
        if epoch is not None:
            warn_user(message("ReduceLROnPlateau.step", "an epoch is deprecated", hint="step(measure), once an epoch"))
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        better = self._is_better(value, self.best)
        self.best = value if better else self.best
        self.num_bad_epochs = 0 if better else self.num_bad_epochs + 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._note_rates()

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise GraphError(
                    message("ReduceLROnPlateau", f"{len(self.min_lrs)} smallest rates for {len(groups)} groups",
                            hint="set min_lrs when a group is added")
                )  # fmt: skip
            self.min_lrs = [self.default_min_lr] * len(groups)
        rates = [float(scalar(group["lr"])) for group in groups]
        smaller = [max(rate * self.factor, least) for rate, least in zip(rates, self.min_lrs, strict=True)]
        self._apply([new if old - new > self.eps else old for old, new in zip(rates, smaller, strict=True)])

    @property
    def in_cooldown(self) -> bool:
        """Whether steps are not counted, after a change."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float, best: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        limit = best * (1.0 - sign * self.threshold) if self.threshold_mode == "rel" else best - sign * self.threshold
        return value < limit if self.mode == "min" else value > limit

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self.mode_worse = math.inf if self.mode == "min" else -math.inf


def _measure(metrics: Any) -> float:
    if isinstance(metrics, Tensor) and metrics.numel() != 1:
        raise ArgumentError(
            message("ReduceLROnPlateau.step", "the measure must be one number", [("metrics", metrics._spec())])
        )
    try:
        return float(metrics)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            message("ReduceLROnPlateau.step", f"the measure must be a number, got {type(metrics).__name__}")
        ) from error


explain_all(globals(), "ReduceLROnPlateau")
