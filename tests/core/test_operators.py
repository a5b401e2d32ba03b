"""Operators with operands of other classes, keywords and names of in-place forms, and `out=`."""

from __future__ import annotations

import inspect
import operator

import numpy as np
import pytest

import genesis
from genesis.core.call.op import REGISTRY

BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift"]


class Other:
    """Answers every reflected operator and comparison with its name."""


for _name in (*BINARY, "lt", "le", "gt", "ge", "eq", "ne"):
    _method = f"__{_name.strip('_')}__" if _name in ("lt", "le", "gt", "ge", "eq", "ne") else f"__r{_name.strip('_')}__"
    setattr(Other, _method, lambda self, x, name=_name: name)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_unknown_operands_answer_themselves(dtype):
    x = genesis.ones(2).to(getattr(genesis, dtype))
    for name in BINARY:
        assert getattr(operator, name)(x, Other()) == name
        assert getattr(operator, "i" + name.strip("_"))(x, Other()) == name
    swapped = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
    for name, answer in swapped.items():
        assert getattr(operator, name)(x, Other()) == answer
    with genesis.inference_mode(), genesis.autocast("cpu"):
        assert x + Other() == "add"


@pytest.mark.parametrize("other", [None, "a", [1, 2], {}, object()])
def test_operands_that_nobody_knows(other):
    x = genesis.ones(2)
    for name in BINARY:
        with pytest.raises(TypeError):
            getattr(operator, name)(x, other)
        if name != "mod" or not isinstance(other, str):  # "..." % x is a text
            with pytest.raises(TypeError):
                getattr(operator, name)(other, x)
    assert (x == other) is False and (x != other) is True
    with pytest.raises(TypeError, match="add: expected a tensor or a number, got"):
        genesis.add(x, other)
    assert x.tolist() == [1, 1]


def test_numpy_operands_and_numbers_are_known():
    x = genesis.ones(2)
    for other in (np.ones(2, np.float32), np.float64(1), np.int64(1), 1, 1.0, True):
        assert (x + other).tolist() == (other + x).tolist() == [2, 2]


def test_inplace_forms_take_the_keywords_of_the_functions():
    y = genesis.tensor([3.0, 4.0])
    for mode in (genesis.no_grad, genesis.enable_grad):
        with mode():
            assert genesis.ones(2).add_(y, alpha=2).tolist() == [7, 9] and genesis.ones(2).sub_(
                y, alpha=0.5
            ).tolist() == [-0.5, -1]
            assert genesis.tensor([7.0, -7.0]).div_(2, rounding_mode="floor").tolist() == [3, -4]
            assert genesis.tensor([7, -7]).div_(2, rounding_mode="trunc").tolist() == [3, -3]
    w = genesis.ones(2, requires_grad=True)
    (w * 1).add_(w, alpha=3).sum().backward()
    assert w.grad.tolist() == [4, 4]


@pytest.mark.parametrize("name", sorted(op.name for op in REGISTRY.values() if op.inplace))
def test_inplace_forms_have_the_parameters_of_their_functions(name):
    """And speak of themselves."""
    method = getattr(genesis.Tensor, name + "_")
    options = ("self", "out", "inplace", "alpha", "rounding_mode")
    mine = [n for n in inspect.signature(method).parameters if n not in options]
    theirs = [n for n in REGISTRY[name].signature.parameters if n not in options]
    assert mine[-len(theirs) + 1 :] == theirs[1:] or len(theirs) == 1
    with pytest.raises(TypeError, match=f"{method.__name__}\\(\\) got an unexpected keyword argument 'nonsense'"):
        method(genesis.ones(2), *[1] * (len(theirs) - 1), nonsense=1)


@pytest.mark.parametrize(
    "call",
    [
        lambda out: genesis.add(genesis.ones(2, 3), 1, out=out),
        lambda out: genesis.sum(genesis.ones(3, 4), 0, out=out),
        lambda out: genesis.matmul(genesis.ones(2, 3), genesis.ones(3, 2), out=out),
        lambda out: genesis.zeros(5, out=out),
    ],
)
def test_out_is_resized(call):
    expected = call(None)
    out = genesis.empty(0)
    assert call(out) is out and out.tolist() == expected.tolist()
    out = genesis.empty(7)
    with pytest.warns(UserWarning, match="is resized to") as caught:
        assert call(out) is out
    assert out.tolist() == expected.tolist() and caught[0].filename == __file__
    view = genesis.empty(7, 2)[0]
    with pytest.raises(RuntimeError, match="out has shape"):
        call(view)


@pytest.mark.parametrize(
    "other", [genesis.ones(2, dtype=genesis.int64), genesis.tensor(1.0, dtype=genesis.float64), genesis.tensor(True)]
)
def test_the_category_and_then_the_dimensions_decide_the_dtype(other):
    x = genesis.ones(2)
    assert (x + other).dtype == (other * x).dtype == (x / other).dtype == genesis.float32
