"""A transformer of two layers whose layers are divided among ranks: a training has the losses and the parameters of one rank."""

from __future__ import annotations

import numpy as np
from together import rank, refused, size

import genesis
import genesis.distributed as dist
import genesis.nn.functional as F
from genesis import nn, optim
from genesis.distributed.device_mesh import init_device_mesh
from genesis.distributed.fsdp import fully_shard
from genesis.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from genesis.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

WORDS, WIDTH, HEADS, LENGTH = 13, 8, 4, 8
TEXT = genesis.tensor(np.random.default_rng(0).integers(0, WORDS, (3, 4, LENGTH + 1)))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = [nn.Linear(WIDTH, WIDTH, bias=i == 3) for i in range(4)]

    def forward(self, x):
        batch, length = x.shape[:2]
        q, k, v = [f(x).view(batch, length, -1, WIDTH // HEADS).transpose(1, 2) for f in (self.q, self.k, self.v)]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().view(batch, length, -1))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.attention, self.drop = Attention(), nn.Dropout(0.2)
        self.up, self.down = nn.Linear(WIDTH, 12), nn.Linear(12, WIDTH)

    def forward(self, x):
        x = x + self.drop(self.attention(self.first(x)))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        genesis.manual_seed(0)
        self.words, self.positions = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList([Layer(), Layer()])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, text):
        x = self.words(text) + self.positions(genesis.arange(text.shape[1]).expand(text.shape))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


IN_PARTS = {
    "words": ColwiseParallel(output_layouts=Replicate()), "layers.*.attention.[qkv]": ColwiseParallel(),
    "layers.*.attention.out": RowwiseParallel(), "layers.*.up": ColwiseParallel(), "layers.*.down": RowwiseParallel(),
}  # fmt: skip
BY_SEQUENCE = {
    "words": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
    "positions": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
    "layers.*.first": SequenceParallel(), "layers.*.second": SequenceParallel(), "norm": SequenceParallel(),
    "layers.*.drop": SequenceParallel(use_local_output=True),
    "layers.*.attention": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate()),
    "layers.*.attention.[qkv]": ColwiseParallel(),
    "layers.*.attention.out": RowwiseParallel(output_layouts=Shard(1)),
    "layers.*.up": ColwiseParallel(), "layers.*.down": RowwiseParallel(output_layouts=Shard(1)),
    "head": ColwiseParallel(input_layouts=Shard(1), use_local_output=False),
}  # fmt: skip
AS_TENSORS = BY_SEQUENCE | {  # heads are split and joined as tensors of all ranks
    "layers.*.attention.[qkv]": ColwiseParallel(use_local_output=False),
    "layers.*.attention": PrepareModuleInput(
        input_layouts=Shard(1), desired_input_layouts=Replicate(), use_local_output=True
    ),
    "layers.*.up": ColwiseParallel(use_local_output=False),
    "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
}


def loss_of(model, text):
    out = model(text[:, :-1])
    with loss_parallel():
        return F.cross_entropy(out.flatten(0, 1), text[:, 1:].flatten(0, 1))


def trained(model, optimizer, text):
    losses = []
    for i, each in enumerate(text):
        genesis.manual_seed(i)
        optimizer.zero_grad()
        loss = loss_of(model, each)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        losses += [loss.item(), norm.item()]
    return losses


def same(plain, model):
    for (name, p), q in zip(plain.named_parameters(), model.parameters(), strict=True):
        whole = q.full_tensor() if isinstance(q, DTensor) else q
        np.testing.assert_allclose(whole.detach().numpy(), p.detach().numpy(), rtol=1e-8, atol=1e-10, err_msg=name)


def trainings():
    mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("tp",))
    plain = Transformer().double()
    wanted = trained(plain, optim.AdamW(plain.parameters(), 0.01), TEXT)
    for plan in (IN_PARTS, BY_SEQUENCE, AS_TENSORS):
        model = parallelize_module(Transformer().double(), mesh, plan)
        got = trained(model, optim.AdamW(model.parameters(), 0.01), TEXT)
        np.testing.assert_allclose(got, wanted, rtol=1e-9)
        same(plain, model)
        divided = [name for name, p in model.named_parameters() if isinstance(p, DTensor)]
        assert len(divided) == (15 if plan is IN_PARTS else 18), divided


def nested(plain, model, mesh):
    """Rows of a part of a layer are a tensor of the grid, too: of its shape, and functions of it are those of the whole."""
    several = [(p, q) for p, q in zip(plain.parameters(), model.parameters(), strict=True) if len(q.placements) == 2]
    assert {q.placements for _, q in several} == {(Shard(0), Shard(0)), (Shard(0), Shard(1))}
    for p, q in several:
        assert q.device_mesh == mesh and q.shape == p.shape and q.numel() == p.numel()
        for f in (
            lambda w: w * w + 1,
            lambda w: w.norm(),
            lambda w: w.sum(0),
            lambda w: w[1:3],
            lambda w: w.abs().max(),
        ):
            got = f(q.detach()).full_tensor()
            np.testing.assert_allclose(got.numpy(), f(p.detach()).numpy(), rtol=1e-8, atol=1e-10)
        assert (q * 2).placements == q.placements and q.detach().clone().full_tensor().equal(q.detach().full_tensor())
        with genesis.no_grad():
            before = q.full_tensor()
            q.mul_(2)
            q[0] = 7
            q.add_(q.detach().clone())
            expected = 4 * before
            expected[0] = 14
            assert q.full_tensor().equal(expected)
            q.copy_(distribute_tensor(before, mesh, [Replicate()] * 2))
            assert q.full_tensor().equal(before)
        refused(NotImplementedError, "cannot be moved", lambda: q.redistribute(placements=[Replicate()] * 2))  # noqa: B023


def in_a_grid():
    """Layers divided within lines of two ranks, rows of what each has between them: the batch is, too."""
    if size % 2:
        return
    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("dp", "tp"))
    plain, model = Transformer().double().eval(), Transformer().double().eval()
    parallelize_module(model, mesh["tp"], IN_PARTS)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
    optimizer, at = optim.AdamW(model.parameters(), 0.01), mesh["dp"].get_local_rank()
    rows = 4 // mesh.size(0)
    wanted = trained(plain, optim.AdamW(plain.parameters(), 0.01), TEXT)
    got = trained(model, optimizer, TEXT[:, at * rows : (at + 1) * rows])
    np.testing.assert_allclose(got[1::2], wanted[1::2], rtol=1e-9)  # norms
    same(plain, model)
    nested(plain, model, mesh)
    again = Transformer().double()
    again.load_state_dict({name: value.full_tensor() for name, value in model.state_dict().items()})
    same(plain, again)
    model.load_state_dict(Transformer().double().state_dict())
    same(Transformer().double(), model)


def outputs():
    mesh = init_device_mesh("cpu", (size,))
    layer = parallelize_module(
        nn.Linear(4, 4), mesh, PrepareModuleOutput(output_layouts=Replicate(), desired_output_layouts=Shard(0))
    )
    assert layer(genesis.ones(4 * size, 4)).shape == (4, 4)


for check in (trainings, in_a_grid, outputs):
    check()
    dist.barrier()
print(f"rank {rank} is done")
