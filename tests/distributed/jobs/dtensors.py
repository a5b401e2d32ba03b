"""Functions of a `DTensor`, however operands lie: values and gradients are those of one rank, and what can be in parts is."""

from __future__ import annotations

import copy
import sys
from itertools import product

import numpy as np
from together import rank, refused, size

import genesis
import genesis.distributed as dist
import genesis.distributed.checkpoint as dcp
import genesis.distributed.tensor as dtensor
import genesis.nn.functional as F
from genesis import nn, optim
from genesis.distributed.device_mesh import init_device_mesh
from genesis.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

MESH = init_device_mesh("cpu", (size,))
GRID = init_device_mesh("cpu", (size // 2, 2)) if size > 1 else None
WORDS = genesis.tensor(np.random.default_rng(0).integers(0, 6, (4, 3)))
CLASSES = genesis.tensor([0, 5, -100, 3])


def drawn(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape)


# a function, shapes of its operands, and how many results are in parts on two ranks, of all ways in which operands lie
CASES = {
    "add": (lambda a, b: 2 * a + b, [(4, 3), (3,)], 5),
    "gelu": (F.gelu, [(4, 5, 3)], 3),
    "where": (lambda a, b: genesis.where(a > 0, a, b), [(4, 6), (4, 6)], 8),
    "pow": (lambda a: (a * a + 1) ** -0.5, [(4, 6)], 2),
    "heads": (lambda a: a.view(2, 4, 4, 3).transpose(1, 2), [(2, 4, 12)], 3),
    "no heads": (lambda a: a.transpose(1, 2).reshape(2, 4, 16), [(2, 4, 4, 4)], 3),
    "flatten": (lambda a: a.flatten(0, 1).unflatten(0, (4, 4)), [(4, 4, 5)], 2),
    "permute": (lambda a: a.permute(2, 0, 1), [(4, 6, 3)], 3),
    "expand": (lambda a: a.unsqueeze(1).expand(4, 3, 6), [(4, 6)], 2),
    "chunk": (lambda a: a.chunk(2, -1), [(4, 6)], 2),
    "unbind": (lambda a: a.unbind(1), [(4, 3, 2)], 6),
    "items": (lambda a: a[:, 1:, None], [(4, 6, 3)], 2),
    "linear": (F.linear, [(4, 6), (5, 6), (5,)], 14),
    "matmul": (lambda a, b: a @ b, [(4, 4, 6), (4, 6, 4)], 15),
    "softmax": (lambda a: a.softmax(-1), [(4, 5, 6)], 2),
    "sum": (lambda a: a.sum(1), [(4, 5, 6)], 3),
    "mean": (lambda a: a.mean((0, 1)), [(4, 5, 6)], 3),
    "var": (lambda a: a.var(-1, keepdim=True), [(4, 5, 6)], 2),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (6,), w, b), [(4, 4, 6), (6,), (6,)], 8),
    "rms norm": (lambda x, w: F.rms_norm(x, (6,), w), [(4, 4, 6), (6,)], 4),
    "embedding": (lambda w: F.embedding(WORDS, w), [(6, 4)], 2),
    "attention": (
        lambda q, v: F.scaled_dot_product_attention(q, q.tanh(), v, is_causal=True), [(2, 4, 3, 4), (2, 4, 3, 5)], 10
    ),
    "dropout": (lambda a: F.dropout(a, 0.3), [(4, 6)], 2),
    "losses": (lambda x: F.cross_entropy(x, CLASSES, reduction="none"), [(4, 7)], 1),
    "loss": (lambda x: F.cross_entropy(x, CLASSES), [(4, 7)], 1),
    "axis": (lambda a: a.sum(axis=1, keepdims=True) + a.mean(axis=0) + a.softmax(axis=0), [(4, 6)], 2),
    "flip": (lambda a: (a.flip(0), genesis.flip(a, (1,)), F.normalize(a), a.var(False)), [(4, 5, 6)], 6),
    "sort": (lambda a: (a.sort(0).values, *a.topk(2, 1), a.argsort(-1), a.roll(1, 0), a.diff(dim=2)), [(4, 5, 6)], 12),
    "most": (lambda a: (a.max(1).values, a.argmax(0), a.amin(-1), a.median(2)[0], a.kthvalue(2)[0], a.max()), [(4, 5, 6)], 10),
    "cat": (lambda a, b: (genesis.cat([a, b], 1), genesis.stack([b, b], 1), genesis.concat([b, a], axis=1)), [(4, 3), (4, 3)], 16),
    "names": (lambda a: (a[0], a[..., 1], a.select(1, 0), a.narrow(1, 1, 2), *a.split(2, 1), a.tile(2, 1, 1)), [(4, 5, 6)], 16),
    "gather": (lambda a: (a.gather(1, a.argsort(1)), genesis.index_select(a, 1, genesis.tensor([2, 0]))), [(4, 6)], 2),
    "einsum": (lambda a, b: genesis.einsum("bij,bkj->bik", a, b), [(2, 4, 6), (2, 3, 6)], 15),
    "einsum of one": (lambda a, b: genesis.einsum("ij,k", a, b), [(4, 6), (3,)], 5),
    "vectors": (lambda a, b: (a @ b, genesis.outer(b, b), b @ b), [(4, 6), (6,)], 11),
    "addmm": (lambda a, b, c: genesis.addmm(c, a, b, beta=2), [(4, 6), (6, 5), (5,)], 6),
    "conv": (lambda x, w, b: F.max_pool2d(F.conv2d(x, w, b, padding=1), 2), [(2, 3, 4, 4), (6, 3, 3, 3), (6,)], 18),
    "pad": (lambda x: (F.pad(x, (1, 2)), x.tril(), F.group_norm(x, 3)), [(4, 3, 4)], 4),
    "mse": (lambda a, b: (F.mse_loss(a, b), F.l1_loss(a, b, reduction="none"), F.kl_div(a, b, reduction="batchmean")), [(4, 6), (4, 6)], 24),
    "rows": (lambda x: (F.cross_entropy(x, CLASSES), F.nll_loss(x, CLASSES, reduction="sum")), [(4, 7)], 2),
    "no rule": (lambda a, b: genesis.kron(a.diagonal(), genesis.cov(b)), [(4, 6), (3, 6)], 0),
    "uneven": (lambda a, b: (a.view(-1) * 2).sum() + (a @ b).sum(), [(5, 7), (7, 3)], 0),
}  # fmt: skip


