"""Join: ranks with different numbers of steps, against one process that adds up the same gradients."""

from __future__ import annotations

from together import examples, loss_of, mine, near, rank, refused, size, step_of

import genesis
import genesis.distributed as dist
from genesis import nn, optim
from genesis.distributed.algorithms.join import Join, Joinable, JoinHook
from genesis.distributed.optim import ZeroRedundancyOptimizer
from genesis.nn.parallel import DistributedDataParallel

LEAST, MORE = 3, 2  # steps of rank 0, and how many more each next rank has
STEPS = LEAST + MORE * (size - 1)
X, Y = examples(STEPS, 2)
OWN = LEAST + MORE * rank


def network(norm=False):
    genesis.manual_seed(0)
    layers = [nn.Linear(5, 8), nn.BatchNorm1d(8) if norm else nn.Tanh(), nn.Linear(8, 2)]
    return nn.Sequential(*layers).double()


def reference(optimizer_class, by_active, **options):
    """All ranks' steps in this process."""
    model = network()
    optimizer = optimizer_class(model.parameters(), **options)
    for step in range(STEPS):
        active = [r for r in range(size) if step < LEAST + MORE * r]
        optimizer.zero_grad()
        for r in active:
            rows = slice(r * 4, (r + 1) * 4)
            (loss_of(model, X[step][rows], Y[step][rows]) / (len(active) if by_active else size)).backward()
        optimizer.step()
    return model


def of_models():
    for by_active in (False, True):
        for unused in (False, True):
            model = DistributedDataParallel(network(), bucket_cap_mb=0.0002, find_unused_parameters=unused)
            optimizer = optim.SGD(model.parameters(), 0.1)
            with model.join(divide_by_initial_world_size=not by_active):
                for x, y in list(zip(X, Y, strict=True))[:OWN]:
                    step_of(model, optimizer, mine(x), mine(y))
            near(model.module, reference(optim.SGD, by_active, lr=0.1), (by_active, unused))
            optimizer.zero_grad()  # afterwards all is as before
            loss_of(model, mine(X[0]), mine(Y[0])).backward()


def of_sharded_optimizers():
    model = DistributedDataParallel(network())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optim.Adam, lr=0.1)
    with Join([model, optimizer], divide_by_initial_world_size=False):
        for x, y in list(zip(X, Y, strict=True))[:OWN]:
            step_of(model, optimizer, mine(x), mine(y))
    near(model.module, reference(optim.Adam, True, lr=0.1))


def of_accumulated_gradients():
    """Two backwards for each step, one of them inside of `no_sync`; and a forward without a backward."""
    model, plain = DistributedDataParallel(network()), network()
    with model.join():
        for x, y in list(zip(X, Y, strict=True))[:OWN]:
            with model.no_sync():
                loss_of(model, mine(x), mine(y)).backward()
            loss_of(model, mine(x), mine(y)).backward()
            with genesis.no_grad():
                model(mine(x))
            with genesis.no_grad():
                for p in model.parameters():
                    p -= 0.1 * p.grad
            model.zero_grad()
    for step in range(STEPS):
        for r in range(size):
            if step < LEAST + MORE * r:
                (2 * loss_of(plain, X[step][r * 4 : r * 4 + 4], Y[step][r * 4 : r * 4 + 4]) / size).backward()
        with genesis.no_grad():
            for p in plain.parameters():
                p -= 0.1 * p.grad
        plain.zero_grad()
    near(model.module, plain)


def of_buffers():
    """Rank 0 has joined: the statistics are those of the first rank that goes on."""
    model = DistributedDataParallel(network(norm=True))
    with model.join():
        for x, y in list(zip(X, Y, strict=True))[:OWN]:
            loss_of(model, mine(x), mine(y)).backward()
    said = [None] * size
    dist.all_gather_object(said, [b.tolist() for b in model.buffers()])
    assert all(each == said[0] for each in said)
    assert said[0][-1] == STEPS


class Counter(Joinable):
    def __init__(self):
        super().__init__()
        self.count = genesis.zeros(1)

    def __call__(self):
        work = Join.notify_join_context(self)
        if work is not None:
            work.wait()
        one = genesis.ones(1)
        dist.all_reduce(one)
        self.count += one

    def join_hook(self, **kwargs):
        counter = self

        class Hook(JoinHook):
            def main_hook(self):
                dist.all_reduce(genesis.zeros(1))

            def post_hook(self, is_last_joiner):
                counter.was_last = is_last_joiner

        return Hook()

    join_device = property(lambda self: genesis.device("cpu"))
    join_process_group = property(lambda self: dist.GroupMember.WORLD)


def of_classes_of_a_program():
    counter = Counter()
    with Join([counter]):
        for _ in range(OWN):
            counter()
    assert counter.was_last == (rank == size - 1)
    assert counter.count.item() == sum(sum(step < LEAST + MORE * r for r in range(size)) for step in range(OWN))
    with Join([counter], enable=False):
        pass
    refused(ValueError, "nothing that joins", lambda: Join([]))
    refused(ValueError, "Linear has no join_hook", lambda: Join([nn.Linear(1, 1)]))


def that_ends_early():
    model, steps = DistributedDataParallel(network()), 0

    def train():
        nonlocal steps
        with model.join(throw_on_early_termination=True):
            for x, y in list(zip(X, Y, strict=True))[:OWN]:
                loss_of(model, mine(x), mine(y)).backward()
                steps += 1

    if size == 1:
        train()
    else:
        refused(RuntimeError, "has no step left", train)
    assert steps == LEAST
    loss_of(model, mine(X[0]), mine(Y[0])).backward()  # outside nothing is told


assert isinstance(DistributedDataParallel(network()), Joinable) and not isinstance(nn.Linear(1, 1), Joinable)
of_models()
of_sharded_optimizers()
of_accumulated_gradients()
of_buffers()
of_classes_of_a_program()
that_ends_early()
dist.barrier()
print(f"rank {rank} is done")
