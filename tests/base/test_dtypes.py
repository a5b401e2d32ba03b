"""Element types, against PyTorch's tables where it is installed and against one written by hand."""

from __future__ import annotations

import copy
import itertools
import pickle

import ml_dtypes
import numpy as np
import pytest

import genesis
from genesis.base import dtypes
from genesis.base.dtypes import (
    as_dtype,
    as_np,
    can_cast,
    finfo,
    from_numpy,
    iinfo,
    promote_types,
    result_np_dtype,
    result_type,
)
from genesis.base.pytree import tree_flatten

NAMES = [kind.name for kind in dtypes.ALL]
SCALARS = [True, 3, 2.5, 1j, np.float64(2.5), np.int8(1)]


def call(f, *args):
    """The name of the resulting dtype, or the type of the error."""
    try:
        return str(f(*args)).rpartition(".")[2].replace("complex32", "complex64")  # complex32 is not in Genesis
    except (RuntimeError, TypeError) as error:
        return RuntimeError if isinstance(error, RuntimeError) else TypeError


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")


@pytest.fixture(params=["float32", "float64", "float16", "bfloat16"])
def default(request):
    """A default dtype, put back afterwards."""
    dtypes.set_default_dtype(request.param)
    yield request.param
    dtypes.set_default_dtype("float32")


# ---- with PyTorch


WIDE = {"uint16", "uint32", "uint64"}  # for which PyTorch lacks rules


@pytest.mark.parametrize("f", ["promote_types", "can_cast"])
def test_every_pair_as_in_torch(torch, f):
    for a, b in itertools.product(NAMES, NAMES):
        want = call(getattr(torch, f), getattr(torch, a), getattr(torch, b))
        if want is not RuntimeError or not WIDE & {a, b}:
            assert call(getattr(dtypes, f), a, b) == want, (a, b)


def test_result_type_of_every_pair_as_in_torch(torch):
    for (a, m), (b, n) in itertools.product(itertools.product(NAMES, (0, 1)), repeat=2):
        want = call(
            torch.result_type,
            torch.zeros([2] * m, dtype=getattr(torch, a)),
            torch.zeros([2] * n, dtype=getattr(torch, b)),
        )
        if want is not RuntimeError or not WIDE & {a, b}:
            assert call(result_type, np.zeros([2] * m, as_np(a)), np.zeros([2] * n, as_np(b))) == want, (a, m, b, n)


def test_result_type_with_numbers_as_in_torch(torch, default):
    torch.set_default_dtype(getattr(torch, default))
    try:
        for a, n, s in itertools.product(NAMES, (0, 1), SCALARS):
            x, y = torch.zeros([2] * n, dtype=getattr(torch, a)), np.zeros([2] * n, as_np(a))
            assert call(result_type, y, s) == call(torch.result_type, x, s), (a, n, s)
            assert call(result_type, s, y) == call(torch.result_type, s, x), (s, a, n)
        for s, t in itertools.product(SCALARS[:4], repeat=2):
            assert call(result_type, s, t) == call(torch.result_type, s, t), (s, t)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", NAMES)
def test_attributes_and_limits_as_in_torch(torch, name):
    ours, theirs = as_dtype(name), getattr(torch, name)
    for attribute in ("itemsize", "is_floating_point", "is_complex", "is_signed"):
        assert getattr(ours, attribute) == getattr(theirs, attribute)
    assert call(ours.to_complex) == call(theirs.to_complex)
    assert call(ours.to_real) == call(theirs.to_real)
    if ours.category >= 2:
        assert repr(finfo(ours)) == repr(torch.finfo(theirs))
        for attribute in ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny"):
            assert getattr(finfo(ours), attribute) == getattr(torch.finfo(theirs), attribute)
    elif ours.category == 1:
        for attribute in ("bits", "dtype", "max", "min"):
            assert getattr(iinfo(ours), attribute) == getattr(torch.iinfo(theirs), attribute)


@pytest.mark.parametrize("kind", [bool, int, float, complex])
def test_python_types_as_in_torch(torch, kind):
    assert as_dtype(kind).name == call(lambda: torch.zeros(1, dtype=kind).dtype)


# ---- without


@pytest.mark.parametrize(
    "a, b, want",
    [
        ("bool", "uint8", "uint8"),
        ("uint8", "int8", "int16"),
        ("uint8", "int16", "int16"),
        ("uint8", "int64", "int64"),
        ("int64", "float16", "float16"),
        ("int64", "bfloat16", "bfloat16"),
        ("float16", "bfloat16", "float32"),
        ("float32", "float64", "float64"),
        ("float64", "complex64", "complex128"),
        ("bfloat16", "complex64", "complex64"),
        ("uint64", "float16", "float16"),
        ("uint32", "uint32", "uint32"),
        ("bool", "uint64", "uint64"),
        ("uint16", "complex64", "complex64"),
    ],
)
def test_promotion_both_ways(a, b, want):
    assert promote_types(a, b) is promote_types(b, a) is as_dtype(want)