def weighted(y):
    """A number that depends on each element in its own way."""
    weights = genesis.arange(float(y.numel())).double().reshape(y.shape).cos()
    return (y * (distribute_tensor(weights, MESH, [Replicate()]) if isinstance(y, DTensor) else weights)).sum()


def functions():
    for name, (f, shapes, parted) in CASES.items():
        arrays = [drawn(*shape) for shape in shapes]
        leaves = [genesis.tensor(a).requires_grad_() for a in arrays]
        genesis.manual_seed(1)
        wanted = f(*leaves)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        sum([weighted(y) for y in wanted]).backward()
        count = 0
        for lie in product(*[[Replicate(), *[Shard(i) for i in range(a.ndim)]] for a in arrays]):
            note = f"{name} {lie}"
            given = [
                distribute_tensor(genesis.tensor(a), MESH, [p]).requires_grad_()
                for a, p in zip(arrays, lie, strict=True)
            ]
            genesis.manual_seed(1)
            got = f(*given)
            got = got if isinstance(got, tuple) else (got,)
            count += len([z for z in got if not z.placements[0].is_replicate()])
            for y, z in zip(wanted, got, strict=True):
                assert y.shape == z.shape, note
                np.testing.assert_allclose(
                    z.full_tensor().detach().numpy(), y.detach().numpy(), 1e-9, 1e-12, err_msg=note
                )
            sum([weighted(y) for y in got]).backward()
            for x, y in zip(leaves, given, strict=True):
                assert y.grad.placements == y.placements
                np.testing.assert_allclose(y.grad.full_tensor().numpy(), x.grad.numpy(), 1e-9, 1e-12, err_msg=note)
        assert size != 2 or count == parted, (name, count)


def writes():
    x = distribute_tensor(genesis.zeros(4, 6), MESH, [Shard(0)])
    x.add_(1)
    x[0] = 5
    x.mul_(distribute_tensor(genesis.full((6,), 2.0), MESH, [Shard(0)]))
    assert x.placements == (Shard(0),) and x.full_tensor().equal(genesis.tensor([[10.0] * 6, *[[2.0] * 6] * 3]))
    genesis.manual_seed(0)
    nn.init.normal_(x)
    genesis.manual_seed(0)
    assert x.full_tensor().equal(nn.init.normal_(genesis.empty(4, 6)))
    out = distribute_tensor(genesis.zeros(4, 6), MESH, [Shard(1)])
    genesis.add(x, x, out=out)
    assert out.full_tensor().equal(2 * x.full_tensor()) and out.placements == (Shard(1),)


def values():
    x = distribute_tensor(genesis.arange(10.0).reshape(5, 2), MESH, [Shard(0)])
    assert x.shape == (5, 2) and x.numel() == 10 and len(x) == 5 and x.size(1) == 2 and x.size() == (5, 2)
    assert x.sum().item() == 45 and x.max().item() == 9 and float(x[4].sum()) == 17 and bool((x >= 0).all())
    assert (
        (-x).amax((0, 1)).item() == 0
        and not (x > 0).all().item()
        and (x > 8).any().item()
        and x.min().placements == (Replicate(),)
    )
    assert np.isnan((x / x).max().item()) and np.isnan((x / x).min().item())  # 0 / 0 is one rank's
    assert x.tolist() == x.full_tensor().tolist() and x.sum().placements == (Partial(),)
    assert [row.tolist() for row in x] == x.tolist() and "Shard(dim=0)" in repr(x)
    assert copy.deepcopy(x).full_tensor().equal(x.full_tensor())
    number = distribute_tensor(genesis.tensor(3.0), MESH)
    assert number.placements == (Replicate(),) and (number * x).sum().item() == 135
    refused(RuntimeError, "placements are missing", x.redistribute)
    assert DTensor.from_local(genesis.ones(2), MESH, [Partial()]).full_tensor().tolist() == [size] * 2
    refused(TypeError, "add: a DTensor meets an ordinary tensor", lambda: x + genesis.ones(5, 2))
    refused(NotImplementedError, "each dimension along one", lambda: x.redistribute(placements=[Shard(2)]))


