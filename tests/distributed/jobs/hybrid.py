"""Meshes of several dimensions, and fully_shard over one of two: rows are divided along one, replicas along the other."""

from __future__ import annotations

import sys

import numpy as np
from together import compiled_step, examples, loss_of, mine, rank, refused, size, step_of

import genesis
import genesis.distributed as dist
import genesis.distributed.checkpoint as dcp
from genesis import amp, nn, optim
from genesis.distributed.device_mesh import DeviceMesh, init_device_mesh
from genesis.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, ShardingStrategy, fully_shard
from genesis.distributed.tensor import Replicate, Shard, distribute_tensor

X, Y = examples(4, 1)
NAMES = ("replicate", "shard")
SHAPES = [(n, size // n) for n in range(1, size + 1) if size % n == 0]
MESHES = [init_device_mesh("cpu", shape, mesh_dim_names=NAMES) for shape in SHAPES]


def network(seed=0, width=9):
    genesis.manual_seed(seed)
    layers = nn.Linear(5, width), nn.Tanh(), nn.Linear(width, width + 2), nn.ReLU(), nn.Linear(width + 2, 1)
    return nn.Sequential(*layers).double()


def sharded(net, mesh, **options):
    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh, **options)
    return fully_shard(net, mesh=mesh, **options)


def whole(p):
    return p.detach() if p._sharding is None else p.full_tensor().detach()


def near(a, b, note="", rtol=1e-10):
    for (name, p), q in zip(a.named_parameters(), b.parameters(), strict=True):
        np.testing.assert_allclose(
            p.detach().numpy(), whole(q).numpy(), rtol=rtol, atol=rtol / 100, err_msg=f"{note} {name}"
        )


def training(mesh):
    for width in (9, 200):  # the second travels alone
        plain, model = network(width=width), sharded(network(width=width), mesh)
        rows = -(-width // mesh.size(1))
        assert model[0].weight.placements == (Replicate(), Shard(0)) and model[0].weight.device_mesh is mesh
        assert model[0].weight.to_local().shape[0] == max(0, min(rows, width - rows * mesh.get_local_rank("shard")))
        a, b = optim.AdamW(plain.parameters(), 0.01), optim.AdamW(model.parameters(), 0.01)
        for x, y in zip(X, Y, strict=True):
            norm = step_of(plain, a, x, y, 0.5)
            np.testing.assert_allclose(step_of(model, b, mine(x), mine(y), 0.5), norm, rtol=1e-10)
            near(plain, model, width)


def compiled(mesh):
    plain, model = network(), sharded(network(), mesh)
    a, b = optim.SGD(plain.parameters(), 0.1), optim.SGD(model.parameters(), 0.1)
    step = compiled_step(model, b)
    for x, y in zip(X, Y, strict=True):
        step_of(plain, a, x, y)
        step(mine(x), mine(y))
        near(plain, model)


def accumulation(mesh):
    """Without the sum over replicas each has its own; the next backward with it has all, also of what it did not use."""
    for switch in ("set_requires_all_reduce", "set_requires_gradient_sync"):
        plain, model = network(), sharded(network(), mesh)
        (loss_of(plain, X[0], Y[0]) + plain[0](X[0]).sum() / (X[0].shape[0])).backward()
        getattr(model, switch)(False)
        loss_of(model, mine(X[0]), mine(Y[0])).backward()
        if mesh.size(0) > 1:
            assert all(p.grad is None for p in model.parameters())
        getattr(model, switch)(True)
        loss_of(model, mine(X[0]), mine(Y[0])).backward()
        for p, q in zip(plain.parameters(), model.parameters(), strict=True):
            p.grad = None
            assert q.grad is not None
        loss_of(plain, X[0], Y[0]).backward()
        for p, q in zip(plain.parameters(), model.parameters(), strict=True):
            np.testing.assert_allclose(2 * p.grad.numpy(), whole(q.grad).numpy(), rtol=1e-10)


class Branches(nn.Module):
    """Two layers in one group, of which a call uses one or both."""

    def __init__(self):
        super().__init__()
        genesis.manual_seed(0)
        self.a, self.b = nn.Linear(5, 3).double(), nn.Linear(5, 3).double()

    def forward(self, x, names="ab"):
        return sum(getattr(self, name)(x).sum() for name in names)


def parts_that_are_not_used(mesh):
    """Each rank uses one of them; then all use one in the backward that combines, and both in the one before it."""
    plain, model = Branches(), fully_shard(Branches(), mesh=mesh)
    rows = [X[0][4 * r : 4 * r + 4] for r in range(size)]
    used = ["a" if r == 0 else "b" for r in range(size)]
    (sum(map(plain, rows, used)) / size).backward()
    model(mine(X[0]), used[rank]).backward()
    for p, q in zip(plain.parameters(), model.parameters(), strict=True):
        assert (p.grad is None) is (q.grad is None)
        assert q.grad is None or np.allclose(p.grad.numpy(), whole(q.grad).numpy(), rtol=1e-10)
    model.zero_grad()
    plain.zero_grad()
    model.set_requires_all_reduce(False)
    model(mine(X[0])).backward()
    model.set_requires_all_reduce(True)
    model(mine(X[0]), "a").backward()
    ((plain(X[0]) + plain(X[0], "a")) / size).backward()
    for p, q in zip(plain.parameters(), model.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), whole(q.grad).numpy(), rtol=1e-10)


def factors_and_dtypes(mesh):
    model, plain = fully_shard(network(), mesh=mesh), network()
    model.set_gradient_divide_factor(1.0)
    loss_of(model, mine(X[0]), mine(Y[0])).backward()
    loss_of(plain, X[0], Y[0]).backward()
    for p, q in zip(plain.parameters(), model.parameters(), strict=True):
        np.testing.assert_allclose(size * p.grad.numpy(), whole(q.grad).numpy(), rtol=1e-10)
    policy = MixedPrecisionPolicy(param_dtype=genesis.bfloat16, reduce_dtype=genesis.float32)
    model = sharded(network().float(), mesh, mp_policy=policy)
    model(mine(X[0]).float()).sum().backward()
    assert model[0].weight.grad.dtype == genesis.float32


def scaled(mesh):
    """An infinite gradient of one rank: all skip the step."""
    model, scaler = sharded(network().float(), mesh), amp.GradScaler("cpu", init_scale=4.0)
    optimizer = optim.SGD(model.parameters(), 0.1)
    before = [whole(p) for p in model.parameters()]
    scale = float("inf") if rank == size - 1 else 1.0
    scaler.scale(model(mine(X[0]).float()).sum() * scale).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0
    assert all(whole(p).equal(q) for p, q in zip(model.parameters(), before, strict=True))


def states(mesh, folder):
    plain, model = network(), sharded(network(seed=1), mesh)
    model.load_state_dict(plain.state_dict())
    near(plain, model)
    optimizer = optim.Adam(model.parameters(), 0.1)
    loss_of(model, mine(X[0]), mine(Y[0])).backward()
    optimizer.step()
    manifest = dcp.save({"model": model, "optimizer": optimizer}, checkpoint_id=folder)
    if rank == 0:
        for known in manifest.tensors.values():  # each element once
            ends = sorted((first, last) for first, last, *_ in known["pieces"])
            assert sum(last - first for first, last in ends) == np.prod(known["shape"], dtype=int), known
    dist.barrier()
    for other in MESHES:  # shards and replicas of any number
        again = sharded(network(seed=2), other)
        adam = optim.Adam(again.parameters(), 0.7)
        dcp.load({"model": again, "optimizer": adam}, checkpoint_id=folder)
        for p, q in zip(model.parameters(), again.parameters(), strict=True):
            assert whole(p).equal(whole(q))
        assert adam.param_groups[0]["lr"] == 0.1
    one = network(seed=2)
    dcp.load({"model": one}, checkpoint_id=folder)
    near(one, model)
    if mesh.get_local_rank("replicate") == 0:  # the ranks of one replica by themselves
        dcp.save({"model": model}, checkpoint_id=f"{folder}-one", process_group=mesh.get_group("shard"))
    dist.barrier()
    one = network(seed=2)
    dcp.load({"model": one}, checkpoint_id=f"{folder}-one")
    near(one, model)


def a_module_around_it(mesh):
    plain = network()
    strategy = ShardingStrategy.HYBRID_SHARD
    model = FullyShardedDataParallel(network(), device_mesh=mesh, sharding_strategy=strategy, sync_module_states=True)
    loss_of(plain, X[0], Y[0]).backward()
    loss_of(model, mine(X[0]), mine(Y[0])).backward()
    for p, q in zip(plain.parameters(), model.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), whole(q.grad).numpy(), rtol=1e-10)


