"""``x[mask] = v`` in compiled functions, for masks whose values no trace knows: what calls as they are would write."""

from __future__ import annotations

import pytest

import genesis
from genesis.base.errors import ShapeError

ROWS = genesis.tensor([True, False, True, True])


def put(x, mask, value):
    y = x * 1
    y[mask] = value
    return y


def ramp(*shape, dtype=genesis.float32):
    count = 1
    for n in shape:
        count *= n
    return (genesis.arange(count) - count // 2 + 0.25).to(dtype).reshape(shape)


X = ramp(4, 3)
CASES = {
    "a number": (X, ROWS, 0.5),
    "a whole number": (X, ROWS, 2),
    "a list": (X, ROWS, [1.0, 2.0, 3.0]),
    "for each row": (X, ROWS, ramp(3)),
    "one": (X, ROWS, ramp(1)),
    "one row": (X, ROWS, ramp(1, 3)),
    "rows": (X, ROWS, ramp(3, 3)),
    "a number for each": (X, ROWS, ramp(3, 1)),
    "more dimensions": (X, ROWS, ramp(1, 1, 3, 3)),
    "elements": (X, X > 0, ramp(6)),
    "of another dtype": (X, X > 0, ramp(6, dtype=genesis.float64)),
    "none": (X, X > 50, ramp(0)),
    "a tensor without dimensions": (X, X > 0, genesis.tensor(3.0)),
    "whole numbers": (genesis.arange(4), ROWS, genesis.tensor([7, 8, 9])),
    "of matrices": (ramp(2, 2, 3), genesis.tensor([[True, False], [True, True]]), ramp(3, 3)),
}


@pytest.mark.parametrize("case", CASES)
def test_values(case):
    x, mask, value = CASES[case]
    fast = genesis.compile(put, fullgraph=True)
    for _ in range(2):
        y = fast(x, mask, value)
        assert genesis.equal(y, put(x, mask, value))
        assert y.dtype == x.dtype


@pytest.mark.parametrize("case", ["for each row", "rows", "a number for each", "elements", "of matrices"])
def test_gradients(case):
    def gradients(x, mask, value):
        x, value = x.detach().requires_grad_(), value.detach().requires_grad_()
        loss = (put(x, mask, value) * ramp(*x.shape)).sum()
        return genesis.autograd.grad(loss, (x, value))

    fast, given = genesis.compile(gradients), CASES[case]
    for _ in range(2):
        for g, expected in zip(fast(*given), gradients(*given), strict=True):
            assert genesis.equal(g, expected)


@pytest.mark.parametrize("shape", [(4, 3), (2, 3), (5,)])
def test_a_value_that_does_not_fit_is_the_same_error(shape):
    with pytest.raises(ShapeError, match="does not fit"):
        put(X, ROWS, ramp(*shape))
    with pytest.raises(ShapeError, match="does not fit"):
        genesis.compile(put)(X, ROWS, ramp(*shape))


def test_another_number_of_elements_is_an_error_and_nothing_is_written():
    @genesis.compile
    def write(x, mask, value):
        x[mask] = value

    x, all_of_them = ramp(4), genesis.ones(4, dtype=genesis.bool)
    write(x, all_of_them, ramp(4) + 1)
    write(x, all_of_them, ramp(4) + 2)
    before = x.clone()
    with pytest.raises(ShapeError, match="names 3 elements"):
        write(x, ROWS, ramp(4))
    assert genesis.equal(x, before)
    write(x, ROWS, 0.0)
    assert genesis.equal(x, before * ~ROWS)


def test_one_graph_serves_all_masks():
    @genesis.compile(fullgraph=True)
    def reset(hidden, done):
        hidden[done] = 0
        return hidden.sum()

    for i in range(4):
        hidden = genesis.ones(4, 3)
        assert reset(hidden, genesis.arange(4) < i).item() == 12 - 3 * i
    assert "1 graphs" in reset.explain()


def test_a_mask_from_outside_names_another_number_of_elements():
    """The call was an error where the function as it is was none."""
    mask = genesis.tensor([True] * 4)

    def picked(x):
        return x[mask].sum()

    compiled = genesis.compile(picked)
    for change in (0, 1, None, 2):
        for _ in range(2):
            assert compiled(genesis.arange(4.0)).item() == picked(genesis.arange(4.0)).item()
        if change is not None:
            mask[change] = False


def test_a_mask_from_outside_is_written_to_before_it_picks():
    """How many elements it names was what it named before the call."""
    mask, kept = genesis.zeros(3, dtype=genesis.bool), genesis.zeros(3)

    def keeps(x):
        mask.copy_(x > 0)
        kept[mask] = (x * 2)[mask]
        return kept * 1

    batches = [genesis.tensor(x) for x in ([1.0, -1, -1], [1.0, 1, -1], [-1.0, -1, -1], [1.0, 1, 1])]
    expected = [keeps(x).tolist() for x in batches]
    kept.zero_()
    with pytest.warns(UserWarning, match="values of a mask that is written to in the function"):
        compiled = genesis.compile(keeps)
        assert [compiled(x).tolist() for x in batches] == expected
    with pytest.raises(RuntimeError, match="values of a mask that is written to in the function"):
        genesis.jit.trace(keeps, batches[0])
