"""What the jobs on training have in common: ranks, each with its rows of a batch, and how two trainings are compared."""

from __future__ import annotations

import warnings

import numpy as np

import genesis
import genesis.distributed as dist
from genesis import nn

warnings.simplefilter("error")
dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
BATCH = 4  # rows of a rank


def examples(steps, columns):
    """Inputs and targets of so many steps, those of all ranks."""
    shapes = (steps, size * BATCH, 5), (steps, size * BATCH, columns)
    return [genesis.tensor(np.random.default_rng(i).standard_normal(shape)) for i, shape in enumerate(shapes)]


def mine(x):
    return x[rank * BATCH : (rank + 1) * BATCH]


def loss_of(model, x, y):
    return ((model(x) - y) ** 2).mean()


def step_of(model, optimizer, x, y, largest=None, set_to_none=True):
    """A step of a training; gradients are clipped to the norm ``largest``, and what it was is given back."""
    optimizer.zero_grad(set_to_none=set_to_none)
    loss_of(model, x, y).backward()
    norm = None if largest is None else nn.utils.clip_grad_norm_(model.parameters(), largest).item()
    optimizer.step()
    return norm


def compiled_step(model, optimizer):
    @genesis.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = loss_of(model, x, y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def near(a, b, note=""):
    for (name, p), q in zip(a.state_dict().items(), b.state_dict().values(), strict=True):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-10, atol=1e-12, err_msg=f"{note} {name}")


def refused(error, words, call):
    try:
        call()
    except error as raised:
        assert words in str(raised), raised
    else:
        raise AssertionError(words)
