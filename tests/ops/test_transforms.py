"""Tests generated from the op records: forward mode against reverse mode, batches against loops."""

from __future__ import annotations

import pytest

from genesis.base import dtypes
from genesis.core.call.op import REGISTRY
from genesis.core.layers import batches, duals
from genesis.testing.make import Maker
from genesis.testing.opcheck import sample_dtypes, samples_of
from genesis.testing.transform_checks import check_jvp, check_nesting, check_trace, check_vmap

OPS = sorted([op for op in REGISTRY.values() if not op.kind.draws], key=lambda op: op.name)
WIDE = [
    pytest.param(op, d, id=f"{op.name}-{d.short}")
    for op in OPS
    for d in sample_dtypes(op)
    if d in (dtypes.float64, dtypes.complex128)
]
ALL = [
    pytest.param(op, d, id=f"{op.name}-{d.short}")
    for op in OPS
    for d in sample_dtypes(op)
    if d in (dtypes.float64, dtypes.complex128, dtypes.int64, dtypes.bool)
]

# Ops that cannot be batched: their result's shape depends on data. They say so.
REFUSE = {
    "as_strided": "a sample has no memory of its own",
    "as_strided_scatter": "a sample has no memory of its own",
    "strided_view": "a sample has no memory of its own",
    "bincount": "differs from sample to sample",
    "mask_places": "differs from sample to sample",
    "masked_select": "depends on the values",
    "nonzero": "depends on values",
    "unique": "differs from sample to sample",
    "unique_consecutive": "differs from sample to sample",
}


@pytest.mark.parametrize(("op", "dtype"), WIDE)
def test_forward_mode_is_the_transpose_of_reverse_mode(op, dtype):
    for i in range(len(samples_of(op, Maker(dtype)))):
        check_jvp(op, samples_of(op, Maker(dtype, seed=i, requires_grad=True))[i])


@pytest.mark.parametrize(("op", "dtype"), ALL)
def test_a_batch_is_a_loop(op, dtype):
    for i in range(len(samples_of(op, Maker(dtype)))):
        make = lambda seed, i=i: samples_of(op, Maker(dtype, seed=seed))[i]  # noqa: E731
        if op.name in REFUSE:
            try:
                check_vmap(op, make, gradients=False)
            except RuntimeError as error:
                assert REFUSE[op.name] in str(error)
            except NotImplementedError as error:
                assert REFUSE[op.name] in str(error)
        else:
            check_vmap(op, make, dtype in (dtypes.float64, dtypes.complex128))


@pytest.mark.filterwarnings("ignore:vmap")
@pytest.mark.parametrize(("op", "dtype"), WIDE)
def test_transforms_nest(op, dtype):
    if op.name in REFUSE:
        return
    for i in range(len(samples_of(op, Maker(dtype)))):
        check_nesting(op, samples_of(op, Maker(dtype, seed=i))[i])


def test_every_op_says_how_it_is_batched():
    """Only ops whose result's shape depends on data, and tables of counts, go one by one."""
    slow = {op.name for op in OPS if batches.how(op) == "one by one"}
    assert slow == {"bincount", "histc", "unique", "unique_consecutive"}


def test_forward_mode_by_transposition_is_for_what_has_no_rule():
    linear = {op.name for op in OPS if duals.how(op) in ("linear", "multilinear")}
    assert {"sum", "mean", "reshape", "cat", "matmul", "take_index", "cumsum"} <= linear
    assert duals.how(REGISTRY["exp"]) == "same factor" and duals.how(REGISTRY["logsumexp"]) == "transposed"


UNTRACED = {
    "bincount": "no data here",
    "masked_select": "depends on the values",
    "nonzero": "depends on values",
    "unique": "no data here",
    "unique_consecutive": "no data here",
}


def _counts_from_storage(op, sample):
    return op.name == "as_strided" and len(sample.args) == 4


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_a_replay_of_the_traced_op_is_the_op(op):
    for dtype in sample_dtypes(op):
        for i in range(len(samples_of(op, Maker(dtype)))):
            sample = samples_of(op, Maker(dtype, seed=i))[i]
            text = "begins in its storage is not known" if _counts_from_storage(op, sample) else UNTRACED.get(op.name)
            if text is not None:
                with pytest.raises(NotImplementedError, match=text):
                    check_trace(op, sample)
            else:
                check_trace(op, sample)
