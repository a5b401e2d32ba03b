"""Calls of plain tensors have short ways: they give what the general ones give, and refuse what those refuse."""

import pytest

import genesis as torch


def test_a_sum_with_a_factor_in_place_is_the_sum_of_the_product():
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    for method in ("add", "sub"):
        assert torch.equal(getattr(x.clone(), method + "_")(y, alpha=0.3), getattr(torch, method)(x, y, alpha=0.3))
    z = torch.zeros(3)
    version = z._version
    z.add_(torch.ones(3), alpha=0.5)
    assert (z.tolist(), z._version) == ([0.5] * 3, version + 1)
    half = torch.ones(2, dtype=torch.float16)
    assert torch.equal(half.clone().add_(half, alpha=0.3), torch.add(half, half, alpha=0.3))


def test_a_sum_with_a_factor_in_place_has_gradients_and_refusals():
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    (x * 1).add_(y, alpha=0.5).sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([1.0, 1.0], [0.5, 0.5])
    with pytest.raises(RuntimeError, match="a leaf that requires grad is written to"):
        x.add_(torch.ones(2), alpha=0.5)
    with pytest.raises(TypeError, match="unexpected keyword argument 'alpha'"):
        torch.ones(2).mul_(2.0, alpha=0.5)
    with pytest.raises(RuntimeError):
        torch.ones(2).add_(torch.ones(3), alpha=0.5)
    ones = torch.ones(2, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="alpha is 0.5"):
        ones.add_(ones, alpha=0.5)


@pytest.mark.parametrize("number", [1, 2.5, -3, 0.0])
def test_numbers_in_front_of_an_operator_mean_what_tensors_do(number):
    x = torch.tensor([0.5, -2.0, 0.0, 3.0])
    there = torch.tensor(float(number))
    for result, expected in ((number - x, there - x), (number / x, there / x), (number**x, there**x)):
        assert result.dtype is torch.float32
        assert torch.equal(result.nan_to_num(7.0), expected.nan_to_num(7.0))
    x.requires_grad_()
    (number - x).sum().backward()
    assert x.grad.tolist() == [-1.0] * 4


def test_copying_counts_as_a_write_and_refuses_what_it_cannot_write_to():
    x, y = torch.zeros(2, 3), torch.arange(6.0).reshape(2, 3)
    seen, version = x[0], x._version
    assert x.copy_(y) is x
    assert (x.tolist(), seen.tolist(), x._version) == (y.tolist(), y[0].tolist(), version + 1)
    assert torch.zeros(2, 3).copy_(y.T.contiguous().T).tolist() == y.tolist()
    with pytest.raises(RuntimeError, match="the memory cannot be written to"):
        torch.zeros(1).expand(2).copy_(torch.ones(2))
    weight = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf that requires grad is written to"):
        weight.copy_(torch.zeros(2))
    with torch.no_grad():
        weight.copy_(torch.zeros(2))
    assert weight.tolist() == [0.0, 0.0]
    product = weight * weight
    with torch.no_grad():
        weight.copy_(torch.ones(2))
    with pytest.raises(RuntimeError, match="copy_"):
        product.sum().backward()


def test_copying_from_a_tensor_with_history_is_recorded():
    x = torch.ones(2, requires_grad=True)
    y = torch.zeros(2)
    y.copy_(x * 3)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_where_chooses_alike_in_any_layout(layout):
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    c = x > 0
    if layout == "columns":
        x, y, c = x.T, y.T, c.T
    z = torch.where(c, x, y)
    assert torch.equal(z, x * c + y * ~c)
    assert torch.where(torch.tensor(True), torch.tensor(1.0), torch.tensor(2.0)).item() == 1.0
    w = torch.randn(3, 4, requires_grad=True)
    torch.where(w.detach() > 0, w, 0 * w).sum().backward()
    assert torch.equal(w.grad, (w.detach() > 0).float())
