"""The generated tests of ops on a device that is not the CPU."""

from __future__ import annotations

import pytest

import genesis
import genesis.distributed.nn.ops  # noqa: F401  # ops that are imported late
from genesis.core.call.op import REGISTRY
from genesis.testing import Maker
from genesis.testing.devices import check_memory, check_op_on
from genesis.testing.opcheck import sample_dtypes, samples_of

# whose samples say "to the CPU"
OPS = sorted([op for op in REGISTRY.values() if not (op.kind.moves or op.kind.draws)], key=lambda op: op.name)
DTYPES = (genesis.float64, genesis.complex128, genesis.int64, genesis.bool)


def test_the_memory_keeps_its_promises(pretend):
    check_memory(pretend)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_an_op_gives_what_it_gives_on_the_cpu(op, pretend):
    for dtype in sample_dtypes(op):
        if dtype in DTYPES:
            for i in range(len(samples_of(op, Maker(dtype)))):
                check_op_on(
                    pretend, op, lambda i=i, dtype=dtype: samples_of(op, Maker(dtype, seed=i, requires_grad=True))[i]
                )


# which read memory as it lies
@pytest.mark.parametrize(
    "op",
    [
        op
        for op in OPS
        if op.name
        not in ("view_shape", "view_dtype", "view_as_complex", "strided_view", "as_strided", "as_strided_scatter")
    ],
    ids=lambda op: op.name,
)
def test_an_op_gives_what_it_gives_on_the_cpu_on_strided_tensors(op, pretend):
    dtype = sample_dtypes(op)[0]
    for i in range(len(samples_of(op, Maker(dtype)))):
        check_op_on(pretend, op, lambda i=i: samples_of(op, Maker(dtype, seed=i, requires_grad=True))[i], "strided")
