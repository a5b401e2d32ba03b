"""The questions that a compiled call asks of many objects at once."""

from __future__ import annotations

from collections import OrderedDict

import pytest

import genesis
from genesis import nn
from genesis.jit.compiling import checks
from genesis.jit.compiling.identity import Rows, unchanged
from genesis.jit.compiling.text import MISS, Text
from genesis.kernels.llvm import loops

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")


class Slots:
    __slots__ = ("first", "second")


class Derived(Slots):
    """Has a ``__dict__``, too."""


def asked(rows):
    """What native code says, as a function."""
    table = rows.table()
    return lambda: unchanged()(table.ctypes.data) == 1


def test_attributes_entries_and_items_are_where_they_were():
    """Each change is seen, and undone it is as it was."""
    thing, values, named, items, empty, held = Derived(), [object() for _ in range(9)], {}, [], {}, object()
    thing.first, thing.second = values[:2]
    named |= {"a": values[2], 7: values[3], thing: values[4]}
    items += values[5:7]
    cell = (lambda: held).__closure__[0]
    rows, first = Rows(), held
    assert rows.attribute(thing, "first") and rows.attribute(thing, "second") and rows.attribute(cell, "cell_contents")
    assert all([rows.entry(named, key) for key in ("a", 7, thing, "missing")])
    assert rows.whole(items) and rows.whole(empty) and rows.whole(named)
    same = asked(rows)
    assert same()
    for change, back in [
        (lambda: setattr(thing, "second", object()), lambda: setattr(thing, "second", values[1])),
        (lambda: delattr(thing, "first"), lambda: setattr(thing, "first", values[0])),
        (lambda: named.update(a=object()), lambda: named.update(a=values[2])),
        (lambda: named.update(missing=None), lambda: named.pop("missing")),
        (lambda: items.append(None), lambda: items.pop()),
        (lambda: items.__setitem__(1, object()), lambda: items.__setitem__(1, values[6])),
        (lambda: empty.update(a=1), lambda: empty.clear()),
        (lambda: setattr(cell, "cell_contents", None), lambda: setattr(cell, "cell_contents", first)),
        (lambda: delattr(cell, "cell_contents"), lambda: setattr(cell, "cell_contents", first)),
    ]:
        change()
        assert not same()
        back()
        assert same()


def test_the_order_of_entries_counts():
    a, b = object(), object()
    held, rows = {1: a, 2: b}, Rows()
    assert rows.whole(held)
    same = asked(rows)
    held[1] = held.pop(1)
    assert list(held.values()) == [b, a] and not same()


def test_some_entries_are_looked_at_in_one_go():
    """Other values may change; not their keys, for what is looked at could be another entry's."""
    a, b = object(), object()
    held, few = {"step": 1, "mean": a, "square": b}, dict.fromkeys(range(40))
    rows = Rows()
    assert rows.entries(held, ["mean", "square"]) and len(rows.rows) == 1
    assert not rows.entries(held, ["mean", "gone"]) and not rows.entries(few, [1, 2])
    same = asked(rows)
    held["step"] = 2
    assert same()
    held["mean"] = b
    assert not same()
    held["mean"] = a
    assert same()
    del held["step"], held["square"]
    held |= {"other": b, "square": b}
    assert not same()
    assert len(held) == 3


class Asking(dict):
    def __getitem__(self, key):
        return 0


class Strange:
    def __hash__(self):
        return 0


def test_attributes_of_classes_are_where_they_were():
    """The view that a class gives of them is another object each time; the questions are of the dictionary behind it."""

    class Kind:
        way = staticmethod(abs)

    rows, first = Rows(), Kind.__dict__["way"]
    assert rows.entry(vars(Kind), "way") and rows.entry(vars(Kind), "other") and rows.entry(vars(object), "__setattr__")
    assert len(rows.rows) == 3 and rows.entry(vars(object), "__setattr__") and len(rows.rows) == 3
    same = asked(rows)
    assert same()
    Kind.way = staticmethod(min)
    assert not same()
    Kind.way = first
    Kind.other = None
    assert not same()
    del Kind.other
    assert same()


def test_what_python_has_to_be_asked_for_is_refused():
    class Property:
        first = property(lambda self: 0)

    rows, key = Rows(), Strange()
    assert not rows.attribute(Property(), "first") and not rows.entry(Asking(a=1), "a")
    assert not rows.entry({key: 1}, key) and not rows.whole(OrderedDict(a=1)) and not rows.whole((1,))
    assert not rows.rows


@pytest.mark.parametrize("native", [True, False])
def test_equal_objects_are_as_good_where_they_may_be(native, monkeypatch):
    """Native code does not find the same string; Python finds an equal one. Another float is not looked at more closely."""
    if not native:
        monkeypatch.setattr(checks, "unchanged", lambda: None)
    text, held, odd = Text(), {"name": "some name"}, {"x": 2.5}
    guarded = checks.Guarded(text)
    guarded.whole(held)
    guarded.whole(odd)
    guarded.entries(held, ["gone"])
    text.add(*guarded.lines(), "return True")
    call = text.compiled("call", "")
    assert call() is True
    held["name"] = "".join(["some ", "name"])
    assert call() is True
    held["name"] = "another"
    assert call() is MISS
    held["name"], x = "some name", odd["x"]
    odd["x"] = float("2.5")
    assert call() is MISS
    odd["x"] = x
    assert call() is True
    del odd["x"]
    assert call() is MISS
    odd["x"], held["gone"] = x, 1
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
