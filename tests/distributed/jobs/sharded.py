"""fully_shard: the steps of several ranks are those of one process with the whole batch."""

from __future__ import annotations

import copy
import gc
import tracemalloc

import numpy as np
from together import examples, loss_of, mine, rank, refused, size, step_of

import genesis
import genesis.distributed as dist
from genesis import nn, optim
from genesis.distributed.algorithms.checkpoint_wrapper import checkpoint_wrapper
from genesis.distributed.fsdp import (
    FSDPModule,
    MixedPrecisionPolicy,
    fully_shard,
    register_fsdp_forward_method,
)
from genesis.kernels.cpu import memory as kept_memory
from genesis.nn.parallel import DistributedDataParallel
from genesis.utils.checkpoint import checkpoint

X, Y = examples(4, 1)


def network(seed=0, width=9):
    """Rows that do not divide among the ranks, and a layer with one row."""
    genesis.manual_seed(seed)
    layers = nn.Linear(5, width), nn.Tanh(), nn.Linear(width, width + 2), nn.ReLU(), nn.Linear(width + 2, 1)
    return nn.Sequential(*layers).double()


def sharded(net, **options):
    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, **options)
    return fully_shard(net, **options)


def whole(p):
    return p.detach() if getattr(p, "_sharding", None) is None else p.full_tensor().detach()


def near(a, b, note="", rtol=1e-10):
    for (name, p), q in zip(a.named_parameters(), b.parameters(), strict=True):
        np.testing.assert_allclose(
            p.detach().numpy(), whole(q).numpy(), rtol=rtol, atol=rtol / 100, err_msg=f"{note} {name}"
        )


def same(a, b, note=""):
    for (name, p), q in zip(a.named_parameters(), b.parameters(), strict=True):
        assert whole(p).equal(whole(q)), f"{note} {name}"


def is_sharded(model):
    groups = {id(m._sharded.group): m._sharded.group for m in model.modules() if isinstance(m, FSDPModule)}.values()
    return all(g is None or (not g.is_whole and g._works is None and not g._scattered) for g in groups)


def training():
    for options in ({}, {"reshard_after_forward": True}, {"reshard_after_forward": False}):
        for width in (9, 200):  # the second travels alone
            plain, model = network(width=width), sharded(network(width=width), **options)
            assert type(model).__name__ == "FSDPSequential" and isinstance(model, nn.Sequential | FSDPModule)
            a, b = optim.AdamW(plain.parameters(), 0.01), optim.AdamW(model.parameters(), 0.01)
            for x, y in zip(X, Y, strict=True):
                norm = step_of(plain, a, x, y, 0.5)
                np.testing.assert_allclose(step_of(model, b, mine(x), mine(y), 0.5), norm, rtol=1e-10)
                assert is_sharded(model)
                near(plain, model, (options, width))


def the_same_bits_as_data_parallel():
    """With two ranks a mean is one sum and one exact division, wherever it is made."""
    parallel, model = DistributedDataParallel(network()), sharded(network())
    a, b = optim.SGD(parallel.parameters(), 0.1, momentum=0.9), optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for x, y in zip(X, Y, strict=True):
        for net, optimizer in ((parallel, a), (model, b)):
            step_of(net, optimizer, mine(x), mine(y))
        same(parallel, model) if size <= 2 else near(parallel, model)


def norms():
    plain, model = network(), sharded(network())
    loss_of(plain, X[0], Y[0]).backward()
    loss_of(model, mine(X[0]), mine(Y[0])).backward()
    for p in (1.0, 2.0, 3.0, float("inf"), -float("inf"), 0.0):
        one = nn.utils.get_total_norm([w.grad for w in plain.parameters()], p)
        other = nn.utils.get_total_norm([w.grad for w in model.parameters()], p)
        np.testing.assert_allclose(other.item(), one.item(), rtol=1e-10)


def memory():
    """Between steps a rank holds its share; while it computes, what is whole besides is two layers and their gradients."""
    width, depth = 256, 8
    layer, total = width * width * 8, depth * width * width * 8

    def made():
        net = nn.Sequential(*[fully_shard(nn.Linear(width, width, bias=False).double()) for _ in range(depth)])
        return fully_shard(net)

    x = genesis.ones(2, width, dtype=genesis.float64)
    tracemalloc.start()
    gc.collect()
    start = tracemalloc.get_traced_memory()[0]
    model = made()
    optimizer = optim.Adam(model.parameters(), 1e-3)
    for _ in range(2):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
    gc.collect()
    kept_memory.release()  # what was given back, and is kept for the next arrays of that size
    held = tracemalloc.get_traced_memory()[0] - start
    share = 4 * total / size  # parameters, gradients, two averages
    assert held <= 1.1 * share, (held, share)
    tracemalloc.reset_peak()
    optimizer.zero_grad()
    loss = model(x).sum()
    forward = tracemalloc.get_traced_memory()[1] - start
    if size > 1:
        assert forward <= 1.1 * (share + 2 * layer), (forward, share, layer)
    loss.backward()
    peak = tracemalloc.get_traced_memory()[1] - start
    # two layers that are gathered; the gradients of two, one of them on its way, and the rows that come of it
    assert peak <= 1.1 * (share + 4 * layer + 2 * layer / size), (peak, share, layer)
    tracemalloc.stop()


