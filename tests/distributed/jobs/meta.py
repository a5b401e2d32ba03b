"""Sharded modules that were built on the meta device: memory and first values come afterwards, rank by rank."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
import genesis.distributed as dist
from genesis import nn, optim
from genesis.distributed.fsdp import fully_shard

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()


class Net(nn.Module):
    """Layers of many kinds; the row of zeros in the embedding is one rank's."""

    def __init__(self):
        super().__init__()
        self.words, self.norm = nn.Embedding(11, 8, padding_idx=7), nn.LayerNorm(8)
        self.conv, self.batch = nn.Conv1d(8, 6, 3), nn.BatchNorm1d(6)
        self.out, self.slope = nn.Linear(6, 3), nn.PReLU()

    def forward(self, x):
        return self.out(self.slope(self.batch(self.conv(self.norm(self.words(x)).transpose(1, 2)))).mean(-1))


def on_meta():
    with genesis.device("meta"):
        model = Net()
    for layer in (model.words, model.conv, model.out):
        fully_shard(layer)
    fully_shard(model)
    assert all(p.device.type == "meta" for p in model.parameters())
    return model


def reset(model):
    genesis.manual_seed(3)
    for module in model.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()


def step(model, optimizer):
    optimizer.zero_grad()
    genesis.manual_seed(4)
    model(genesis.randint(0, 11, (5, 9))).square().sum().backward()
    optimizer.step()


def same(plain, model):
    for (name, p), q in zip(plain.named_parameters(), model.parameters(), strict=True):
        assert isinstance(q, nn.Parameter) and q.to_local().shape[0] == len(
            p.chunk(size)[rank] if rank < len(p.chunk(size)) else []
        )
        np.testing.assert_allclose(
            q.full_tensor().detach().numpy(), p.detach().numpy(), rtol=1e-4, atol=1e-5, err_msg=name
        )


def first_values_are_those_of_one_rank():
    plain, model = Net(), on_meta()
    optimizers = [optim.SGD(plain.parameters(), 0.01), optim.SGD(model.parameters(), 0.01)]  # before there is memory
    model.to_empty(device="cpu")
    for net in (plain, model):
        reset(net)
    for (name, p), q in zip(plain.named_parameters(), model.parameters(), strict=True):
        assert genesis.equal(p.detach(), q.full_tensor()), name
    for _ in range(2):
        for net, optimizer in zip((plain, model), optimizers, strict=True):
            step(net, optimizer)
    same(plain, model)


def all_of_init_knows_the_whole():
    for name, shape in (("xavier_normal_", (7, 4)), ("kaiming_uniform_", (7, 4)), ("orthogonal_", (7, 4)), ("eye_", (7, 4)),
                        ("dirac_", (7, 4, 3)), ("trunc_normal_", (5,)), ("zeros_", (5,))):  # fmt: skip
        holder = nn.Module()
        holder.w = nn.Parameter(genesis.full(shape, 9.0))
        fully_shard(holder)
        genesis.manual_seed(1)
        whole = getattr(nn.init, name)(genesis.empty(shape))
        genesis.manual_seed(1)
        given = getattr(nn.init, name)(holder.w)
        assert given is holder.w and genesis.equal(holder.w.full_tensor(), whole), name


def a_state_may_be_what_they_begin_with():
    plain, model = Net(), on_meta()
    model.to_empty(device="cpu")
    model.load_state_dict(plain.state_dict())
    same(plain, model)


def without_memory_it_does_not_compute():
    model = on_meta()
    with pytest.raises(
        RuntimeError, match=r"fully_shard: .* is on the meta device, where it has no values\n  try: to_emp"
    ):
        model(genesis.zeros(2, 3, dtype=genesis.int64))


for check in (first_values_are_those_of_one_rank, all_of_init_knows_the_whole, a_state_may_be_what_they_begin_with,
              without_memory_it_does_not_compute):  # fmt: skip
    check()
print(f"rank {rank} is done")
dist.destroy_process_group()
