"""The array API standard against its strict reference implementation, NumPy on either side of an operator, einops,
pickling and copies.
"""

from __future__ import annotations

import copy
import inspect
import io
import itertools
import pickle
from pathlib import Path

import numpy as np
import pytest

import genesis
from genesis import array_api as xp
from genesis import nn

RNG = np.random.default_rng(0)


# ---- the array API

strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
NAMES = [
    n
    for n in strict.__all__
    if not n.startswith("_") and "array_api_strict" not in n.lower() and n not in ("Device", "ArrayAPIStrictFlags")
]


def test_what_is_missing_is_said():
    assert {n for n in NAMES if not hasattr(xp, n)} == set(xp.MISSING)
    assert (
        genesis.ones(2).__array_namespace__() is xp and genesis.ones(2).__array_namespace__(api_version="2024.12") is xp
    )
    with pytest.raises(ValueError, match="'1999.01' of the array API is not known"):
        genesis.ones(2).__array_namespace__(api_version="1999.01")
    methods = {n for n in dir(strict.asarray([[1.0]])) if not n.startswith("_") or n.startswith("__")}
    # `x @= y` is `x = x @ y`, and tensors export DLPack, not Python's buffer protocol
    assert {n for n in methods if not hasattr(genesis.ones(1, 1), n)} <= {"__imatmul__", "__buffer__"}
    assert (~xp.isin(xp.asarray(I), xp.asarray([1, 2]))).tolist() == xp.isin(
        xp.asarray(I), xp.asarray([1, 2]), invert=True
    ).tolist()


