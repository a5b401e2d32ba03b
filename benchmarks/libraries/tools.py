"""What files of cases are made of. Weights and inputs are sines, so that both sides have the same without random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

cases: dict[str, Callable[[], Any]] = {}


def add(name: str, case: Callable[[], Any]) -> None:
    """A case: what gives a module or function, its arguments, and maybe keywords."""
    cases[name] = case


def fn(name: str, function: Callable[[], Any]) -> None:
    """A case of a function without arguments."""
    cases[name] = lambda: (lambda: function(), ())


def waves(shape: tuple[int, ...], step: float, start: float = 0.0) -> np.ndarray:
    return np.sin(np.arange(math.prod(shape)) * step + start).reshape(shape)


def data(*shape: int) -> torch.Tensor:
    return torch.from_numpy(waves(shape, 0.3)).to(torch.get_default_dtype())


def ints(limit: int, *shape: int) -> torch.Tensor:
    return torch.from_numpy((np.arange(math.prod(shape)) * 7919 % limit).reshape(shape).astype(np.int64))


def fill(module: torch.nn.Module) -> None:
    """Weights that keep signals about as large as they are."""
    with torch.no_grad():
        for number, (name, value) in enumerate(module.state_dict().items(), 1):
            if not value.is_floating_point():
                continue
            wave = waves(tuple(value.shape), 0.7, number)
            if name.endswith("running_var"):
                wave = 1 + 0.5 * np.abs(wave)
            elif value.ndim <= 1:
                wave = name.endswith("weight") * value.ndim + 0.05 * wave
            else:
                wave = wave / math.sqrt(math.prod(value.shape[1:]))
            value.copy_(torch.from_numpy(np.asarray(wave)).to(value.dtype))


def leaf(*shape: int) -> torch.Tensor:
    return data(*shape).requires_grad_()


def withgrad(function: Callable[..., torch.Tensor], *xs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """A result and the gradients of its sum."""
    y = function(*xs)
    return (y, *torch.autograd.grad(y.sum(), xs))