def meshes():
    for mesh, (replicas, shards) in zip(MESHES, SHAPES, strict=True):
        assert mesh.get_coordinate() == [rank // shards, rank % shards]
        along = mesh["shard"]
        assert along.mesh.tolist() == [rank // shards * shards + i for i in range(shards)]
        assert along.get_group() is mesh.get_group("shard") and along.get_local_rank() == rank % shards
        turned = mesh["shard", "replicate"]
        assert turned.shape == (shards, replicas) and turned.mesh_dim_names == ("shard", "replicate")
        assert turned.mesh.tolist() == mesh.mesh.T.tolist() and turned["replicate"] == mesh["replicate"]
        flat = mesh._flatten("dp")
        assert flat.size() == size and mesh["dp"] is flat and mesh.get_group("dp").size() == size
        again = DeviceMesh.from_group(mesh.get_all_groups(), "cpu", mesh.mesh, mesh_dim_names=NAMES)
        assert again == mesh and hash(again) == hash(mesh) and again != turned
        x = genesis.tensor([float(rank)])
        dist.all_reduce(x, group=mesh.get_group("replicate"))
        y = distribute_tensor(genesis.arange(5.0) * (rank == 0), mesh)
        assert y.full_tensor().tolist() == [0, 1, 2, 3, 4]
        assert x.item() == sum(rank % shards + i * shards for i in range(replicas))
    assert DeviceMesh.from_group(dist.group.WORLD, "cpu").shape == (size,)
    mesh = MESHES[0]
    refused(ValueError, "the names are ['replicate', 'shard']", lambda: mesh["replicate", "middle"])
    refused(ValueError, "each name once", lambda: mesh["shard", "shard"])
    refused(ValueError, "a group for each dimension", lambda: DeviceMesh.from_group(dist.group.WORLD, "cpu", [[0]]))
    if size > 1:
        part = DeviceMesh("cpu", [0])
        if rank:
            refused(RuntimeError, "not in the group", part.get_group)
            refused(RuntimeError, "not in the group", lambda: fully_shard(nn.Linear(2, 2), mesh=part))
    if size == 4:
        cube = init_device_mesh("cpu", (2, 2, 1), mesh_dim_names=("a", "b", "c"))
        assert cube["a", "c"].mesh.tolist() == [[rank % 2], [rank % 2 + 2]] and cube["b", "c"]["b"] == cube["b"]
        assert cube["b", "c"]._flatten().mesh.tolist() == cube["b"].mesh.tolist() and cube["b_c"].size() == 2


meshes()
for number, mesh in enumerate(MESHES):
    for check in (
        training, compiled, accumulation, parts_that_are_not_used, factors_and_dtypes, scaled, a_module_around_it,
    ):  # fmt: skip
        check(mesh)
        dist.barrier()
    states(mesh, f"{sys.argv[1]}/{number}")
dist.barrier()
print(f"rank {rank} is done")
