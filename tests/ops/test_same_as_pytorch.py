"""Calls whose dtype, shape or value once differed from PyTorch's: the same expression in both."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.pytorch.modules import find

torch = pytest.importorskip("torch", reason="PyTorch is the reference here; pip install torch==2.13.0")
pytestmark = pytest.mark.parity

_SRC = [[True, False, True], [True, True, False], [False, False, True]]
_AT = [[0, 1, 0], [2, 1, 0], [2, 0, 0]]
_INF = float("inf")

CALLS = {
    "a sum of small integers by einsum": lambda m: m.einsum("ij->j", m.ones(2, 3, dtype=m.uint8)),
    "nothing summed by einsum": lambda m: m.einsum("ij->ji", m.ones(2, 3, dtype=m.uint8)),
    "a product of small integers by einsum": lambda m: m.einsum("i,i->", *[m.ones(3, dtype=m.int32)] * 2),
    "coordinates of small integers": lambda m: m.unravel_index(m.tensor([5], dtype=m.int32), (2, 3))[0],
    "all summed by sum_to_size": lambda m: m.ones(2, dtype=m.bool).sum_to_size(()),
    "addbmm of small integers": lambda m: m.addbmm(*[m.ones(*n, dtype=m.int8) for n in ((2, 2), (3, 2, 2), (3, 2, 2))]),
    "addr of bool": lambda m: m.addr(m.tensor([[False], [True]]), m.tensor([True, False]), m.tensor([True, False])),
    "addr of bool without what is added": lambda m: m.addr(m.tensor([True]), *[m.tensor([True, False])] * 2, beta=0),
    "a product from the right": lambda m: m.Tensor.__rmatmul__(m.ones(3, 2), m.ones(2, 3)),
    "a quotient from the right": lambda m: m.Tensor.__rdiv__(m.tensor([2.0]), m.tensor([3.0])),
    "sigmoid of complex": lambda m: m.sigmoid(m.tensor([1 + 2j])),
    "exp2 of complex": lambda m: m.exp2(m.tensor([1 + 2j])),
    "sinc of complex": lambda m: m.sinc(m.tensor([0j, 1 + 2j])),
    "logaddexp of complex": lambda m: m.logaddexp(m.tensor([1 + 2j, 3 - 4j]), m.tensor([3 - 1j, 3 + 1j])),
    "logcumsumexp of complex": lambda m: m.logcumsumexp(m.tensor([1 + 2j, 3 - 4j, -_INF, 1j]), 0),
    "step of bool": lambda m: m.heaviside(m.tensor([True, False, False]), m.tensor([False, True, False])),
    "angle of bool": lambda m: m.angle(m.tensor([True, False])),
    "sign of bool": lambda m: m.sign(m.tensor([True, False])),
    "nan_to_num of bool": lambda m: m.nan_to_num(m.tensor([True, False])),
    "limits of bool": lambda m: m.clamp_max(m.tensor([True, False]), m.tensor([False, False])),
    "covariances of integers": lambda m: m.cov(m.tensor([[1, 2, 4], [3, 3, 5]])),
    "the covariance of one row": lambda m: m.cov(m.tensor([[1.0, 2.0, 4.0]])),
    "correlations of integers": lambda m: m.corrcoef(m.tensor([[1, 2, 4], [3, 3, 5]], dtype=m.int32)),
    "the nuclear norm": lambda m: m.norm(m.tensor([[1.0, 2.0], [3.0, 5.0]]), "nuc"),
    "the nuclear norm of a batch": lambda m: m.tensor([[[1.0, 2.0], [3.0, 5.0]]]).norm("nuc", (-1, -2), True),
    "polygamma as a method": lambda m: m.tensor([1.0, 2.0]).polygamma(2),
    "polygamma in place": lambda m: m.tensor([1.0, 2.0]).polygamma_(0),
    "mvlgamma in place": lambda m: m.tensor([1.0, 2.0]).mvlgamma_(1),
    "a factor without its other half": lambda m: m.linalg.ldl_factor(m.tensor([[2.0, 1.0], [1.0, 3.0]])).LD,
    "powers of a number": lambda m: m.linalg.vander(m.tensor(3.0), N=3),
    "no combinations": lambda m: m.combinations(m.ones(2), 3),
}
CALLS |= {
    f"scatter_reduce of bool: {reduce}, {own}": lambda m, reduce=reduce, own=own: m.scatter_reduce(
        m.tensor(_SRC).logical_not(), 1, m.tensor(_AT), m.tensor(_SRC), reduce, include_self=own
    )
    for reduce in ("sum", "prod", "amax", "amin")
    for own in (True, False)
}


@pytest.mark.parametrize("call", CALLS)
def test_results_are_those_of_pytorch(call):
    mine, its = CALLS[call](genesis), CALLS[call](torch)
    assert mine.dtype.name == str(its.dtype).removeprefix("torch.")
    assert tuple(mine.shape) == tuple(its.shape)
    np.testing.assert_allclose(mine.numpy(), its.numpy(), rtol=1e-5)


def test_the_gradient_of_no_combinations_is_zero():
    x = genesis.ones(2, requires_grad=True)
    genesis.combinations(x, 3).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_a_running_sum_that_is_infinite_has_a_slope():
    x = genesis.tensor([0.0, _INF, 1.0], requires_grad=True)
    genesis.logcumsumexp(x, 0).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 0.0]


def test_what_has_no_meaning_for_complex_numbers_refuses_them():
    x = genesis.tensor([1 + 2j, 3.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="softmax: the input must be floating"):
        genesis.softmax(x, 0)
    for call in (genesis.masked.median, lambda x, dim: genesis.masked.logaddexp(x, x)):
        with pytest.raises(RuntimeError, match="complex64 is not supported, it takes real tensors"):
            call(x, 0)


def test_both_parts_of_complex_numbers_are_drawn():
    for name in ("randn", "rand"):
        drawn = getattr(genesis, name)(2000, dtype=genesis.complex64, generator=genesis.Generator().manual_seed(1))
        its = getattr(torch, name)(2000, dtype=torch.complex64, generator=torch.Generator().manual_seed(1))
        for part in ("real", "imag"):
            mine, other = getattr(drawn, part), getattr(its, part)
            assert abs(mine.std().item() - other.std().item()) < 0.05, name
            assert abs(mine.mean().item() - other.mean().item()) < 0.05, name
    filled = genesis.empty(2000, dtype=genesis.complex128).normal_(
        1 + 2j, 2.0, generator=genesis.Generator().manual_seed(2)
    )
    assert abs(filled.mean().item() - (1 + 2j)) < 0.2
    assert abs(filled.std().item() - 2) < 0.1


def test_copies_of_views_are_written_to_out():
    out = genesis.empty(3, 2)
    assert find("torch", "expand_copy")(genesis.ones(2), (3, 2), out=out) is out
    assert out.tolist() == [[1.0, 1.0]] * 3
    assert find("torch", "alias_copy")(out).data_ptr() != out.data_ptr()
