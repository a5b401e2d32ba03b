"""Datasets, samplers and the loader."""

from __future__ import annotations

import collections
import threading

import pytest

import genesis
from genesis.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)  # fmt: skip


def batches(loader):
    return [x.tolist() for (x,) in loader]


def test_order_batches_and_drop_last():
    data = TensorDataset(genesis.arange(5))
    assert batches(DataLoader(data, 2)) == [[0, 1], [2, 3], [4]]
    assert batches(DataLoader(data, 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert len(DataLoader(data, 2)) == 3 and len(DataLoader(data, 2, drop_last=True)) == 2
    assert [x.item() for (x,) in DataLoader(data, batch_size=None)] == [0, 1, 2, 3, 4]
    assert batches(DataLoader(data, batch_sampler=BatchSampler([4, 0, 2], 2, False))) == [[4, 0], [2]]


def test_shuffle_is_repeatable_and_complete():
    data = TensorDataset(genesis.arange(20))
    runs = [batches(DataLoader(data, 6, shuffle=True, generator=genesis.Generator().manual_seed(3))) for _ in range(2)]
    assert runs[0] == runs[1] and sorted(sum(runs[0], [])) == list(range(20)) != sum(runs[0], [])
    loader = DataLoader(data, 20, shuffle=True)
    assert batches(loader) != batches(loader)


class Squares(Dataset):
    def __init__(self):
        self.threads = set()

    def __len__(self):
        return 10

    def __getitem__(self, i):
        self.threads.add(threading.get_ident())
        if i == 7:
            raise KeyError("example 7 is broken")
        return {"x": i, "y": (float(i * i), genesis.tensor([i]))}


def test_collate_of_structures_and_workers():
    for workers in (0, 2):
        loader = iter(DataLoader(Squares(), 3, num_workers=workers))
        first = next(loader)
        assert (
            first["x"].tolist() == [0, 1, 2]
            and first["y"][0].dtype is genesis.float64
            and first["y"][1].shape == (3, 1)
        )
        assert next(loader)["x"].tolist() == [3, 4, 5]
        with pytest.raises(KeyError, match="example 7 is broken"):
            next(loader)
    pair = collections.namedtuple("Pair", "a b")
    out = genesis.data.default_collate([pair(1, "x"), pair(2, "y")])
    assert out.a.tolist() == [1, 2] and out.b == ("x", "y")


def test_streams_and_parts():
    class Count(IterableDataset):
        def __iter__(self):
            return iter(range(5))

    assert [b.tolist() for b in DataLoader(Count(), 2)] == [[0, 1], [2, 3], [4]]
    both = ConcatDataset([range(3), range(10, 12)])
    assert [both[i] for i in (0, 2, 3, -1)] == [0, 2, 10, 11]
    assert (
        list(Subset(range(10), [3, 5])) == [3, 5] if hasattr(Subset, "__iter__") else Subset(range(10), [3, 5])[1] == 5
    )
    parts = random_split(range(10), [7, 3])
    assert sorted(p[i] for p in parts for i in range(len(p))) == list(range(10))
    assert len(list(RandomSampler(range(3), num_samples=7))) == 7
    assert set(WeightedRandomSampler([0.0, 1.0], 20)) == {1}


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda d: DataLoader(d, 0), ValueError, "batch_size must be a positive integer, got 0"),
        (lambda d: DataLoader(d, sampler=[0], shuffle=True), ValueError, "sampler and shuffle exclude each other"),
        (lambda d: DataLoader(d, nonsense=1), TypeError, "unknown argument 'nonsense'"),
        (lambda d: DataLoader(d, num_workers=-1), ValueError, "num_workers must not be negative"),
        (lambda d: DataLoader(d, num_workers=1.0), TypeError, "num_workers must be an integer, got 1.0"),
        (
            lambda d: DataLoader(d, num_workers=1, prefetch_factor=0),
            ValueError,
            "prefetch_factor must be a positive integer, got 0",
        ),
        (lambda d: DataLoader(d, prefetch_factor=2), ValueError, "prefetch_factor needs workers"),
        (lambda d: DataLoader(d, timeout=-1), ValueError, "timeout must not be negative, got -1"),
        (lambda d: DataLoader(d, timeout=1), ValueError, "timeout needs workers"),
        (lambda d: DataLoader(d, persistent_workers=True), ValueError, "persistent_workers needs workers"),
        (lambda d: DataLoader(d, multiprocessing_context="fork"), ValueError, "multiprocessing_context needs workers"),
        (
            lambda d: DataLoader(d, num_workers=1, multiprocessing_context="x"),
            ValueError,
            "must be one of .*'thread'.*, got 'x'",
        ),
        (
            lambda d: DataLoader(d, num_workers=1, multiprocessing_context=3),
            TypeError,
            "must be a context or one of .*, got 3",
        ),
        (
            lambda d: DataLoader(d, batch_size=None, drop_last=True),
            ValueError,
            "batch_size=None, .* excludes drop_last",
        ),
        (lambda d: DataLoader(d, batch_sampler=[[0]], shuffle=True), ValueError, "batch_sampler excludes"),
        (lambda d: DataLoader(d, 2, batch_sampler=[[0]]), ValueError, "batch_sampler excludes"),
        (
            lambda d: DataLoader(IterableDataset(), shuffle=True),
            ValueError,
            "an IterableDataset has its own order, got shuffle=True",
        ),
        (lambda d: DataLoader(IterableDataset(), sampler=[0]), ValueError, r"has its own order, got sampler=\[0\]"),
        (
            lambda d: DataLoader(IterableDataset(), batch_sampler=[0]),
            ValueError,
            "has its own order, got batch_sampler",
        ),
        (lambda d: setattr(DataLoader(d), "batch_size", 3), ValueError, "batch_size cannot be changed any more"),
        (
            lambda d: TensorDataset(genesis.zeros(2), genesis.zeros(3)),
            ValueError,
            r"tensors must have one length, got \[2, 3\]",
        ),
        (lambda d: random_split(d, [1, 1]), ValueError, r"lengths \[1, 1\] do not add up to 5"),
    ],
)
def test_errors(make, error, words):
    with pytest.raises(error, match=words):
        make(TensorDataset(genesis.arange(5)))