def states():
    plain, model = network(), sharded(network(seed=1))
    model.load_state_dict(plain.state_dict())  # of the plain model: each rank takes its rows
    same(plain, model)
    state = model.state_dict()
    assert list(state) == list(plain.state_dict())
    for (name, p), q in zip(plain.state_dict().items(), state.values(), strict=True):
        assert q.full_tensor().equal(p) and q.to_local().shape[0] == q._sharding.rows, name
    model(mine(X[0]))  # the outermost parameters are whole now
    again = sharded(network(seed=2))
    again.load_state_dict(model.state_dict())  # of shards
    same(plain, again)
    loss_of(again, mine(X[0]), mine(Y[0])).backward()
    if size > 1:
        wrong = {name: value.to_local()[:0] for name, value in state.items()}
        refused(RuntimeError, "size mismatch for", lambda: again.load_state_dict(wrong))
    optimizer = optim.Adam(again.parameters(), 0.1)
    optimizer.step()
    other = optim.Adam(again.parameters(), 0.5)
    other.load_state_dict(optimizer.state_dict())
    assert all(s["exp_avg"].shape == p.to_local().shape for p, s in other.state.items())


def accumulation():
    plain, model = network(), sharded(network())
    for x, y in zip(X[:3], Y[:3], strict=True):
        loss_of(plain, x, y).backward()
    model.set_requires_gradient_sync(False)
    for x, y in zip(X[:2], Y[:2], strict=True):
        loss_of(model, mine(x), mine(y)).backward()
        assert is_sharded(model) and all(p.grad is None for p in model.parameters())
    model.set_requires_gradient_sync(True)
    loss_of(model, mine(X[2]), mine(Y[2])).backward()
    for p, q in zip(plain.parameters(), model.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), whole(q.grad).numpy(), rtol=1e-10)
    kept = [p.grad for p in model.parameters()]
    loss_of(plain, X[3], Y[3]).backward()
    loss_of(model, mine(X[3]), mine(Y[3])).backward()  # in the shards, too, gradients add up
    for p, q, g in zip(plain.parameters(), model.parameters(), kept, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), whole(q.grad).numpy(), rtol=1e-10)
        assert q.grad is g
    half = sharded(network())
    half.set_gradient_divide_factor(1.0)
    half[0].set_gradient_divide_factor(2.0 * size)
    loss_of(half, mine(X[0]), mine(Y[0])).backward()
    plain.zero_grad()
    loss_of(plain, X[0], Y[0]).backward()
    np.testing.assert_allclose(2 * whole(half[0].weight.grad).numpy(), plain[0].weight.grad.numpy(), rtol=1e-10)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        genesis.manual_seed(5)
        self.first, self.middle, self.last = nn.Linear(5, 7), nn.Linear(7, 7), nn.Linear(7, 7)
        self.last.weight = self.middle.weight
        self.out = nn.Linear(7, 1)
        self.first.requires_grad_(False)
        self.spare = nn.Parameter(genesis.ones(3))

    def forward(self, x, inner=lambda f, x: f(x)):
        x = genesis.tanh(self.first(x))
        return self.out(inner(self.middle, inner(self.middle, x)) + inner(self.last, x))


def shared_frozen_and_unused():
    plain, model = Tied().double(), Tied().double()
    refused(ValueError, "fully_shard([one, other])", lambda: sharing())
    fully_shard([model.middle, model.last])
    fully_shard(model.first)
    fully_shard(model)
    assert model.middle.weight is model.last.weight
    a, b = optim.SGD(plain.parameters(), 0.1), optim.SGD(model.parameters(), 0.1)
    for x, y in zip(X, Y, strict=True):
        for net, optimizer, batch in ((plain, a, (x, y)), (model, b, (mine(x), mine(y)))):
            optimizer.zero_grad()
            loss_of(net, *batch).backward()
            optimizer.step()
        near(plain, model)
    assert is_sharded(model) and model.spare.grad is None and model.first.weight.grad is None


