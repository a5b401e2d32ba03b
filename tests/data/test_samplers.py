"""Orders, and datasets made of datasets."""

from __future__ import annotations

import itertools

import pytest

import genesis
from genesis.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)
from genesis.data.sampler import begin_at


class Numbers(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        return self.n


SAMPLERS = {
    "sequential": lambda: SequentialSampler(range(10)),
    "random": lambda: RandomSampler(range(10)),
    "rounds": lambda: RandomSampler(range(10), num_samples=37),
    "replacement": lambda: RandomSampler(range(10), replacement=True, num_samples=20000),
    "subset": lambda: SubsetRandomSampler("abcdefg"),
    "weighted": lambda: WeightedRandomSampler([1.0, 2.0, 3.0], 40),
    "batches": lambda: BatchSampler(RandomSampler(range(10), num_samples=37), 5, False),
    "full batches": lambda: BatchSampler(RandomSampler(range(10), num_samples=37), 5, True),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_an_order_can_begin_anywhere(name):
    sampler = SAMPLERS[name]()
    genesis.manual_seed(1)
    whole = list(sampler)
    assert len(whole) == len(sampler)
    for position in (0, 1, 7, len(whole) - 1, len(whole), len(whole) + 3):
        genesis.manual_seed(1)
        assert list(begin_at(sampler, position)) == whole[position:]


def test_a_subclass_with_its_own_order_is_run_up_to_the_place():
    class Reversed(SequentialSampler):
        def __iter__(self):
            return reversed(range(len(self)))

    assert list(begin_at(Reversed(range(5)), 2)) == [2, 1, 0]


def test_what_is_drawn():
    assert sorted(RandomSampler(range(9))) == list(range(9))
    rounds = list(RandomSampler(range(5), num_samples=12))
    assert sorted(rounds[:5]) == sorted(rounds[5:10]) == list(range(5)) and len(set(rounds[10:])) == 2
    many = list(RandomSampler(range(4), replacement=True, num_samples=20000))
    assert all(4700 < many.count(i) < 5300 for i in range(4))
    assert sorted(SubsetRandomSampler([3, 5, 9])) == [3, 5, 9]
    drawn = list(WeightedRandomSampler([0.0, 1.0, 3.0], 8000))
    assert 0 not in drawn and 1800 < drawn.count(1) < 2200
    assert sorted(WeightedRandomSampler([1.0, 1.0, 1.0], 3, replacement=False)) == [0, 1, 2]
    assert list(RandomSampler(range(5))) != list(RandomSampler(range(5))) or list(RandomSampler(range(5))) != list(
        RandomSampler(range(5))
    )


@pytest.mark.parametrize("replacement", [False, True])
def test_ten_thousand_million_are_drawn_as_they_are_needed(replacement):
    sampler = RandomSampler(range(100), replacement=replacement, num_samples=10**10)
    assert len(sampler) == 10**10 and len(list(itertools.islice(sampler, 300))) == 300
    assert len(next(iter(DataLoader(range(100), 8, sampler=sampler)))) == 8


def test_another_generator_another_order_and_the_default_one_untouched():
    before = genesis.get_rng_state().tolist()
    orders = [list(RandomSampler(range(50), generator=genesis.Generator().manual_seed(s))) for s in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2] and genesis.get_rng_state().tolist() == before


def test_the_length_of_a_growing_dataset():
    data = [1, 2]
    sampler = RandomSampler(data)
    data.append(3)
    assert len(sampler) == 3 and sorted(sampler) == [0, 1, 2]


def test_datasets_of_datasets():
    a, b = TensorDataset(genesis.arange(3)), TensorDataset(genesis.arange(3) * 10)
    assert [x.item() for (x,) in [(a + b)[i] for i in (0, 2, 3, -1)]] == [0, 2, 0, 20]
    assert list(ChainDataset([Numbers(2), Numbers(3)])) == [0, 1, 0, 1, 2] and len(Numbers(2) + Numbers(3)) == 5
    assert StackDataset(a, [1, 2, 3])[1][1] == 2 and len(StackDataset(x=a, y=b)) == 3
    batch = next(iter(DataLoader(StackDataset(x=a, y=["p", "q", "r"]), 2)))
    assert batch["x"][0].tolist() == [0, 1] and batch["y"] == ["p", "q"]
    part = Subset(Subset(a, [2, 1]), [1])
    assert part[0][0].item() == 1 and [x.tolist() for (x,) in DataLoader(Subset(a, [2, 0]), 2)] == [[2, 0]]


def test_examples_in_one_call():
    class Together(Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            raise AssertionError("one by one")

        def __getitems__(self, indices):
            return [10 * i for i in indices]

    assert [b.tolist() for b in DataLoader(Subset(Together(), [5, 1, 0]), 2)] == [[50, 10], [0]]
    assert DataLoader(TensorDataset(genesis.arange(3)), 3, collate_fn=lambda rows: len(rows)).__iter__().__next__() == 3


def test_random_split():
    parts = random_split(range(10), [0.33, 0.33, 0.34], generator=genesis.Generator().manual_seed(1))
    assert [len(p) for p in parts] == [4, 3, 3] and sorted(p[i] for p in parts for i in range(len(p))) == list(
        range(10)
    )
    again = random_split(range(10), [0.33, 0.33, 0.34], generator=genesis.Generator().manual_seed(1))
    assert [p.indices for p in parts] == [p.indices for p in again]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: RandomSampler(range(3), replacement=1), TypeError, "replacement must be a bool, got 1"),
        (lambda: RandomSampler(range(3), num_samples=0), ValueError, "num_samples must be a positive integer, got 0"),
        (
            lambda: RandomSampler(range(3), num_samples=2.5),
            ValueError,
            "num_samples must be a positive integer, got 2.5",
        ),
        (lambda: list(RandomSampler(range(3), generator=3)), TypeError, "expected a genesis.Generator, got int"),
        (lambda: WeightedRandomSampler([1.0], True), ValueError, "num_samples must be a positive integer, got True"),
        (lambda: WeightedRandomSampler([1.0], 2, replacement=None), ValueError, "replacement must be a bool, got None"),
        (lambda: WeightedRandomSampler([[1.0]], 2), ValueError, r"weights must be one-dimensional, got \[1, 1\]"),
        (lambda: BatchSampler(range(3), True, False), ValueError, "batch_size must be a positive integer, got True"),
        (lambda: BatchSampler(range(3), 2, 1), ValueError, "drop_last must be a bool, got 1"),
        (lambda: ConcatDataset([]), AssertionError, "no dataset is given"),
        (lambda: ConcatDataset([Numbers(2)]), AssertionError, "Numbers is a stream\n  try: ChainDataset"),
        (lambda: list(ChainDataset([range(2)])), AssertionError, "range is not an IterableDataset"),
        (lambda: StackDataset(), ValueError, "no dataset is given"),
        (lambda: StackDataset([1], x=[1]), ValueError, "by position and by keyword"),
        (lambda: StackDataset([1], [1, 2]), ValueError, r"one length, got \[1, 2\]"),
        (lambda: TensorDataset(genesis.zeros(2), genesis.zeros(3)), AssertionError, "one length"),
        (lambda: random_split(range(4), [1.5, -0.5]), ValueError, "fraction 0 must be between 0 and 1, got 1.5"),
        (lambda: random_split(range(4), [2.5, 1.5]), ValueError, "do not add up to 4"),
        (lambda: iter(Sampler()), NotImplementedError, "Sampler defines no __iter__"),
    ],
)
def test_errors(make, error, words):
    with pytest.raises(error, match=words):
        make()