A = RNG.normal(size=(3, 4))
P = np.abs(A) + 0.5
I = RNG.integers(-4, 5, (3, 4))  # noqa: E741
B = I > 0
C = np.array([2 + 1j, 1 - 1j, 1 - 3j, 2 + 1j])
UNARY = [
    "abs",
    "ceil",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "floor",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log10",
    "log1p",
    "log2",
    "negative",
    "positive",
    "reciprocal",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
    "atan",
    "asinh",
]
CALLS = {
    **{name: (lambda m, n=name: getattr(m, n)(m.asarray(P))) for name in UNARY},
    **{
        name: (lambda m, n=name: getattr(m, n)(m.asarray(A), m.asarray(P)))
        for name in (
            "add",
            "atan2",
            "copysign",
            "divide",
            "equal",
            "floor_divide",
            "greater",
            "greater_equal",
            "hypot",
            "less",
            "less_equal",
            "logaddexp",
            "maximum",
            "minimum",
            "multiply",
            "nextafter",
            "not_equal",
            "remainder",
            "subtract",
        )
    },
    **{
        f"integers {name}": (lambda m, n=name: getattr(m, n)(m.asarray(I), m.asarray(I + 1)))
        for name in ("add", "bitwise_and", "bitwise_or", "bitwise_xor", "multiply", "not_equal")
    },
    **{
        name: (lambda m, n=name: getattr(m, n)(m.asarray(B), m.asarray(~B)))
        for name in ("logical_and", "logical_or", "logical_xor")
    },
    "pow": lambda m: m.pow(m.asarray(P), m.asarray(A)),
    "acos": lambda m: m.acos(m.asarray(A / 10)),
    "asin": lambda m: m.asin(m.asarray(A / 10)),
    "acosh": lambda m: m.acosh(m.asarray(P + 1)),
    "atanh": lambda m: m.atanh(m.asarray(A / 10)),
    "logical_not": lambda m: m.logical_not(m.asarray(B)),
    "bitwise_invert": lambda m: m.bitwise_invert(m.asarray(I)),
    "bitwise_left_shift": lambda m: m.bitwise_left_shift(m.asarray(abs(I)), m.asarray(abs(I))),
    "bitwise_right_shift": lambda m: m.bitwise_right_shift(m.asarray(I), m.asarray(abs(I))),
    "clip": lambda m: m.clip(m.asarray(A), min=-0.5, max=0.5),
    "clip one": lambda m: m.clip(m.asarray(A), max=0.5),
    "conj": lambda m: m.conj(m.asarray(A + 1j)),
    "real": lambda m: m.real(m.asarray(A + 2j)),
    "imag": lambda m: m.imag(m.asarray(A + 2j)),
    "where": lambda m: m.where(m.asarray(B), m.asarray(A), m.asarray(P)),
    "arange": lambda m: m.arange(5),
    "arange step": lambda m: m.arange(1, 9, 3),
    "linspace": lambda m: m.linspace(0.0, 1.0, 5, endpoint=False, dtype=m.float64),
    "eye": lambda m: m.eye(3, 4, k=1, dtype=m.float64),
    "eye below": lambda m: m.eye(4, k=-2, dtype=m.float64),
    "full": lambda m: m.full((2, 3), 4),
    "full int": lambda m: m.full(3, 2.5, dtype=m.float64),
    "zeros": lambda m: m.zeros((2, 3), dtype=m.int32),
    "ones": lambda m: m.ones(3, dtype=m.float64),
    "zeros_like": lambda m: m.zeros_like(m.asarray(I)),
    "ones_like": lambda m: m.ones_like(m.asarray(A)),
    "full_like": lambda m: m.full_like(m.asarray(A), 3.0),
    "tril": lambda m: m.tril(m.asarray(A), k=-1),
    "triu": lambda m: m.triu(m.asarray(A), k=1),
    "meshgrid": lambda m: m.meshgrid(m.arange(3), m.arange(2))[0],
    "meshgrid ij": lambda m: m.meshgrid(m.arange(3), m.arange(2), indexing="ij")[1],
    "astype": lambda m: m.astype(m.asarray(A), m.int64),
    "broadcast_to": lambda m: m.broadcast_to(m.asarray(A[0]), (3, 4)),
    "broadcast_arrays": lambda m: m.broadcast_arrays(m.asarray(A[:, :1]), m.asarray(A))[0],
    "concat": lambda m: m.concat([m.asarray(A), m.asarray(P)], axis=1),
    "concat flat": lambda m: m.concat([m.asarray(A), m.asarray(P[0])], axis=None),
    "expand_dims": lambda m: m.expand_dims(m.asarray(A), axis=-1),
    "flip": lambda m: m.flip(m.asarray(A)),
    "flip one": lambda m: m.flip(m.asarray(A), axis=-1),
    "moveaxis": lambda m: m.moveaxis(m.asarray(A), 0, -1),
    "permute_dims": lambda m: m.permute_dims(m.asarray(A), (1, 0)),
    "matrix_transpose": lambda m: m.matrix_transpose(m.asarray(A)),
    "repeat": lambda m: m.repeat(m.asarray(A), 2, axis=1),
    "repeat flat": lambda m: m.repeat(m.asarray(A), 2),
    "reshape": lambda m: m.reshape(m.asarray(A), (2, -1)),
    "reshape copy": lambda m: m.reshape(m.asarray(A), (12,), copy=True),
    "roll": lambda m: m.roll(m.asarray(A), 1),
    "roll axes": lambda m: m.roll(m.asarray(A), (1, 2), axis=(0, 1)),
    "squeeze": lambda m: m.squeeze(m.asarray(A[:, None]), axis=1),
    "stack": lambda m: m.stack([m.asarray(A), m.asarray(P)], axis=1),
    "tile": lambda m: m.tile(m.asarray(A), (2, 1)),
    "unstack": lambda m: m.unstack(m.asarray(A), axis=1)[2],
    "max": lambda m: m.max(m.asarray(A), axis=0),
    "min": lambda m: m.min(m.asarray(A), axis=(0, 1), keepdims=True),
    "max all": lambda m: m.max(m.asarray(I)),
    "mean": lambda m: m.mean(m.asarray(A), axis=1),
    "sum": lambda m: m.sum(m.asarray(A), axis=1),
    "sum small": lambda m: m.sum(m.asarray(I.astype(np.int8))),
    "sum unsigned": lambda m: m.sum(m.asarray(abs(I).astype(np.uint8)), axis=0),
    "prod": lambda m: m.prod(m.asarray(A), axis=0, keepdims=True),
    "std": lambda m: m.std(m.asarray(A), axis=0),
    "var": lambda m: m.var(m.asarray(A), axis=1, correction=1),
    "all": lambda m: m.all(m.asarray(I), axis=0),
    "any": lambda m: m.any(m.asarray(B)),
    "argmax": lambda m: m.argmax(m.asarray(A), axis=1),
    "argmin": lambda m: m.argmin(m.asarray(A)),
    "count_nonzero": lambda m: m.count_nonzero(m.asarray(I), axis=1, keepdims=True),
    "cumulative_sum": lambda m: m.cumulative_sum(m.asarray(A), axis=1),
    "cumulative_sum initial": lambda m: m.cumulative_sum(m.asarray(I), axis=0, include_initial=True),
    "cumulative_prod": lambda m: m.cumulative_prod(m.asarray(A[0])),
    "diff": lambda m: m.diff(m.asarray(A), axis=0),
    "diff twice": lambda m: m.diff(m.asarray(A), n=2, prepend=m.asarray(A[:, :1])),
    "sort": lambda m: m.sort(m.asarray(A), axis=0),
    "sort down": lambda m: m.sort(m.asarray(A), descending=True),
    "argsort": lambda m: m.argsort(m.asarray(A)),
    "argsort down": lambda m: m.argsort(m.asarray(I), axis=0, descending=True),
    "searchsorted": lambda m: m.searchsorted(m.asarray(np.sort(A[0])), m.asarray(A[1]), side="right"),
    "searchsorted sorter": lambda m: m.searchsorted(
        m.asarray(A[0]), m.asarray(A[1]), sorter=m.asarray(np.argsort(A[0]))
    ),
    "unique_values": lambda m: m.unique_values(m.asarray(I)),
    "unique_counts": lambda m: m.unique_counts(m.asarray(I)).counts,
    "unique_inverse": lambda m: m.unique_inverse(m.asarray(I)).inverse_indices,
    "unique_all": lambda m: m.unique_all(m.asarray(I)).indices,
    "isin": lambda m: m.isin(m.asarray(I), m.asarray([1, 2])),
    "nonzero": lambda m: m.nonzero(m.asarray(I))[1],
    "take": lambda m: m.take(m.asarray(A), m.asarray([2, 0, -1]), axis=1),
    "take_along_axis": lambda m: m.take_along_axis(m.asarray(A), m.asarray(abs(I) % 4), axis=1),
    "arange nowhere": lambda m: m.arange(3, 5, -1),
    "arange nowhere floats": lambda m: m.arange(5, 1.5, 2, dtype=m.float64),
    "eye far": lambda m: m.eye(2, 3, k=2**70, dtype=m.int8),
    "eye far below": lambda m: m.eye(2, 3, k=-(2**70), dtype=m.int8),
    "reversed": lambda m: m.asarray(A)[::-1, 2::-2],
    "round complex": lambda m: m.round(m.asarray(3 * A + 2.5j * P)),
    "sign complex": lambda m: m.sign(m.asarray(np.array([3 + 4j, 0, -2j]))),
    "cumulative_sum small": lambda m: m.cumulative_sum(m.asarray(I.astype(np.int8)), axis=0),
    "cumulative_sum unsigned": lambda m: m.cumulative_sum(
        m.asarray(abs(I).astype(np.uint8)), axis=0, include_initial=True
    ),
    "cumulative_prod unsigned": lambda m: m.cumulative_prod(m.asarray(abs(I).astype(np.uint16)), axis=1),
    "cumulative_sum dtype": lambda m: m.cumulative_sum(m.asarray(abs(I)), axis=0, dtype=m.uint8),
    "cumulative_prod dtype": lambda m: m.cumulative_prod(m.asarray(I), axis=0, dtype=m.float64),
    "concat empty": lambda m: m.concat([m.asarray(A[0].astype(np.float32)), m.zeros((0,), dtype=m.float64)]),
    "concat promoted": lambda m: m.concat([m.asarray(np.uint16(3)), m.asarray(np.int8([1]))], axis=None),
    "stack promoted": lambda m: m.stack([m.asarray(np.uint16([3])), m.asarray(np.int8([1]))]),
    "where promoted": lambda m: m.where(m.asarray(B), m.asarray(np.int8(1)), m.asarray(I)),
    "matmul promoted": lambda m: m.matmul(m.asarray(A.astype(np.float32)), m.asarray(A.T)),
    "tensordot promoted": lambda m: m.tensordot(m.asarray(I.astype(np.int8)), m.asarray(I), axes=((0,), (0,))),
    "vecdot promoted": lambda m: m.vecdot(m.asarray(A.astype(np.float32)), m.asarray(A + 2j)),
    "unique complex": lambda m: m.unique_values(m.asarray(C)),
    "unique_all complex": lambda m: m.unique_all(m.asarray(C)).inverse_indices,
    "matmul": lambda m: m.matmul(m.asarray(A), m.asarray(A.T)),
    "tensordot": lambda m: m.tensordot(m.asarray(A), m.asarray(P), axes=((0,), (0,))),
    "vecdot": lambda m: m.vecdot(m.asarray(A + 1j), m.asarray(P + 2j)),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_of_the_standard(name):
    expected, found = CALLS[name](strict), CALLS[name](xp)
    want = np.asarray(expected)
    assert tuple(found.shape) == want.shape and found.numpy().dtype == want.dtype, (
        f"{found._spec()}, expected {want.dtype} {want.shape}"
    )
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-12, atol=1e-14)