def sharing():
    model = Tied()
    fully_shard(model.middle)
    fully_shard(model)


def one_rank_does_not_use_it():
    class Choice(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Parameter(genesis.ones(3, 5).double()), nn.Parameter(genesis.ones(3, 5).double())

        def forward(self, x):
            return (x @ (self.a if rank == 0 else self.b).T).sum()

    model = fully_shard(Choice())
    model(X[0]).backward()
    expected = X[0].sum(0).expand(3, 5).numpy() / size
    np.testing.assert_allclose(whole(model.a.grad).numpy(), expected)
    if size > 1:
        np.testing.assert_allclose(whole(model.b.grad).numpy(), expected * (size - 1))


def frozen_in_front_of_trained():
    """Frozen layers are given back on the way, and nothing is combined for them."""

    def made():
        net = network()
        net[2].requires_grad_(False)
        return net

    plain, model = made(), sharded(made())
    loss_of(plain, X[0], Y[0]).backward()
    loss = loss_of(model, mine(X[0]), mine(Y[0]))
    seen = []
    model[0].weight.register_hook(lambda g: None)
    model[1].register_full_backward_hook(lambda *_: seen.append(model[2]._sharded.group.is_whole))
    loss_of(model, mine(X[0]), mine(Y[0])).backward()
    assert seen == [False]
    for p, q in zip(plain.parameters(), model.parameters(), strict=True):
        assert (p.grad is None) == (q.grad is None)
        if p.grad is not None:
            np.testing.assert_allclose(p.grad.numpy(), whole(q.grad).numpy(), rtol=1e-10)
    model[2].requires_grad_(True)  # trained from now on
    model.zero_grad()
    loss_of(model, mine(X[0]), mine(Y[0])).backward()
    assert model[2].weight.grad is not None
    del loss


def checkpoints():
    plain, model = Tied().double(), Tied().double()
    fully_shard([model.middle, model.last])
    fully_shard(model)
    loss_of(plain, X[0], Y[0]).backward()
    ((model(mine(X[0]), checkpoint) - mine(Y[0])) ** 2).mean().backward()
    assert is_sharded(model)
    for p, q in zip(plain.parameters(), model.parameters(), strict=True):
        if p.grad is not None:
            np.testing.assert_allclose(p.grad.numpy(), whole(q.grad).numpy(), rtol=1e-10)
    net, model = network(), sharded(network())
    loss_of(net, X[0], Y[0]).backward()
    loss_of(lambda x: checkpoint(model, x), mine(X[0]), mine(Y[0])).backward()
    for p, q in zip(net.parameters(), model.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), whole(q.grad).numpy(), rtol=1e-10)


class Halves(nn.Module):
    """A part of it computes again, with parameters that were gathered for all of it."""

    def __init__(self, again):
        super().__init__()
        self.first, self.second, self.again = network(width=9), network(seed=1, width=200), again

    def forward(self, x):
        return self.again(self.first, x) + self.again(lambda x: self.second(x) * 2, x)


def checkpoints_inside():
    plain = Halves(lambda function, x: function(x))
    loss_of(plain, X[0], Y[0]).backward()
    inside, wrapped = Halves(checkpoint), Halves(lambda function, x: function(x))
    checkpoint_wrapper(wrapped.first)
    checkpoint_wrapper(wrapped)
    apart = Halves(checkpoint)
    fully_shard(apart.second)
    for model in (inside, wrapped, apart):
        fully_shard(model)
        loss_of(model, mine(X[0]), mine(Y[0])).backward()
        assert is_sharded(model)
        for p, q in zip(plain.parameters(), model.parameters(), strict=True):
            np.testing.assert_allclose(p.grad.numpy(), whole(q.grad).numpy(), rtol=1e-10, atol=1e-14)


