"""Results that are written to in place: an error only where the gradient needs what was there."""

from __future__ import annotations

import pytest

import genesis
from genesis.base.errors import InplaceError


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (lambda x: x**2, lambda x: 2 * x),
        (lambda x: x**-1.5, lambda x: -1.5 * x**-2.5),
        (lambda x: genesis.pow(x, 3), lambda x: 3 * x**2),
        (
            lambda x: x ** genesis.tensor([2.0, 3.0]),
            lambda x: genesis.tensor([2.0, 3.0]) * x ** genesis.tensor([1.0, 2.0]),
        ),
        (genesis.sinc, None),
        (genesis.erfinv, None),
    ],
)
def test_a_rule_that_reads_the_operand_alone(function, slope):
    x = genesis.tensor([0.5, 0.75], requires_grad=True, dtype=genesis.float64)
    y = function(x)
    (before,) = genesis.autograd.grad(y.sum(), x, retain_graph=True)
    y /= 4
    (after,) = genesis.autograd.grad(y.sum(), x)
    assert genesis.allclose(after, before / 4, rtol=1e-14)
    if slope is not None:
        assert genesis.allclose(before, slope(x.detach()), rtol=1e-14)


@pytest.mark.parametrize("function", [lambda x: 2**x, lambda x: x**x, genesis.exp, genesis.tanh])
def test_a_rule_that_reads_the_result(function):
    x = genesis.tensor([0.5, 0.75], requires_grad=True)
    y = function(x)
    y /= 4
    with pytest.raises(InplaceError, match="modified in place by div_"):
        y.sum().backward()


def test_a_power_keeps_no_result():
    x = genesis.ones(3, requires_grad=True)
    assert [value is not None for value in (x**2).grad_fn._saved] == [True, True, False]
    assert [value is not None for value in (x**x).grad_fn._saved] == [True, True, True]