KINDS = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize("name", [*xp.PROMOTED, "equal", "greater", "less_equal", "logical_or", "where"])
def test_arrays_of_no_dimensions_take_part_in_promotion(name):
    """As in the standard; whatever the reference takes, in all its combinations of dtypes."""
    taken = 0
    for one, other, shapes in itertools.product(KINDS, KINDS, [((2,), (2,)), ((2,), ()), ((), (2,))]):
        if name == "matmul" and () in shapes:
            continue
        calls = [lambda m: m.asarray(True)] * (name == "where") + [
            lambda m, s=s, k=k: m.ones(s, dtype=getattr(m, k)) for s, k in zip(shapes, (one, other), strict=True)
        ]
        try:
            strict.result_type(getattr(strict, one), getattr(strict, other))  # matmul does not ask
            want = np.asarray(getattr(strict, name)(*[make(strict) for make in calls])).dtype
        except TypeError:
            continue
        assert getattr(xp, name)(*[make(xp) for make in calls]).numpy().dtype == want, (one, other, shapes)
        taken += 1
    assert taken >= 2


def test_values_are_not_wrapped_into_smaller_dtypes():
    small, large = xp.asarray([1, 2], dtype=xp.int8), xp.asarray(300, dtype=xp.int16)
    assert xp.add(small, large).tolist() == xp.add(large, small).tolist() == [301, 302] and xp.maximum(
        small, large
    ).tolist() == [300, 300]
    assert xp.where(xp.asarray([True, False]), small, large).tolist() == [1, 300] and xp.clip(
        small, max=large
    ).tolist() == [1, 2]
    assert xp.greater(large, small).tolist() == (large > small).tolist() == [True, True]
    assert (small + large).tolist() == [45, 46], "operators follow PyTorch"
    x = xp.asarray([1.0, 2.0], dtype=xp.float32).requires_grad_()
    xp.multiply(x, xp.asarray(3.0, dtype=xp.float64)).sum().backward()
    assert x.grad.dtype == xp.float32 and x.grad.tolist() == [3, 3]


