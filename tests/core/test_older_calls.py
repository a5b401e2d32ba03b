"""Factors in front of the operands, as old programs write them."""

import inspect

import pytest

import genesis as torch

X, A = [1.0, 2.0], [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x, a: x.add(2, x), [3.0, 6.0]),
        (lambda x, a: torch.add(x, 2, x, out=torch.empty(0)), [3.0, 6.0]),
        (lambda x, a: x.add_(torch.tensor(2.0), torch.ones(2)), [3.0, 4.0]),
        (lambda x, a: x.sub_(2, torch.ones(2)), [-1.0, 0.0]),
        (lambda x, a: x.addcmul_(3.0, torch.ones(2), torch.ones(2)), [4.0, 5.0]),
        (lambda x, a: torch.addcdiv(x, 3.0, torch.ones(2), torch.ones(2)), [4.0, 5.0]),
        (lambda x, a: torch.addmv(2, x, a, torch.ones(2)), [5.0, 11.0]),
        (lambda x, a: torch.addmv(2, x, 3, a, torch.ones(2)), [11.0, 25.0]),
        (lambda x, a: x.addmv_(2, 3, a, torch.ones(2)), [11.0, 25.0]),
        (lambda x, a: torch.addr(2, a, 3, torch.ones(2), torch.ones(2)), [[5.0, 7.0], [9.0, 11.0]]),
        (lambda x, a: a.addmm_(2, torch.eye(2), torch.eye(2)), [[3.0, 4.0], [6.0, 9.0]]),
        (
            lambda x, a: torch.baddbmm(2, a[None], 3, torch.eye(2)[None], torch.eye(2)[None]),
            [[[5.0, 4.0], [6.0, 11.0]]],
        ),
        (lambda x, a: a.addbmm(2, torch.eye(2)[None], torch.eye(2)[None]), [[3.0, 4.0], [6.0, 9.0]]),
    ],
)
def test_factors_in_front_of_the_operands_are_those_by_name(call, expected):
    with pytest.warns(UserWarning, match="factors in front of the operands are deprecated") as caught:
        result = call(torch.tensor(X), torch.tensor(A))
    assert result.tolist() == expected
    assert caught[0].filename == __file__


def test_they_have_gradients_and_a_factor_may_be_on_a_tensor_without_dimensions():
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning):
        x.add(torch.tensor(3.0), y).sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([1.0, 1.0], [3.0, 3.0])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: x.add_(x, x), "add_: there are 3 arguments in front of the names.*\n  try: alpha by name"),
        (lambda x: x.add(2, x, x), "add: there are 4 arguments"),
        (lambda x: x.addcmul_(x, x, x, x), "addcmul_: there are 5 arguments"),
        (lambda x: torch.addmm(x, 2, 3, 4, x, x), "addmm: there are 6 arguments"),
    ],
)
def test_other_arguments_in_front_are_refused(call, words):
    with pytest.raises(TypeError, match=words):
        call(torch.ones(2, 2))


def test_their_signatures_are_those_without():
    assert list(inspect.signature(torch.addcmul).parameters) == ["input", "tensor1", "tensor2", "value"]
    assert torch.addcmul(torch.ones(2), torch.ones(2), torch.ones(2), value=2, out=torch.empty(2)).tolist() == [
        3.0,
        3.0,
    ]
    assert list(inspect.signature(torch.Tensor.add_).parameters) == ["self", "other", "alpha"]
    with pytest.raises(TypeError, match="unexpected keyword argument 'beta'"):
        torch.ones(2).add_(1, beta=2)
