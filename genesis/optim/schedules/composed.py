"""Several schedules of one optimizer: together, or one after the other."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.core.call.refusal import explain_all
from genesis.optim.optimizer import Optimizer
from genesis.optim.options import whole_number
from genesis.optim.schedules.base import LRScheduler, left_to_calls
from genesis.optim.schedules.decays import step_numbers
from genesis.optim.schedules.plateau import ReduceLROnPlateau
from genesis.optim.schedules.state import check_state
from genesis.optim.state import StateDictError


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
        self._note_rates()

    def step(self, epoch: int | None = None) -> None:
        if left_to_calls(self, epoch):
            return
        for schedule in self._schedulers:
            schedule.step(epoch)
        self._note_rates()

    def _update_lr(self, epoch: int | None) -> None:
        for schedule in self._schedulers:
            schedule._update_lr(epoch)
        self._note_rates()

    def state_dict(self) -> dict[str, Any]:
        own = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
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
        self._milestones = step_numbers("SequentialLR", milestones)
        if len(self._milestones) != len(self._schedulers) - 1:
            raise ArgumentValueError(
                message(
                    "SequentialLR",
                    f"{len(self._schedulers)} schedules need one milestone less, got {len(self._milestones)}",
                )
            )
        self.last_epoch = whole_number("SequentialLR", "last_epoch", last_epoch, -1) + 1
        # all schedules have taken their first step: only that of the first one counts
        self._apply([group["initial_lr"] for group in optimizer.param_groups])
        for schedule in _leaves(self._schedulers):
            schedule.last_epoch -= 1
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        if epoch is not None:
            raise ArgumentError(message("SequentialLR.step", "takes no epoch"))
        if left_to_calls(self):
            return
        self.last_epoch += 1
        at = bisect_right(self._milestones, self.last_epoch)
        schedule = self._schedulers[at]
        if at and self._milestones[at - 1] == self.last_epoch:
            schedule._update_lr(0)
        else:
            schedule.step()
        self._last_lr = schedule.get_last_lr()

    def _update_lr(self, epoch: int | None) -> None:
        """Begin again: where this is a part of another sequence."""
        self.last_epoch = 0
        schedule = self._schedulers[bisect_right(self._milestones, 0)]
        schedule._update_lr(0)
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
        if isinstance(schedule, ReduceLROnPlateau):
            raise ArgumentValueError(message(name, f"schedule {i} needs a measure at each step: ReduceLROnPlateau"))
        if schedule.optimizer is not optimizer:
            raise ArgumentValueError(message(name, f"schedule {i} belongs to another optimizer"))
    return list(schedulers), optimizer


explain_all(globals(), "ChainedScheduler", "SequentialLR")
