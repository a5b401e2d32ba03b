"""The same seed gives the same data, with any number of workers of any kind, and after a resume."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from common import WORKERS, Noisy, NoisyStream, make, noisy_collate, plain

import genesis
from genesis.data import DataLoader, RandomSampler, Sampler, SubsetRandomSampler, WeightedRandomSampler


def epochs(loader, count=2):
    return [[plain(batch) for batch in loader] for _ in range(count)]


def reference(seed=5, **options):
    genesis.manual_seed(seed)
    return epochs(make(Noisy(), 0, None, collate_fn=noisy_collate, batch_size=4, **options))


@pytest.mark.parametrize(("workers", "kind"), WORKERS)
@pytest.mark.parametrize("shuffle", [False, True])
def test_any_number_of_workers_gives_the_same_batches(workers, kind, shuffle):
    want = reference(shuffle=shuffle)
    genesis.manual_seed(5)
    assert epochs(make(Noisy(), workers, kind, collate_fn=noisy_collate, batch_size=4, shuffle=shuffle)) == want
    assert want[0] != want[1] and reference(seed=6, shuffle=shuffle) != want


def test_workers_leave_the_default_generator_where_no_workers_leave_it():
    after = []
    for workers, kind in WORKERS:
        genesis.manual_seed(5)
        loader = make(Noisy(), workers, kind, shuffle=True, batch_size=4)
        for _ in loader:
            genesis.rand(3)  # dropout of a training step
        after.append(genesis.rand(1).item())
    assert len(set(after)) == 1


def test_the_size_of_batches_does_not_matter():
    found = []
    for size in (1, 4, 23):
        genesis.manual_seed(5)
        batches = list(DataLoader(Noisy(), size, shuffle=True))
        found.append([genesis.cat([b[k] for b in batches]).tolist() for k in range(4)])
    assert found[0] == found[1] == found[2]


def test_an_example_drawn_twice_is_augmented_twice():
    genesis.manual_seed(0)
    numbers, noise, *_ = next(iter(DataLoader(Noisy(), 4, sampler=[7, 7, 3, 7])))
    assert numbers.tolist() == [7, 7, 3, 7] and len({tuple(row) for row in noise.tolist()}) == 4


@pytest.mark.parametrize(("workers", "kind"), WORKERS)
def test_a_stream_that_is_split_one_by_one(workers, kind):
    genesis.manual_seed(5)
    want = sorted((i, tuple(x.tolist())) for i, x in make(NoisyStream(), 0, None, batch_size=None))
    genesis.manual_seed(5)
    found = [(i, tuple(x.tolist())) for i, x in make(NoisyStream(), workers, kind, batch_size=None)]
    assert sorted(found) == want
    if workers in (0, 1, 2, 4):
        assert [i for i, _ in found] == list(range(23))  # batches come from the workers in turn


def test_seeds_in_an_example_stay_there():
    class Seeding(Noisy):
        def __getitem__(self, i):
            genesis.manual_seed(1)
            with genesis.random.fork_rng():
                first = genesis.rand(1).item()
            assert first == genesis.rand(1).item()
            return first

    genesis.manual_seed(3)
    loader = DataLoader(Seeding(4), 4)
    state = genesis.get_rng_state().tolist()
    (batch,) = list(loader)
    assert len(set(batch.tolist())) == 1 and genesis.initial_seed() == 3
    assert genesis.get_rng_state().tolist() != state  # of the epoch's seed alone
    genesis.manual_seed(3)
    genesis.data.sampler.drawn_seed(None)
    expected = genesis.get_rng_state().tolist()
    genesis.manual_seed(3)
    list(loader)
    assert genesis.get_rng_state().tolist() == expected


def test_the_process_s_other_generators_are_left_alone():
    random.seed(1), np.random.seed(1)
    want = random.random(), np.random.rand()
    random.seed(1), np.random.seed(1)
    list(DataLoader(Noisy(), 4))
    assert (random.random(), np.random.rand()) == want


class Counting(Sampler):
    """A sampler with a state of its own, which replaying would not find again."""

    def __init__(self):
        self.at = 0

    def __iter__(self):
        while self.at < 23:
            self.at += 1
            yield self.at - 1
        self.at = 0

    def __len__(self):
        return 23

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class Drawing(Sampler):
    """A sampler that draws from the default generator, as users write them."""

    def __len__(self):
        return 23

    def __iter__(self):
        for _ in range(23):
            yield int(genesis.randint(23, ()))


def generator():
    return genesis.Generator().manual_seed(9)


ORDERS = {
    "in order": dict,
    "shuffle": lambda: dict(shuffle=True),
    "shuffle, own generator": lambda: dict(shuffle=True, generator=generator()),
    "sampler's own generator": lambda: dict(sampler=RandomSampler(range(23), generator=generator())),
    "replacement": lambda: dict(sampler=RandomSampler(range(23), replacement=True, num_samples=40)),
    "rounds": lambda: dict(sampler=RandomSampler(range(23), num_samples=60)),
    "subset": lambda: dict(sampler=SubsetRandomSampler(range(3, 20))),
    "weights": lambda: dict(sampler=WeightedRandomSampler(range(23), 30)),
    "a stateful sampler": lambda: dict(sampler=Counting()),
    "a user's sampler": lambda: dict(sampler=Drawing()),
    "a list": lambda: dict(sampler=[5, 3, 5, 1, 2, 8, 9, 11] * 3),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_resumed_run_goes_on_with_the_batches_of_the_first(order, at):
    workers = [(0, None), (2, "thread")]
    for (first, kind), (second, other) in [
        (workers[0], workers[0]),
        (workers[1], workers[0]),
        (workers[0], workers[1]),
    ]:
        genesis.manual_seed(5)
        loader = make(Noisy(), first, kind, batch_size=4, collate_fn=noisy_collate, **ORDERS[order]())
        batches = iter(loader)
        for _ in range(at):
            next(batches)
        state, rng = json.loads(json.dumps(loader.state_dict())), genesis.get_rng_state()
        rest = [plain(b) for b in batches]
        after = epochs(loader)

        genesis.manual_seed(77)
        again = make(Noisy(), second, other, batch_size=4, collate_fn=noisy_collate, **ORDERS[order]())
        again.load_state_dict(state)
        assert again.state_dict() == state
        genesis.set_rng_state(rng)
        assert [plain(b) for b in again] == rest
        assert epochs(again) == after


@pytest.mark.parametrize(("workers", "kind"), WORKERS)
@pytest.mark.parametrize("at", [1, 2, 5])
def test_a_resumed_stream(workers, kind, at):
    genesis.manual_seed(5)
    loader = make(NoisyStream(), workers, kind, batch_size=3, collate_fn=noisy_collate)
    batches = iter(loader)
    for _ in range(at):
        next(batches)
    state = loader.state_dict()
    rest = [plain(b) for b in batches]
    assert rest
    genesis.manual_seed(77)
    again = make(NoisyStream(), workers, kind, batch_size=3, collate_fn=noisy_collate)
    again.load_state_dict(state)
    assert [plain(b) for b in again] == rest


def test_states_at_the_ends_of_epochs():
    loader = DataLoader(Noisy(), 4, shuffle=True, generator=generator())
    fresh = loader.state_dict()
    first, second = epochs(loader)
    again = DataLoader(Noisy(), 4, shuffle=True, generator=generator())
    again.load_state_dict(fresh)
    assert epochs(again, 1) == [first]
    again.load_state_dict(again.state_dict())
    assert epochs(again, 1) == [second]


def test_the_state_after_a_loop_that_was_left():
    genesis.manual_seed(5)
    loader = DataLoader(Noisy(), 4, shuffle=True)
    seen = []
    for batch in loader:
        seen.append(plain(batch))
        if len(seen) == 2:
            break
    state = loader.state_dict()
    genesis.manual_seed(5)
    (whole,) = epochs(loader, 1)
    loader.load_state_dict(state)
    assert seen == whole[:2] and epochs(loader, 1) == [whole[2:]]


def test_resuming_far_into_an_order_draws_only_what_is_left():
    sampler = RandomSampler(range(5), replacement=True, num_samples=10**10)
    loader = DataLoader(Noisy(5), 10, sampler=sampler)
    assert len(loader) == 10**9
    state = (iter(loader), loader.state_dict())[1]
    loader.load_state_dict(state | {"batches": 10**8, "examples": 10**9})
    assert len(next(iter(loader))[0]) == 10


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({}, "not the state of a DataLoader"),
        (
            {"finished": False, "workers": 3, "generators": [None] * 3},
            "the state is of 3, the loader has 0\n  try: num_workers=3",
        ),
    ],
)
def test_states_that_do_not_fit(state, words):
    with pytest.raises(ValueError, match=words):
        DataLoader(NoisyStream()).load_state_dict(state)
