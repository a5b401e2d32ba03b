"""What compiled functions return besides tensors: the same objects where calls return the same ones, else other ones."""

from __future__ import annotations

import functools
import types
import warnings
from collections import Counter, defaultdict, deque
from types import SimpleNamespace

import numpy as np
import pytest

import genesis
from genesis import nn


class Plain:
    def __init__(self, x=0):
        self.x = x


class Marked(genesis.Tensor):
    pass


MADE = {
    "an object": Plain,
    "a Counter": lambda: Counter(a=1),
    "a deque": lambda: deque([1]),
    "a set": lambda: {1},
    "a generator": lambda: (i for i in [1]),
    "an iterator": lambda: iter([1]),
    "a map": lambda: map(int, [1]),
    "a namespace": lambda: SimpleNamespace(a=1),
    "bytes": lambda: bytearray(b"1"),
    "an array": lambda: np.zeros(2),
    "a partial": lambda: functools.partial(int, 1),
    "an error": lambda: ValueError("a"),
    "a defaultdict": lambda: defaultdict(list),
    "a module": lambda: nn.Linear(1, 1),
    "a list": lambda: [1],
    "a dictionary": lambda: {"a": 1},
}


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_anew_is_another_one_at_each_call(name):
    make = MADE[name]
    compiled = genesis.compile(lambda x: (x * 2, make()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = [compiled(genesis.ones(2))[1] for _ in range(4)]
    assert len({id(x) for x in results}) == 4
    assert {type(x) for x in results} == {type(make())}


def test_what_is_there_is_returned_itself():
    history, table, thing, names = [1.0], {"a": 1}, Plain(), types.MappingProxyType({})

    @genesis.compile
    def step(x):
        return x * 2, history, {"table": table, "both": (thing, names)}

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            y, a, b = step(genesis.ones(2))
            assert y.tolist() == [2.0, 2.0]
            assert a is history and b["table"] is table and b["both"] == (thing, names)
            history.append(2.0)


def test_classes_of_tensors_are_kept():
    results = []
    for compiled in (False, True):
        double = genesis.compile(lambda x: (x * 2, x)) if compiled else (lambda x: (x * 2, x))
        marked = (
            genesis.compile(lambda x: (x + 1).as_subclass(Marked))
            if compiled
            else (lambda x: (x + 1).as_subclass(Marked))
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(3):
                x = genesis.ones(2).as_subclass(Marked)
                y, same = double(x)
                results.append((type(y), same is x, type(marked(genesis.ones(2)))))
    assert results == [(Marked, True, Marked)] * 6


def test_results_of_inference_mode_are_such():
    @genesis.compile(fullgraph=True)
    def step(x):
        with genesis.inference_mode():
            y = x * 2
            return y, y[1:], x[1:], x, buf, y.sum()

    buf = genesis.ones(3)
    for _ in range(3):
        results = step(genesis.ones(3))
        assert [y.is_inference() for y in results] == [True, True, True, False, False, True]
        with pytest.raises(RuntimeError, match="made in inference_mode is written to"):
            results[0].add_(1)


PARTS = {
    "expanded": lambda x: x.sum().expand(3, 4),
    "expanded rows": lambda x: x.sum(1, keepdim=True).expand(-1, 5),
    "a column": lambda x: (x * 2)[:, 1],
    "every second column": lambda x: (x * 2)[:, ::2],
    "columns of a transpose": lambda x: x.exp().T[:, 1:3],
    "a diagonal": lambda x: (x + 1).diagonal(),
    "windows": lambda x: (x + 1).unfold(1, 3, 1),
    "one of an expanded": lambda x: x.sum().reshape(1, 1).expand(3, 4)[0, 1],
}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("part", PARTS)
def test_parts_with_gaps_and_expanded_results_lie_as_those_of_calls(part, recorded):
    function, x = PARTS[part], genesis.arange(24.0).reshape(4, 6) / 8
    step = genesis.compile(function, fullgraph=True)
    for _ in range(2):
        both, gradients = [], []
        for run in (step, function):
            x = x.detach().requires_grad_(recorded)
            y = run(x)
            both.append((y.detach(), y.stride(), y.requires_grad))
            if recorded:
                gradients.append(genesis.autograd.grad((y * y).sum(), x)[0])
        genesis.testing.assert_close(both[0][0], both[1][0])
        assert both[0][1:] == both[1][1:]
        if recorded:
            genesis.testing.assert_close(*gradients)
        written = []
        for y, *_ in both:
            try:
                written.append(y.add_(1).tolist())
            except RuntimeError as error:
                written.append(str(error))
        assert written[0] == written[1] if isinstance(written[0], str) else np.allclose(*written)
