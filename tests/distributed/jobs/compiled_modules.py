"""Compiled modules whose gradients ranks combine, with the backward outside: as the modules themselves."""

from __future__ import annotations

import functools
import warnings

import numpy as np
from together import examples, mine, rank, refused, size

import genesis
import genesis.distributed as dist
from genesis import nn, optim
from genesis.distributed.fsdp import FullyShardedDataParallel, fully_shard
from genesis.distributed.tensor import DTensor
from genesis.nn.functional import mse_loss
from genesis.nn.parallel import DistributedDataParallel

X, Y = examples(6, 2)


class Own(nn.Module):
    """Of several branches a call takes one, and a batch norm has buffers."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Linear(5, 8), nn.BatchNorm1d(8)
        self.branches = nn.ModuleList([nn.Linear(8, 8) for _ in range(size + 1)])
        self.last = nn.Linear(8, 2)

    def forward(self, x, which=0):
        return self.last(self.branches[which](self.norm(self.first(x)).tanh()).relu())


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(5, 8), nn.Linear(8, 2)

    def forward(self, x, which=0):
        return self.last(self.first(x).tanh())


def divided(model):
    for layer in (model.first, model.last):
        fully_shard(layer)
    return fully_shard(model)


WAYS = {
    "as it is": lambda model, wrap: wrap(model),
    "compiled around": lambda model, wrap: genesis.compile(wrap(model)),
    "compiled inside": lambda model, wrap: wrap(genesis.compile(model)),
    "compiled in place": lambda model, wrap: in_place(wrap(model)),
}


def in_place(parallel):
    parallel.compile()
    return parallel


def trained(make, how, wrap, plan):
    """Parameters after some steps, which of them had no gradient in each, and what the model gives in the end."""
    genesis.manual_seed(0)
    parallel = WAYS[how](make().double(), wrap)
    optimizer, absent = optim.SGD(parallel.parameters(), 0.1, momentum=0.9), []
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is left as it is
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            optimizer.zero_grad()
            mse_loss(parallel(mine(x), plan(i)), mine(y)).backward()
            nn.utils.clip_grad_norm_(parallel.parameters(), 0.5)
            optimizer.step()
            absent.append([p.grad is None for p in parallel.parameters()])
        parallel.eval()
        with genesis.no_grad():
            out = parallel(X[0], plan(0))
    wholes = [p.full_tensor() if isinstance(p, DTensor) else p for p in parallel.parameters()]
    return [*[p.detach().numpy().copy() for p in wholes], out.numpy()], absent


def always_the_first(i):
    return 0


TRAININGS = {
    "plain": (Plain, {"bucket_cap_mb": 1e-4}, always_the_first),
    "in the same order": (Plain, {"static_graph": True}, always_the_first),
    "each rank another": (Own, {"find_unused_parameters": True}, lambda i: rank),
    "other ones in each step": (Own, {"find_unused_parameters": True}, lambda i: (rank + i) % (size + 1)),
    "one of rank 0 alone": (Own, {"find_unused_parameters": True}, lambda i: 1 if rank == 0 and i % 2 else 0),
}


def gradients_are_combined():
    for name, (make, options, plan) in TRAININGS.items():
        wrap = functools.partial(DistributedDataParallel, **options)
        compared(name, make, wrap, plan)


def rows_of_parameters_are_gathered():
    compared("rows", Plain, divided, always_the_first)
    compared("rows of modules around", Plain, FullyShardedDataParallel, always_the_first)


def compared(name, make, wrap, plan):
    expected, absent = trained(make, "as it is", wrap, plan)
    everywhere = [None] * size
    dist.all_gather_object(everywhere, [p.tolist() for p in expected[:-1]])
    assert all(parameters == everywhere[0] for parameters in everywhere), name
    for how in list(WAYS)[1:]:
        if how == "compiled inside" and "rows" in name:  # then it is the compiled module that is divided
            continue
        got, missing = trained(make, how, wrap, plan)
        assert missing == absent, (name, how)
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11, err_msg=f"{name}, {how}")


def functions_without_the_backward():
    """A loss by a compiled function: nothing would begin to combine gradients, so it runs as it is, and says so."""
    genesis.manual_seed(0)
    plain, model = Plain().double(), Plain().double()
    model.load_state_dict(plain.state_dict())
    parallel = DistributedDataParallel(model)
    compiled = genesis.compile(lambda x, y: mse_loss(parallel(x), y))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for x, y in zip(X, Y, strict=True):
            for loss in (compiled(mine(x), mine(y)), mse_loss(plain(x), y)):
                loss.backward()
    assert ("would not be combined in a backward behind what is compiled" in str([w.message for w in heard])) == (
        size > 1
    )
    for p, q in zip(plain.parameters(), model.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-9)
    whole = genesis.compile(lambda x, y: mse_loss(parallel(x), y), fullgraph=True)
    whole(mine(X[0]), mine(Y[0]))  # the first call runs as it is
    if size > 1:
        refused(
            RuntimeError, "genesis.compile of the DistributedDataParallel itself", lambda: whole(mine(X[0]), mine(Y[0]))
        )
    with genesis.no_grad():
        genesis.compile(lambda x: parallel(x), fullgraph=True)(mine(X[0]))


def hooks_and_sums_of_several_batches():
    model, seen = Plain().double(), []
    parallel = DistributedDataParallel(model)
    hook = parallel.register_forward_hook(lambda module, args, out: seen.append((module is parallel, out.shape[0])))
    compiled = genesis.compile(parallel)
    with compiled.no_sync():
        mse_loss(compiled(mine(X[0])), mine(Y[0])).backward()
    mse_loss(compiled(mine(X[1])), mine(Y[1])).backward()
    expected = Plain().double()
    expected.load_state_dict(model.state_dict())
    for x, y in zip(X[:2], Y[:2], strict=True):
        mse_loss(expected(x), y).backward()
    for p, q in zip(expected.parameters(), model.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-9)
    assert seen == [(True, len(mine(X[0])))] * 2
    assert compiled._compiled.inner._compiled._recent, "the module inside was compiled"
    hook.remove()
    step = genesis.compile(lambda x, y: mse_loss(compiled(x), y).backward(), fullgraph=True)
    expected.zero_grad()
    for x, y in zip(X[:2], Y[:2], strict=True):
        compiled.zero_grad()
        step(mine(x), mine(y))
    mse_loss(expected(X[1]), Y[1]).backward()
    for p, q in zip(expected.parameters(), model.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-9)


checks = [
    gradients_are_combined,
    rows_of_parameters_are_gathered,
    functions_without_the_backward,
    hooks_and_sums_of_several_batches,
]
for check in checks:
    check()
    dist.barrier()
print(f"rank {rank} is done")
