"""Calls of plain tensors have short ways: they give what the general ones give, and refuse what those refuse."""

import sys
import warnings

import numpy as np
import pytest

import genesis as torch
from genesis.base.quiet import directly
from genesis.core.call.op import REGISTRY
from genesis.kernels.llvm import loops
from genesis.testing import Maker, samples_of


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


# ---- integers, numbers and writes that nothing is to be done about


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_integers_stay_what_they_are(dtype):
    kind, x = getattr(torch, dtype), np.array([3, 100, 0, 7], dtype)
    a = torch.tensor(x)
    for result in (a + a, a * 3, a - 1, a // 2, a % 4, -a, a & 6, ~a, a**2):
        assert result.dtype is kind
    np.testing.assert_array_equal((a + a).numpy(), x + x)
    np.testing.assert_array_equal((a // 2).numpy(), x // 2)
    assert (a + 1.5).dtype is torch.float32
    assert (a / 2).dtype is torch.float32
    assert (a == 3).tolist() == [True, False, False, False]
    assert (a < 1 << 40).all()  # of which the dtype has none
    assert (a + 300).dtype is kind  # which wraps around
    assert not np.shares_memory(torch.round(a).numpy(), a.numpy())


def test_bools_are_no_integers():
    a = torch.tensor([True, False])
    assert (a & a).dtype is (a == a).dtype is (~a).dtype is torch.bool
    assert (a + 1).dtype is torch.int64
    assert (a + a).tolist() == [True, False]
    with pytest.raises(RuntimeError):
        a - a


def test_where_takes_numbers_beside_floats():
    x, c = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([True, False])
    y = torch.where(c, x, 3)
    assert y.dtype is torch.float32
    y.sum().backward()
    assert y.tolist() == [1.0, 3.0]
    assert x.grad.tolist() == [1.0, 0.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.where(c, x.detach(), 1e300).tolist() == [1.0, float("inf")]
        assert torch.where(c, -1e300, x.detach()).tolist() == [float("-inf"), 2.0]
    assert torch.where(c, torch.tensor([1, 2]), 0.5).dtype is torch.float32
    assert torch.where(c, x.detach().double(), x.detach()).dtype is torch.float64
    with pytest.raises(RuntimeError, match="broadcast"):
        torch.where(c, torch.ones(3), 0.0)


def test_short_writes_are_counted():
    w = torch.ones(3, requires_grad=True)
    for write in (lambda x: x.__setitem__(0, 5.0), lambda x: x.zero_(), lambda x: x.fill_(2.0)):
        x = w.detach().clone()
        y = w * x
        write(x)
        with pytest.raises(RuntimeError, match="modified in place"):
            y.sum().backward()


def test_short_writes_refuse_what_others_do():
    w = torch.ones(3, requires_grad=True)
    for write in (lambda x: x.__setitem__(0, 5.0), lambda x: x.zero_(), lambda x: x.fill_(2.0)):
        with pytest.raises(RuntimeError, match="leaf"):
            write(w)
        with pytest.raises(RuntimeError, match="read-only, or an expanded"):
            write(torch.ones(1).expand(3))
    x = torch.zeros(2, 3)
    x[1] = torch.ones(1, 1, 3)  # leading dimensions of size 1 go
    x[0] = torch.tensor([1, 2, 3])
    x[:1] = 1e300
    assert x.tolist() == [[float("inf")] * 3, [1.0] * 3]
    with pytest.raises(RuntimeError, match="does not fit"):
        x[0] = torch.ones(2)
    with pytest.raises(IndexError):
        x[2] = 0.0


def test_short_writes_into_gradients_are_their_own():
    w = torch.ones(2, requires_grad=True)
    seen = []
    w.register_hook(seen.append)
    w.sum().backward()
    w.grad.zero_()
    assert seen[0].tolist() == [1.0, 1.0]
    w.grad[0] = 7.0
    assert (w.grad.tolist(), seen[0].tolist()) == ([7.0, 0.0], [1.0, 1.0])


@pytest.mark.parametrize("recorded", [True, False])
def test_parts_are_views_with_one_history(recorded):
    w = torch.arange(6.0).reshape(3, 2).requires_grad_(recorded)
    x = w * 1
    for parts in (x.unbind(0), x.split(1), x.chunk(3), x.unbind(1), list(x)):
        assert all(part._view.base is x for part in parts)
        assert len({id(part.grad_fn) for part in parts}) == 1
    a, _, c = x.unbind(0)
    a.mul_(10)
    assert x[0].tolist() == [0.0, 10.0]
    if recorded:
        (a.sum() + c.sum() * 2 + x.sum()).backward()
        assert w.grad.tolist() == [[20.0, 20.0], [1.0, 1.0], [3.0, 3.0]]
    y = torch.zeros(2, 2)
    with torch.no_grad():
        for row in y:
            row += 1
    assert y.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_elements_that_are_named_are_checked_whatever_their_sign():
    x = torch.arange(4.0)
    for index in ([4], [-1], [0, 1 << 40]):
        with pytest.raises(IndexError, match="out of range"):
            x.gather(0, torch.tensor(index))
    for index in (np.array([3, 0], np.int32), np.array([3, 0])[::-1]):
        assert x.gather(0, torch.tensor(index)).tolist() == [float(i) for i in index]


def test_scatter_of_numbers_and_of_tensors():
    x, at = torch.zeros(2, 3, requires_grad=True), torch.tensor([[2], [0]])
    assert x.detach().scatter(1, at, 5.0).tolist() == [[0.0, 0.0, 5.0], [5.0, 0.0, 0.0]]
    y = x.scatter(1, at, torch.ones(2, 2, requires_grad=True))
    y.sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]
    z = torch.zeros(2, 3)
    assert z.scatter_(1, at, torch.full((2, 1), 2.0)) is z
    assert z.tolist() == [[0.0, 0.0, 2.0], [2.0, 0.0, 0.0]]


def test_stack_at_every_place():
    xs = [torch.arange(6.0).reshape(2, 3) + 10 * i for i in range(3)]
    for dim in range(-3, 3):
        np.testing.assert_array_equal(torch.stack(xs, dim).numpy(), np.stack([x.numpy() for x in xs], dim))
        assert torch.stack(xs, dim).is_contiguous()


def test_lists_of_tensors_by_the_short_way_and_in_general():
    """`cat` along `run_list` and along `run`: values, nodes, layouts and what falls back."""
    from genesis.core.call import dispatch

    op = torch.cat.op
    assert op.run is dispatch.run_list
    x, w = torch.rand(2, 3), torch.rand(4, 3, requires_grad=True)
    for tensors, dim in (
        ([x, x], 1),
        ([x, w], 0),
        ([w.t(), x.t()], 1),
        ([x.double(), x.double()], 0),
        ([x > 1, x > 0], 0),
    ):
        short, general = (way(op, (tensors, dim)) for way in (dispatch.run_list, dispatch.run))
        assert torch.equal(short, general) and short.stride() == general.stride() and short.dtype == general.dtype
        assert type(short._node) is type(general._node)
        if short._node is not None:
            assert [n for n, _ in short.grad_fn.next_functions] == [n for n, _ in general.grad_fn.next_functions]
            ways = [torch.autograd.grad(y, w, y.detach())[0] for y in (short, general)]
            assert torch.equal(*ways)
    with torch.no_grad():
        assert torch.cat([w, x]).requires_grad is torch.stack([w, w]).requires_grad is False
    meta = torch.cat([x.to("meta"), x.to("meta")])
    assert meta.shape == (4, 3) and torch.func.vmap(lambda r: torch.cat([r, r]))(x).shape == (2, 6)
    with pytest.raises(RuntimeError, match="sizes of tensors must match"):
        torch.cat([x, w.t()])


def test_what_stack_gives_is_nobodys_view():
    rows = [torch.ones(3), torch.zeros(3)]
    out = torch.stack(rows)
    assert out._base is None and out.is_contiguous()
    out[0] = 5.0
    assert rows[0].tolist() == [1, 1, 1] and out.tolist() == [[5, 5, 5], [0, 0, 0]]


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int64, torch.float16, torch.float32])
@pytest.mark.parametrize("method", ["add_", "sub_", "mul_", "div_"])
def test_whole_numbers_in_place(method, dtype):
    x = torch.tensor([[1, 2, 3], [100, 120, 127]]).to(dtype)
    for number in (0, 3, -1, 2**70, True):
        results = []
        for other in (number, torch.tensor(number) if abs(number) < 2**63 else number):  # the general way
            y = x.clone()
            try:
                results.append((getattr(y, method)(other).tolist(), y._version))
            except (RuntimeError, OverflowError, TypeError) as error:
                results.append(type(error))
                assert torch.equal(y, x) and y._version == 0
        assert str(results[0]) == str(results[1])


@pytest.mark.parametrize("shape", [(10, 16), (4, 3, 5), (2, 3, 8, 8), (8, 16, 32, 32)])
def test_running_statistics_are_those_of_the_ops(shape, monkeypatch):
    from genesis.ops.learning import norm

    x, momentum = torch.randn(shape) * 3 + 1, 0.37
    ways = []
    for plain in (True, False):
        if not plain:
            monkeypatch.setattr(norm, "_is_plain", lambda *_: False)
        mean, var = torch.zeros(shape[1]), torch.ones(shape[1])
        torch.nn.functional.batch_norm(x, mean, var, training=True, momentum=momentum)
        assert mean._version == var._version == 1
        ways.append((mean, var))
    assert torch.equal(ways[0][0], ways[1][0]) and torch.equal(ways[0][1], ways[1][1])
    shared = torch.zeros(1).expand(shape[1])
    with pytest.raises(RuntimeError, match="the memory cannot be written to"):
        torch.nn.functional.batch_norm(x, shared, var, training=True)


QUIET = [
    op
    for op in REGISTRY.values()
    if op.kind.composed and np.ndarray in op.kernels and op.kernels[np.ndarray].call is directly
]


@pytest.mark.parametrize("op", QUIET, ids=lambda op: op.name)
@pytest.mark.parametrize("size", [1e38, 1e-40, float("inf"), float("nan")])
def test_kernels_that_are_called_directly_give_no_warnings(op, size):
    for sample in samples_of(op, Maker(torch.float32)):
        args = [x * size if isinstance(x, torch.Tensor) and x.dtype == torch.float32 else x for x in sample.args]
        given = [
            x.detach().requires_grad_() if isinstance(x, torch.Tensor) and x.dtype.is_floating_point else x
            for x in args
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            out = op.call(*given, **sample.kwargs)
            out.backward(torch.full_like(out, 1e38))


def test_a_fused_call_goes_a_short_way():
    if not loops.available():
        pytest.skip("there is no compiled loop")
    x, calls = torch.ones(3, 4), []
    torch.nn.functional.silu(x)
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    torch.nn.functional.silu(x)
    sys.setprofile(before)
    way = calls[calls.index("fused") :]
    assert way[0] == "fused" and "choose" not in way and "run" not in way and len(way) < 9