def precision():
    policy = MixedPrecisionPolicy(genesis.bfloat16, genesis.float32)
    model, half = network().float(), network().float().bfloat16()
    for layer in (model[0], model[2], model[4]):
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=MixedPrecisionPolicy(genesis.bfloat16, output_dtype=genesis.float32))
    optimizer = optim.SGD(model.parameters(), 0.1)
    x, y = mine(X[0]).float(), mine(Y[0]).float()
    out, other = model(x), half(x.bfloat16()).float()
    assert out.dtype == genesis.float32 and out.equal(other)
    for each in (out, other):
        ((each - y) ** 2).mean().backward()
    for p, q in zip(half.parameters(), model.parameters(), strict=True):
        g = p.grad.float()  # the gradients of this rank are those in bfloat16, their mean is of float32
        dist.all_reduce(g, dist.ReduceOp.AVG)
        assert q.dtype == q.grad.dtype == genesis.float32
        np.testing.assert_allclose(whole(q.grad).numpy(), g.numpy(), rtol=0 if size <= 2 else 1e-6)
    optimizer.step()

    model = sharded(network().float())
    optimizer, scaler = optim.SGD(model.parameters(), 0.1), genesis.amp.GradScaler("cpu", init_scale=4.0)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        optimizer.zero_grad()
        with genesis.autocast("cpu", dtype=genesis.bfloat16):
            loss = loss_of(model, mine(x).float(), mine(y).float())
        scaler.scale(loss).backward()
        if i == 1 and rank == min(1, size - 1):
            model[0].weight.grad.fill_(float("inf"))  # rows of one rank
        scaler.unscale_(optimizer)
        before = [whole(p) for p in model.parameters()]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0) if i != 1 else None
        scaler.step(optimizer)
        scaler.update()
        assert all(p.equal(whole(q)) for p, q in zip(before, model.parameters(), strict=True)) == (i == 1)
    assert scaler.get_scale() == 2.0