def test_limits_of_the_standard():
    for limits, kind in ((xp.finfo, xp.float32), (xp.finfo, xp.float64), (xp.iinfo, xp.uint16)):
        for info in (limits(kind), limits(xp.ones(2, dtype=kind))):
            assert info.dtype is kind and info.max == getattr(strict, limits.__name__)(getattr(strict, kind.name)).max
    assert (
        xp.finfo(xp.complex128).dtype is xp.float64
        and xp.finfo(xp.float32).eps == 2**-23
        and genesis.finfo(xp.float32).dtype == "float32"
    )


def test_lists_and_memory_of_the_standard():
    x = xp.asarray(A)
    assert type(xp.meshgrid(x[0], x[1])) is type(xp.broadcast_arrays(x, x[0])) is list
    assert (
        xp.from_dlpack(x, copy=True).data_ptr() != xp.from_dlpack(x, device=None, copy=None).data_ptr() == x.data_ptr()
    )


def test_what_the_public_suite_may_fail_has_a_reason():
    """The file for ``--xfails-file``: each name once, in groups below a comment."""
    lines = (Path(__file__).parent / "array_api_xfails.txt").read_text().splitlines()
    names = [line for line in lines if line and not line.startswith("#")]
    assert len(set(names)) == len(names) and all(
        n.startswith("array_api_tests/test_") and "::test_" in n for n in names
    )
    assert all(line.startswith("#") for before, line in itertools.pairwise(["", *lines]) if line and not before)
    assert {n.split("[")[1].split("-")[0] for n in names if "test_has_names" in n} == set(xp.MISSING)


