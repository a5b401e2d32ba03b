"""Learning rates over time. Each schedule changes the rates that are in use, so that several of them, and changes by
hand, add up.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, GraphError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.site import warn_user
from genesis.core.graph.tracing import tracer
from genesis.optim.optimizer import Optimizer
from genesis.optim.options import whole_number
from genesis.optim.state import StateDictError

_EARLY = message(
    "lr_scheduler.step()",
    "called before optimizer.step(), the first learning rate of the schedule is skipped",
    hint="optimizer.step(), then scheduler.step()",
)


class LRScheduler:
    """Base class: call ``step()`` after each epoch (or batch).

    A subclass defines `next_rate`, the rate of a step from the one in use, or `get_lr`, those of all groups. Where it
    also defines `rate`, the rate of a step from the initial one, ``step(epoch)`` can jump; `rate` alone is enough, too,
    but what other schedules or assignments do to the learning rate is then overwritten.

    Raises:
        TypeError: not an optimizer
        ValueError: ``last_epoch`` is given, but a group has no "initial_lr"
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        name = type(self).__name__
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(message(name, f"expected an Optimizer, got {type(optimizer).__name__}"))
        self.optimizer, self.last_epoch = optimizer, whole_number(name, "last_epoch", last_epoch, -1)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch != -1 and "initial_lr" not in group:
                raise ArgumentValueError(
                    message(
                        name,
                        f"last_epoch={last_epoch} goes on with a schedule, but group {i} has no 'initial_lr'",
                        hint="optimizer.load_state_dict(...) before",
                    )
                )
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self._step_count, self._starts = 0, True
        self.step()
        self._starts = False

    def rate(self, base: float, step: int) -> float:
        """The learning rate of a step, from the initial one."""
        raise NotImplementedError(f"{type(self).__name__} defines no rate")

    def next_rate(self, rate: float, base: float, step: int) -> float:
        """The learning rate of a step, from the one in use; also for the step with which the schedule starts."""
        return self.rate(base, step)

    def get_lr(self) -> list[float]:
        """The learning rates of step ``last_epoch``, computed from those in use."""
        return [self.next_rate(group["lr"], base, self.last_epoch) for group, base in self._groups()]

    def _groups(self) -> Any:
        """Groups and their initial rates, also of groups that were added after the schedule was made."""
        groups = self.optimizer.param_groups
        for group in groups[len(self.base_lrs) :]:
            self.base_lrs.append(group.setdefault("initial_lr", group["lr"]))
        return zip(groups, self.base_lrs, strict=True)

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next learning rate (or jump to that of ``epoch``).

        Warns:
            UserWarning: called before the optimizer's first step

        Raises:
            RuntimeError: a trace is being made, which would not see it
        """
        if tracer.get() is not None:
            raise GraphError(
                message(
                    f"{type(self).__name__}.step",
                    "a schedule is no part of a traced step: replays would not go on with it",
                    hint="call step() between replays; they read the learning rate each time",
                )
            )
        if self._step_count == 1 and not self.optimizer._opt_called:
            warn_user(_EARLY)
        self._step_count += 1
        self._change(epoch)

    def _change(self, epoch: int | None) -> None:
        """Put the learning rates of the next step, or of ``epoch``, into the groups."""
        closed = epoch is not None and type(self).rate is not LRScheduler.rate
        self.last_epoch = (
            self.last_epoch + 1 if epoch is None else whole_number(f"{type(self).__name__}.step", "epoch", epoch, 0)
        )
        rates = [self.rate(base, self.last_epoch) for _, base in self._groups()] if closed else self.get_lr()
        for (group, _), rate in zip(self._groups(), rates, strict=True):
            group["lr"] = rate
        self._last_lr = [float(rate) for rate in rates]

    def get_last_lr(self) -> list[float]:
        """The learning rates of the last step."""
        return list(self._last_lr)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, whose own state has the rates in use; save both."""
        return {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_starts") and not callable(v)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over a state of the same kind of schedule; nothing is changed unless all of it fits.

        Raises:
            TypeError: not a mapping
            RuntimeError: a state of another schedule, or for another number of groups: all that is wrong is listed
        """
        check_state(self, state_dict)
        self.__dict__.update(state_dict)


def check_state(schedule: LRScheduler, state: Any) -> None:
    """Refuse a state that lacks, or has more than, what a schedule of this class is made of. Names with an underscore
    are PyTorch's own.
    """
    name = f"{type(schedule).__name__}.load_state_dict"
    if not isinstance(state, Mapping):
        raise ArgumentError(
            message(name, f"expected a mapping, got {type(state).__name__}", hint="scheduler.state_dict()")
        )
    mine = schedule.state_dict()
    problems = [
        f"{key}: expected {_kind(mine[key])}, got {state[key]!r}"
        for key in mine
        if key in state and _kind(mine[key]) != _kind(state[key])
    ]
    if isinstance(state.get("base_lrs"), list) and len(state["base_lrs"]) != len(schedule.base_lrs):
        problems.append(
            f"base_lrs: {len(state['base_lrs'])} parameter groups in the state, {len(schedule.base_lrs)} in the "
            "optimizer"
        )
    for what, here, there in (("missing", mine, state), ("unexpected", state, mine)):
        keys = [str(key) for key in here if key not in there and not str(key).startswith("_") and key != "verbose"]
        problems += [f"{what}: {', '.join(keys)}"] if keys else []
    if problems:
        raise StateDictError(
            f"{name}: the state does not fit\n  "
            + "\n  ".join(problems)
            + "\n  try: the state of a schedule of the same class and options"
        )


def _kind(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return "a number" if number else "a list" if isinstance(value, list | tuple | Mapping) else type(value).__name__


class LambdaLR(LRScheduler):
    """The initial rate times a function of the step.

    >>> import genesis
    >>> opt = genesis.optim.SGD([genesis.ones(1, requires_grad=True)], lr=1.0)
    >>> s = genesis.optim.lr_scheduler.LambdaLR(opt, lambda step: 0.5 ** step); opt.step(); s.step(); s.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        count = len(optimizer.param_groups) if isinstance(optimizer, Optimizer) else 1
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * count
        if len(self.lr_lambdas) != count:
            raise ArgumentValueError(
                message("LambdaLR", f"{len(self.lr_lambdas)} functions for {count} parameter groups")
            )
        for f in self.lr_lambdas:
            if not callable(f):
                raise ArgumentError(message("LambdaLR", f"lr_lambda must be a function, got {type(f).__name__}"))
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        groups = list(self._groups())
        if len(groups) != len(self.lr_lambdas):
            raise ArgumentValueError(
                message("LambdaLR", f"{len(self.lr_lambdas)} functions for {len(groups)} parameter groups")
            )
        return [base * f(self.last_epoch) for (_, base), f in zip(groups, self.lr_lambdas, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """As of every schedule; of functions that are objects their attributes, of others None."""
        return {
            **super().state_dict(),
            "lr_lambdas": [None if isinstance(f, FunctionType) else dict(vars(f)) for f in self.lr_lambdas],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        check_state(self, state_dict)
        saved = state_dict["lr_lambdas"]
        if len(saved) != len(self.lr_lambdas):
            raise StateDictError(
                message(
                    "LambdaLR.load_state_dict",
                    f"{len(saved)} functions in the state, {len(self.lr_lambdas)} in the schedule",
                )
            )
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for f, attributes in zip(self.lr_lambdas, saved, strict=True):
            if attributes:
                vars(f).update(attributes)


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

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = (
            whole_number("StepLR", "step_size", step_size, 1),
            _number("StepLR", "gamma", gamma),
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
        self.milestones = _milestones("MultiStepLR", milestones)
        self.gamma = _number("MultiStepLR", "gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return base * self.gamma ** bisect_right(self.milestones, step)

    def next_rate(self, rate: float, base: float, step: int) -> float:
        return rate * self.gamma ** self.milestones.count(step)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        check_state(self, state_dict)
        saved = state_dict["milestones"]  # PyTorch counts how often each occurs
        counted = [step for step, count in saved.items() for _ in range(count)] if isinstance(saved, Mapping) else saved
        self.__dict__.update({**state_dict, "milestones": _milestones("MultiStepLR.load_state_dict", counted)})


class ExponentialLR(LRScheduler):
    """The rate times ``gamma`` every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = _number("ExponentialLR", "gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return base * self.gamma**step

    def next_rate(self, rate: float, base: float, step: int) -> float:
        return rate if self._starts else rate * self.gamma


class LinearLR(LRScheduler):
    """From ``start_factor`` to ``end_factor`` times the rate in ``total_iters`` even steps.

    Raises:
        ValueError: ``start_factor`` is not in (0, 1], ``end_factor`` not in [0, 1], or ``total_iters`` not positive
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < _number("LinearLR", "start_factor", start_factor) <= 1:
            raise ArgumentValueError(message("LinearLR", f"start_factor must be in (0, 1], got {start_factor}"))
        if not 0 <= _number("LinearLR", "end_factor", end_factor) <= 1:
            raise ArgumentValueError(message("LinearLR", f"end_factor must be in [0, 1], got {end_factor}"))
        self.start_factor, self.end_factor, self.total_iters = (
            start_factor,
            end_factor,
            whole_number("LinearLR", "total_iters", total_iters, 1),
        )
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        done = min(step, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * done)

    def next_rate(self, rate: float, base: float, step: int) -> float:
        if step == 0:
            return rate * self.start_factor
        if self._starts or step > self.total_iters:
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
    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:  # noqa: N803
        self.T_max, self.eta_min = (
            whole_number("CosineAnnealingLR", "T_max", T_max, 1),
            _number("CosineAnnealingLR", "eta_min", eta_min),
        )
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * step / self.T_max)) / 2

    def next_rate(self, rate: float, base: float, step: int) -> float:
        if self._starts:
            return rate
        if (step - 1 - self.T_max) % (2 * self.T_max) == 0:  # the turning point, where the ratio below is 0 / 0
            return rate + (base - self.eta_min) * (1 - math.cos(math.pi / self.T_max)) / 2
        ratio = (1 + math.cos(math.pi * step / self.T_max)) / (1 + math.cos(math.pi * (step - 1) / self.T_max))
        return ratio * (rate - self.eta_min) + self.eta_min


class ChainedScheduler(LRScheduler):
    """Several schedules of one optimizer, which go on together.

    >>> import genesis
    >>> from genesis.optim.lr_scheduler import ChainedScheduler, ExponentialLR
    >>> opt = genesis.optim.SGD([genesis.ones(1, requires_grad=True)], lr=1.0)
    >>> s = ChainedScheduler([ExponentialLR(opt, 0.5), ExponentialLR(opt, 0.5)]); opt.step(); s.step(); s.get_last_lr()
    [0.25]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self._schedulers, self.optimizer = _of_one_optimizer("ChainedScheduler", schedulers, optimizer)
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def step(self, epoch: int | None = None) -> None:
        for schedule in self._schedulers:
            schedule.step(epoch)
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        own = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers", "_starts")}
        return {**own, "_schedulers": [schedule.state_dict() for schedule in self._schedulers]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        name = type(self).__name__
        if not isinstance(state_dict, Mapping) or not isinstance(state_dict.get("_schedulers"), list):
            raise StateDictError(
                message(f"{name}.load_state_dict", "expected the state of several schedules, under '_schedulers'")
            )
        parts = state_dict["_schedulers"]
        if len(parts) != len(self._schedulers):
            raise StateDictError(
                message(f"{name}.load_state_dict", f"{len(parts)} schedules in the state, {len(self._schedulers)} here")
            )
        for schedule, part in zip(self._schedulers, parts, strict=True):
            check_state(schedule, part)
        for schedule, part in zip(self._schedulers, parts, strict=True):
            schedule.load_state_dict(part)
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})


class SequentialLR(ChainedScheduler):
    """One schedule after the other: the next one begins, at its own step 0, at each milestone.

    >>> import genesis
    >>> from genesis.optim.lr_scheduler import ExponentialLR, LinearLR, SequentialLR
    >>> opt = genesis.optim.SGD([genesis.ones(1, requires_grad=True)], lr=1.0)
    >>> s = SequentialLR(opt, [LinearLR(opt, 0.5, total_iters=2), ExponentialLR(opt, 0.5)], milestones=[2]); rates = []
    >>> for _ in range(4): rates += s.get_last_lr(); opt.step(); s.step()
    >>> rates
    [0.5, 0.75, 1.0, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        self._schedulers, self.optimizer = _of_one_optimizer("SequentialLR", schedulers, optimizer)
        self._milestones = _milestones("SequentialLR", milestones)
        if len(self._milestones) != len(self._schedulers) - 1:
            raise ArgumentValueError(
                message(
                    "SequentialLR",
                    f"{len(self._schedulers)} schedules need one milestone less, got {len(self._milestones)}",
                )
            )
        self.last_epoch = whole_number("SequentialLR", "last_epoch", last_epoch, -1) + 1
        # all schedules have taken their first step: only that of the first one counts
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for schedule in _leaves(self._schedulers):
            schedule.last_epoch -= 1
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._step_count, first._starts = 0, True
        first.step()
        first._starts = False
        self._last_lr = first.get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        if epoch is not None:
            raise ArgumentError(message("SequentialLR.step", "takes no epoch"))
        self.last_epoch += 1
        at = bisect_right(self._milestones, self.last_epoch)
        schedule = self._schedulers[at]
        if at and self._milestones[at - 1] == self.last_epoch:
            schedule._change(0)
        else:
            schedule.step()
        self._last_lr = schedule.get_last_lr()


def _leaves(schedulers: Sequence[LRScheduler]) -> list[LRScheduler]:
    return [leaf for s in schedulers for leaf in (_leaves(s._schedulers) if isinstance(s, ChainedScheduler) else [s])]


def _of_one_optimizer(name: str, schedulers: Any, optimizer: Any) -> tuple[list[LRScheduler], Optimizer]:
    if (
        not isinstance(schedulers, list | tuple)
        or not schedulers
        or not all(isinstance(s, LRScheduler) for s in schedulers)
    ):
        raise ArgumentError(
            message(name, "expected a list of at least one schedule", [("schedulers", repr(schedulers)[:80])])
        )
    optimizer = schedulers[0].optimizer if optimizer is None else optimizer
    for i, schedule in enumerate(schedulers):
        if schedule.optimizer is not optimizer:
            raise ArgumentValueError(message(name, f"schedule {i} belongs to another optimizer"))
    return list(schedulers), optimizer


def _milestones(name: str, steps: Any) -> list[int]:
    if isinstance(steps, str | bytes) or not hasattr(steps, "__iter__"):
        raise ArgumentError(message(name, f"milestones must be a list of step numbers, got {type(steps).__name__}"))
    return sorted(whole_number(name, "a milestone", step, 0) for step in steps)


def _number(name: str, what: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ArgumentError(message(name, f"{what} must be a number, got {type(value).__name__}"))
    return value


explain_all(globals())

__all__ = [
    "ChainedScheduler",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "SequentialLR",
    "StepLR",
]
