"""The questions that a compiled call asks of many objects at once."""

from __future__ import annotations

import pytest

import genesis
from genesis import nn
from genesis.jit.compiling.identity import same
from genesis.jit.compiling.text import MISS, Text
from genesis.kernels.llvm import loops

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")


def test_same_objects():
    things = tuple(object() for _ in range(50))
    again, compare = (*things[:20], *things[20:]), same()
    assert again is not things and compare(id(things), id(again)) == 1
    for i in (0, 17, 49):
        other = (*things[:i], object(), *things[i + 1 :])
        assert compare(id(other), id(things)) == compare(id(things), id(other)) == 0
    assert compare(id(things), id(things[:-1])) == compare(id(things[:-1]), id(things)) == 0
    assert compare(id(()), id(())) == 1


@pytest.mark.parametrize("count", [3, 40])
def test_what_is_not_there_is_no_match(count):
    """Items that are gone, and objects that are equal, are not those that were there."""
    items, values = {i: [i] for i in range(count)}, [[i] for i in range(count)]
    text = Text()
    text.alike = {f"{text.name(items)}[{i}]": items[i] for i in range(count)}
    text.alike |= {f"{text.name(values)}[{i}]": values[i] for i in range(count)}
    text.look()
    text.add("return True")
    call = text.compiled("call", "")
    assert call() is True
    items[1] = list(items[1])
    assert call() is MISS
    del items[1]
    assert call() is MISS
    items[1] = call.__globals__[next(k for k in call.__globals__ if k.startswith("k"))]
    values.pop()
    assert call() is MISS


def test_what_moves_from_one_container_to_another_is_seen():
    """Containers are compared all at once; what one has lost and the next has gained is not overlooked."""

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = [2.0, 3.0], [4.0]

        def forward(self, x):
            return x * sum(self.first) - sum(self.second)

    model = Two()
    compiled, x = genesis.compile(model), genesis.ones(2)
    for _ in range(3):
        assert compiled(x).tolist() == [1.0, 1.0]
    model.second.insert(0, model.first.pop())
    assert compiled(x).tolist() == model(x).tolist() == [-5.0, -5.0]


def test_hash_is_of_the_object():
    x = genesis.ones(2)
    assert hash(x) == hash(x) and len({x, x.clone(), x}) == 2 and {x: 1}[x] == 1
