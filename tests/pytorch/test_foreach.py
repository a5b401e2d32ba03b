"""``torch._foreach_*``, against PyTorch's."""

from __future__ import annotations

import re

import numpy as np
import pytest

import genesis
from genesis.pytorch.modules import find
from genesis.pytorch.stand_ins.foreach import functions

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

DATA = [np.random.default_rng(i).uniform(0.2, 0.9, shape) for i, shape in enumerate([(2,), (3, 2), (), (0,)])]
LIST, SCALARS = "list", [2.0, 3.0, 0.5, 1.0]
OPERANDS = {
    "add": [(LIST,), (2.0,), (SCALARS,)],
    "addcmul": [(LIST, LIST), (LIST, LIST, 2.0), (LIST, LIST, SCALARS)],
    "lerp": [(LIST, 0.3), (LIST, SCALARS), (LIST, LIST)],
    "norm": [(), (1,)],
    "powsum": [(2,)],
    "copy": [(LIST,)],
    "mm": [],
    "max": [],
}
OPERANDS |= dict.fromkeys(("sub", "mul", "div", "pow", "clamp_max", "clamp_min", "maximum", "minimum"), OPERANDS["add"])
OPERANDS |= {"addcdiv": OPERANDS["addcmul"]}


def called(call, make, args):
    xs = [make(x.copy()) for x in DATA]
    given = [[make(x.copy()) for x in DATA] if a is LIST else a for a in args]
    return call(xs, *given), xs


@pytest.mark.parametrize("name", sorted(functions()))
def test_results_are_those_of_pytorch(name):
    for args in OPERANDS.get(name.removeprefix("_foreach_").rstrip("_"), [()]):
        mine, changed = called(find("torch", name), genesis.tensor, args)
        its, others = called(getattr(torch, name), torch.tensor, args)
        assert type(mine) is type(its)
        for a, b in zip([*mine, *changed], [*its, *others], strict=True):
            assert a.shape == tuple(b.shape)
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_names_are_pytorchs():
    assert set(functions()) == {name for name in dir(torch) if name.startswith("_foreach_")}


def test_other_forms_of_arguments():
    with genesis.pytorch.installed() as lib:
        xs = [lib.ones(2), lib.full((3,), 2.0)]
        assert [x.tolist() for x in lib._foreach_add(xs, xs, alpha=2)] == [[3, 3], [6, 6, 6]]
        assert [x.tolist() for x in lib._foreach_pow(3.0, xs)] == [[3, 3], [9, 9, 9]]
        assert [x.tolist() for x in lib._foreach_mul(xs, lib.tensor(3.0))] == [[3, 3], [6, 6, 6]]
        for name, word in (("mul", "scalar"), ("clamp_max", "scalar"), ("pow", "exponent"), ("add", "other")):
            call = getattr(lib, f"_foreach_{name}")
            assert [x.tolist() for x in call(xs, **{word: 3.0})] == [x.tolist() for x in call(xs, 3.0)]
        assert [x.tolist() for x in lib._foreach_sub(xs, scalars=[1, 2])] == [[0, 0], [0, 0, 0]]
        assert [x.tolist() for x in lib._foreach_lerp(xs, xs, weights=xs)] == [[1, 1], [2, 2, 2]]
        assert [x.item() for x in lib._foreach_max(xs)] == [1, 2]
        assert [x.tolist() for x in lib._foreach_mm([lib.eye(2)], [lib.ones(2, 1)])] == [[[1], [1]]]
        assert [x.tolist() for x in lib._foreach_addcdiv(xs, xs, xs, scalars=[2, 3])] == [[3, 3], [5, 5, 5]]
        weights = [lib.ones(2, requires_grad=True), lib.ones(1, requires_grad=True)]
        sum(x.sum() for x in lib._foreach_mul(weights, [2.0, 3.0])).backward()
        assert [w.grad.tolist() for w in weights] == [[2, 2], [3]]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda f: f("abs")([]), RuntimeError, "_foreach_abs: the list must have at least one tensor"),
        (lambda f: f("norm")([]), RuntimeError, "the list must have at least one tensor"),
        (lambda f: f("add")([genesis.ones(1)], [1, 2]), RuntimeError, "same number of elements, got 1 and 2"),
        (lambda f: f("copy_")([genesis.ones(1)], []), RuntimeError, "same number of elements, got 1 and 0"),
        (lambda f: f("mul")([genesis.ones(1)], genesis.ones(1)), RuntimeError, "must be 0-d, it has 1"),
        (lambda f: f("mul")([genesis.ones(1)], 2, scalar=3), TypeError, "expected one operand for the tensors, got 2"),
        (lambda f: f("mul")([genesis.ones(1)]), TypeError, "expected one operand for the tensors, got 0"),
        (lambda f: f("mul")([genesis.ones(1)], exponent=2), TypeError, "unexpected keyword argument 'exponent'"),
        (lambda f: f("mul")(genesis.ones(1), 2), TypeError, "expected a list of tensors, got Tensor"),
    ],
)
def test_wrong_arguments(call, error, text):
    with pytest.raises(error, match=re.escape(text)):
        call(lambda name: find("torch", f"_foreach_{name}"))
