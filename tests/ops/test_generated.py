"""Tests generated from the op records: every op, sample and dtype against its meaning, infer and differences."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import genesis
from genesis.base import dtypes
from genesis.base.errors import DTypeError
from genesis.core.call.op import REGISTRY
from genesis.core.graph.tensor import wrap
from genesis.testing.make import Maker
from genesis.testing.opcheck import CHECKS, check_fails, check_layout, opcheck, sample_dtypes, samples_of
from genesis.testing.strides import LAYOUTS, check_strides, works_along_dim

OPS = sorted([op for op in REGISTRY.values() if not op.kind.draws], key=lambda op: op.name)
PAIRS = [pytest.param(op, dtype, id=f"{op.name}-{dtype.short}") for op in OPS for dtype in sample_dtypes(op)]


@pytest.mark.parametrize(("op", "dtype"), PAIRS)
def test_meaning_infer_and_memory(op, dtype):
    for i in range(len(samples_of(op, Maker(dtype)))):
        for name in ("meaning", "infer", "memory"):
            CHECKS[name](op, samples_of(op, Maker(dtype, seed=i))[i])


@pytest.mark.parametrize(("op", "dtype"), [p for p in PAIRS if p.values[1] in (dtypes.float64, dtypes.complex128)])
def test_gradients_to_second_order(op, dtype):
    for i in range(len(samples_of(op, Maker(dtype)))):
        CHECKS["gradient"](op, samples_of(op, Maker(dtype, seed=i, requires_grad=True))[i])


@pytest.mark.parametrize("op", [op for op in OPS if "c" not in op.dtypes], ids=lambda op: op.name)
def test_complex_inputs_are_refused_or_have_a_right_gradient(op):
    try:
        found = samples_of(op, Maker(dtypes.complex128, requires_grad=True))
    except (DTypeError, TypeError):
        return  # no complex numbers can be its samples
    for sample in found:
        try:
            out = op.call(*sample.args, **sample.kwargs)
        except (RuntimeError, TypeError, ValueError):
            continue
        if any(getattr(x, "requires_grad", False) for x in (out if isinstance(out, tuple) else [out])):
            CHECKS["gradient"](op, sample)


@pytest.mark.parametrize(("op", "dtype"), [p for p in PAIRS if p.values[1] in (dtypes.float16, dtypes.bfloat16)])
def test_halves_are_rounded_once(op, dtype):
    for i in range(len(samples_of(op, Maker(dtype)))):
        for name in ("halves", "large halves"):
            genesis.manual_seed(0)
            CHECKS[name](op, samples_of(op, Maker(dtype, seed=i))[i])


@pytest.mark.parametrize(
    ("op", "dtype"), [p for p in PAIRS if p.values[1] in (dtypes.float64, dtypes.float32, dtypes.float16)]
)
def test_warnings_as_errors(op, dtype):
    for i in range(len(samples_of(op, Maker(dtype)))):
        CHECKS["warnings"](op, samples_of(op, Maker(dtype, seed=i, requires_grad=True))[i])


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_in_threads(op):
    for i in range(len(samples_of(op, Maker(sample_dtypes(op)[0])))):
        CHECKS["threads"](op, samples_of(op, Maker(sample_dtypes(op)[0], seed=i, requires_grad=True))[i])


@pytest.mark.parametrize("op", [op for op in REGISTRY.values() if op.kind.draws], ids=lambda op: op.name)
def test_draws(op):
    assert opcheck(op) == [f"{op.name} draws"]


# Ops for which a strided input is another case, not another layout.
NEEDS_LAYOUT = {
    "view_shape": "refuses what would need a copy",
    "view_dtype": "reinterprets the bytes in memory order",
    "strided_view": "is told the steps of its input",
    "as_strided": "sees the memory around its input",
    "as_strided_scatter": "sees the memory around its input",
    "view_as_complex": "refuses pairs that do not lie together",
}


@pytest.mark.parametrize("op", [op for op in OPS if op.name not in NEEDS_LAYOUT], ids=lambda op: op.name)
def test_strided_inputs(op):
    dtype = sample_dtypes(op)[0]
    for i in range(len(samples_of(op, Maker(dtype)))):
        genesis.manual_seed(0)
        check_layout(lambda layout, seed=i: Maker(dtype, seed=seed, layout=layout), op, i)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", [op for op in OPS if works_along_dim(op)], ids=lambda op: op.name)
def test_every_stride_of_the_dim(op, layout):
    check_strides(op, layout)


def test_what_strides_break():
    in_memory_order = SimpleNamespace(
        name="wrong", call=lambda x, dim: wrap(x._array.ravel("K").reshape(x.shape).sum(dim))
    )
    check_strides(in_memory_order, "step of 2")
    with pytest.raises(AssertionError, match="wrong, largest stride: "):
        check_strides(in_memory_order, "largest stride")
    rounded = SimpleNamespace(
        name="wrong", call=lambda x, dim: x.sum(dim) * (1.000001 if x.dtype is genesis.float32 else 1.0)
    )
    with pytest.raises(AssertionError, match="units of the last place"):
        check_strides(rounded, "smallest stride")
    assert {"sum", "cumsum", "softmax", "layer_norm", "var", "sort"} <= {op.name for op in OPS if works_along_dim(op)}


@pytest.mark.parametrize("op", [op for op in OPS if op.fails], ids=lambda op: op.name)
def test_wrong_inputs(op):
    check_fails(op)


# Ops that the checks above cannot reach, each with its reason.
HERMITIAN = "an operand is read as Hermitian, or vectors have a phase: tests/ops/linalg/test_factors.py"
FACTORS = "what it takes is made by another op: tests/ops/linalg/test_factors.py"
NO_SAMPLES = {
    **dict.fromkeys(
        (
            "cholesky",
            "cholesky_factor",
            "eigenvectors",
            "hermitian_eigenvectors",
            "ldl_factors",
            "linalg_cholesky",
            "linalg_cholesky_ex",
            "linalg_eig",
            "linalg_eigh",
            "linalg_eigvals",
            "linalg_eigvalsh",
            "linalg_ldl_factor",
            "linalg_ldl_factor_ex",
            "linalg_svd",
            "qr",
            "singular_vectors",
            "svd",
        ),
        HERMITIAN,
    ),
    **dict.fromkeys(("ldl_system", "linalg_ldl_solve", "linalg_lu_solve", "lu_solve", "lu_unpack"), FACTORS),
    "adam_step": "writes to what it is given; tests/optim/test_optim.py",
    "index_put": "takes a tuple of index tensors; tests/ops/test_index.py",
    "std_mean": "std and mean together",
    "without_gradient": "its gradient is an error: tests/ops/linalg/test_factors.py",
    "var_mean": "var and mean together",
}


def test_every_op_has_samples():
    missing = {op.name for op in OPS if not samples_of(op, Maker(sample_dtypes(op)[0]))}
    assert missing == set(NO_SAMPLES)


def test_public_functions_know_their_ops():
    assert [name for name, op in REGISTRY.items() if op.call.op is not op] == []
