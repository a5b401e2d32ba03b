"""How much two arrays may differ, and what is said where they differ more."""

import pytest

import genesis
from genesis.testing import assert_close

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("actual", "expected"), [([1.0, NAN, INF], [1.0 + 1e-6, NAN, INF]), ([], []), ([True], [True]), ([2**62], [2**62])]
)
def test_close(actual, expected):
    assert_close(genesis.tensor(actual), genesis.tensor(expected))


@pytest.mark.parametrize(
    ("actual", "expected", "text"),
    [
        ([1.0, NAN, 3.0], [1.0, 2.0, 4.0], "2 of 3 elements differ, by up to nan; the first at [1]: nan, expected 2.0"),
        ([INF], [1.0], "1 of 1 elements differ, by up to inf; the first at [0]: inf, expected 1.0"),
        (1.0, 2.0, "1 of 1 elements differ, by up to 1; the first at []: 1.0, expected 2.0"),
        ([1 + 1j], [1 - 1j], "by up to 2; the first at [0]: (1+1j), expected (1-1j)"),
        ([2**62], [2**62 + 1], "by up to 1; the first at [0]: 4611686018427387904, expected 4611686018427387905"),
        ([[True]], [[False]], "by up to 1; the first at [0, 0]: True, expected False"),
        ([1.0], [[1.0]], "shape (1,), expected (1, 1)"),
        ([1.0], [1], "dtype float32, expected int64"),
    ],
)
def test_what_differs_is_said(actual, expected, text):
    with pytest.raises(AssertionError) as caught:
        assert_close(genesis.tensor(actual), genesis.tensor(expected))
    assert text in str(caught.value)
