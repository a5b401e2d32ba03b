"""Programs as they are written for PyTorch's fully_shard: parameters are tensors of all ranks, and look so."""

from __future__ import annotations

import copy
import io
import pickle
from itertools import pairwise

import numpy as np
from together import rank, refused, size

import genesis
import genesis.distributed as dist
from genesis import nn, optim
from genesis.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from genesis.distributed.device_mesh import init_device_mesh
from genesis.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
from genesis.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

F = nn.functional
WORDS, WIDTH, LENGTH = 11, 8, 7
MESH = init_device_mesh("cpu", (size,), mesh_dim_names=("dp_shard",))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH)
        self.down = nn.Linear(3 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return x + self.down(F.silu(self.up(self.norm(x))))

    def init_weights(self):
        for layer in (self.up, self.down):
            nn.init.trunc_normal_(layer.weight, std=0.3)
        nn.init.zeros_(self.up.bias)
        self.norm.reset_parameters()


class Net(nn.Module):
    """Its positions have one row, which one rank has."""

    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(WORDS, WIDTH), nn.Parameter(genesis.empty(1, LENGTH, WIDTH))
        self.layers = nn.ModuleDict({str(i): Block() for i in range(3)})
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, text):
        x = self.words(text) + self.positions[:, : text.shape[1]]
        for layer in self.layers.values():
            x = layer(x)
        return self.head(self.norm(x))

    def init_weights(self):
        genesis.manual_seed(5)
        nn.init.normal_(self.words.weight)
        nn.init.normal_(self.positions)
        for layer in self.layers.values():
            layer.init_weights()
        self.norm.reset_parameters()
        nn.init.trunc_normal_(self.head.weight, std=0.3, a=-0.6, b=0.6)
        return self


def divided(net, **options):
    for layer in net.layers.values():
        fully_shard(layer, mesh=MESH["dp_shard"], reshard_after_forward=True, **options)
    return fully_shard(net, mesh=MESH["dp_shard"], **options)


def on_meta(**options):
    with genesis.device("meta"):
        net = Net()
    return divided(net, **options)


def pair():
    model = on_meta(offload_policy=CPUOffloadPolicy())
    assert all(isinstance(p, DTensor) and p.is_meta for p in model.parameters())
    model.to_empty(device="cpu")
    with genesis.no_grad():
        model.init_weights()
    return Net().init_weights(), model


def texts(steps):
    return genesis.tensor(np.random.default_rng(1).integers(0, WORDS, (steps, 2 * size, LENGTH + 1)))


def loss_of(net, text):
    return F.cross_entropy(net(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())


def own(text):
    return text[2 * rank : 2 * rank + 2]


def near(a, b):
    np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-4, 1e-5)


def same(a, b, exact=True):
    for (name, p), q in zip(a.named_parameters(), b.parameters(), strict=True):
        p, q = [x.full_tensor() if isinstance(x, DTensor) else x for x in (p.detach(), q.detach())]
        assert p.equal(q) if exact else genesis.allclose(p, q, 1e-3, 1e-4), name


def what_parameters_say():
    plain, model = pair()
    same(plain, model)
    assert sum(p.numel() for p in model.parameters()) == sum(p.numel() for p in plain.parameters())
    for (name, p), (_, q) in zip(model.named_parameters(), plain.named_parameters(), strict=True):
        rows = len(q.chunk(size)[rank]) if rank < len(q.chunk(size)) else 0
        assert p.shape == q.shape and p.size() == q.shape and p.stride() == q.stride() and len(p) == len(q), name
        assert p.to_local().shape == (rows, *q.shape[1:]) and type(p.to_local()) is genesis.Tensor, name
        assert p.placements == (Shard(0),) and p.device_mesh == MESH and p.is_leaf and p.requires_grad
    p, q = model.head.weight, plain.head.weight
    assert repr(p).startswith("Parameter containing:\nDTensor(local_tensor=")
    for f in (
        lambda w: w * w + 2, lambda w: w.norm(), lambda w: w.float().abs().max(), lambda w: w[1:3], lambda w: w @ w.T,
        lambda w: (w == 0).sum(), lambda w: w.mean(0), lambda w: w.std(), lambda w: genesis.stack([w, w]),
    ):  # fmt: skip
        near(f(p.detach()).full_tensor(), f(q.detach()))
    (p * q.detach().sum()).sum().backward()  # its gradient lies as it does
    assert p.grad.placements == p.placements and p.grad.shape == p.shape and p.grad is p.grad
    near(p.grad.full_tensor(), q.detach().sum().expand(q.shape))
    refused(TypeError, "a DTensor meets an ordinary tensor", lambda: p + q.detach())


