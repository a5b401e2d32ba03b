"""Attributes that a program gives to tensors, and gradients that are kept beside them, in compiled functions."""

from __future__ import annotations

import pytest

import genesis
from genesis import nn

pytestmark = pytest.mark.filterwarnings("ignore:compile")


def scale(p):
    return getattr(p, "scale", 5.0)


READS = {
    "by name": lambda w, others, x: x * w.scale,
    "in a function": lambda w, others, x: x * scale(w),
    "of what is in a list": lambda w, others, x: sum([p * x * p.scale for p in others]),
    "of some that have it": lambda w, others, x: sum([p * x * getattr(p, "scale", 5.0) for p in [w, *others]]),
    "whether there is one": lambda w, others, x: w * x * 2 if hasattr(w, "more") else w * x,
    "whether some have one": lambda w, others, x: sum([p * x * (2 if hasattr(p, "more") else 1) for p in others]),
    "among all": lambda w, others, x: w * x * vars(w)["scale"],
    "in the dictionary": lambda w, others, x: w * x * w.__dict__["scale"],
    "of parameters": lambda w, others, x: sum([p.sum() * p.scale for p in others[0].module.parameters()]) * x,
    "of what is not read": lambda w, others, x: x * w.scale * getattr(others[1], "more", 2),
    "of a list that is not read": lambda w, others, x: x * sum([p.scale for p in others]) * vars(w)["scale"],
}


@pytest.mark.parametrize("name", READS)
def test_attributes_of_captured_tensors_may_change(name):
    def run(compiled):
        genesis.manual_seed(0)
        w, others = nn.Parameter(genesis.ones(3)), [genesis.ones(3), genesis.ones(3) * 2]
        others[0].module = nn.Linear(2, 2)
        tensors = [w, *others, *others[0].module.parameters()]
        for p in tensors:
            p.scale = 1.0
        function, seen = (lambda x: READS[name](w, others, x)), []
        function = genesis.compile(function) if compiled else function
        for n in range(5):
            seen.append(function(genesis.ones(3)).tolist())
            for p in tensors:
                p.scale += 1
                if n == 2:
                    p.more = True
        return seen

    assert run(True) == run(False)


def kept_beside(w, x, kept):
    y = (w * x).detach().requires_grad_()
    (y * y).sum().backward()
    kept["g"] = y.grad
    return x * 1


def a_leaf_is_kept(w, x, kept):
    kept["y"] = (w * x).detach().requires_grad_()
    return x * 1


def is_kept(w, x, kept):
    y = w * x
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    return y


def will_be_kept(w, x, kept):
    y = w * x
    y.retain_grad()
    return y


def is_set(w, x, kept):
    y = x * 2
    y.grad = x * 3
    return y


def gets_an_attribute(w, x, kept):
    y = x * 2
    y.tag = 5
    return y


def is_read_again(w, x, kept):
    y = x * 2
    y.tag = "a"
    kept["tag"] = y.tag
    return x * 1


def is_counted(w, x, kept):
    w.count = getattr(w, "count", 0) + 1
    return w * x * w.count


BODIES = [kept_beside, a_leaf_is_kept, is_kept, will_be_kept, is_set, gets_an_attribute, is_read_again, is_counted]


@pytest.mark.parametrize("body", BODIES)
def test_gradients_and_attributes_of_what_the_function_makes_are_not_lost(body):
    def numbers(y):
        return [y.tolist(), y.requires_grad] if isinstance(y, genesis.Tensor) else y

    def run(compiled):
        w, kept, seen = nn.Parameter(genesis.ones(3)), {}, []
        function = lambda x: body(w, x, kept)  # noqa: E731
        function = genesis.compile(function) if compiled else function
        for n in range(4):
            y = function(genesis.full((3,), n + 1.0))
            if y.requires_grad:
                y.sum().backward(retain_graph=True)
            grad = y.grad if y.is_leaf or y.retains_grad else None
            seen.append([numbers(t) for t in (y, grad, w.grad, getattr(y, "tag", None), *kept.values())])
        return seen

    assert run(True) == run(False)


def test_attributes_of_arguments_are_read():
    function = genesis.compile(lambda x: x * getattr(x, "scale", 3.0))
    for n in range(4):
        x = genesis.ones(3)
        x.scale = n + 1.0
        assert function(x).tolist() == [n + 1.0] * 3