def made():
    """Each rank makes its part."""
    for f, g in ((dtensor.zeros, genesis.zeros), (dtensor.ones, genesis.ones), (dtensor.randn, genesis.randn)):
        for lie in ([Shard(0)], [Shard(1)], [Replicate()], None):
            genesis.manual_seed(3)
            x = f(5, 7, device_mesh=MESH, placements=lie)
            genesis.manual_seed(3)
            assert x.full_tensor().equal(g(5, 7)) and x.placements == tuple(lie or [Replicate()])
    assert dtensor.full([4], 2, device_mesh=MESH, placements=[Shard(0)]).tolist() == [2] * 4
    assert dtensor.rand((3, 4), dtype=genesis.float64, device_mesh=MESH, requires_grad=True).requires_grad


def modules():
    """Parameters divided by a function; inputs and outputs lie as two others say."""

    def divide(name, module, mesh):
        for own, p in list(module.named_parameters(recurse=False)) if name == "0" else ():
            setattr(module, own, nn.Parameter(distribute_tensor(p, mesh, [Shard(0)])))

    genesis.manual_seed(rank)  # what the first rank has counts
    module = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))
    dtensor.distribute_module(
        module, MESH, divide,
        lambda module, args, mesh: (DTensor.from_local(args[0], mesh, [Replicate()]),),
        lambda module, out, mesh: out.full_tensor(),
    )  # fmt: skip
    genesis.manual_seed(0)
    plain = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))
    assert isinstance(module[0].weight, DTensor) and not isinstance(module[2].weight, DTensor)
    for net in (plain, module):
        net(genesis.ones(2, 5)).square().sum().backward()
    for p, q in zip(plain.parameters(), module.parameters(), strict=True):
        g = q.grad.full_tensor() if isinstance(q, DTensor) else q.grad
        np.testing.assert_allclose(g.numpy(), p.grad.numpy(), 1e-5, 1e-6)


def local_tensors():
    local = genesis.ones(2, 3, requires_grad=True)
    x = DTensor.from_local(local, MESH, [Shard(0)])
    (x * x).sum().backward()
    assert local.grad.equal(2 * local.detach())
    same = distribute_tensor(genesis.ones(3), MESH, [Replicate()]).requires_grad_()
    (same.to_local(grad_placements=[Partial()]) * (rank + 1)).sum().backward()
    assert same.grad.to_local().tolist() == [size * (size + 1) / 2] * 3


def optimizers(folder):
    plain = genesis.tensor(drawn(5, 4)).requires_grad_()
    x = distribute_tensor(plain.detach(), MESH, [Shard(0)]).requires_grad_()
    for make in (optim.AdamW, optim.SGD, optim.RMSprop):
        a, b = make([plain], lr=0.1), make([x], lr=0.1)
        for _ in range(2):
            norms = []
            for p, optimizer in ((plain, a), (x, b)):
                optimizer.zero_grad()
                (p * p).sum().backward()
                norms.append(float(nn.utils.clip_grad_norm_([p], 1.0)))
                optimizer.step()
            np.testing.assert_allclose(x.full_tensor().detach().numpy(), plain.detach().numpy(), 1e-12)
            np.testing.assert_allclose(*norms, 1e-12)
    dcp.save({"x": x}, checkpoint_id=folder)
    y = distribute_tensor(genesis.zeros(5, 4).double(), MESH, [Shard(0)])
    dcp.load({"x": y}, checkpoint_id=folder)
    assert y.full_tensor().equal(x.full_tensor().detach())


def in_a_grid():
    if GRID is None:
        return
    a, b = genesis.tensor(drawn(4, 6)), genesis.tensor(drawn(6, 4))
    x = distribute_tensor(a, GRID, [Shard(0), Shard(1)]).requires_grad_()
    y = distribute_tensor(b, GRID, [Replicate(), Shard(0)]).requires_grad_()
    out = x @ y
    assert out.placements == (Shard(0), Partial())
    np.testing.assert_allclose(out.full_tensor().detach().numpy(), (a @ b).numpy(), 1e-12)
    out.sum().backward()
    np.testing.assert_allclose(y.grad.full_tensor().numpy(), (a.T @ genesis.ones(4, 4).double()).numpy(), 1e-12)
    np.testing.assert_allclose(x.mean().item(), a.mean().item(), 1e-12)


for check in (functions, writes, values, made, modules, local_tensors, in_a_grid):
    check()
    dist.barrier()
optimizers(sys.argv[1])
print(f"rank {rank} is done")
