"""Modules that compute again what they do not keep: the same gradients, names and states."""

from __future__ import annotations

import copy

import pytest

import genesis
import genesis.distributed as dist
from genesis import nn
from genesis.distributed.algorithms.checkpoint_wrapper import (
    CheckpointImpl,
    CheckpointWrapper,
    apply_activation_checkpointing,
    checkpoint_wrapper,
)
from genesis.distributed.fsdp import fully_shard
from genesis.distributed.fsdp.wrap import ModuleWrapPolicy


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.drop, self.calls = nn.Linear(3, 3), nn.Dropout(0.5), 0

    def forward(self, x, scale=1.0):
        self.calls += 1
        return self.drop(self.layer(x).tanh()) * scale


def network():
    genesis.manual_seed(0)
    return nn.Sequential(Block(), Block(), nn.Linear(3, 1))


def gradients(model):
    genesis.manual_seed(1)
    model(genesis.arange(12.0).reshape(4, 3)).sum().backward()
    return [getattr(p.grad, "full_tensor", lambda grad=p.grad: grad)() for p in model.parameters()]


@pytest.mark.parametrize(
    "options", [{"check_fn": lambda m: isinstance(m, Block)}, {"auto_wrap_policy": ModuleWrapPolicy({Block})}]
)
def test_blocks_compute_again(options):
    plain, model = network(), network()
    apply_activation_checkpointing(
        model, lambda m: checkpoint_wrapper(m, CheckpointImpl.REENTRANT, preserve_rng_state=True), **options
    )
    for a, b in zip(gradients(plain), gradients(model), strict=True):
        assert a.equal(b)
    assert [m.calls for m in model[:2]] == [2, 2] and [m.calls for m in plain[:2]] == [1, 1]
    assert [isinstance(m, CheckpointWrapper) for m in model] == [True, True, False] and isinstance(model[0], Block)
    assert list(model.state_dict()) == list(plain.state_dict())
    plain.load_state_dict(model.state_dict())
    assert copy.deepcopy(model)[0](genesis.ones(1, 3), scale=0.0).tolist() == [[0, 0, 0]]


def test_with_a_function_of_ones_own_and_modules_of_ones_own():
    model, seen = network(), []

    def own(forward, *args, factor):
        seen.append(args[0].shape)
        return forward(*args) * factor

    wrapped = checkpoint_wrapper(model[2], checkpoint_fn=own, factor=0.0)
    assert wrapped is model[2] and not model(genesis.ones(2, 3)).any() and seen == [(2, 3)]
    apply_activation_checkpointing(model, lambda m: nn.Sequential(m), check_fn=lambda m: isinstance(m, nn.Dropout))
    assert type(model[0].drop) is nn.Sequential and type(model[0].drop[0]) is nn.Dropout
    with pytest.raises(TypeError, match="checkpoint_wrapper: expected a module, got int"):
        checkpoint_wrapper(3)


def test_sharded_blocks_compute_again():
    dist.init_process_group()
    plain, model = network(), network()
    apply_activation_checkpointing(model, check_fn=lambda m: isinstance(m, Block))
    for block in model[:2]:
        fully_shard(block)
    fully_shard(model)
    for a, b in zip(gradients(plain), gradients(model), strict=True):
        assert a.equal(b)
    assert model[0].calls == 2
    dist.destroy_process_group()
