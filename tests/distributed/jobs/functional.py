"""Collectives with gradients: values against NumPy, gradients as transposes, in traces, compiled and in transforms."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np

import genesis
import genesis.distributed as dist
import genesis.distributed.nn.functional as F
from genesis.base.errors import GraphError, UnsupportedError
from genesis.distributed import ReduceOp

warnings.simplefilter("error")
dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()


def of(who, *shape, seed=0):
    return genesis.tensor(np.random.default_rng([who, seed]).standard_normal(shape))


def everybody(*shape, seed=0):
    return np.stack([of(who, *shape, seed=seed).numpy() for who in range(size)])


def total(x):
    """A number summed over all ranks."""
    x = x.detach().clone()
    dist.all_reduce(x)
    return x.item()


def transposes():
    """The sum over ranks of <f(x), u> is that of <x, gradient>, for linear f; and values."""
    last, sizes = size - 1, [1 + i for i in range(size)]
    every = everybody(size, 3)
    cases = {
        "all_reduce": (F.all_reduce, every.sum(0)),
        "mean": (lambda x: F.all_reduce(x, ReduceOp.AVG), every.sum(0) / size),
        "broadcast": (lambda x: F.broadcast(x, last), every[last]),
        "reduce": (lambda x: F.reduce(x, last), every.sum(0) * (rank == last)),
        "reduce mean": (lambda x: F.reduce(x, 0, ReduceOp.AVG), every.sum(0) / size * (rank == 0)),
        "all_gather": (lambda x: genesis.stack(F.all_gather(x)), every),
        "reduce_scatter": (lambda x: F.reduce_scatter(None, list(x)), every.sum(0)[rank]),
        "reduce_scatter mean": (lambda x: F.reduce_scatter(None, list(x), ReduceOp.AVG), every.sum(0)[rank] / size),
        "gather": (lambda x: genesis.stack(F.gather(x, last)), every * (rank == last)),
        "scatter": (lambda x: F.scatter(list(x), last), every[last][rank]),
        "all_to_all_single": (lambda x: F.all_to_all_single(genesis.zeros(size, 3), x), every[:, rank]),
        "all_to_all": (lambda x: genesis.stack(F.all_to_all(list(genesis.zeros(size, 3)), list(x))), every[:, rank]),
    }
    for name, (f, want) in cases.items():
        x = of(rank, size, 3).requires_grad_()
        y = f(x)
        np.testing.assert_allclose(y.detach().numpy(), want, rtol=1e-12, atol=1e-12, err_msg=name)
        u = of(rank, *y.shape, seed=1)
        (y * u).sum().backward()
        np.testing.assert_allclose(total((y * u).sum()), total((x * x.grad).sum()), rtol=1e-9, err_msg=name)
        with genesis.no_grad():
            assert not f(x).requires_grad
    x = of(rank, sum(sizes), 2).requires_grad_()  # blocks of different sizes
    y = F.all_to_all_single(genesis.zeros(size * (rank + 1), 2), x, [rank + 1] * size, sizes)
    u = of(rank, *y.shape, seed=1)
    (y * u).sum().backward()
    np.testing.assert_allclose(total((y * u).sum()), total((x * x.grad).sum()), rtol=1e-9)


def second_order():
    x = of(rank, 3).requires_grad_()
    (g,) = genesis.autograd.grad((F.all_reduce(x) ** 3).sum(), x, create_graph=True)
    (h,) = genesis.autograd.grad(g.sum(), x)
    s = everybody(3).sum(0)
    np.testing.assert_allclose(g.detach().numpy(), size * 3 * s**2)
    np.testing.assert_allclose(h.numpy(), size**2 * 6 * s)


def halves():
    x = genesis.tensor([1.0, 6e4], dtype=genesis.float16)  # the second overflows, without a warning
    y = F.all_reduce(x)
    assert y.dtype == genesis.float16 and y[0].item() == size and (size == 1) == bool(y[1].isfinite())
    dist.all_reduce(x)


def no_gradient():
    x = of(rank, 3).requires_grad_()
    y = F.all_reduce(x, ReduceOp.MAX)
    np.testing.assert_array_equal(y.detach().numpy(), everybody(3).max(0))
    try:
        y.sum().backward()
    except NotImplementedError as error:
        assert "MAX has no gradient" in str(error)
    else:
        raise AssertionError("MAX was differentiated")


def traces():
    group = dist.new_group()

    def f(x):
        return F.all_reduce(x * 2) + F.all_gather(x, group)[0] + F.broadcast(x, size - 1)

    def want(x):
        other = everybody(3, seed=2)
        return 2 * other.sum(0) + other[0] + other[size - 1]

    x = of(rank, 3, seed=2)
    graph = genesis.jit.trace(f, of(rank, 3))
    assert str(graph).count("all_reduce(") == 1 and str(graph).count("all_gather_stacked(") == 1
    compiled = genesis.compile(f)
    for call in (graph.replay, compiled, compiled):
        np.testing.assert_allclose(call(x).numpy(), want(x), rtol=1e-12)
    w = of(rank, 3).requires_grad_()

    @genesis.compile
    def step(x):
        loss = (F.all_reduce(x * w) ** 2).sum()
        loss.backward()
        return loss

    for _ in range(3):
        w.grad = None
        loss = step(x)
        summed = (everybody(3) * everybody(3, seed=2)).sum(0)
        np.testing.assert_allclose(loss.item(), (summed**2).sum())
        np.testing.assert_allclose(w.grad.numpy(), size * 2 * summed * x.numpy())


def transforms():
    x = of(rank, 4, size, 3)
    for f in (F.all_reduce, lambda t: genesis.stack(F.all_gather(t)), lambda t: F.reduce_scatter(None, list(t)),
              lambda t: F.broadcast(t, 0), lambda t: F.scatter(list(t), 0),
              lambda t: F.all_to_all_single(genesis.zeros(size, 3), t)):  # fmt: skip
        np.testing.assert_allclose(genesis.vmap(f)(x).numpy(), np.stack([f(t).numpy() for t in x]))
        _, tangent = genesis.func.jvp(f, (x[0],), (x[1],))
        np.testing.assert_allclose(tangent.numpy(), f(x[1]).numpy())


def writes_in_transforms():
    """A collective that writes to an argument of a transform would be missing in the derivative."""

    def f(x):
        dist.all_reduce(x)
        return x.sum()

    for transform in (genesis.func.grad, genesis.func.vmap, lambda g: partial(genesis.func.vjp, g)):
        x = of(rank, 2, 3)
        try:
            transform(f)(x)
        except (GraphError, UnsupportedError) as error:
            assert "write" in str(error), error
        else:
            raise AssertionError(transform)
        assert genesis.equal(x, of(rank, 2, 3))


def under_names_of_pytorch():
    """``torch.distributed._functional_collectives``, and the store that all ranks have."""
    from genesis.pytorch.stand_ins import collectives

    world, x, every = dist.group.WORLD, of(rank, 4, 2 * size), everybody(4, 2 * size)
    same = np.testing.assert_allclose
    same(collectives.all_reduce(x, "sum", world).numpy(), every.sum(0), rtol=1e-12)
    same(collectives.broadcast(x, size - 1, world).numpy(), every[-1])
    same(collectives.all_gather_tensor_autograd(x, 1, world).numpy(), np.concatenate([*every], 1))
    part = collectives.reduce_scatter_tensor_autograd(x, "avg", 1, world).numpy()
    same(part, every.mean(0)[:, 2 * rank : 2 * rank + 2], rtol=1e-12)
    rows = x.mT.contiguous()
    got = collectives.all_to_all_single_autograd(rows, None, None, world).numpy()
    same(got, np.concatenate([each.T[2 * rank : 2 * rank + 2] for each in every]))
    store = collectives.default_store()
    assert store.add("count", rank + 1) > 0 and collectives.default_store() is store
    store.set(f"rank {rank}", str(rank))
    assert [store.get(f"rank {each}") for each in range(size)] == [b"%d" % each for each in range(size)]
    dist.barrier()
    assert store.add("count", 0) == size * (size + 1) // 2
    dist.barrier()


for check in (
    transposes,
    second_order,
    halves,
    no_gradient,
    traces,
    transforms,
    writes_in_transforms,
    under_names_of_pytorch,
):
    check()
print(f"rank {rank} is done")
