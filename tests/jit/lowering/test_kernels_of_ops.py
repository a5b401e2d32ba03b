"""The samples of every op as one program: machine code against calls, on contiguous and on strided operands."""

from __future__ import annotations

import pytest
from native_runs import check, ops_left_to_the_host, traced

import genesis
from genesis.base.errors import GenesisError
from genesis.core.call.op import REGISTRY
from genesis.core.call.scalars import SPECIAL
from genesis.jit.lowering.parts import RULES
from genesis.jit.lowering.scalar_code import WIDE
from genesis.kernels.llvm import loops
from genesis.testing import Maker, assert_close
from genesis.testing.arguments import replace, tensors_in
from genesis.testing.devices import moved
from genesis.testing.opcheck import samples_of

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")

KINDS = {"f": "float32", "i": "int64", "b": "bool"}
PRODUCTS = ("linear", "matmul", "matmul_tn")
OPS = [
    op
    for op in REGISTRY.values()
    if (op.kind == "elementwise" and op.name not in SPECIAL) or op.name in (*RULES, *PRODUCTS, *WIDE)
]


def called(op, sample):
    """A function of the tensors of a sample, and these."""
    inputs = [x.detach() for x in tensors_in((sample.args, sample.kwargs))]

    def function(*new):
        left = iter(new)
        args, kwargs = (replace(each, lambda _: next(left)) for each in (list(sample.args), dict(sample.kwargs)))
        return [x for x in tensors_in(op.call(*args, **kwargs)) if x.dtype.category < 3]

    return function, inputs


def all_at_once(calls):
    """One function of all inputs of some calls."""

    def function(*inputs):
        left, outs = iter(inputs), []
        for each, given in calls:
            outs += each(*[next(left) for _ in given])
        return outs

    return function, [x for _, given in calls for x in given]


def calls_of(op, dtype):
    calls = []
    for sample in samples_of(op, Maker(dtype)):
        for layout in ("contiguous", "strided"):
            with genesis.no_grad():
                function, inputs = called(op, moved(sample, genesis.device("cpu"), layout))
                try:
                    genesis.jit.trace(function, *inputs)
                except (GenesisError, ArithmeticError):
                    continue  # not of this dtype, or not to be traced
            calls.append((function, inputs))
    return calls


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "bool"])
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_samples(op, dtype):
    kind = {"int64": "i", "bool": "b"}.get(dtype, "f")
    if kind not in op.dtypes.lower():
        pytest.skip("the op does not take it")
    function, inputs = all_at_once(calls_of(op, dtype))
    check(traced(function, *inputs), inputs, assert_close, op.name)


def test_what_models_are_made_of_has_kernels():
    x, w = genesis.randn(5, 7), genesis.randn(3, 7)

    def function(x, w):
        y = genesis.nn.functional.linear(x, w).relu().sigmoid() + x.sum(1, keepdim=True)
        return y.softmax(-1), y.mean(), genesis.cat([y, y], 1), x.t() @ y, (x > 0).sum(0), x.to(genesis.float64)

    assert ops_left_to_the_host(check(traced(function, x, w), (x, w), assert_close)) == []
