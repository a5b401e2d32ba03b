"""What cases of trainers share: a small network, data, and what the network is after training."""

from __future__ import annotations

import torch
from tools import data, fill
from torch import nn

X = data(64, 6)
Y = (X[:, 0] + X[:, 1] > 0).long()


def network() -> nn.Module:
    made = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Linear(16, 2))
    fill(made)
    return made


def loader(size: int = 16) -> torch.utils.data.DataLoader:
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X.to(torch.get_default_dtype()), Y), size)


def state(module: nn.Module) -> list[torch.Tensor]:
    return [t.detach().clone() for t in module.state_dict().values()]
