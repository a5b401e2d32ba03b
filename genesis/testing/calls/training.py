"""Optimizers, schedules, data, mixed precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from genesis import data, nn, optim
from genesis.core.call.op import case
from genesis.optim import lr_scheduler
from genesis.testing.calls.shared import After, Calls, listed, parameter, plain
from genesis.testing.make import Maker

_OPTIMIZERS = [
    name
    for name, kind in vars(optim).items()
    if isinstance(kind, type) and name not in ("Optimizer", "SparseAdam", "Muon", "LBFGS")
]


def _sgd(t: Maker) -> optim.Optimizer:
    return optim.SGD([parameter(t)], lr=0.1)


def _stepped(optimizer: Any, t: Maker) -> None:
    optimizer.step(lambda: 0.0)


def _scheduled(schedule: Any, t: Maker) -> None:
    for _ in range(3):
        schedule.optimizer.step()
        schedule.step(*([1.0] if isinstance(schedule, lr_scheduler.ReduceLROnPlateau) else []))


class _Stream(data.IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter([1, 2])


CALLS: dict[str, Calls] = {
    **{f"optim.{name}": (lambda t: [case([parameter(t)], 0.1)]) for name in (*_OPTIMIZERS, "LBFGS")},
    "optim.Muon": lambda t: [case([parameter(t, 3, 2)], 0.1)],
    "optim.lr_scheduler.StepLR": lambda t: [case(_sgd(t), 2)],
    "optim.lr_scheduler.MultiStepLR": lambda t: [case(_sgd(t), [1, 2])],
    "optim.lr_scheduler.ExponentialLR": lambda t: [case(_sgd(t), 0.9)],
    "optim.lr_scheduler.LinearLR": lambda t: [case(_sgd(t))],
    "optim.lr_scheduler.CosineAnnealingLR": lambda t: [case(_sgd(t), 4)],
    "optim.lr_scheduler.LambdaLR": lambda t: [case(_sgd(t), lambda step: 0.5)],
    "optim.lr_scheduler.MultiplicativeLR": lambda t: [case(_sgd(t), lambda step: 0.5)],
    **{
        f"optim.lr_scheduler.{name}": (lambda t: [case(_sgd(t))])
        for name in ("ConstantLR", "PolynomialLR", "ReduceLROnPlateau")
    },
    "optim.lr_scheduler.CosineAnnealingWarmRestarts": lambda t: [case(_sgd(t), 4)],
    "optim.lr_scheduler.CyclicLR": lambda t: [case(_sgd(t), 0.1, 0.2, 3)],
    "optim.lr_scheduler.OneCycleLR": lambda t: [case(_sgd(t), 0.1, 10)],
    "optim.swa_utils.SWALR": lambda t: [case(_sgd(t), 0.1)],
    "optim.swa_utils.AveragedModel": lambda t: [case(nn.Linear(2, 2))],
    "optim.swa_utils.update_bn": lambda t: [case([t(3, 2).float()], nn.BatchNorm1d(2))],
    "optim.swa_utils.get_ema_avg_fn": lambda t: [case(0.5)],
    "optim.swa_utils.get_ema_multi_avg_fn": lambda t: [case(0.5)],
    "optim.swa_utils.get_swa_avg_fn": plain,
    "optim.swa_utils.get_swa_multi_avg_fn": plain,
    "optim.lr_scheduler.ChainedScheduler": lambda t: [case([lr_scheduler.ExponentialLR(_sgd(t), 0.9)])],
    "optim.lr_scheduler.SequentialLR": lambda t: [
        case((s := lr_scheduler.ExponentialLR(_sgd(t), 0.9)).optimizer, [s], [])
    ],
    "data.TensorDataset": lambda t: [case(t(4, 2), t(4))],
    "data.DataLoader": lambda t: [case(data.TensorDataset(t(4, 2)), 2)],
    "data.SequentialSampler": lambda t: [case([1, 2, 3])],
    "data.RandomSampler": lambda t: [case([1, 2, 3])],
    "data.WeightedRandomSampler": lambda t: [case([0.5, 1.0], 3)],
    "data.BatchSampler": lambda t: [case([1, 2, 3], 2, False)],
    "data.Subset": lambda t: [case([1, 2, 3], [0, 2])],
    "data.ConcatDataset": lambda t: [case([[1, 2], [3]])],
    "data.random_split": lambda t: [case([1, 2, 3], [1, 2])],
    "data.default_collate": lambda t: [case([t(2), t(2)])],
    "amp.GradScaler": plain,
    "amp.autocast": lambda t: [case("cpu")],
    "data.ChainDataset": lambda t: [case([_Stream()])],
    "data.StackDataset": lambda t: [case([1, 2], [3, 4])],
    "data.SubsetRandomSampler": lambda t: [case([2, 0])],
    "data.DistributedSampler": lambda t: [case([1, 2, 3], 2, 1, shuffle=False)],
    "data.default_convert": lambda t: [case({"x": np.ones(2)})],
    "amp.custom_fwd": lambda t: [case(lambda ctx, x: x)],
    "amp.custom_bwd": lambda t: [case(lambda ctx, g: g)],
}
AFTER: dict[str, After] = {
    **{f"optim.{name}": _stepped for name in _OPTIMIZERS},
    **{f"optim.{name}": _stepped for name in ("Muon", "LBFGS")},
    **{f"optim.lr_scheduler.{name}": _scheduled for name in lr_scheduler.__all__ if name != "LRScheduler"},
    "optim.swa_utils.SWALR": _scheduled,
    "data.ChainDataset": listed,
    "data.StackDataset": listed,
    "data.ConcatDataset": listed,
    "data.TensorDataset": listed,
    "data.SubsetRandomSampler": listed,
    "data.DistributedSampler": listed,
    **{
        f"data.{name}": listed
        for name in ("DataLoader", "SequentialSampler", "RandomSampler", "WeightedRandomSampler", "BatchSampler")
    },
}
