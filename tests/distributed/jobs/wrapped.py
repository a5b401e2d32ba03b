"""FullyShardedDataParallel and meshes: the other forms in which programs ask for sharded modules."""

from __future__ import annotations

import functools

import numpy as np
from together import examples, loss_of, mine, rank, refused, size, step_of

import genesis
import genesis.distributed as dist
from genesis import nn, optim
from genesis.distributed.fsdp import (
    CPUOffload,
    FSDPModule,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    FullyShardedDataParallel,
    MixedPrecision,
    ShardingStrategy,
    StateDictType,
    fully_shard,
)
from genesis.distributed.fsdp.wrap import (
    ModuleWrapPolicy,
    always_wrap_policy,
    size_based_auto_wrap_policy,
    transformer_auto_wrap_policy,
)

X, Y = examples(3, 2)


def network(seed=0):
    genesis.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 7), nn.ReLU(), nn.Linear(7, 2)).double()


def sharded_inside(model):
    return [name for name, m in model.module.named_modules() if isinstance(m, FSDPModule)]


def training():
    for strategy in (None, ShardingStrategy.SHARD_GRAD_OP):
        plain = network()
        policy = ModuleWrapPolicy({nn.Linear})
        model = FullyShardedDataParallel(
            network(seed=rank), None, strategy, auto_wrap_policy=policy, sync_module_states=True
        )
        assert sharded_inside(model) == ["", "0", "2", "4"]
        assert model[0] is model.module[0] and model.append == model.module.append and not hasattr(model, "absent")
        a, b = optim.Adam(plain.parameters(), 0.1), optim.Adam(model.parameters(), 0.1)
        for x, y in zip(X, Y, strict=True):
            norm = step_of(plain, a, x, y, 0.5)
            b.zero_grad()
            loss_of(model, mine(x), mine(y)).backward()
            np.testing.assert_allclose(model.clip_grad_norm_(0.5).item(), norm, rtol=1e-10)
            b.step()
        state = model.state_dict()  # of whole tensors
        assert list(state) == list(plain.state_dict())
        for p, q in zip(plain.state_dict().values(), state.values(), strict=True):
            np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-10, atol=1e-12)


def policies():
    def names(policy):
        return sharded_inside(FullyShardedDataParallel(network(), auto_wrap_policy=policy))

    assert names(None) == [""]
    assert names(always_wrap_policy) == ["", "0", "1", "2", "3", "4"]
    assert names(functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={nn.Linear})) == [
        "",
        "0",
        "2",
        "4",
    ]
    assert names(functools.partial(size_based_auto_wrap_policy, min_num_params=40)) == ["", "0", "2"]


def states():
    plain, model = network(seed=3), FullyShardedDataParallel(network(), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}))
    model.load_state_dict(plain.state_dict())
    assert all(p.equal(q) for p, q in zip(plain.state_dict().values(), model.state_dict().values(), strict=True))
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        rows = model.state_dict()
    assert [v.to_local().shape[0] for v in rows.values()] == [v._sharding.rows for v in rows.values()]
    other = FullyShardedDataParallel(network(), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}))
    other.load_state_dict(rows)
    only = FullStateDictConfig(rank0_only=True)
    with FullyShardedDataParallel.state_dict_type(other, StateDictType.FULL_STATE_DICT, only):
        state = other.state_dict()
    assert len(state) == (0 if rank else 6)
    assert all(value.equal(plain.state_dict()[name]) for name, value in state.items())
    with FullyShardedDataParallel.summon_full_params(other), genesis.no_grad():
        assert other.module[0].weight.equal(plain[0].weight)
        other.module[0].weight.mul_(2)
    with FullyShardedDataParallel.summon_full_params(other, writeback=False), genesis.no_grad():
        other.module[2].weight.mul_(2) if size > 1 else None
    assert other.state_dict()["0.weight"].equal(2 * plain[0].weight)
    assert other.state_dict()["2.weight"].equal(plain[2].weight)