def test_integers_meet_as_in_numpy():
    """What PyTorch has no rule for is as in NumPy and the array API standard."""
    integers = [n for n in NAMES if n == "bool" or "int" in n]
    for a, b in itertools.product(integers, integers):
        want = np.result_type(as_np(a), as_np(b))
        if want.kind == "f":
            with pytest.raises(
                RuntimeError, match=f"no integer dtype holds both genesis.{a} and genesis.{b}\n  try: convert"
            ):
                promote_types(a, b)
        else:
            assert promote_types(a, b).np == want, (a, b)


def array(name, ndim=1):
    return np.zeros([2] * ndim, as_np(name))


@pytest.mark.parametrize("operands, want", [
    ([array("float32"), array("float64", 0)], "float32"),  # within a category, dimensions win
    ([array("int32"), array("float64", 0)], "float64"),
    ([array("int8"), 3], "int8"),
    ([array("int64"), 2.5], "float32"),
    ([array("bfloat16"), 2.5], "bfloat16"),
    ([array("float64"), 1j], "complex128"),
    ([array("float64"), array("complex64", 0)], "complex128"),
    ([array("float16"), array("int8", 0), 1j], "complex64"),
    ([array("bool"), array("int16", 0), 2**40], "int16"),
    ([array("bool"), 2], "int64"),
    ([array("float16"), array("float32"), array("float64", 0)], "float32"),
    ([1, 2.5], "float32"),
])  # fmt: skip
def test_result_of_operands(operands, want):
    assert result_np_dtype(operands) == as_np(want)
    assert result_np_dtype(operands[::-1]) == as_np(want)


def test_default_dtype_decides_for_numbers(default):
    assert dtypes.get_default_dtype().name == default
    assert result_type(array("int64"), 2.5).name == default
    assert finfo() == finfo(default)


def test_default_dtype_is_floating():
    with pytest.raises(TypeError, match=r"only floating dtypes can be the default, got genesis\.int64"):
        dtypes.set_default_dtype("int64")
    assert dtypes.get_default_dtype() is dtypes.float32


@pytest.mark.parametrize("kind", dtypes.ALL, ids=str)
def test_one_object_of_each(kind):
    assert pickle.loads(pickle.dumps(kind)) is copy.deepcopy(kind) is copy.copy(kind) is kind
    assert from_numpy(kind.np) is as_dtype(kind.np) is as_dtype(kind.np.type) is as_dtype(str(kind)) is kind
    assert str(kind) == f"genesis.{kind.name}"
    with pytest.raises(AttributeError):
        kind.name = "other"


def test_aliases_and_short_names():
    assert (dtypes.half, dtypes.float, dtypes.double) == (dtypes.float16, dtypes.float32, dtypes.float64)
    assert (dtypes.short, dtypes.int, dtypes.long) == (dtypes.int16, dtypes.int32, dtypes.int64)
    assert (dtypes.cfloat, dtypes.cdouble) == (dtypes.complex64, dtypes.complex128)
    assert " ".join(kind.short for kind in dtypes.ALL) == "bool u8 u16 u32 u64 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128"
    assert as_dtype("long") is dtypes.int64
    assert as_np(ml_dtypes.bfloat16) == ml_dtypes.bfloat16


def test_numpy_types_of_either_byte_order_and_c_name():
    assert from_numpy(np.dtype(">f4")) is dtypes.float32
    assert from_numpy(np.dtype(np.longlong)) is dtypes.int64


@pytest.mark.parametrize("kind", [None, "float33", "U3", object, [1], {}, 3, "f4,", np.dtype("M8[s]")])
def test_what_is_not_a_dtype(kind):
    with pytest.raises(TypeError, match=r"is not a dtype\n  try: genesis\.float32"):
        as_dtype(kind)


def test_arrays_without_a_counterpart():
    with pytest.raises(TypeError, match="NumPy's object has no counterpart"):
        from_numpy(np.dtype(object))
    with pytest.raises(TypeError, match="expected a tensor or a number, got str"):
        result_type(array("int8"), "2")


def test_limits_refuse_the_other_kind():
    with pytest.raises(TypeError, match=r"genesis\.int8 is not a floating dtype\n  try: iinfo"):
        finfo("int8")
    with pytest.raises(TypeError, match=r"genesis\.bool is not an integer dtype"):
        iinfo("bool")
    assert iinfo("int8") == iinfo(np.int8) != iinfo("uint8")
    assert (finfo("bfloat16").eps, finfo("complex128").dtype) == (2**-7, "float64")


def test_can_cast_goes_up_the_categories():
    order = ["bool", "uint8", "float64", "complex64"]
    assert [[can_cast(a, b) for b in order] for a in order] == [[j >= i for j in range(4)] for i in range(4)]


def test_a_dtype_is_a_leaf_and_cannot_be_changed():
    assert tree_flatten({"dtype": genesis.float32})[0] == [genesis.float32]
    with pytest.raises(AttributeError, match="cannot be set"):
        genesis.float32.itemsize = 8
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del genesis.float32.name
    assert genesis.float32.itemsize == 4
