"""Values that stand for names of PyTorch which have no counterpart: switches without an effect, answers of a machine without
a GPU, compilers that leave functions as they are.

`top` `losses` `numbers` of ``torch`` itself    `devices` GPUs, backends    `graphs` torch.fx    `hub` what was downloaded    `submodules` compilers and smaller modules    `precision` mixed precision    `quasirandom` Sobol points    `rooms` inner modules    `inner` the compiled core    `loaders` data    `operations` torch.ops    `optimizers` theirs    `ranks` `collectives` torch.distributed    `common` what they share
"""

from __future__ import annotations

from genesis.pytorch.stand_ins import (
    collectives,
    devices,
    graphs,
    hub,
    inner,
    loaders,
    losses,
    numbers,
    operations,
    optimizers,
    precision,
    quasirandom,
    ranks,
    rooms,
    submodules,
    tools,
    top,
    training,
)
from genesis.pytorch.stand_ins.common import STAND_INS

__all__ = [
    "STAND_INS",
    "collectives",
    "devices",
    "graphs",
    "hub",
    "inner",
    "loaders",
    "losses",
    "numbers",
    "operations",
    "optimizers",
    "precision",
    "quasirandom",
    "ranks",
    "rooms",
    "submodules",
    "tools",
    "top",
    "training",
]
