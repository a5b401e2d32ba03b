"""The expression that the meaning of an elementwise op yields: every op has one, and it computes what the op computes."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.base import dtypes
from genesis.core.call.op import REGISTRY
from genesis.core.call.scalar_lowering import PRIMITIVES, evaluate, lowered
from genesis.core.call.scalars import BY_HAND, SPECIAL, Expression, rule
from genesis.testing import assert_close, samples_of
from genesis.testing.make import Maker
from genesis.testing.opcheck import sample_dtypes

OPS = [op for op in REGISTRY.values() if op.kind.aligned]
PAIRS = [pytest.param(op, dtype, id=f"{op.name}-{dtype.short}") for op in OPS for dtype in sample_dtypes(op)]
ROUGHER = ("exp2", "logaddexp", "logaddexp2", "sinc")  # whose lowered forms round once more


def test_every_elementwise_op_has_a_rule():
    without = []
    for op in OPS:
        try:
            rule(op, sample_dtypes(op)[0].np, n=1)
        except TypeError as error:
            without.append((op.name, str(error)))
    assert without == []
    assert set(BY_HAND) <= {op.name for op in OPS}, "a rule by hand of an op that does not exist"


@pytest.mark.parametrize(("op", "dtype"), PAIRS)
def test_a_rule_computes_what_its_op_computes(op, dtype):
    for i, _ in enumerate(samples_of(op, Maker(dtype))):
        sample = samples_of(op, Maker(dtype, seed=i))[i]
        bound = op.signature.bind(*sample.args, **sample.kwargs)
        bound.apply_defaults()
        operands = [bound.arguments[name] for place, name in enumerate(op.signature.parameters) if place in op.tensors]
        if not all(isinstance(x, genesis.Tensor) for x in operands):
            continue
        options = {
            name: value for place, (name, value) in enumerate(bound.arguments.items()) if place not in op.tensors
        }
        arrays = [x.detach().numpy() for x in operands]
        expression = rule(op, *[a.dtype for a in arrays], **options)
        expected = op.call(*sample.args, **sample.kwargs).detach().numpy()
        with np.errstate(all="ignore"):
            assert_close(np.broadcast_to(evaluate(expression, *arrays), expected.shape), expected, str(expression))
            simpler = lowered(expression)
            assert {each.name for each in simpler.walk()} <= PRIMITIVES
            if op.name not in ROUGHER or dtype.itemsize > 4:
                assert_close(np.broadcast_to(evaluate(simpler, *arrays), expected.shape), expected, str(simpler))
        assert expression.dtype == simpler.dtype == expected.dtype


SPECIAL_VALUES = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan, 1e-40, 3e38], np.float32)


@pytest.mark.parametrize(
    "op", [op for op in OPS if "f" in op.dtypes and op.name != "polygamma_of"], ids=lambda op: op.name
)
def test_rules_hold_for_infinities_zeros_and_nan(op):
    count = len(op.tensors)
    grid = [a.ravel() for a in np.meshgrid(*[SPECIAL_VALUES] * count)] if count < 3 else [SPECIAL_VALUES] * count
    with genesis.testing.meanings_only():  # kernels in float64 do not overflow
        expected = op.call(*map(genesis.tensor, grid)).numpy()
    for form in (rule(op, np.float32), lowered(rule(op, np.float32))):
        with np.errstate(all="ignore"):
            found = np.broadcast_to(evaluate(form, *grid), expected.shape)
        np.testing.assert_allclose(found, expected, rtol=3e-6, err_msg=str(form))
        if op.name not in SPECIAL:
            np.testing.assert_array_equal(
                np.signbit(found[~np.isnan(expected)]), np.signbit(expected[~np.isnan(expected)])
            )


def test_what_an_expression_looks_like():
    near, far = (
        "log1p(divide(subtract(multiply(2.0, x0), 1.0), subtract(1.0, x0)))",
        "log(divide(x0, subtract(1.0, x0)))",
    )
    assert str(rule(REGISTRY["logit"], "float64")) == f"where(less(absolute(subtract(x0, 0.5)), 0.15), {near}, {far})"
    assert str(rule(REGISTRY["sigmoid"], "float64")) == "divide(1.0, add(1.0, exp(negative(x0))))"
    assert str(rule(REGISTRY["add"], "float32", "int64")) == "add(x0, float32(x1))"
    assert str(rule(REGISTRY["exp"], dtypes.bfloat16.np)) == "bfloat16(exp(float32(x0)))"
    assert str(rule(REGISTRY["lt"], "float32")) == "less(x0, x1)"
    assert rule(REGISTRY["lt"], "float32").dtype == np.bool_


def test_what_several_parts_need_is_one_part():
    names = [each.name for each in rule(REGISTRY["sinc"], "float32").walk()]
    assert names.count("multiply") == 1 and names.count("equal") <= 2
    assert names[-1] == "where", "those that others need come first"


def test_a_branch_of_python_is_refused():
    symbol = rule(REGISTRY["exp"], "float32")
    assert isinstance(symbol, Expression)
    from genesis.core.call.scalars import Symbol

    with pytest.raises(TypeError, match="use np.where, not a branch of Python"):
        bool(Symbol(symbol))
    with pytest.raises(TypeError, match=r"numpy\.sort has no expression"):
        np.sort(Symbol(symbol))
    with pytest.raises(TypeError, match="reduce is no function of one element"):
        np.add.reduce(Symbol(symbol))
