"""Random programs of views, writes and Functions agree with the reference; and the fuzzer finds what is broken on
purpose.
"""

from __future__ import annotations

import pytest

import genesis
from genesis import Function
from genesis.core.call import views
from genesis.core.functions.context import FunctionCtx
from genesis.core.graph import engine, node
from genesis.testing import fuzz, fuzz_writer


def explain(wrong):
    return "\n\n".join(f"seed {number}: {o.detail}\n" + "\n".join(s.text for s in o.program) for number, o in wrong)


def test_a_few_hundred_programs():
    kinds, reasons, wrong = fuzz.fuzz(600, seed=1_000_000)
    assert not wrong, explain(wrong)
    assert kinds["equal"] > 200  # not refused at all
    assert all(
        known in reasons
        for known in ("leaf that requires grad", "modified in place", "cannot be written to", "made under no_grad")
    )


@pytest.mark.slow
def test_ten_thousand_programs():
    kinds, _, wrong = fuzz.fuzz(10_000)
    assert not wrong, explain(wrong)
    assert kinds["equal"] > 4000


def no_version_check(monkeypatch):
    monkeypatch.setattr(node.Node, "_unpack", lambda self: self._saved)


def no_stale_function(monkeypatch):
    monkeypatch.setattr(FunctionCtx, "_stale", lambda self: False)
    monkeypatch.setattr(FunctionCtx, "_unpack", lambda self: self._saved)


def views_keep_their_history(monkeypatch):
    monkeypatch.setattr(views.View, "replay", lambda self, base: base if self.steps is None else self.base)


def whole_base_is_cleared(monkeypatch):
    monkeypatch.setattr(views.CopySlices, "_pull", lambda self, g: (None, self._unpack()[0].replay(g).clone()))


def sums_in_the_wrong_axis(monkeypatch):
    right = engine.fit

    def fit(node, edge, gx):
        return right(node, edge, gx) * (2 if gx._array.ndim > len(edge._shape) else 1)

    monkeypatch.setattr(engine, "fit", fit)


def returned_inputs_are_plain(monkeypatch):
    monkeypatch.setattr(views, "_lost", lambda view: view._node)


@pytest.mark.parametrize(
    "break_it",
    [
        no_version_check,
        no_stale_function,
        whole_base_is_cleared,
        sums_in_the_wrong_axis,
        returned_inputs_are_plain,
        views_keep_their_history,
    ],
)
def test_what_is_broken_is_found(monkeypatch, break_it):
    break_it(monkeypatch)
    for number in range(3000):
        program = fuzz_writer.Writer(number).program(14)
        try:
            outcome = fuzz.run(program, number)
        except Exception:
            return  # a crash is noticed, too
        if outcome.kind == "wrong":
            few = fuzz.shrunk(program, number)
            assert len(few) <= len(program)
            assert fuzz.run(few, number).kind == "wrong"
            return
    raise AssertionError("3000 programs noticed nothing")


class ReturnView(Function):
    @staticmethod
    def forward(ctx, x):
        return x.reshape(-1)

    @staticmethod
    def backward(ctx, g):
        return g


def test_a_returned_view_loses_its_history_when_its_memory_is_written_to():
    x = genesis.ones(2, requires_grad=True)
    y = x * 1
    v = ReturnView.apply(y)
    y.zero_()
    assert v.tolist() == [0, 0]
    with pytest.raises(
        RuntimeError,
        match="a Function returned its input, or a view of it, and that memory was written to in place since",
    ):
        v.sum().backward()
    y = x * 1
    v = ReturnView.apply(y)
    v.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_a_returned_view_of_what_had_no_history():
    x = genesis.ones(2, requires_grad=True)
    y = genesis.zeros(2)
    v = ReturnView.apply(y)
    y.add_(x)
    with pytest.raises(RuntimeError, match="written to in place since"):
        (v * 2).sum().backward()


def test_a_view_made_under_no_grad_is_not_written_to():
    y = genesis.ones(2, requires_grad=True) * 1
    with genesis.no_grad():
        v = y.reshape(-1)
        v.mul_(2)  # here it may
    with pytest.raises(RuntimeError, match="a view made under no_grad"):
        v.mul_(2)
    assert y.tolist() == [2, 2]
