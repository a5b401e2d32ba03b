"""Compiled functions that read what a statement changes further down, in ways that their code does not show by name."""

from __future__ import annotations

import copy  # noqa: F401
import linecache
import operator
import warnings
from collections import deque
from dataclasses import dataclass, field, replace  # noqa: F401

import pytest

import genesis
from genesis import nn


@dataclass
class State:
    k: float = 1.0
    log: list = field(default_factory=lambda: [1.0])
    table: dict = field(default_factory=lambda: {"a": 1.0})
    last: deque = field(default_factory=lambda: deque([1.0]))

    def double(self):
        return self.k * 2


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.calls, self.moved = 1.0, 0, genesis.ones(4)

    def forward(self, x):
        raise NotImplementedError


k_of, log_of, last_of = operator.attrgetter("k"), operator.attrgetter("log"), operator.attrgetter("last")
name = "k"
WAYS = {  # (what is read, what changes behind it)
    "getattr": ("getattr(s, name)", "s.k *= 0.5"),
    "getattr with a default": ("getattr(s, name, 0)", "s.k += 1"),
    "attrgetter": ("k_of(s)", "s.k *= 0.5"),
    "object": ("object.__getattribute__(s, 'k')", "s.k *= 0.5"),
    "all attributes": ("max(v for v in vars(s).values() if type(v) is float)", "s.k += 1"),
    "copy": ("copy.copy(s).k", "s.k += 1"),
    "deepcopy": ("copy.deepcopy(s).k", "s.k += 1"),
    "replace": ("replace(s, log=[]).double()", "s.k = s.k * 0.5"),
    "setattr": ("getattr(s, name)", "setattr(s, name, s.k * 0.5)"),
    "a list": ("sum(log_of(s))", "s.log.append(2.0)"),
    "an item of a list": ("log_of(s)[-1]", "s.log[-1] += 1"),
    "a list that is added to": ("max(vars(s)['log'])", "s.log += [s.log[-1] + 1]"),
    "a deque": ("sum(last_of(s))", "s.last.append(2.0)"),
    "a dictionary": ("dict(**s.table)['a']", "s.table['a'] += 1"),
    "a dictionary, whole": ("operator.itemgetter('a')(s.table)", "s.table.update(a=s.table['a'] + 1)"),
    "of a module": ("getattr(m, 'sca' + 'le')", "m.scale = m.scale * 0.5"),
    "of a module, a whole number": ("vars(m)['calls']", "m.calls += 1"),
    "of a module, a tensor": ("getattr(m, 'mov' + 'ed')", "m.moved = (m.moved * 2).detach()"),
}


@pytest.fixture
def made(monkeypatch):
    """Makes functions of text whose lines are known."""

    def make(read, change):
        lines, title = (
            ["def step(x):", f"    factor = {read}", f"    {change}", "    return (x * factor).sum()"],
            "<step>",
        )
        monkeypatch.setitem(linecache.cache, title, (1, None, [f"{line}\n" for line in lines], title))
        scope = {**globals(), "s": State(), "m": Scaled()}
        exec(compile("\n".join(lines), title, "exec"), scope)
        return scope["step"]

    return make


