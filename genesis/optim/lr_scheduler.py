"""Learning rates over time. Each schedule changes the rates that are in use, so that several of them, and changes by
hand, add up.
"""

from __future__ import annotations

from genesis.optim.schedules.base import LRScheduler
from genesis.optim.schedules.composed import ChainedScheduler, SequentialLR
from genesis.optim.schedules.cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from genesis.optim.schedules.decays import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from genesis.optim.schedules.plateau import ReduceLROnPlateau

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
