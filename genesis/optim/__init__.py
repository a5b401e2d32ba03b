"""Optimizers and learning-rate schedules.

`optimizer` what all share     `sgd` `adam` `rmsprop` the updates     `lr_scheduler` learning rates over time
"""

from __future__ import annotations

from genesis.optim import lr_scheduler
from genesis.optim.adam import Adam, AdamW
from genesis.optim.optimizer import Optimizer
from genesis.optim.rmsprop import Adagrad, RMSprop
from genesis.optim.sgd import SGD

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]
