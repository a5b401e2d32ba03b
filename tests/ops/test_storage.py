"""The memory of tensors under PyTorch's names: storages, offsets, and tensors that are told to see other memory."""

from __future__ import annotations

import sys

import pytest

import genesis


def test_a_storage_is_the_whole_memory():
    x = genesis.arange(6.0)
    part = x[2:4]
    assert part.storage_offset() == 2 and len(part.storage()) == 6 and part.untyped_storage().nbytes() == 24
    assert part.storage().data_ptr() == x.data_ptr() == part.untyped_storage().data_ptr() and part.storage()[1] == 1.0
    part.storage()[5] = 9
    assert x[5] == 9 and x.untyped_storage() == part.untyped_storage()
    assert x.t().storage().tolist() == x.tolist() and x.storage().dtype is genesis.float32
    assert genesis.zeros(2, 3).t().storage().size() == 6 and genesis.is_storage(x.storage())
    with pytest.raises(IndexError, match="storage: index 6 is out of range"):
        x.storage()[6]
    with pytest.raises(NotImplementedError, match="storage: memory keeps its size"):
        x.untyped_storage().resize_(3)


def test_set_sees_other_memory():
    x, y = genesis.zeros(2), genesis.arange(4.0)
    assert x.set_(y) is x and x.data_ptr() == y.data_ptr() and x.shape == (4,)
    x.set_(y.storage(), 1, (3, 2), (1, 0))
    assert x.tolist() == [[1, 1], [2, 2], [3, 3]]
    y[1] = 7
    assert x[0, 0] == 7
    with pytest.raises(RuntimeError, match="set_: size .* reach beyond 4 elements"):
        x.set_(y.storage(), 2, (3,))
    assert genesis.ones(3).set_().shape == (0,)


def test_resize_keeps_elements_in_their_order():
    x = genesis.arange(6.0)
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    assert x.resize_(6).tolist() == [0, 1, 2, 3, 4, 5]
    assert x.resize_((8,))[:6].tolist() == [0, 1, 2, 3, 4, 5] and x.resize_as_(genesis.ones(2)).shape == (2,)
    with pytest.raises(NotImplementedError, match="resize_: the tensor requires grad"):
        genesis.ones(2, requires_grad=True).resize_(3)


def test_elements_by_python_functions():
    x = genesis.tensor([1.0, -2.0])
    assert x.apply_(lambda v: v * 10) is x and x.tolist() == [10.0, -20.0]
    assert x.map_(genesis.ones(1), lambda a, b: a + b).tolist() == [11.0, -19.0]
    assert x.map2_(genesis.ones(2), genesis.ones(2), lambda a, b, c: a + b + c).tolist() == [13.0, -17.0]
    assert genesis.tensor([2]).apply_(lambda v: v / 2).tolist() == [1] and genesis.zeros(0).apply_(float).shape == (0,)
    with pytest.raises(NotImplementedError, match="apply_: a Python function of elements has no gradient"):
        genesis.ones(2, requires_grad=True).apply_(lambda v: v)


def test_facts():
    x = genesis.zeros(2, 3)
    assert x.dim_order() == (0, 1) and x.t().dim_order() == (1, 0) and x.ndimension() == 2
    assert x.is_set_to(x.view(2, 3)) and not x.is_set_to(x[:1]) and x.is_same_size(genesis.ones(2, 3))
    assert x.new(2, 2).shape == (2, 2) and x.new([1, 2]).dtype is genesis.float32 and x.new().shape == (0,)
    assert genesis.ones(2, 3, 4).sum_to_size(3, 1).tolist() == [[8.0]] * 3
    assert x.resolve_conj() is x is x.pin_memory() and not x.is_pinned()
    assert x.new_empty_strided((2, 2), (1, 2)).stride() == (1, 2)
    with pytest.raises(RuntimeError, match="sum_to_size: size .* does not broadcast"):
        x.sum_to_size(4)
    with pytest.raises(RuntimeError, match="is_nonzero: the tensor has 6 elements"):
        x.is_nonzero()


@pytest.mark.parity
@pytest.mark.parametrize("shape", [(3, 3), (7, 3), (3, 5), (2, 2, 2), (0, 3)])
@pytest.mark.parametrize("wrap", [False, True])
def test_fill_diagonal(shape, wrap):
    torch = pytest.importorskip("torch")
    expected = torch.zeros(shape).fill_diagonal_(4, wrap).tolist()
    assert genesis.zeros(shape).fill_diagonal_(4, wrap).tolist() == expected


def test_a_storage_of_a_file(tmp_path):
    path = str(tmp_path / "bytes")
    (tmp_path / "bytes").write_bytes(bytes(range(8)))
    storage = genesis.UntypedStorage.from_file(path, nbytes=8)
    x = genesis.asarray(storage[4:8], dtype=genesis.uint8)
    assert x.tolist() == [4, 5, 6, 7]
    assert x.view(genesis.int32).item() == int.from_bytes(bytes([4, 5, 6, 7]), "little")
    storage[0] = 9
    assert (tmp_path / "bytes").read_bytes()[0] == 0
    shared = genesis.UntypedStorage.from_file(path, shared=True, nbytes=10)
    shared[9] = 3
    del shared
    assert (tmp_path / "bytes").read_bytes()[-2:] == bytes([0, 3])
    with pytest.raises(RuntimeError, match="has 10 bytes, fewer than 11"):
        genesis.UntypedStorage.from_file(path, nbytes=11)
    assert len(genesis.UntypedStorage.from_file(path)) == 0
    assert storage.untyped() == storage


def test_what_sys_says_of_a_storage_counts_its_bytes():
    sizes = [sys.getsizeof(genesis.zeros(n).untyped_storage()) for n in (0, 1000)]
    assert sizes[1] - sizes[0] == 4000
    assert sys.getsizeof(genesis.zeros(1000)[5:].storage()) == sizes[1]
