"""Compiled functions that write to objects of the outside in ways that neither their calls nor their code show."""

from __future__ import annotations

import functools
import itertools
import operator
import threading
import time
import warnings
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import genesis
from genesis import nn


@dataclass(frozen=True)
class Frozen:
    k: float = 1.0


class Slots:
    __slots__ = ("k",)

    def __init__(self):
        self.k = 0


class Whole:
    k = 0


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        object.__setattr__(self, "calls", self.calls + 1)
        return x * 2


def cases():
    """Names, what writes, and what is there afterwards."""
    log, table, space, frozen, slots = [], {"k": 0}, SimpleNamespace(k=0), Frozen(), Slots()
    seen, counts, lists, ordered, module = set(), Counter(), defaultdict(list), OrderedDict(a=1, b=2), Counting()
    array, packed, last = np.zeros(3), bytearray(b"\0"), deque([0, 1, 2])

    def added():
        for each in (log,):
            each += [1]  # noqa: PLW2901

    def made(whole):
        return type.__setattr__(whole, "k", whole.k + 1)

    return {
        "setitem": (lambda: operator.setitem(table, "k", table["k"] + 1), lambda: table),
        "iadd": (lambda: operator.iadd(log, [1]), lambda: log),
        "ior": (lambda: operator.ior(seen, {len(seen)}), lambda: seen),
        "__iadd__": (lambda: log.__iadd__([1]), lambda: log),
        "map": (lambda: list(map(log.append, [1, 2])), lambda: log),
        "filter": (lambda: any(filter(log.append, [1])), lambda: log),
        "partial": (lambda: functools.partial(log.append, 1)(), lambda: log),
        "object.__setattr__": (lambda: object.__setattr__(frozen, "k", frozen.k + 1), lambda: frozen.k),
        "__setattr__": (lambda: space.__setattr__("k", space.k + 1), lambda: space.k),
        "slots": (lambda: object.__setattr__(slots, "k", slots.k + 1), lambda: slots.k),
        "of a class": (lambda: made(Whole), lambda: Whole.k),
        "of a module": (lambda: module(genesis.ones(1)), lambda: module.calls),
        "Counter": (lambda: counts.update("ab"), lambda: counts),
        "what is missing": (lambda: lists[len(lists)], lambda: lists),
        "order": (lambda: ordered.move_to_end(next(iter(ordered))), lambda: list(ordered)),
        "rotate": (lambda: [*map(deque.rotate, [last])], lambda: last),
        "out": (lambda: np.add(array, 1, out=array), lambda: array.tolist()),
        "copyto": (lambda: np.copyto(array, array + 1), lambda: array.tolist()),
        "array.__iadd__": (lambda: array.__iadd__(1), lambda: array.tolist()),
        "bytes": (lambda: operator.setitem(packed, 0, packed[0] + 1), lambda: packed),
        "a name for it": (added, lambda: log),
    }


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    monkeypatch.setattr(Whole, "k", 0)


@pytest.mark.parametrize("case", cases())
def test_all_calls_write(case):
    """The trace has left what it wrote as it was, so that the call writes once."""
    seen = []
    for compiled in (False, True):
        Whole.k = 0
        write, state = cases()[case]

        def step(x, write=write):
            write()
            return x * 2

        run = genesis.compile(step) if compiled else step
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = [(run(genesis.ones(2)).sum().item(), repr(state())) for _ in range(5)]
        seen.append(results)
    assert seen[1] == seen[0]
    assert len({state for _, state in results}) > 1  # it does write


def test_it_says_what_changes():
    log = []

    @genesis.compile
    def step(x):
        functools.reduce(operator.iadd, [[1]], log)
        return x * 2

    with pytest.warns(UserWarning, match="log changes, and nothing shows where"):
        step(genesis.ones(2))
        step(genesis.ones(2))
    assert log == [1, 1]


@pytest.mark.parametrize(
    "take", ["for v in self.it: break", "v = list(itertools.islice(self.it, 2))[0]", "v = next(zip(self.it, [1]))[0]"]
)
def test_iterators_of_the_outside_go_on(take):
    class Loader:
        def __init__(self):
            self.it = iter(range(100))

    scope = {"itertools": itertools}
    exec(f"def step(self, x):\n    {take}\n    return x * v", scope)
    seen = []
    for step in (scope["step"], genesis.compile(scope["step"])):
        loader = Loader()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seen.append(([step(loader, genesis.ones(2)).sum().item() for _ in range(4)], next(loader.it)))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("take", ["p = next(rest)", "for p in rest: break"])
def test_a_generator_of_parameters_from_outside_goes_on(take):
    seen = []
    scope = {}
    exec(f"def step(rest, x):\n    {take}\n    return x * p.sum()", scope)
    for step in (scope["step"], genesis.compile(scope["step"])):
        genesis.manual_seed(0)
        rest = nn.Sequential(*[nn.Linear(1, 1) for _ in range(3)]).parameters()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seen.append(([step(rest, genesis.ones(2)).tolist() for _ in range(4)], len(list(rest))))
    assert seen[0] == seen[1]
    assert seen[0][1] == 2


def test_next_of_what_is_made_there_is_compiled():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.names = nn.Linear(2, 2), {"a": 2.0, "b": 3.0}

        def forward(self, x):
            mask = (x > 0).to(next(self.parameters()).dtype)
            held = iter([5.0, 7.0])
            factor = next(n for name, n in self.names.items() if name == "b") * next(held) * next(held)
            return self.first(x) * mask * factor * next(iter(self.names.values()), None)

    model, x = Masked(), genesis.randn(3, 2)
    run = genesis.compile(model, fullgraph=True)
    for dtype in (genesis.float32, genesis.float64):
        model.to(dtype)
        for _ in range(2):
            y = run(x.to(dtype))
            assert y.dtype == dtype
            assert genesis.allclose(y, model(x.to(dtype)))
    model.names["b"] = 1.0
    assert genesis.allclose(run(x.double()), model(x.double()))


def test_what_another_thread_does_meanwhile_stays():
    queue, stop, seen = deque(), threading.Event(), []

    def fill():
        while not stop.is_set():
            queue.append(len(seen))
            seen.append(None)
            time.sleep(1e-5)

    thread = threading.Thread(target=fill)
    thread.start()
    try:
        step = genesis.compile(lambda x: x * 2 if queue is not None else x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(3):
                step(genesis.ones(2))
    finally:
        stop.set()
        thread.join()
    assert list(queue) == list(range(len(seen)))


def test_arrays_of_all_kinds_can_be_reached():
    arrays = [np.array(1.0), np.array([None, "a"], dtype=object), np.ones((2, 3)).T, np.empty((0, 2)), np.ones(4)[::-2]]

    @genesis.compile
    def step(x):
        np.add(arrays[2], 1, out=arrays[2])
        return x * 2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            step(genesis.ones(2))
    assert (arrays[2] == 4).all()
