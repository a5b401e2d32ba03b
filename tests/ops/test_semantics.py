"""What the op records cannot say: sub-gradients, NaN, scalars, dtypes of mixed operands, in-place forms, printing of
errors.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import genesis as torch


def gradient(f, *values):
    x = torch.tensor(list(values), requires_grad=True)
    f(x).sum().backward()
    return x.grad.tolist()


@pytest.mark.parametrize(
    ("f", "at", "expected"),
    [
        (lambda x: x.relu(), 0.0, 0.0),
        (lambda x: x.abs(), 0.0, 0.0),
        (lambda x: x.clamp(0, 1), 0.0, 1.0),
        (lambda x: x.clamp(0, 1), 1.0, 1.0),
        (lambda x: x.sqrt(), 0.0, math.inf),
        (lambda x: x.norm(), 0.0, 0.0),
        (lambda x: x.maximum(x.detach()), 1.0, 0.5),
        (lambda x: x**0, 0.0, 0.0),
        (lambda x: x**2, 0.0, 0.0),
        (lambda x: x.prod(), 0.0, 1.0),
        (lambda x: x.sign(), 2.0, 0.0),
        (lambda x: x.round(), 2.2, 0.0),
        (lambda x: torch.nn.functional.hardtanh(x), 1.0, 0.0),
        (lambda x: torch.sinc(x), 0.0, 0.0),
    ],
)
def test_documented_subgradients(f, at, expected):
    assert gradient(f, at) == [expected]


def test_ties_share_and_products_with_zeros():
    assert gradient(lambda x: x.amax(), 3.0, 1.0, 3.0) == [0.5, 0, 0.5]
    assert gradient(lambda x: x.max(0).values, 3.0, 1.0, 3.0) == [1, 0, 0]
    assert gradient(lambda x: x.prod(), 0.0, 2.0, 3.0) == [6, 0, 0]
    assert gradient(lambda x: x.prod(), 0.0, 0.0, 3.0) == [0, 0, 0]
    assert gradient(lambda x: x.cumprod(0), 2.0, 0.0, 3.0) == [1, 8, 0]


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (lambda i, f: i + 1, "int64"),
        (lambda i, f: i + 1.0, "float32"),
        (lambda i, f: i / 2, "float32"),
        (lambda i, f: f + 1j, "complex64"),
        (lambda i, f: i + f, "float32"),
        (lambda i, f: i.to(torch.uint8) - 1, "uint8"),
        (lambda i, f: f.half() * 2.5, "float16"),
        (lambda i, f: f.half() + f.bfloat16(), "float32"),
        (lambda i, f: f + torch.tensor(1.0, dtype=torch.float64), "float32"),
        (lambda i, f: i + torch.tensor(1.0, dtype=torch.float64), "float64"),
        (lambda i, f: i > 1, "bool"),
        (lambda i, f: i.sum(), "int64"),
        (lambda i, f: (i > 1).sum(), "int64"),
        (lambda i, f: f.bfloat16().sum(), "bfloat16"),
        (lambda i, f: i.to(torch.uint32) + i.to(torch.int8), "int64"),
        (lambda i, f: i.to(torch.uint16) * (i > 1), "uint16"),
        (lambda i, f: np.float64(2) * f, "float32"),
        (lambda i, f: torch.where(i > 1, 1.0, 0), "float32"),
        (lambda i, f: i // 2, "int64"),
        (lambda i, f: i**2, "int64"),
    ],
)
def test_result_dtypes(make, dtype):
    assert make(torch.tensor([1, 2]), torch.tensor([1.0, 2.0])).dtype.name == dtype


def test_comparisons_of_integers_are_exact():
    """In the dtype that both promote to, 0-d tensors too; PyTorch wraps 128 into int8, where it is -128."""
    large, zero, most = (
        torch.tensor(128, dtype=torch.int16),
        torch.tensor([0], dtype=torch.int8),
        torch.tensor([2**64 - 1], dtype=torch.uint64),
    )
    for x, y in ((large, zero), (most, torch.tensor(-1)), (most, torch.tensor([-1]))):
        assert (x > y).tolist() == (y < x).tolist() == (x >= y).tolist() == (y != x).tolist() == [True]
        assert (x <= y).tolist() == (y >= x).tolist() == (x == y).tolist() == [False]
    assert torch.logical_and(torch.tensor([1], dtype=torch.int8), torch.tensor(256)).tolist() == [True]
    u = torch.tensor([0, 255], dtype=torch.uint8)
    assert (u < 256).all() and (u > -1).all() and not (u == -1).any() and (u != 2**70).all() and (u <= 255).all()
    assert torch.vmap(lambda v: v < 256)(u).all() and torch.jit.trace(lambda v: v < 256, u).replay(u).all()
    # floats are compared as PyTorch does
    assert (torch.tensor([0.1]) == torch.tensor(0.1, dtype=torch.float64)).tolist() == [True]
    assert torch.vmap(lambda a, b: a > b)(
        torch.tensor([128, 0], dtype=torch.int16), torch.zeros(2, 1, dtype=torch.int8)
    ).tolist() == [[True], [False]]
    assert torch.vmap(lambda a, b: a > b)(
        torch.tensor([-1, 5]), torch.tensor([[0], [3]], dtype=torch.uint64)
    ).tolist() == [[False], [True]]
    assert torch.jit.trace(lambda a, b: a > b, large, zero).replay(large, zero).tolist() == [True]


def test_empty_tensors_count_in_promotion_as_in_pytorch():
    empty = torch.empty(0, dtype=torch.float64)
    for parts in ([torch.ones(2), empty], [empty, torch.ones(2)], [torch.ones(2, 3), empty]):
        out = torch.cat(parts)
        assert out.dtype is torch.float64 and (out == 1).all()
    w = torch.ones(2, requires_grad=True)
    torch.cat([empty, w]).sum().backward()
    assert w.grad.dtype is torch.float32 and w.grad.tolist() == [1, 1]
    assert torch.cat([torch.ones(2, dtype=torch.int64), torch.empty(0)]).dtype is torch.float32 and torch.cat(
        [empty, empty]
    ).shape == (0,)


def test_reflected_operators():
    x = torch.tensor([1.0, 2.0, 4.0])
    assert (2 - x).tolist() == [1, 0, -2] and (2 / x).tolist() == [2, 1, 0.5] and (2**x).tolist() == [2, 4, 16]
    assert (
        (5 // x).tolist() == [5, 2, 1]
        and (5 % x).tolist() == [0, 1, 1]
        and (3 * x).tolist() == [3, 6, 12]
        and (1 + x).tolist() == [2, 3, 5]
    )
    assert (np.ones(3) + x).dtype is torch.float64 and (True & (x > 1)).tolist() == [False, True, True]
    assert (np.eye(3, dtype=np.float32) @ x).tolist() == [1, 2, 4]


def test_warnings_turned_into_errors_do_not_break_arithmetic():
    assert torch.tensor([1.0, 0.0]).log().tolist() == [0.0, -math.inf]
    assert (torch.tensor([1e38]) * 1e5).tolist() == [math.inf] and math.isnan((torch.zeros(1) / torch.zeros(1)).item())
    x = torch.tensor([0.0], requires_grad=True)
    (x.log() * 0).backward()
    assert math.isnan(x.grad.item())


def test_in_place_forms():
    x = torch.tensor([1.0, 4.0])
    assert x.sqrt_() is x and x.tolist() == [1, 2]
    assert x.add_(1).mul_(2.0).sub_(x).tolist() == [0, 0]
    x += 3
    x /= 2
    x **= 2
    assert x.tolist() == [2.25, 2.25]
    y = torch.arange(4)
    y[1:] *= 10
    y //= 3
    assert y.tolist() == [0, 3, 6, 10]
    assert torch.zeros(2, 2).masked_fill_(torch.eye(2) > 0, 7).tolist() == [[7, 0], [0, 7]]
    assert torch.ones(2).clamp_(max=0.5).tolist() == [0.5, 0.5] and torch.zeros(3).scatter_(
        0, torch.tensor([1]), 5.0
    ).tolist() == [0, 5, 0]


def test_index_put_and_masked_scatter():
    x = torch.zeros(3, requires_grad=True)
    v = torch.tensor([2.0, 3.0], requires_grad=True)
    out = torch.index_put(x, (torch.tensor([1, 1]),), v, accumulate=True)
    assert out.tolist() == [0, 5, 0]
    (out * out).sum().backward()
    assert v.grad.tolist() == [10, 10]
    mask = torch.tensor([True, False, True])
    out = torch.masked_scatter(x, mask, v)
    (g,) = torch.autograd.grad((out * torch.tensor([1.0, 2.0, 3.0])).sum(), v)
    assert out.tolist() == [2, 0, 3] and g.tolist() == [1, 3]
    with pytest.raises(RuntimeError, match="the mask names 2 elements, source has 1"):
        torch.masked_scatter(x, mask, torch.ones(1))


def test_var_mean_and_std_mean():
    x = torch.tensor([[1.0, 3.0], [2.0, 6.0]])
    v, m = torch.var_mean(x, 1)
    assert v.tolist() == [2, 8] and m.tolist() == [2, 4]
    s, m = torch.std_mean(x, 1, correction=0)
    assert s.tolist() == [1, 2] and m.tolist() == [2, 4]


def test_sorting_with_nan_and_equals():
    x = torch.tensor([2.0, math.nan, 1.0, 2.0])
    assert x.argsort().tolist() == [2, 0, 3, 1] and x.argsort(descending=True).tolist() == [1, 0, 3, 2]
    assert math.isnan(x.max().item()) and x.argmax().item() == 1 and math.isnan(x.median().item())


def test_random_is_repeatable_and_documented():
    torch.manual_seed(0)
    first = torch.rand(4)
    philox = np.random.Philox(key=[0, 0]).random_raw(4)
    assert first.tolist() == ((philox >> np.uint64(40)).astype(np.float32) * np.float32(2**-24)).tolist()
    state = torch.get_rng_state()
    a = torch.randn(5)
    torch.set_rng_state(state)
    assert torch.equal(a, torch.randn(5)) and state.shape == (16,)
    with torch.random.fork_rng():
        torch.rand(100)
    assert torch.randint(10, (3,)).dtype is torch.int64
    assert torch.randperm(50).sort().values.tolist() == list(range(50))


def test_random_moments():
    n = 200_000
    u, z = torch.rand(n), torch.randn(n)
    assert abs(float(u.mean()) - 0.5) < 4 * 12**-0.5 * n**-0.5 and float(u.min()) >= 0 and float(u.max()) < 1
    assert (
        abs(float(z.mean())) < 4 * n**-0.5
        and abs(float(z.var()) - 1) < 4 * (2 / n) ** 0.5
        and abs(float((z**4).mean()) - 3) < 0.1
    )
    counts = torch.bincount(torch.randint(8, (n,)))
    assert float(((counts - n / 8) ** 2 / (n / 8)).sum()) < 30  # chi squared, 7 degrees of freedom
    drawn = torch.bincount(torch.multinomial(torch.tensor([1.0, 0.0, 3.0]), n, replacement=True), minlength=3)
    assert drawn[1] == 0 and abs(float(drawn[2]) / n - 0.75) < 0.01
    kept = torch.nn.functional.dropout(torch.ones(n), 0.25)
    assert (
        kept.unique().tolist() == [0.0, pytest.approx(4 / 3)] and abs(float((kept == 0).float().mean()) - 0.25) < 0.01
    )


def test_multinomial_draws_rows_by_themselves():
    weights = torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 2.0]])
    for drawn in (
        torch.multinomial(weights, 1),
        torch.multinomial(weights, 5, replacement=True),
        torch.vmap(lambda w: torch.multinomial(w, 5, True), randomness="different")(weights),
    ):
        assert drawn.dtype is torch.int64 and set(drawn[0].tolist()) == {1} and set(drawn[1].tolist()) <= {0, 2}
    assert sorted(torch.multinomial(torch.tensor([3.0, 1.0, 2.0]), 3).tolist()) == [0, 1, 2]
    for bad, what in (
        (torch.tensor([-1.0, 2.0]), "not negative"),
        (torch.tensor([0.0, 2.0]), "cannot draw 2 without replacement from 1"),
        (torch.ones(1, 1, 1), "1-D or 2-D"),
        (torch.zeros(2), "not all zero"),
        (torch.tensor([float("inf"), 1.0]), "finite"),
    ):
        with pytest.raises(RuntimeError, match=what):
            torch.multinomial(bad, 2)


def test_sharing_memory_with_numpy_and_dlpack():
    a = np.arange(3.0)
    t = torch.from_numpy(a)
    t[0] = 9
    assert (
        a[0] == 9
        and t.numpy() is a
        and np.shares_memory(np.from_dlpack(t), a)
        and np.shares_memory(torch.from_dlpack(a).numpy(), a)
    )
    assert torch.as_tensor(a).data_ptr() == t.data_ptr() != torch.tensor(a).data_ptr()
    frozen = np.ones(2)
    frozen.flags.writeable = False
    with pytest.raises(RuntimeError, match="the memory cannot be written to"):
        torch.from_numpy(frozen).add_(1)
    with pytest.raises(TypeError, match="NumPy's <U1 has no counterpart"):
        torch.from_numpy(np.array(["a"]))


def test_dlpack_as_the_standard_has_it():
    x = torch.arange(6.0).reshape(2, 3)
    for turned in (x[::-1], x[:, ::-2].t()):  # PyTorch aborts the process when it is given negative strides
        theirs = np.from_dlpack(turned)
        assert (
            theirs.tolist() == turned.tolist() and not np.shares_memory(theirs, x.numpy()) and min(theirs.strides) > 0
        )
        with pytest.raises(BufferError, match="negative strides need a copy, and copy=False forbids one"):
            turned.__dlpack__(copy=False)
    for source in (x, x.numpy()):
        assert torch.from_dlpack(source).data_ptr() == torch.from_dlpack(source, copy=False).data_ptr() == x.data_ptr()
        again = torch.from_dlpack(source, device="cpu", copy=True)
        assert again.data_ptr() != x.data_ptr() and again.tolist() == x.tolist()
        assert torch.from_dlpack(source, device="meta").is_meta
        with pytest.raises(ValueError, match="meta needs a copy of what is on cpu, and copy=False forbids one"):
            torch.from_dlpack(source, device="meta", copy=False)
    assert (
        x.__dlpack_device__() == (1, 0)
        and type(x.__dlpack__(stream=None, max_version=(1, 0), dl_device=(1, 0), copy=True)).__name__ == "PyCapsule"
    )


def test_size_is_a_number_and_a_function():
    x = torch.zeros(2, 3)
    assert x.size == 6 and x.size() == (2, 3) and x.size(1) == 3 and x.shape.numel() == 6 and x.T.shape == (3, 2)
    with pytest.raises(IndexError, match="dim 2 is out of range for 2 dimensions"):
        x.size(2)
    assert x.transpose().shape == (3, 2) and x.transpose(0, 1).shape == (3, 2) and x.transpose((1, 0)).shape == (3, 2)
    with pytest.raises(RuntimeError, match="the condition must be a bool tensor, got genesis.float32"):
        torch.where(x, x, x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_next_number_of_16_bits_is_one_of_16_bits(dtype):
    numbers = [0.5, -1.75, 0.0, float("inf"), 1.0]
    x, y = (torch.tensor(v, dtype=getattr(torch, dtype)) for v in (numbers, [1.0, 0.0, 1.0, 0.0, float("nan")]))
    eps, info = torch.finfo(x.dtype).eps, torch.finfo(x.dtype)
    expected = [0.5 + eps / 2, -1.75 + eps, info.smallest_normal * eps, info.max, float("nan")]
    np.testing.assert_array_equal(x.nextafter(y).double().numpy(), expected)
    np.testing.assert_array_equal(x.clone().nextafter_(y).double().numpy(), expected)
    assert x.nextafter(2.0).dtype is x.dtype


def test_pieces_may_be_empty_but_not_negative():
    assert [tuple(piece.shape) for piece in torch.ones(3).split([0, 3])] == [(0,), (3,)]
    with pytest.raises(RuntimeError, match=r"split: pieces of \[-1, 4\] do not add up to size 3"):
        torch.ones(3).split([-1, 4])


def test_random_numbers_like_a_leaf_are_no_leaf_that_requires_grad():
    x = torch.ones(2, requires_grad=True)
    assert not torch.rand_like(x).requires_grad and not torch.randn_like(x).requires_grad
    assert torch.rand_like(x, requires_grad=True).requires_grad


def test_asarray_without_a_copy():
    x, a = torch.ones(2), np.ones(2)
    assert torch.asarray(x, copy=False) is x and torch.asarray(a, copy=False).numpy() is a
    for source, dtype in (([1.0], None), (x, torch.float64), (a, torch.float32)):
        with pytest.raises(ValueError, match="asarray: this needs a copy, and copy=False forbids one"):
            torch.asarray(source, dtype=dtype, copy=False)
    assert torch.asarray(x, copy=True) is not x


SAME = (
    "x.flatten()",
    "x.flatten(0, 0)",
    "m.flatten(1)",
    "m.flatten(-1, 1)",
    "x.contiguous()",
    "x.to(x.dtype)",
    "x.float()",
    "x.conj()",
    "x.real",
    "x.positive()",
    "T.atleast_1d(x)",
    "T.atleast_2d(m)",
    "T.broadcast_tensors(x, x)[0]",
    "x.cpu()",
    "x.type_as(m)",
    "T.nn.functional.dropout(x, 0.5, False)",
)
VIEWS = (
    "x.reshape(3)",
    "x.view(3)",
    "x.ravel()",
    "x.squeeze()",
    "x.expand(3)",
    "x.t()",
    "x[:]",
    "x[...]",
    "x.detach()",
    "x.transpose(0, 0)",
    "m.T",
    "x.unflatten(0, (3,))",
    "x.narrow(0, 0, 3)",
    "T.broadcast_tensors(m, x)[1]",
    "s.flatten()",
    "s.t()",
    "m.permute(0, 1)",
)


@pytest.mark.parity
@pytest.mark.parametrize("call", [*SAME, *VIEWS])
def test_what_changes_nothing_gives_the_tensor_itself_or_a_view_of_it_as_pytorch_does(call):
    other = pytest.importorskip("torch")
    for lib in (torch, other):
        scope = {"T": lib, "x": lib.tensor([1.0, 2.0, 3.0]), "m": lib.ones(2, 3), "s": lib.tensor(1.0)}
        source = scope[call[0]] if call[0] != "T" else scope["m" if "(m)" in call else "x"]
        result = eval(call, scope)
        assert (result is source) == (call in SAME)
        assert result.data_ptr() == source.data_ptr()


def test_heaviside_passes_the_gradient_to_the_value_at_zero():
    x, v = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True), torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
    torch.heaviside(x, v).backward(torch.tensor([1.0, 2.0, 3.0]))
    assert x.grad.tolist() == [0, 0, 0] and v.grad.tolist() == [0, 2, 0]


@pytest.mark.parametrize("shape", [(2,), (2, 3), (1, 2, 3)])
@pytest.mark.parametrize("dtype", ["int32", "float64", "bool"])
def test_cat_keeps_the_history_of_an_empty_vector(shape, dtype):
    x = torch.zeros(0, dtype=torch.bfloat16, requires_grad=True)
    rest = torch.ones(shape).to(getattr(torch, dtype))
    for parts in ([x, rest], [rest, x], [rest, x, rest]):
        for dim in (0, -1):
            y = torch.cat(parts, dim)
            plain = torch.cat([p for p in parts if p is not x], dim)
            assert y.requires_grad and y.shape == plain.shape and y.float().tolist() == plain.float().tolist()
            assert y.dtype is torch.promote_types(rest.dtype, torch.bfloat16)
            assert torch.autograd.grad(y.sum(), x)[0].shape == (0,)
    assert not torch.cat([x.detach(), torch.ones(2)]).requires_grad


def test_arrays_are_shared_on_the_cpu_only():
    a = np.ones(2, np.float32)
    assert torch.as_tensor(a).numpy() is torch.as_tensor(a, device="cpu").numpy() is a
    assert (
        torch.as_tensor(a, device="meta").device.type == "meta" and torch.as_tensor(a, torch.float64).numpy() is not a
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda i: torch.add(i, i, alpha=1.5), "add: alpha is 1.5, the result is genesis.int64"),
        (lambda i: torch.sub(i.bool(), i.bool(), alpha=0.5), "alpha is 0.5"),
        (lambda i: torch.add(i.float(), i, alpha=1j), "alpha is 1j, the result is genesis.float32"),
        (lambda i: i.sub_(i, alpha=2.5), "alpha is 2.5"),
        (lambda i: torch.addcmul(i, i, i, value=0.5), "addcmul: value is 0.5, the result is genesis.int64"),
        (
            lambda i: torch.zeros(3, 3).index_add(0, i, torch.ones(1, 3)),
            r"index_add: source of shape \[1, 3\] does not fit, it must be \[2, 3\]",
        ),
        (lambda i: torch.zeros(3, 3).index_copy_(1, i, torch.ones(2, 3)), "index_copy: source of shape"),
        (lambda i: torch.zeros(3).index_add(0, i, torch.tensor(1.0)), "source of shape"),
    ],
)
def test_what_would_be_truncated_or_repeated_is_refused(call, words):
    with pytest.raises((RuntimeError, TypeError), match=words):
        call(torch.tensor([1, 2]))


@pytest.mark.parity
@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"])
@pytest.mark.parametrize("dtype", ["float32", "int16", "bool", "bfloat16"])
def test_comparisons_in_place_keep_the_dtype(name, dtype):
    other = pytest.importorskip("torch")
    found = []
    for lib in (torch, other):
        x = lib.tensor([0, 1, 0, 1]).to(getattr(lib, dtype))
        y = getattr(x, name + "_")(lib.tensor([1.0, 1.0, 0.0, 0.0]))
        assert y is x
        found.append((str(x.dtype).split(".")[1], x.tolist()))
    assert found[0] == found[1]
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    getattr(y, name + "_")(torch.ones(2))
    assert y.requires_grad and torch.autograd.grad(y.sum(), x)[0].tolist() == [0, 0]


@pytest.mark.parity
def test_alpha_keeps_the_dtype_of_bools_and_float_power_is_double():
    other = pytest.importorskip("torch")
    for lib in (torch, other):
        b = lib.tensor([True, False])
        for alpha, want in ((2, [True, True]), (-1, [True, True]), (0, [True, False])):
            added = lib.add(b, ~b, alpha=alpha)
            assert added.tolist() == want and added.dtype is lib.bool
        assert lib.add(b, True, alpha=3).tolist() == [True, True]
        for base, exponent in (
            (lib.tensor([2, 3]), -1),
            (2, lib.tensor([0.5, 2.0])),
            (lib.tensor([2.0]).half(), lib.tensor([3])),
        ):
            assert lib.float_power(base, exponent).dtype is lib.float64
        assert lib.float_power(lib.tensor([1j]), 2).dtype is lib.complex128
        out = lib.zeros(0)
        assert lib.cat([lib.ones(1), lib.zeros(2)], out=out) is out and out.tolist() == [1, 0, 0]


def test_an_element_of_nothing_is_refused_by_the_dim():
    with pytest.raises(IndexError, match="kthvalue"):
        torch.zeros(2, 0).kthvalue(1)


def test_huge_python_numbers_meet_floating_tensors():
    x = torch.ones(2, dtype=torch.float64)
    assert (x * 2**70).tolist() == [2.0**70] * 2 and (x + 2**64).tolist() == [2.0**64] * 2
    assert torch.where(x > 0, x, 2**80).tolist() == [1, 1]


def test_chunks_of_nothing():
    assert [tuple(piece.shape) for piece in torch.zeros(0, 3).chunk(3)] == [(0, 3)] * 3


def test_columns_of_vectors_and_matrices():
    a, b, c = torch.tensor(7.0), torch.arange(1.0), torch.tensor([[1.0, 2.0]])
    assert torch.column_stack([a, b, c]).tolist() == [[7, 0, 1, 2]]
    m = torch.arange(4.0).reshape(2, 2)
    assert torch.column_stack([torch.tensor([5.0, 6.0]), m]).tolist() == [[5, 0, 1], [6, 2, 3]]


def test_reversed_is_along_the_first_dim():
    x = torch.arange(6).reshape(2, 3)
    assert reversed(x).tolist() == [[3, 4, 5], [0, 1, 2]]


def test_upper_triangles_begin_at_the_diagonal():
    assert torch.triu_indices(2, 3).tolist() == [[0, 0, 0, 1, 1], [0, 1, 2, 1, 2]]
    assert torch.tril_indices(2, 3).tolist() == [[0, 1, 1], [0, 0, 1]]


def test_the_diagonal_of_a_cube():
    x = torch.zeros(3, 3, 3).fill_diagonal_(2.0)
    assert x.sum() == 6 and [x[i, i, i].item() for i in range(3)] == [2, 2, 2]
    assert torch.zeros(4, 2).fill_diagonal_(1.0).tolist() == [[1, 0], [0, 1], [0, 0], [0, 0]]


def test_sums_of_products_in_place_and_into_a_tensor():
    x, a, b = torch.ones(2, 2), torch.arange(8.0).reshape(2, 2, 2), torch.ones(2, 2, 2)
    want = 1 + (a @ b).sum(0)
    out = torch.empty(0)
    assert torch.equal(torch.addbmm(x, a, b, out=out), want) and torch.equal(out, want)
    assert x.addbmm_(a, b) is x and torch.equal(x, want)


def test_random_integers_in_place():
    x = torch.zeros(100)
    assert set(x.random_(3).tolist()) == {0, 1, 2} and set(x.random_(4, 6).tolist()) == {4, 5}
    assert (x.random_() >= 0).all() and x.max() > 100
    for args in ((3, 3), (5, 2)):
        with pytest.raises(RuntimeError, match="low must be below high"):
            x.random_(*args)


def test_a_weight_of_one_dimension_has_gradients():
    x, w = (
        torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True),
        torch.randn(4, dtype=torch.float64, requires_grad=True),
    )
    g = torch.randn(2, 3, dtype=torch.float64)
    gx, gw = torch.autograd.grad(torch.nn.functional.linear(x, w), (x, w), g)
    np.testing.assert_allclose(gx.numpy(), g.numpy()[..., None] * w.detach().numpy())
    np.testing.assert_allclose(gw.numpy(), (g.numpy()[..., None] * x.detach().numpy()).sum((0, 1)))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_nothing(mode):
    w = torch.ones(3, 2, requires_grad=True)
    y = torch.nn.functional.embedding_bag(torch.zeros(0, dtype=torch.int64), w, torch.tensor([0, 0]), mode=mode)
    assert y.tolist() == [[0, 0]] * 2
    assert torch.autograd.grad(y.sum(), w)[0].tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("name", ["rand_like", "randn_like", "zeros_like", "ones_like", "empty_like"])
def test_likes_take_a_memory_format(name):
    x = torch.ones(2, 3, dtype=torch.float64)
    made = getattr(torch, name)(x, memory_format=torch.preserve_format)
    assert (made.shape, made.dtype) == (x.shape, x.dtype)
    assert torch.full_like(x, 2, memory_format=torch.preserve_format).tolist() == [[2.0] * 3] * 2
    drawn = torch.randint_like(
        x, 2, 4, memory_format=torch.preserve_format, generator=torch.Generator().manual_seed(1), requires_grad=True
    )
    assert drawn.requires_grad
    assert set(drawn.flatten().tolist()) <= {2.0, 3.0}


def test_a_condition_of_uint8_is_a_mask_with_a_warning():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with pytest.warns(UserWarning, match="where: a uint8 condition is taken as a mask, which is deprecated"):
        y = torch.where(torch.tensor([2, 0], dtype=torch.uint8), x, 3 * x)
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([1.0, 6.0], [1.0, 3.0])
    with pytest.raises(RuntimeError, match="the condition must be a bool tensor, got genesis.int64"):
        torch.where(torch.tensor([1, 0]), x, x)