@pytest.mark.parametrize("way", WAYS)
def test_what_a_statement_changes_is_no_constant(way, made):
    step, compiled, x = made(*WAYS[way]), genesis.compile(made(*WAYS[way])), genesis.ones(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [compiled(x).item() for _ in range(5)] == [step(x).item() for _ in range(5)]


def test_what_nobody_reads_costs_nothing():
    """A count is kept by Python, and the function is compiled."""
    module, x = Scaled(), genesis.ones(4)

    @genesis.compile
    def step(x):
        module.calls += 1
        return (x * 2).sum()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [step(x).item() for _ in range(4)] == [8.0] * 4
    assert module.calls == 4 and len(step._recent) == 1


def test_what_is_unknown_for_a_while_is_there_afterwards():
    """Also where it is read, and the function is not compiled."""
    state = State()

    @genesis.compile
    def step(x):
        y = x * getattr(state, name)
        state.k += 1
        state.log.append(0.5)
        return y.sum()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [step(genesis.ones(1)).item() for _ in range(3)] == [1.0, 2.0, 3.0]
    assert state.k == 4.0 and state.log == [1.0, 0.5, 0.5, 0.5]


def ones_of(table):
    return next(iter(table.values()))


UNNAMED = [  # statements that write to what no name leads to
    "ones_of(table).k += 1",
    "table.get('a').k += 1",
    "[*table.values()][0].k += 1",
    "states[len(states) - 1].k += 1",
    "ones_of(table).table['a'] += 1",
    "ones_of(table).log[0] += 1",
    "ones_of(table).log[-1] += 1",
]


@pytest.mark.parametrize("write", UNNAMED)
@pytest.mark.parametrize("name", ["k", "log[0]", "table['a']"])
def test_writes_to_what_no_name_leads_to_are_seen_by_those_who_read_it(write, name, monkeypatch):
    def make():
        lines = [
            "def step(x):",
            f"    y = (x * 2).sum() * states[0].{name}",
            f"    {write}",
            "    w.mul_(1.5)",
            f"    return y + (x * w).sum() * states[0].{name}",
        ]
        monkeypatch.setitem(linecache.cache, "<unnamed>", (1, None, [f"{line}\n" for line in lines], "<unnamed>"))
        state = State()
        scope = {"states": [state], "table": {"a": state}, "w": genesis.ones(2), "ones_of": ones_of}
        exec(compile("\n".join(lines), "<unnamed>", "exec"), scope)
        return scope["step"]

    step, compiled, x = make(), genesis.compile(make()), genesis.ones(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [compiled(x).item() for _ in range(5)] == pytest.approx([step(x).item() for _ in range(5)])


BEHIND = {  # found by fuzz_hidden: what is read in ways that no name shows, beside or behind the statement that changes it
    "an attribute": ("vars(s)['k'] += 0.25", "k_of(s)", ""),
    "a length": ("s.log += [0.25]", "len(vars(s)['log'])", ""),
    "what is beside a list that changes": (
        "operator.iadd(s.log, [1.0])",
        "max(vars(s)['table'].values())",
        "s.table['a'] = 3.0",
    ),
}


@pytest.mark.parametrize("way", BEHIND)
@pytest.mark.parametrize("first", ["the change", "the read"])
def test_what_is_read_unseen_is_that_of_the_call(monkeypatch, way, first):
    change, read, between = BEHIND[way]
    lines = [f"    {change}", f"    factor = {read}"]
    lines = ["def step(x):", *(lines if first == "the change" else lines[::-1]), "    return (x * factor).sum()"]
    monkeypatch.setitem(linecache.cache, "<behind>", (1, None, [f"{line}\n" for line in lines], "<behind>"))
    seen = []
    for compiled in (False, True):
        scope = {**globals(), "s": State()}
        exec(compile("\n".join(lines), "<behind>", "exec"), scope)
        step, results = genesis.compile(scope["step"]) if compiled else scope["step"], []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for call in range(5):
                results.append(step(genesis.ones(2)).item())
                if call == 2:
                    exec(between, scope)
        seen.append(results)
    assert seen[0] == seen[1]


class Keeping:
    pass


def test_code_that_runs_in_traces_alone_is_entered_by_one():
    def doubled(kept, x):
        kept.y = x * 2
        return kept.y

    def function(x):
        return (doubled(Keeping(), x) if genesis.compiler.is_compiling() else x * 2) + 1

    compiled = genesis.compile(function)
    for n in range(6):
        assert compiled(genesis.ones(2) * n).tolist() == [2 * n + 1] * 2
    assert len(compiled._recent) == 1
