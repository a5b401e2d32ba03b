"""Optimizers and learning-rate schedules.

`optimizer` `options` `state` `hooks` what all share     `sgd` `adam` `rmsprop` `matrix` `lbfgs` `sparse` the updates
`rows` steps along sparse gradients
`lr_scheduler` learning rates over time, in `schedules`     `swa_utils` averages of models
"""

from __future__ import annotations

from functools import partial as _partial
from typing import TYPE_CHECKING

from genesis.base.imports import of_pytorch as _of_pytorch
from genesis.optim import lr_scheduler, swa_utils
from genesis.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from genesis.optim.lbfgs import LBFGS
from genesis.optim.matrix import Adafactor, Muon
from genesis.optim.optimizer import Optimizer
from genesis.optim.rmsprop import Adadelta, Adagrad, RMSprop
from genesis.optim.sgd import ASGD, SGD, Rprop
from genesis.optim.sparse import SparseAdam

if not TYPE_CHECKING:  # who checks types knows all there is
    __getattr__ = _partial(_of_pytorch, __name__)  # names that only PyTorch has

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
]