def writes():
    plain, model = pair()
    averages = [[p.detach().clone() for p in net.parameters()] for net in (plain, model)]
    with genesis.no_grad():
        for net, kept in zip((plain, model), averages, strict=True):
            genesis.manual_seed(2)
            for p, mean in zip(net.parameters(), kept, strict=True):
                p.data.mul_(0.5)
                p.add_(genesis.ones_like(p), alpha=0.1)
                p.clamp_(-0.4, 0.4)
                mean.lerp_(p, 0.1).mul_(0.9).add_(p, alpha=0.1)
            net.head.weight.uniform_(-1, 1)
            net.head.weight[0] = 0
            net.words.weight.copy_(genesis.cat([net.words.weight[1:], net.words.weight[:1]]))
    same(plain, model)
    for p, q in zip(*averages, strict=True):
        assert isinstance(q, DTensor)
        near(q.full_tensor(), p)


def training():
    plain, model = pair()
    a, b = optim.AdamW(plain.parameters(), 0.01), optim.AdamW(model.parameters(), 0.01, fused=True)
    for text in texts(3):
        a.zero_grad()
        b.zero_grad()
        loss_of(plain, text).backward()
        loss_of(model, own(text)).backward()
        grads = [p.grad for p in model.parameters()]
        assert all(isinstance(g, DTensor) and g.placements == (Shard(0),) for g in grads)
        norm = nn.utils.get_total_norm(grads, 2.0, False, True)
        expected = nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
        assert isinstance(norm, DTensor) and norm.shape == () and norm.placements == (Replicate(),)
        for value in (norm.full_tensor().item(), norm.item(), float(norm), norm.to_local().item()):
            np.testing.assert_allclose(value, expected.item(), rtol=1e-4)
        nn.utils.clip_grads_with_norm_(model.parameters(), 1.0, norm.full_tensor(), True)
        a.step()
        b.step()
        same(plain, model, exact=False)
    return model, b


def states():
    model, b = training()
    whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
    state, moments = get_model_state_dict(model, options=whole), get_optimizer_state_dict(model, b, options=whole)
    own_state = model.state_dict()
    assert all(isinstance(value, DTensor) and not value.requires_grad for value in own_state.values())
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    again = on_meta()
    set_model_state_dict(again, state, options=options)
    same(model, again)
    other = on_meta()  # as programs write it that make the tensors themselves
    values = {}
    for name, known in other.state_dict().items():
        values[name] = nn.Parameter(
            distribute_tensor(own_state[name].full_tensor(), known.device_mesh, known.placements)
        )
    other.load_state_dict(values, strict=False, assign=True)
    same(model, other)
    for net in (again, other):
        c = optim.AdamW(net.parameters(), 0.01)
        set_optimizer_state_dict(net, c, moments, options=options)
        loss_of(net, own(texts(1)[0])).backward()
        c.step()
    same(again, other)
    copied = copy.deepcopy(own_state)
    assert all(copied[name].full_tensor().equal(value.full_tensor()) for name, value in own_state.items())
    for save in (lambda: genesis.save(own_state, io.BytesIO()), lambda: pickle.dumps(own_state["head.weight"])):
        refused(NotImplementedError, "checkpoint.save", save)


def hooks_of_parameters():
    """A step in the hook that tells of a gradient needs no memory for the others."""
    plain, model = pair()
    a, b = optim.SGD(plain.parameters(), 0.1), {p: optim.SGD([p], 0.1) for p in model.parameters()}

    def step(p):
        assert isinstance(p, DTensor) and p.grad.shape == p.shape
        b[p].step()
        p.grad = None

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(step)
    for text in texts(2):
        a.zero_grad()
        loss_of(plain, text).backward()
        a.step()
        loss_of(model, own(text)).backward()
        assert all(p.grad is None for p in model.parameters())
    same(plain, model, exact=False)


def mixed_precision():
    model = divided(Net().init_weights(), mp_policy=MixedPrecisionPolicy(genesis.bfloat16, genesis.float32))
    layers = list(model.layers.values())
    for one, after in pairwise(layers):
        one.set_modules_to_forward_prefetch([after])
        after.set_modules_to_backward_prefetch([one])
    text = own(texts(1)[0])
    for sync in (False, True):
        model.set_requires_gradient_sync(sync)
        out = model(text[:, :-1])
        assert out.dtype == genesis.bfloat16
        out.float().sum().backward()
    assert all(p.dtype == p.grad.dtype == genesis.float32 for p in model.parameters())
    model.unshard()
    assert not isinstance(model.head.weight, DTensor) and model.head.weight.shape == (WORDS, WIDTH)
    assert isinstance(model.layers["0"].up.weight, DTensor)  # of another group
    model.reshard()
    assert isinstance(model.head.weight, DTensor)


for check in (what_parameters_say, writes, states, hooks_of_parameters, mixed_precision):
    check()
dist.barrier()
print(f"rank {rank} is done")