def states_of_optimizers():
    """Whole ones are those of the plain optimizer; whole ones and rows are loaded, and training goes on with them."""

    def trained(model, optimizer, steps, part):
        for x, y in zip(X[steps], Y[steps], strict=True):
            step_of(model, optimizer, part(x), part(y))
        return model, optimizer

    def made():
        model = FullyShardedDataParallel(network(), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}))
        weights = [p for name, p in model.named_parameters() if "weight" in name]
        biases = [p for name, p in model.named_parameters() if "bias" in name]
        return model, optim.Adam([{"params": biases, "lr": 0.2}, {"params": weights}], 0.1)

    plain = network()
    ws, bs = [[p for name, p in plain.named_parameters() if kind in name] for kind in ("weight", "bias")]
    a = optim.Adam([{"params": ws}, {"params": bs, "lr": 0.2}], 0.1)
    trained(plain, a, slice(2), lambda x: x)
    model, b = trained(*made(), slice(2), mine)
    whole = FullyShardedDataParallel.optim_state_dict(model, b)
    assert set(whole["state"]) == {name for name, _ in plain.named_parameters()}
    for name, p in plain.named_parameters():
        np.testing.assert_allclose(whole["state"][name]["exp_avg"].numpy(), a.state[p]["exp_avg"].numpy(), rtol=1e-10)
    only = FullOptimStateDictConfig(rank0_only=True)
    with FullyShardedDataParallel.state_dict_type(
        model, StateDictType.FULL_STATE_DICT, optim_state_dict_config=only
    ):  # fmt: skip
        assert bool(FullyShardedDataParallel.optim_state_dict(model, b)) == (rank == 0)
        assert model.state_dict()
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        rows = FullyShardedDataParallel.optim_state_dict(model, b, b.state_dict())
    assert all(rows["state"][name]["exp_avg"].shape == p.shape for name, p in model.module.named_parameters())
    trained(plain, a, slice(2, 3), lambda x: x)
    for state, directly in ((whole, False), (rows, True)):
        other, c = made()
        other.load_state_dict(model.state_dict())
        ready = FullyShardedDataParallel.optim_state_dict_to_load(other, c, state, load_directly=directly)
        if not directly:
            c.load_state_dict(ready)
        trained(other, c, slice(2, 3), mine)
        for p, q in zip(plain.state_dict().values(), other.state_dict().values(), strict=True):
            np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-10, atol=1e-12)


def accumulation():
    plain, model = network(), FullyShardedDataParallel(network())
    for x, y in zip(X, Y, strict=True):
        loss_of(plain, x, y).backward()
    with model.no_sync():
        loss_of(model, mine(X[0]), mine(Y[0])).backward()
        loss_of(model, mine(X[1]), mine(Y[1])).backward()
    loss_of(model, mine(X[2]), mine(Y[2])).backward()
    for p, q in zip(plain.parameters(), model.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.full_tensor().numpy(), rtol=1e-10)


def precision():
    given = MixedPrecision(param_dtype=genesis.bfloat16, reduce_dtype=genesis.float32)
    model = FullyShardedDataParallel(network().float(), mixed_precision=given)
    out = model(mine(X[0]).float())
    assert out.dtype == genesis.bfloat16
    out.sum().backward()
    assert model.module[0].weight.grad.dtype == genesis.float32


def meshes():
    mesh = dist.init_device_mesh("cpu", (size,), mesh_dim_names=("dp",))
    assert mesh.get_group() is dist.group.WORLD and mesh["dp"].size() == size == mesh.size(0)
    assert mesh.get_local_rank("dp") == mesh.get_rank() == rank and mesh.get_coordinate() == [rank]
    layer = fully_shard(nn.Linear(5, 4).double(), mesh=mesh)
    assert layer.weight.full_tensor().shape == (4, 5)
    grid = dist.init_device_mesh("cpu", (1, size), mesh_dim_names=("outer", "inner"))
    assert grid.shape == (1, size) and grid.get_group("outer").size() == 1 and grid["inner"].get_group().size() == size
    x = genesis.ones(2)
    dist.all_reduce(x, group=grid.get_group("inner"))
    assert x.tolist() == [size, size]
    FullyShardedDataParallel(network(), device_mesh=grid["inner"])(mine(X[0])).sum().backward()
    cube = dist.init_device_mesh("cpu", (1, size, 1))
    refused(NotImplementedError, "a mesh of one dimension", lambda: fully_shard(nn.Linear(2, 2), mesh=cube))
    refused(ValueError, "the names are ['outer', 'inner']", lambda: grid["middle"])
    refused(ValueError, f"has {size + 1} ranks", lambda: dist.init_device_mesh("cpu", (size + 1,)))
    refused(NotImplementedError, "no devices 'cuda'", lambda: dist.init_device_mesh("cuda", (size,)))


def what_is_refused():
    refused(TypeError, "expected a module", lambda: FullyShardedDataParallel(3))
    strategy = ShardingStrategy.NO_SHARD
    refused(NotImplementedError, "NO_SHARD", lambda: FullyShardedDataParallel(network(), sharding_strategy=strategy))
    refused(
        NotImplementedError,
        "before they are divided",
        lambda: FullyShardedDataParallel(network(), cpu_offload=CPUOffload(True), param_init_fn=print),
    )


for check in (training, policies, states, states_of_optimizers, accumulation, precision, meshes, what_is_refused):
    check()
    dist.barrier()
print(f"rank {rank} is done")