def test_a_subclass_of_tensor_dataset_keeps_its_own_items():
    class Doubled(TensorDataset):
        def __getitem__(self, index):
            return tuple(t * 2 for t in super().__getitem__(index))

    assert [batch[0].tolist() for batch in DataLoader(Doubled(genesis.arange(4)), batch_size=2)] == [[0, 2], [4, 6]]


def test_an_empty_batch_sampler_gives_no_batches():
    assert list(DataLoader(TensorDataset(genesis.arange(4)), batch_sampler=[])) == []


def test_the_length_of_a_stream_is_not_known():
    class Numbers(IterableDataset):
        def __iter__(self):
            return iter(range(3))

    with pytest.raises(
        TypeError, match="DataLoader: Numbers is a stream, its length is not known\n  try: iterate over it"
    ):
        len(DataLoader(Numbers()))


@pytest.mark.parity
@pytest.mark.parametrize(
    "options",
    [
        dict(),
        dict(batch_size=2),
        dict(batch_size=2, drop_last=True),
        dict(batch_size=None),
        dict(batch_sampler=[[1, 0], [3]]),
        dict(sampler=[4, 1, 1]),
        dict(batch_size=3, shuffle=False),
        dict(pin_memory=False, in_order=True),
    ],
)
def test_batches_and_attributes_are_pytorch_s(options):
    torch = pytest.importorskip("torch")
    data = [{"x": i, "y": (float(i), "s")} for i in range(5)]
    mine, theirs = DataLoader(data, **options), torch.utils.data.DataLoader(data, **options)
    assert len(mine) == len(theirs) and (mine.batch_size, mine.drop_last) == (theirs.batch_size, theirs.drop_last)
    assert [str(b).replace("genesis.", "torch.") for b in mine] == [str(b) for b in theirs]


def test_pytorch_s_place():
    from genesis.utils.data import DataLoader as There
    from genesis.utils.data import get_worker_info

    assert There is DataLoader and genesis.utils.data.Dataset is Dataset and get_worker_info() is None


@pytest.mark.parametrize("workers", [0, 1])
def test_a_batch_of_tensors_is_a_list_and_nothing_else(workers):
    batch = next(iter(DataLoader(TensorDataset(genesis.arange(4)), 2, num_workers=workers)))
    assert type(batch) is list
