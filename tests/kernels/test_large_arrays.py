"""Large arrays get memory that earlier ones gave back."""

import gc

import numpy as np
import pytest

from genesis.arrays.memory import owner_of
from genesis.kernels.cpu import memory


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(memory, "LARGE", 1000)
    monkeypatch.setattr(memory, "LIMIT", 10_000)
    monkeypatch.setattr(memory, "_at_most", [0])
    memory.release()
    yield
    memory.release()


def address(a):
    return a.__array_interface__["data"][0]


def test_memory_is_used_again_once_nothing_refers_to_it():
    a = memory.empty((40, 25), np.float32)
    place, view = address(a), a[3:, ::2]
    del a
    other = memory.empty((1000,), np.float32)
    assert address(other) != place  # the view keeps it
    del view
    b = memory.empty((500,), np.float64)  # as many bytes
    assert address(b) == place
    assert b.dtype == np.float64 and b.shape == (500,) and b.flags.writeable and b.flags.c_contiguous


def test_small_arrays_and_other_sizes_get_their_own():
    small = memory.empty((249,), np.float32)
    assert small.base is None
    place = address(memory.empty((2000,), np.uint8))
    assert address(memory.empty((1999,), np.uint8)) != place
    assert address(memory.empty((2000,), np.uint8)) == place


def test_what_is_kept_has_a_limit():
    arrays = [memory.empty((4000,), np.uint8) for _ in range(5)]
    newest = address(arrays[-1])
    while arrays:
        arrays.pop(0)
    assert [m.nbytes for m in memory._kept[4000]] == [4000, 4000]
    assert address(memory._kept[4000][-1]) == newest  # the oldest went


def test_the_limit_is_met_by_the_size_that_was_not_used_for_the_longest_time():
    for size in (3000, 4000, 3000, 5000):
        memory.empty((size,), np.uint8)
    assert {size: len(pieces) for size, pieces in memory._kept.items()} == {3000: 1, 5000: 1}


def test_the_limit_is_met_while_all_memory_of_a_size_is_lent():
    lent = [memory.empty((3000,), np.uint8)]
    lent[0] = memory.empty((3000,), np.uint8)  # one came back,
    lent.append(memory.empty((3000,), np.uint8))  # and is lent again: nothing of this size is kept
    for size in (4000, 5000, 6000):  # with a limit that does not end this hung
        memory.empty((size,), np.uint8)
    assert {size: len(pieces) for size, pieces in memory._kept.items()} == {6000: 1}


def test_what_is_kept_is_counted_only_where_it_may_be_too_much(monkeypatch):
    counts, limit = [], memory._limit
    monkeypatch.setattr(memory, "_limit", lambda: (limit(), counts.append(memory._at_most[0])))
    for _ in range(20):
        memory.empty((3000,), np.uint8)  # 3000 bytes are kept, each time the same
    assert counts and set(counts) == {3000} and len(counts) <= 7


def test_the_owner_of_memory_is_the_array_that_has_it_now():
    import genesis

    a = memory.empty((50, 10), np.float32)
    assert owner_of(a[3:, ::2].T) is a
    x = genesis.from_numpy(a)
    assert len(x[1:].untyped_storage()) == a.nbytes and x[1:].storage_offset() == 10


def test_vectors_begin_with_a_line():
    assert all(address(memory.empty((n,), np.uint8)) % 64 == 0 for n in range(1000, 1010))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 5), (0, 1000)])
def test_empty_and_0d(shape):
    assert memory.empty(shape, np.float64).shape == shape


def test_two_live_arrays_never_share():
    a, b = memory.empty((1000,), np.int64), memory.empty((1000,), np.int64)
    del a
    c = memory.empty((1000,), np.int64)
    c[:], b[:] = 1, 2
    assert not np.shares_memory(b, c) and (c == 1).all()


def test_a_tensor_and_its_numpy_view_keep_the_memory():
    import genesis

    x = genesis.from_numpy(memory.empty((1000,), np.float32))
    x.fill_(7)
    view = x.numpy()
    del x
    gc.collect()
    memory.empty((1000,), np.float32).fill(0)
    assert (view == 7).all()
