"""Compiled functions that read state of the outside in ways that their code does not show by name, while it changes there."""

from __future__ import annotations

import copy
import operator
import os
import warnings
import weakref
from array import array
from collections import ChainMap, UserDict
from dataclasses import asdict, astuple, dataclass, fields
from types import SimpleNamespace

import pytest

import genesis

changing = 1.0


@dataclass
class Fields:
    k: float = 1.0


class Slots:
    __slots__ = ("k",)

    def __init__(self):
        self.k = 1.0


class Plain:
    def __init__(self):
        self._k = 1.0

    @property
    def k(self):
        return self._k


class Classwide:
    k = 1.0


def cases():
    """Names, what is read, and what changes it."""
    space, fields_, slots, plain = SimpleNamespace(k=1.0), Fields(), Slots(), Plain()
    table, chained, own = {"k": 1.0}, {"k": 1.0}, UserDict(k=1.0)
    packed, numbers, last = bytearray(b"\1"), array("d", [1.0]), type("Last", (Classwide,), {"k": 1.0})
    chain, k_of, item_k, get_k = (
        ChainMap(chained, {}), operator.attrgetter("k"), operator.itemgetter("k"), operator.methodcaller("get", "k"),
    )  # fmt: skip
    instance = last()
    seen = weakref.ref(instance)

    def matched(kind):
        match fields_ if kind == "class" else space if kind == "named" else table:
            case Fields(k):
                return k
            case SimpleNamespace(k=k):
                return k
            case {"k": k}:
                return k

    def setter(x, name="k"):
        return lambda: setattr(x, name, 3.0)

    return {
        "attrgetter": (lambda: k_of(space), setter(space)),
        "attrgetter, made inside": (lambda: operator.attrgetter("k")(space), setter(space)),
        "attrgetter, slots": (lambda: k_of(slots), setter(slots)),
        "attrgetter, mapped": (lambda: sum(map(k_of, [space])), setter(space)),
        "attrgetter, a class": (lambda: k_of(instance), setter(last)),
        "attrgetter, a property": (lambda: k_of(plain), setter(plain, "_k")),
        "itemgetter": (lambda: item_k(table), lambda: table.update(k=3.0)),
        "methodcaller": (lambda: get_k(table), lambda: table.update(k=3.0)),
        "a key of an order": (lambda: max([space, space], key=k_of).k, setter(space)),
        "object": (lambda: object.__getattribute__(space, "k"), setter(space)),
        "__getattribute__": (lambda: space.__getattribute__("k"), setter(space)),
        "match, by position": (lambda: matched("class"), setter(fields_)),
        "match, by name": (lambda: matched("named"), setter(space)),
        "match, a dictionary": (lambda: matched("table"), lambda: table.update(k=3.0)),
        "copy": (lambda: copy.copy(space).k, setter(space)),
        "deepcopy": (lambda: copy.deepcopy(fields_).k, setter(fields_)),
        "asdict": (lambda: asdict(fields_)["k"], setter(fields_)),
        "astuple": (lambda: astuple(fields_)[0], setter(fields_)),
        "fields": (lambda: getattr(fields_, fields(fields_)[0].name), setter(fields_)),
        "repr": (lambda: float(repr(fields_).count("3")), setter(fields_)),
        "text": (lambda: float(f"{space}".count("=")), setter(space, "other")),
        "text of some width": (lambda: float(f"{space!s:>9}".count("=")), setter(space, "other")),
        "equal": (lambda: 2.0 if fields_ == Fields(1.0) else 1.0, setter(fields_)),
        "class": (lambda: instance.__class__.k, setter(last)),
        "type": (lambda: type(instance).__mro__[0].k, setter(last)),
        "weakref": (lambda: seen().k, setter(instance)),
        "globals": (lambda: globals()["changing"], lambda: globals().update(changing=3.0)),
        "environment": (lambda: float(os.environ.get("CHANGING", "1")), lambda: os.environ.update(CHANGING="3")),
        "ChainMap": (lambda: chain["k"], lambda: chained.update(k=3.0)),
        "UserDict": (lambda: own["k"], lambda: own.update(k=3.0)),
        "bytearray": (lambda: float(packed[0]), lambda: packed.__setitem__(0, 3)),
        "array": (lambda: max(numbers), lambda: numbers.append(3.0)),
    }


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    monkeypatch.setitem(globals(), "changing", 1.0)
    monkeypatch.setenv("CHANGING", "1")


@pytest.mark.parametrize("case", cases())
def test_what_code_does_not_name_is_no_constant(case):
    read, change = cases()[case]

    @genesis.compile
    def step(x):
        return (x * read()).sum()

    x = genesis.ones(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is compiled
        before = [step(x).item() for _ in range(3)]
        assert before == [2.0 * read()] * 3
        change()
        assert [step(x).item() for _ in range(3)] == [2.0 * read()] * 3 != before


def test_what_code_does_not_look_at_may_change():
    """An object that it only hands on; a copy reads all of another one."""
    state, options = SimpleNamespace(k=1.0, calls=0), Fields()

    def scaled(x, state):
        return x * state.k * copy.copy(options).k

    @genesis.compile
    def step(x):
        return scaled(x, state).sum()

    for _ in range(12):
        assert step(genesis.ones(2)).item() == 2.0
        state.calls += 1
    assert len(step._recent) == 1