@pytest.mark.parametrize("name", [n for n in NAMES if inspect.isfunction(getattr(xp, n, None)) and n not in xp.SAME])
def test_parameters_are_the_standards(name):
    mine, theirs = inspect.signature(getattr(xp, name)).parameters, inspect.signature(getattr(strict, name)).parameters
    keywords = lambda ps: {p.name for p in ps.values() if p.kind is p.KEYWORD_ONLY}  # noqa: E731
    assert keywords(theirs) <= set(mine), f"missing: {keywords(theirs) - set(mine)}"


def test_dtypes_of_the_standard():
    assert (
        xp.isdtype(xp.float32, "real floating")
        and xp.isdtype(xp.int8, ("bool", "integral"))
        and not xp.isdtype(xp.bool, "numeric")
        and xp.isdtype(xp.int8, xp.int8)
    )
    with pytest.raises(ValueError, match="there is no kind 'float'"):
        xp.isdtype(xp.float32, "float")
    assert (
        xp.can_cast(xp.uint8, xp.int16) and not xp.can_cast(xp.uint64, xp.int64) and not xp.can_cast(xp.int8, xp.uint64)
    )
    assert xp.result_type(xp.uint16, xp.asarray(1, dtype=xp.int8)) == xp.int32
    assert xp.can_cast(xp.int8, xp.int32) and not xp.can_cast(xp.float64, xp.float32)
    assert (
        xp.result_type(xp.asarray([1], dtype=xp.int8), xp.int16) == xp.int16
        and xp.result_type(xp.float32, 1.0) == xp.float32
    )
    info = xp.__array_namespace_info__()
    assert (
        info.default_dtypes()["integral"] == xp.int64
        and info.default_device() == genesis.device("cpu")
        and set(info.dtypes(kind="complex floating")) == {"complex64", "complex128"}
    )
    assert info.capabilities()["boolean indexing"] and genesis.device("meta") in info.devices()


def test_wrong_calls_of_the_standard():
    x = xp.asarray(A)
    for call, words in (
        (lambda: xp.squeeze(x, axis=0), "dim 0 has size 3"),
        (lambda: xp.take(x, xp.asarray([0])), "axis may be left out"),
        (lambda: xp.cumulative_sum(x), "axis may be left out"),
        (lambda: xp.nonzero(xp.asarray(1.0)), "0-d"),
        (lambda: xp.vecdot(x, x, axis=0), "count from the end"),
        (lambda: xp.vecdot(x, x[:, :1]), "sizes along axis -1 differ, 4 and 1"),
        (lambda: xp.result_type(), "at least one"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


# ---- NumPy on either side


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "//", "%", "**", "@", "<", "<=", ">", ">=", "==", "!="])
def test_numpy_on_either_side_of_an_operator(symbol):
    a, b = np.array([[1.0, 2], [3, 4]]), np.array([[5.0, 6], [7, 9]])
    expected = eval(f"a {symbol} b")
    left, right = (eval(f"x {symbol} y", {"x": x, "y": y}) for x, y in ((a, genesis.tensor(b)), (genesis.tensor(a), b)))
    for found in (left, right):
        assert isinstance(found, genesis.Tensor)
        np.testing.assert_allclose(found.numpy(), expected)
    w = genesis.tensor(b, requires_grad=True)
    if symbol in "+-*/@" or symbol == "**":
        eval("a %s w" % symbol).sum().backward()  # noqa: UP031
        assert w.grad is not None
    if symbol != "@":
        assert isinstance(eval(f"s {symbol} t", {"s": np.float64(2), "t": genesis.tensor(b)}), genesis.Tensor)


# ---- einops


