"""Arguments that PyTorch's functions take beyond their first ones: `out`, other forms, sizes of one and of none."""

from __future__ import annotations

import pytest

import genesis

TAKES_OUT = [
    ("cumsum", lambda t: (t(3, 4), 1)),
    ("gather", lambda t: (t(3, 4), 0, t.zeros(1, 4))),
    ("softmax", lambda t: (t(3, 4), 1)),
    ("addmm", lambda t: (t(3, 3), t(3, 3), t(3, 3))),
    ("stack", lambda t: ([t(3), t(3)],)),
    ("tril", lambda t: (t(3, 3),)),
    ("hstack", lambda t: ([t(3), t(3)],)),
    ("index_select", lambda t: (t(3, 4), 0, t.zeros(2))),
]


class _Make:
    def __call__(self, *shape):
        return genesis.arange(float(genesis.zeros(shape).numel())).reshape(shape)

    def zeros(self, *shape):
        return genesis.zeros(shape, dtype=genesis.int64)


@pytest.mark.parametrize(("name", "make"), TAKES_OUT, ids=[name for name, _ in TAKES_OUT])
def test_out(name, make):
    call = getattr(genesis, name)
    expected = call(*make(_Make()))
    out = genesis.empty(0)
    assert call(*make(_Make()), out=out) is out and genesis.equal(out, expected)
    with pytest.raises(RuntimeError, match="cannot be cast to out's"):
        call(*make(_Make()), out=genesis.empty(0, dtype=genesis.int64))
    with pytest.raises(RuntimeError, match="out= does not support differentiation"):
        call(*make(_Make()), out=genesis.ones(expected.shape, requires_grad=True) * 1)


def test_out_of_several_results():
    x = genesis.tensor([3.0, 1.0, 2.0])
    values, indices = genesis.empty(0), genesis.empty(0, dtype=genesis.int64)
    found = genesis.sort(x, out=(values, indices))
    assert found.values is values and found.indices is indices and values.tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(TypeError, match="sort: out= must be 2 tensors"):
        genesis.sort(x, out=values)


def test_out_of_functions_that_are_no_ops():
    out = genesis.empty(0)
    assert genesis.linspace(0, 1, 3, out=out) is out and out.tolist() == [0, 0.5, 1]
    assert genesis.rand(2, out=genesis.empty(2)).shape == (2,) and genesis.where(out > 0, out, 0.0, out=out) is out


def test_numbers_are_indexed_as_lists_of_one():
    x, at, two = genesis.tensor(3.0), genesis.tensor([0]), genesis.tensor([2.0])
    assert genesis.index_add(x, 0, at, two, alpha=2) == 7 and genesis.index_copy(x, 0, at, two) == 2
    assert genesis.index_fill(x, 0, at, 5) == 5 and genesis.gather(x, 0, at).tolist() == [3]
    assert genesis.gather(genesis.arange(3), 0, genesis.tensor(2)) == 2
    y = x.clone().requires_grad_()
    (genesis.index_add(y * 2, 0, at, two)).backward()
    assert y.grad == 2


def test_other_forms():
    x = genesis.arange(6).reshape(2, 3)
    assert x.flip(dims=(0,)).tolist() == x.flip(0).tolist() == [[3, 4, 5], [0, 1, 2]] and x.fliplr()[0, 0] == 2
    assert [len(p) for p in genesis.tensor_split(genesis.arange(7), genesis.tensor([1, 4]))] == [1, 3, 3]
    assert len(genesis.tensor_split(genesis.arange(7), genesis.tensor(3))) == 3
    assert genesis.take_along_dim(x, genesis.tensor([[-1], [0]]), 1).tolist() == [[2], [3]]
    assert genesis.repeat_interleave(genesis.tensor([2, 0, 1])).tolist() == [0, 0, 2]
    assert genesis.repeat_interleave(x, 2, dim=0, output_size=4).shape == (4, 3)
    assert genesis.tensordot(genesis.ones(1, 2), genesis.ones(3, 2), ([0], [0])).tolist() == [[3, 3], [3, 3]]
    assert genesis.logit(genesis.tensor([0.0, 0.5]), 0.5).tolist() == [0, 0]
    assert genesis.tensor([0.0, 0.5]).logit_(0.5).tolist() == [0, 0]
    assert genesis.masked_scatter(genesis.zeros(1), genesis.tensor([True, True]), genesis.ones(2)).tolist() == [1, 1]
    assert genesis.normal(0.0, 1.0, (2,), device="cpu", requires_grad=True).requires_grad
    assert genesis.tril_indices(2, 2, dtype=genesis.int32).dtype is genesis.int32
    assert genesis.ones(2, 3).cumsum_(1).tolist() == [[1, 2, 3], [1, 2, 3]]


def test_flags_by_position_are_non_blocking_then_copy():
    x = genesis.ones(2)
    assert x.to("cpu", genesis.float32, True) is x and x.to("cpu", genesis.float32, True, True) is not x


def test_close_small_integers():
    x, y = genesis.tensor([1, 2], dtype=genesis.uint8), genesis.tensor([2, 1], dtype=genesis.uint8)
    assert genesis.isclose(x, y, atol=1).tolist() == [True, True]  # 1 - 2 is 255 there
    assert genesis.isclose(genesis.tensor([True]), genesis.tensor([True])).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda: genesis.tensor(5).repeat(-1),
        lambda: genesis.ones(2, 0).repeat(-1, 1),
        lambda: genesis.ones(2).repeat(2, -1),
        lambda: genesis.ones(2).repeat(-1, -1),
        lambda: genesis.tile(genesis.tensor(5), (-1,)),
        lambda: genesis.ones(3).tile(-2),
        lambda: genesis.tril_indices(-1, 2),
        lambda: genesis.triu_indices(2, -1),
        lambda: genesis.randint(0, 3, (-1,)),
        lambda: genesis.randint(0, 3, (2, -1), device="meta"),
    ],
)
def test_counts_and_sizes_are_not_negative(call):
    """A number of repeats that is -1 would else be what reshape finds out, and a size of -1 nothing."""
    with pytest.raises(RuntimeError, match="cannot be negative"):
        call()
