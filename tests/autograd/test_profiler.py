"""Time by operation, node and line; forward and backward linked by the node's number."""

from __future__ import annotations

import sys
import threading
from types import ModuleType

import pytest

import genesis
from genesis import Function, nn
from genesis.autograd import profile


class Triple(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, g):
        return g * 3


def test_sequence_numbers_grow():
    x = genesis.ones(2, requires_grad=True)
    nodes = [
        (x * 2).grad_fn,
        x.exp().grad_fn,
        x.sum().grad_fn,
        Triple.apply(x).grad_fn,
        x[0].grad_fn,
        x.softmax(0).grad_fn,
    ]
    numbers = [n._sequence_nr() for n in nodes]
    assert numbers == sorted(set(numbers))
    y = x * 1
    y[0] = 5.0
    assert y.grad_fn._sequence_nr() > numbers[-1]
    assert (x * 2).grad_fn.next_functions[0][0]._sequence_nr() == 2**64 - 1


def test_forward_and_backward_are_linked():
    x = genesis.ones(3, requires_grad=True)
    with profile() as p:
        y = Triple.apply(x.exp())
        z = (y * y).sum()
        z.backward()
    assert [e.name for e in p.events if e.phase == "backward"] == [
        "SumBackward",
        "MulBackward",
        "TripleBackward",
        "ExpBackward",
    ]
    for e in p.events:
        if e.phase == "backward":
            pair = p.linked(e.sequence_nr)
            assert [q.phase for q in pair] == ["forward", "backward"]
            assert pair[0].where == pair[1].where
            assert pair[1].name.lower() == pair[0].name.lower() + "backward"
    assert all(e.seconds > 0 for e in p.events if e.phase == "backward")


def test_tables():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    with profile() as p:
        model(genesis.ones(2, 4)).sum().backward()
    forward, backward = p.by_name()["linear"]
    assert forward > 0
    assert backward > 0
    assert len(p.by_line()) == 1
    assert "linear" in repr(p)
    assert "test_profiler.py" in p.table(by="line")


def test_nothing_stays_and_other_threads_are_left_alone():
    x = genesis.ones(3, requires_grad=True)
    with profile() as p:
        thread = threading.Thread(target=lambda: (x * 2).sum().backward())
        thread.start()
        thread.join()
    (x * 2).sum().backward()
    assert p.events == []
    assert genesis.core.graph.engine.around_node.get() == ()


def test_nvtx(monkeypatch):
    monkeypatch.setitem(sys.modules, "nvtx", None)
    with pytest.raises(NotImplementedError, match="NVTX ranges need the package nvtx"):
        profile(emit_nvtx=True)
    calls = []
    fake = ModuleType("nvtx")
    fake.push_range, fake.pop_range = calls.append, lambda: calls.append("end")
    monkeypatch.setitem(sys.modules, "nvtx", fake)
    x = genesis.ones(1, requires_grad=True)
    with profile(emit_nvtx=True):
        x.exp().backward()
    assert calls == ["exp", "end", "ExpBackward", "end"]
