"""What all schedules share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, GraphError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.site import warn_user
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import does, tracer
from genesis.optim.optimizer import Optimizer
from genesis.optim.options import scalar, whole_number
from genesis.optim.schedules.state import check_state

_EARLY = message(
    "lr_scheduler.step()",
    "called before optimizer.step(), the first learning rate of the schedule is skipped",
    hint="optimizer.step(), then scheduler.step()",
)


def expect_optimizer(name: str, optimizer: Any) -> Optimizer:
    """Refuse what is no optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise ArgumentError(message(name, f"expected an Optimizer, got {type(optimizer).__name__}"))
    return optimizer


def left_to_calls(schedule: Any, *args: Any) -> bool:
    """While a trace is made that can keep it: a step of a schedule is made at each call, not now.

    Raises:
        RuntimeError: the trace cannot keep it
    """
    if tracer.get() is None:
        return False
    own = [(schedule.__dict__, k) for k, v in schedule.__dict__.items() if k != "optimizer" and not callable(v)]
    rates = [(group, "lr") for group in schedule.optimizer.param_groups if not isinstance(group["lr"], Tensor)]
    if not does(schedule.step, *args, changes=(*own, *rates)):
        raise GraphError(
            message(
                f"{type(schedule).__name__}.step",
                "a schedule is no part of a traced step: replays would not go on with it",
                hint="call step() between replays; they read the learning rate each time",
            )
        )
    return True


def real_number(name: str, what: str, value: Any) -> float:
    """A number, or an error that says which argument is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ArgumentError(message(name, f"{what} must be a number, got {type(value).__name__}"))
    return value


def step_count(name: str, what: str, value: Any, least: int) -> float:
    """How many steps something takes: an integer, or what a program computed of such, a fraction too.

    Raises:
        TypeError: it is no number
        ValueError: it is less than ``least``; a fraction must be larger than 0 only
    """
    if not isinstance(value, float):
        return whole_number(name, what, value, least)
    if not (value > 0 or value >= least) or math.isinf(value):
        raise ArgumentValueError(message(name, f"{what} must be at least {least}, got {value}"))
    return value


def of_groups(name: str, what: str, value: Any, optimizer: Optimizer) -> list[float]:
    """A number for each parameter group: one for all, or a list of them."""
    count = len(optimizer.param_groups)
    several = isinstance(value, list | tuple)
    values = [scalar(v) for v in (value if several else [value] * count)]
    if len(values) != count:
        raise ArgumentValueError(message(name, f"{what} has {len(values)} values for {count} parameter groups"))
    return [real_number(name, f"{what}[{i}]" if several else what, v) for i, v in enumerate(values)]


def one_of(name: str, what: str, value: Any, known: tuple[str, ...]) -> Any:
    """Refuse a word that is not known."""
    if value not in known:
        raise ArgumentValueError(message(name, f"unknown {what} {value!r}", hint=" or ".join(map(repr, known))))
    return value


class LRScheduler:
    """Base class: call ``step()`` after each epoch (or batch).

    A subclass defines `next_rate`, the rate of a step from the one in use, or `get_lr`, those of all groups. Where it
    also defines `rate`, the rate of a step from the initial one, ``step(epoch)`` can jump; `rate` alone is enough, too,
    but what other schedules or assignments do to the learning rate is then overwritten.

    Raises:
        TypeError: not an optimizer
        ValueError: ``last_epoch`` is given, but a group has no "initial_lr"
    """

    optimizer: Optimizer
    _is_initial = False  # while the first step is made, in which nothing changes that goes on from the rate in use

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        name = type(self).__name__
        self.optimizer = expect_optimizer(name, optimizer)
        self.last_epoch = whole_number(name, "last_epoch", last_epoch, -1)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch != -1 and "initial_lr" not in group:
                raise ArgumentValueError(
                    message(
                        name,
                        f"last_epoch={last_epoch} goes on with a schedule, but group {i} has no 'initial_lr'",
                        hint="optimizer.load_state_dict(...) before",
                    )
                )
            group.setdefault("initial_lr", scalar(group["lr"]))
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count, self._is_initial = 0, True
        self.step()
        self._is_initial = False

    def rate(self, base: float, step: int) -> float:
        """The learning rate of a step, from the initial one."""
        raise NotImplementedError(f"{type(self).__name__} defines no rate")

    def next_rate(self, rate: float, base: float, step: int) -> float:
        """The learning rate of a step, from the one in use; also for the step with which the schedule starts."""
        return self.rate(base, step)

    def get_lr(self) -> list[float]:
        """The learning rates of step ``last_epoch``, computed from those in use."""
        return [self.next_rate(scalar(group["lr"]), base, self.last_epoch) for group, base in self._groups()]

    def _groups(self) -> Any:
        """Groups and their initial rates, also of groups that were added after the schedule was made."""
        groups = self.optimizer.param_groups
        for group in groups[len(self.base_lrs) :]:
            self.base_lrs.append(group.setdefault("initial_lr", scalar(group["lr"])))
        return zip(groups, self.base_lrs, strict=True)

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next learning rate (or jump to that of ``epoch``).

        Warns:
            UserWarning: called before the optimizer's first step, or with an epoch

        Raises:
            RuntimeError: a trace is being made, which would not see it
        """
        if left_to_calls(self, epoch):
            return
        if self._step_count == 1 and not self.optimizer._opt_called:
            warn_user(_EARLY)
        self._step_count += 1
        if epoch is not None:
            warn_user(message(f"{type(self).__name__}.step", "an epoch is deprecated", hint="step(), once an epoch"))
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None) -> None:
        """Put the learning rates of the next step, or of ``epoch``, into the groups."""
        closed = epoch is not None and type(self).rate is not LRScheduler.rate
        self.last_epoch = (
            self.last_epoch + 1 if epoch is None else whole_number(f"{type(self).__name__}.step", "epoch", epoch, 0)
        )
        self._apply([self.rate(base, self.last_epoch) for _, base in self._groups()] if closed else self.get_lr())

    def _apply(self, rates: list[Any]) -> None:
        """Put learning rates into the groups; a tensor stays the tensor that it is."""
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            if isinstance(group["lr"], Tensor):
                group["lr"].detach().fill_(rate)  # type: ignore[attr-defined]
            else:
                group["lr"] = rate
        self._note_rates()

    def _note_rates(self) -> None:
        self._last_lr = [float(scalar(group["lr"])) for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        """The learning rates of the last step."""
        return list(self._last_lr)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, whose own state has the rates in use; save both."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer" and not callable(v)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over a state of the same kind of schedule; nothing is changed unless all of it fits.

        Raises:
            TypeError: not a mapping
            RuntimeError: a state of another schedule, or for another number of groups: all that is wrong is listed
        """
        check_state(self, state_dict)
        self.__dict__.update(state_dict)


_LRScheduler = LRScheduler  # its name in programs before PyTorch 2.0

explain_all(globals(), "LRScheduler")