def test_einops():
    einops = pytest.importorskip("einops", reason="einops is not installed")
    import gc

    import genesis.interop  # noqa: F401

    gc.collect()
    x = genesis.tensor(RNG.normal(size=(2, 3, 4)), requires_grad=True)
    array = x.detach().numpy()
    for pattern, sizes in (("a b c -> (c a) b", {}), ("a b (c d) -> d a (b c)", {"c": 2}), ("a b c -> a 1 (b c)", {})):
        np.testing.assert_array_equal(
            einops.rearrange(x, pattern, **sizes).detach().numpy(), einops.rearrange(array, pattern, **sizes)
        )
    for how in ("sum", "mean", "max", "min", "prod"):
        np.testing.assert_allclose(
            einops.reduce(x, "a b c -> b", how).detach().numpy(), einops.reduce(array, "a b c -> b", how)
        )
    np.testing.assert_array_equal(
        einops.repeat(x, "a b c -> a b c k", k=3).detach().numpy(), einops.repeat(array, "a b c -> a b c k", k=3)
    )
    np.testing.assert_allclose(
        einops.einsum(x, x, "a b c, a b d -> a c d").detach().numpy(), np.einsum("abc,abd->acd", array, array)
    )
    packed, shapes = einops.pack([x, x[:, 0]], "a * c")
    assert packed.shape == (2, 4, 4) and [p.shape for p in einops.unpack(packed, shapes, "a * c")] == [
        (2, 3, 4),
        (2, 4),
    ]
    einops.reduce(einops.rearrange(x, "a b c -> c (a b)"), "c k -> c", "mean").sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.full((2, 3, 4), 1 / 6))
    np.testing.assert_allclose(
        genesis.vmap(lambda v: einops.reduce(v, "b c -> c", "sum"))(x.detach()).numpy(), array.sum(1)
    )
    assert len(genesis.jit.trace(lambda v: einops.rearrange(v, "a b c -> (a b c)") * 2, x.detach()).nodes) >= 1


# ---- pickling and copies


def roundtrip(value):
    return pickle.loads(pickle.dumps(value))


def test_pickles():
    x = genesis.tensor([[1.0, 2], [3, 4]], requires_grad=True)
    y = roundtrip(x)
    assert y.tolist() == x.tolist() and y.requires_grad and y.is_leaf and y.grad is None
    for value in (
        genesis.float32,
        genesis.bfloat16,
        genesis.device("cuda:1"),
        genesis.Size([2, 3]),
        genesis.ones(2, device="meta"),
    ):
        again = roundtrip(value)
        assert type(again) is type(value) and repr(again) == repr(value)
    assert roundtrip(genesis.float32) is genesis.float32 or roundtrip(genesis.float32) == genesis.float32
    p = roundtrip(nn.Parameter(genesis.ones(2), requires_grad=False))
    assert isinstance(p, nn.Parameter) and not p.requires_grad
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    model[0].weight.grad = genesis.ones(3, 2)
    again = roundtrip(model)
    assert all(
        genesis.equal(a, b) for a, b in zip(model.state_dict().values(), again.state_dict().values(), strict=True)
    )
    with pytest.raises(RuntimeError, match="only leaf tensors can be pickled"):
        pickle.dumps(x * 2)
    with pytest.raises(RuntimeError, match="pickle"):
        genesis.vmap(lambda v: pickle.dump(v, io.BytesIO()) or v)(genesis.ones(2))
    half = genesis.ones(3, dtype=genesis.bfloat16)
    assert roundtrip(half).dtype == genesis.bfloat16 and roundtrip(genesis.arange(6).reshape(2, 3).t()).tolist() == [
        [0, 3],
        [1, 4],
        [2, 5],
    ]


def test_deep_copies():
    x = genesis.tensor([1.0, 2.0], requires_grad=True)
    (x * 2).sum().backward()
    y = copy.deepcopy(x)
    y.data.add_(1)
    assert x.tolist() == [1, 2] and y.grad.tolist() == [2, 2] and y.grad is not x.grad and y.requires_grad
    shared = nn.Linear(2, 2)
    model = copy.deepcopy(nn.Sequential(shared, shared))
    assert model[0].weight is model[1].weight and model[0].weight is not shared.weight
    with pytest.raises(RuntimeError, match="only leaf tensors can be deep-copied"):
        copy.deepcopy(x * 2)
    assert copy.copy(x) is not x and copy.copy(x).tolist() == [1, 2]
