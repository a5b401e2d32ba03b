"""What functions make of integers, numbers that do not fit, sizes that are too large; and that results have memory of
their own.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import genesis as T
import genesis.nn.functional as F


@pytest.mark.parametrize(
    ("make", "dtype", "shape"),
    [
        (lambda: T.Tensor(5), "float32", (5,)),
        (lambda: T.Tensor(3, 8), "float32", (3, 8)),
        (lambda: T.Tensor(T.zeros(2, 3).shape), "float32", (2, 3)),
        (lambda: T.Tensor(np.int64(3)), "float32", (3,)),
        (lambda: T.Tensor(), "float32", (0,)),
        (lambda: T.Tensor(3, device="meta"), "float32", (3,)),
        (lambda: T.Tensor([1, 2]), "float32", (2,)),
        (lambda: T.Tensor(np.arange(3)), "float32", (3,)),
        (lambda: T.Tensor(np.arange(3.0)), "float32", (3,)),
        (lambda: T.Tensor((2, 3)), "float32", (2,)),
        (lambda: T.Tensor([True, False]), "float32", (2,)),
        (lambda: T.Tensor(T.tensor([1, 2])), "int64", (2,)),
        (lambda: T.Tensor([1, 2], dtype=T.int64), "int64", (2,)),
        (lambda: T.Tensor(2.5), "float32", ()),
    ],
)
def test_the_constructor_is_that_of_the_default_dtype(make, dtype, shape):
    assert (make().dtype.name, make().shape) == (dtype, shape)


@pytest.mark.parametrize("data", [(True,), (3, 2.5), ("abc",), (None,), ([1 + 2j],)])
def test_the_constructor_refuses_what_is_neither_sizes_nor_numbers(data):
    with pytest.raises(TypeError):
        T.Tensor(*data)


def test_the_constructor_copies():
    a = np.ones(2, np.float32)
    x = T.Tensor(a)
    a[0] = 5
    assert x.tolist() == [1, 1]


@pytest.mark.parametrize(
    "make",
    [
        lambda: T.tensor([2**40], dtype=T.int32),
        lambda: T.tensor([300], dtype=T.uint8),
        lambda: T.tensor(300, dtype=T.uint8),
        lambda: T.tensor([1e30], dtype=T.int32),
        lambda: T.tensor([float("nan")], dtype=T.int64),
        lambda: T.tensor([[0], [float("inf")]], dtype=T.int64),
        lambda: T.tensor([2**63]),
        lambda: T.tensor([-256], dtype=T.uint8),
        lambda: T.full((2,), 300, dtype=T.uint8),
        lambda: T.full((2,), float("nan"), dtype=T.int64),
        lambda: T.zeros(2, dtype=T.uint8).fill_(300),
        lambda: T.arange(2**63),
        lambda: T.arange(-(2**63), 2**63),
        lambda: T.scalar_tensor(2**40, dtype=T.int32),
    ],
)
def test_numbers_that_do_not_fit_are_refused(make):
    with pytest.raises(RuntimeError, match="does not fit genesis"):
        make()


def test_numbers_that_fit_or_are_cut():
    assert T.tensor([2**63], dtype=T.uint64).tolist() == [2**63] and T.tensor([-1], dtype=T.uint8).tolist() == T.full(
        (1,), -1, dtype=T.uint8
    ).tolist() == [255]
    assert (
        T.tensor([1.9], dtype=T.int32).tolist() == [1]
        and T.tensor([256], dtype=T.bool).tolist() == [True]
        and T.tensor([1e39]).tolist() == [float("inf")]
    )
    assert T.tensor(np.array([300]), dtype=T.uint8).tolist() == [44]  # arrays are converted as arrays
    with pytest.raises(ValueError, match=f"{2**70} does not fit an integer of 64 bits"):
        T.tensor([[1, 2**70]])
    with pytest.raises(TypeError, match="is complex"):
        T.tensor([1 + 2j], dtype=T.float32)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: T.arange(0, 1.5, 1, dtype=T.int64), [0]),
        (lambda: T.arange(0.5, 3, 1, dtype=T.int64), [0, 1, 2]),
        (lambda: T.arange(0, -2.5, -1, dtype=T.int64), [0, -1]),
        (lambda: T.arange(0, 5, 1.5, dtype=T.int64), [0, 1, 2, 3, 4]),
        (lambda: T.arange(0, 1.5, 1, dtype=T.int32), [0, 1]),
        (lambda: T.arange(2**62, 2**62 + 2), [2**62, 2**62 + 1]),
        (lambda: T.logspace(0, 2, 5, dtype=T.int64), [1, 3, 10, 31, 100]),
        (lambda: T.tensor([0, 5, 2]).scatter_reduce(0, T.tensor([0, 0, 1]), T.tensor([3, 4, 5]), "mean"), [2, 5, 2]),
        (
            lambda: T.tensor([-7, 5]).scatter_reduce(
                0, T.tensor([0, 0]), T.tensor([-3, -4]), "mean", include_self=False
            ),
            [-4, 5],
        ),
        (
            lambda: T.tensor([0, 5, 2]).scatter_reduce(
                0, T.tensor([0, 0, 1]), T.tensor([3, 4, 5]), "amax", include_self=False
            ),
            [4, 5, 2],
        ),
        (
            lambda: T.tensor([9, 5, 2]).scatter_reduce(
                0, T.tensor([0, 0, 1]), T.tensor([3, 4, 5]), "amin", include_self=False
            ),
            [3, 5, 2],
        ),
        (lambda: T.addmv(T.tensor([1, 2]), T.tensor([[1, 2], [3, 4]]), T.tensor([1, 1]), beta=0.5), [3, 7]),
        (lambda: T.baddbmm(T.tensor([1]), T.tensor([[[2]]]), T.tensor([[[3]]]), alpha=2.0).reshape(-1), [13]),
        (lambda: F.threshold(T.tensor([-3, 8]), 1.5, 5.5), [5, 8]),
        (lambda: T.clamp(T.tensor([True, False]), 0, 1), [1, 0]),
        (lambda: reversed(T.tensor([[1, 2], [3, 4]])).reshape(-1), [3, 4, 1, 2]),
    ],
)
def test_integers_stay_integers(make, expected):
    assert make().tolist() == expected and all(isinstance(n, int) for n in make().tolist())


def test_any_and_all_of_uint8_and_the_limits_of_bool():
    flags = T.tensor([[1, 0]], dtype=T.uint8)
    assert flags.any().dtype is flags.all(1).dtype is T.uint8 and (flags.any().item(), flags.all().item()) == (1, 0)
    assert T.clamp(T.tensor([True, False]), max=T.tensor(0.5, dtype=T.float64)).dtype is T.float64
    assert (
        T.vmap(lambda f: f.any())(flags).dtype is T.uint8
        and T.zeros(2, dtype=T.uint8, device="meta").any().dtype is T.uint8
    )
    assert T.array_api.any(flags).dtype is T.bool and T.array_api.all(flags).dtype is T.bool


def test_conjugates_and_signs_that_change_nothing_are_the_tensor_itself():
    for x in (T.tensor([1.0]), T.tensor([1])):
        assert x.conj() is x and (+x) is x and reversed(T.tensor(1.0)).ndim == 0
    z = T.tensor([1 + 2j])
    assert z.conj().tolist() == [1 - 2j] and z.tolist() == [1 + 2j]


@pytest.mark.parametrize("name", ["floor", "ceil", "round", "trunc", "fix"])
def test_rounded_integers_are_copies(name):
    x = T.tensor([1, 2])
    getattr(x, name)().add_(5)
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize(("p", "y"), [(1.5, 1.0), (-0.5, 1.0), (0.5, 1.5), (0.5, -1.0), (float("nan"), 1.0)])
def test_binary_cross_entropy_needs_probabilities(p, y):
    with pytest.raises(RuntimeError, match="must be between 0 and 1"):
        F.binary_cross_entropy(T.tensor([0.5, p]), T.tensor([0.5, y]))


@pytest.mark.parametrize(
    "make",
    [
        lambda: T.zeros(10**10, 10**10),
        lambda: T.zeros(2**45),
        lambda: T.empty(2**63),
        lambda: T.randn(2**50),
        lambda: T.full((10**15,), 1.0),
        lambda: T.arange(10**15),
        lambda: T.eye(10**8),
        lambda: T.ones(1, 1).expand(10**8, 1) + T.ones(1, 1).expand(1, 10**8),
        lambda: T.ones(1, 1).expand(10**7, 10**8).clone(),
        lambda: F.one_hot(T.tensor([0, 1]), 2**63),
        lambda: F.one_hot(T.tensor([0, 1]), 2**47),
    ],
)
def test_more_memory_than_there_is_is_one_clear_error(make):
    with pytest.raises(
        T.base.errors.OutOfMemoryError, match=r": [\d.e+]+ [PTE]iB are asked for, .* (are free|has)"
    ) as caught:
        make()
    assert isinstance(caught.value, MemoryError) and isinstance(caught.value, RuntimeError)


@pytest.mark.parity
def test_results_share_memory_where_those_of_pytorch_do():
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    calls = [
        lambda t, x: t.clone(),
        lambda t, x: t.contiguous(),
        lambda t, x: t.to(t.dtype),
        lambda t, x: t.float(),
        lambda t, x: t.double(),
        lambda t, x: t.long(),
        lambda t, x: t.bool(),
        lambda t, x: t.reshape(-1),
        lambda t, x: t.flatten(),
        lambda t, x: t.expand_as(t),
        lambda t, x: x.real(t),
        lambda t, x: t.conj(),
        lambda t, x: t.t(),
        lambda t, x: t.T,
        lambda t, x: t.squeeze(),
        lambda t, x: t[0],
        lambda t, x: t[:],
        lambda t, x: t[[0]],
        lambda t, x: t[None],
        lambda t, x: t.view(-1),
        lambda t, x: x.atleast_2d(t),
        lambda t, x: t.abs(),
        lambda t, x: t.round(),
        lambda t, x: t.floor(),
        lambda t, x: x.positive(t),
        lambda t, x: t.repeat(1, 1),
        lambda t, x: t.flip(0),
        lambda t, x: t.roll(0),
        lambda t, x: t.detach(),
        lambda t, x: t.chunk(2)[0],
        lambda t, x: t.unbind()[0],
        lambda t, x: t.diagonal(),
        lambda t, x: x.diag(t),
        lambda t, x: t.movedim(0, 1),
        lambda t, x: t.swapaxes(0, 1),
        lambda t, x: t.narrow(0, 0, 2),
        lambda t, x: t.tril(),
        lambda t, x: t.expand(2, 2),
        lambda t, x: t.broadcast_to(t.shape),
        lambda t, x: x.clamp(t, 0, 9),
        lambda t, x: x.nan_to_num(t),
        lambda t, x: t.type_as(t),
        lambda t, x: x.broadcast_tensors(t, t)[0],
        lambda t, x: t.unflatten(0, (1, 2)),
        lambda t, x: x.where(t > 0, t, t),
        lambda t, x: t.sort().values,
        lambda t, x: t.cumsum(0),
        lambda t, x: x.nn.functional.dropout(t, 0.5, False),
        lambda t, x: t.mT,
        lambda t, x: t.permute(1, 0),
        lambda t, x: t.ravel(),
        lambda t, x: x.as_tensor(t),
        lambda t, x: x.atleast_1d(t),
        lambda t, x: x.hstack([t]),
        lambda t, x: x.cat([t]),
        lambda t, x: t.tile(1, 1),
        lambda t, x: x.trunc(t),
    ]
    for i, dtype in itertools.product(range(len(calls)), ("float32", "int64", "bool")):
        shared = []
        for framework in (T, torch):
            x = framework.tensor([[1, 0], [1, 1]]).to(getattr(framework, dtype))
            try:
                y = calls[i](x, framework)
            except (RuntimeError, NotImplementedError):
                shared = []
                break
            shared.append(bool(np.shares_memory(x.numpy(), y.detach().numpy())))
        assert shared in ([], [True, True], [False, False]), f"call {i} of {dtype}: {shared}"


def test_a_complex_number_is_true_if_either_part_is():
    x = T.tensor([1 + 2j, -0.5j, 0j, 2])
    assert x.bool().tolist() == x.to(T.bool).tolist() == [True, True, False, True]
    assert T.zeros(4, dtype=T.bool).copy_(x).tolist() == [True, True, False, True]


def test_alpha_multiplies_in_the_dtype_of_the_sum():
    unsigned = T.tensor([3], dtype=T.uint16)
    assert T.add(T.tensor([0.25]), unsigned, alpha=-1).tolist() == [-2.75]
    assert T.sub(T.tensor([1]), unsigned, alpha=2).tolist() == [-5]
    assert T.tensor([0.25]).add_(unsigned, alpha=-1).tolist() == [-2.75]
    assert T.add(T.tensor([100], dtype=T.int8), T.tensor(3), alpha=-1).tolist() == [97]
    x = T.tensor([1.0], dtype=T.float16, requires_grad=True)
    T.add(T.tensor([0.0]), x, alpha=3).sum().backward()
    assert x.grad.tolist() == [3.0] and x.grad.dtype == T.float16