def compiled():
    plain, model = network(), sharded(network())
    a, b = optim.Adam(plain.parameters(), 0.1), optim.Adam(model.parameters(), 0.1)

    @genesis.compile
    def step(x, y):
        b.zero_grad()
        loss = loss_of(model, x, y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        b.step()
        return loss

    for x, y in zip(X, Y, strict=True):
        step_of(plain, a, x, y, 0.5)
        step(mine(x), mine(y))
        near(plain, model, "compiled")
    assert "not compiled" not in step.explain(), step.explain()


def evaluation_and_methods():
    class Two(nn.Linear):
        def twice(self, x):
            return 2 * self.forward(x)

    genesis.manual_seed(0)
    plain = Two(5, 3).double()
    genesis.manual_seed(0)
    model = fully_shard(Two(5, 3).double(), reshard_after_forward=True)
    register_fsdp_forward_method(model, "twice")
    with genesis.no_grad():
        assert model(X[0]).equal(plain(X[0])) and model.twice(X[0]).equal(plain.twice(X[0]))
    assert is_sharded(model)
    handle = model.unshard(async_op=True)
    handle.wait()
    assert model.weight.shape == (3, 5)
    model.reshard()
    assert model.weight.shape == (3, 5) and model.weight.to_local().shape == (model.weight._sharding.rows, 5)
    model.unshard()
    with genesis.no_grad():
        model.reshard()
        model.weight.mul_(2)
        model.unshard()
        plain.weight.mul_(2)
        assert model(X[0]).equal(plain(X[0]))
    kept = fully_shard(nn.Linear(5, 3).double(), reshard_after_forward=False)
    with genesis.no_grad():
        before = kept(X[0])
        for p in kept._sharded.group.parts:
            p.shard.zero_()  # written to while it is whole: gathered anew
        assert not kept(X[0]).any() and before.any()
    kept.double().float()
    assert kept(X[0].float()).dtype == genesis.float32


def layers_of_other_kinds():
    """Recurrent ones, attention, and what has buffers."""

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.gru, self.norm = nn.Embedding(11, 6), nn.GRU(6, 7), nn.LayerNorm(7)
            self.convolution, self.batch_norm = nn.Conv1d(7, 4, 3), nn.BatchNorm1d(4)

        def forward(self, x):
            return self.batch_norm(self.convolution(self.norm(self.gru(self.embedding(x))[0]).transpose(1, 2)))

    numbers = np.random.default_rng(3)
    tokens, x = genesis.tensor(numbers.integers(0, 11, (3, 5))), genesis.tensor(numbers.standard_normal((2, 5, 8)))
    attention = nn.TransformerEncoderLayer, (8, 2, 16, 0.0), {"batch_first": True}
    for (kind, arguments, options), batch in (((Recurrent, (), {}), tokens), (attention, x)):
        nets = []
        for _ in range(2):
            genesis.manual_seed(0)
            nets.append(kind(*arguments, **options).double())
        plain, model = nets
        for child in [child for child in model.children() if list(child.parameters())]:
            fully_shard(child)
        fully_shard(model)
        a, b = optim.SGD(plain.parameters(), 0.1), optim.SGD(model.parameters(), 0.1)
        for _ in range(2):
            for net, optimizer in ((plain, a), (model, b)):
                optimizer.zero_grad()
                (net(batch) ** 3).mean().backward()
                optimizer.step()
        near(plain, model, kind.__name__, rtol=1e-9)


def prefetch():
    plain, model = network(), sharded(network())
    model.set_modules_to_forward_prefetch([model[0]])
    model[0].set_modules_to_forward_prefetch([model[2], model[4]])
    model[4].set_modules_to_backward_prefetch([model[2], model[0]])
    begun = []
    model[1].register_forward_hook(lambda *_: begun.append(model[2]._sharded.group._works is not None))
    a, b = optim.SGD(plain.parameters(), 0.1), optim.SGD(model.parameters(), 0.1)
    for x, y in zip(X, Y, strict=True):
        a.zero_grad()
        b.zero_grad()
        loss_of(plain, x, y).backward()
        loss_of(model, mine(x), mine(y)).backward()
        a.step()
        b.step()
        near(plain, model)
    assert begun == [True] * 4 and is_sharded(model)


def errors_on_the_way():
    plain, model = network(), sharded(network())

    class Failing(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise KeyError("half-way")

    def fails(*_):
        raise KeyError("in forward")

    handle = model[3].register_forward_hook(fails)
    refused(KeyError, "in forward", lambda: model(mine(X[0])))
    handle.remove()
    middle = model[1].register_forward_hook(lambda m, args, out: Failing.apply(out))
    refused(KeyError, "half-way", lambda: loss_of(model, mine(X[0]), mine(Y[0])).backward())
    middle.remove()
    model.zero_grad()
    loss_of(plain, X[0], Y[0]).backward()
    loss_of(model, mine(X[0]), mine(Y[0])).backward()
    assert is_sharded(model)
    for p, q in zip(plain.parameters(), model.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), whole(q.grad).numpy(), rtol=1e-10)
    model = sharded(network(), reshard_after_forward=True)
    loss = loss_of(model, mine(X[0]), mine(Y[0]))
    with genesis.no_grad():
        for p in model.parameters():
            p.add_(1)
    refused(RuntimeError, "was written to since the forward", loss.backward)
    layer = fully_shard(nn.Linear(5, 1).double())
    for x in (mine(X[0]).clone(), mine(X[0]).clone().requires_grad_() * 1):  # saved alone, and next to the weight
        loss = layer(x).sum()
        with genesis.no_grad():
            x.add_(1)
        words = "modified in place by add_" if x.grad_fn is None else "was written to since"
        refused(RuntimeError, words, loss.backward)


def what_is_refused():
    refused(TypeError, "expected a module, got int", lambda: fully_shard(3))
    refused(
        NotImplementedError,
        "first dimension only",
        lambda: fully_shard(nn.Linear(2, 2), shard_placement_fn=lambda p: None),
    )
    refused(NotImplementedError, "among some ranks only", lambda: fully_shard(nn.Linear(2, 2), reshard_after_forward=2))
    refused(NotImplementedError, "expected a group of ranks", lambda: fully_shard(nn.Linear(2, 2), mesh=3))
    refused(TypeError, "expected a floating dtype", lambda: MixedPrecisionPolicy(param_dtype=genesis.int64))
    layer = fully_shard(nn.Linear(2, 2))
    refused(ValueError, "is sharded already", lambda: fully_shard(layer))
    refused(ValueError, "ModuleList is never called", lambda: fully_shard(nn.ModuleList([nn.Linear(2, 2)])))
    refused(NotImplementedError, "cannot be copied", lambda: copy.deepcopy(layer))
    refused(TypeError, "is not sharded", lambda: layer.set_modules_to_forward_prefetch([nn.Linear(2, 2)]))

    class Scalar(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(genesis.tensor(2.0))

    refused(NotImplementedError, "scale has no dimension", lambda: fully_shard(Scalar()))
    assert fully_shard(nn.ReLU())(genesis.ones(2)).tolist() == [1, 1]
    kept = Scalar()
    assert fully_shard(kept, ignored_params={kept.scale}).scale is kept.scale
    loss = loss_of(fully_shard(nn.Linear(5, 1).double()), mine(X[0]), mine(Y[0]))
    refused(NotImplementedError, "create_graph=True", lambda: loss.backward(create_graph=True))
    embedding = fully_shard(nn.Embedding(4, 2, sparse=True))
    refused(NotImplementedError, "sparse gradients", lambda: embedding(genesis.tensor([1])).sum().backward())


checks = [
    training, the_same_bits_as_data_parallel, norms, memory, states, accumulation, shared_frozen_and_unused,
    one_rank_does_not_use_it, frozen_in_front_of_trained, checkpoints, checkpoints_inside, precision, compiled, evaluation_and_methods, layers_of_other_kinds, prefetch,
    errors_on_the_way, what_is_refused,
]  # fmt: skip
for check in checks:
    check()
    dist.barrier()
print(f"rank {rank} is done")
