"""`explain`: the ways of losing a gradient, each named with its line of the program."""

from __future__ import annotations

import gc
import re
import weakref
from pathlib import Path

import numpy as np
import pytest

import genesis
from genesis import Function, nn
from genesis.autograd import explain
from genesis.core.graph import lost

SOURCE = Path(__file__).read_text().splitlines()


def line(mark):
    """Where in this file the comment ``# <mark>`` stands."""
    return next(i for i, text in enumerate(SOURCE, 1) if text.endswith(f"# {mark}"))


def at(mark):
    return rf"test_explain\.py:{line(mark)}\b"


@pytest.fixture(autouse=True)
def _fresh_notes():
    lost.forget_cuts()
    yield
    genesis.set_grad_enabled(True)


def leaf():
    return genesis.tensor([1.0, 2.0, 3.0], requires_grad=True)


class Unmarked(Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 1
        ctx.mark_non_differentiable(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g


class NoGradient(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return None


def detached(x):
    return (x * 2).detach().sum()  # by detach


def data(x):
    return (x * 2).data.sum()  # by data


def without_grad(x):
    with genesis.no_grad():  # no_grad block
        y = x * 2  # in no_grad
    return y.sum()


@genesis.no_grad()
def decorated(x):
    return (x * 2).sum()  # in the decorated function


def inference(x):
    with genesis.inference_mode():
        y = x * 2  # in inference mode
    return y


def switched_off(x):
    genesis.set_grad_enabled(False)  # switched off
    y = x * 2  # while switched off
    genesis.set_grad_enabled(True)
    return y.sum()


def integer(x):
    return (x * 2).long().sum()  # to integers


def comparison(x):
    return x.argmax() * 1.0  # argmax


def item(x):
    return genesis.tensor(x.sum().item())  # item


def listed(x):
    return genesis.tensor(x.tolist()).sum()  # tolist


def copied(x):
    return genesis.tensor(x).sum()  # copy


def overwritten(x):
    y = x * 2
    y.zero_()  # zeroed
    return y.sum()


@pytest.mark.parametrize(
    "lose, mark, what",
    [
        (detached, "by detach", "detach()"),
        (data, "by data", ".data"),
        (without_grad, "in no_grad", "no_grad"),
        (decorated, "in the decorated function", "no_grad"),
        (inference, "in inference mode", "inference_mode"),
        (switched_off, "while switched off", "set_grad_enabled(False)"),
        (integer, "to integers", "int64"),
        (comparison, "argmax", "argmax"),
        (item, "item", "item()"),
        (listed, "tolist", "tolist()"),
        (copied, "copy", "tensor(...)"),
    ],
)
def test_a_result_without_history_names_the_cut(lose, mark, what):
    x = leaf()
    found = explain(x, lose(x))
    assert found.verdict == "no history"
    assert not found.connected
    assert what in found.cuts[0].what
    assert re.search(at(mark), str(found))
    if lose is not comparison:
        with pytest.raises(RuntimeError, match=rf"(?s)does not require grad.*history was last cut by.*{at(mark)}"):
            lose(x).sum().backward()


def test_the_block_of_no_grad_is_named_too():
    x = leaf()
    assert re.search(at("no_grad block"), str(explain(x, without_grad(x))))


@pytest.mark.parametrize(
    "lose, mark", [(detached, "by detach"), (without_grad, "in no_grad"), (integer, "to integers"), (item, "item")]
)
def test_a_result_with_other_history_names_the_cut(lose, mark):
    x, w = leaf(), leaf()
    found = explain(x, lose(x) * w.sum())
    assert found.verdict == "not used"
    assert re.search(at(mark), str(found))
    assert explain(w, (1 + lose(x)) * w.sum()).verdict == "connected"


def test_a_value_written_over_gets_a_gradient_of_zeros():
    x = leaf()
    found = explain(x, overwritten(x))
    assert found.verdict == "zero"
    assert re.search("OverwriteBackward.*" + at("zeroed"), str(found))


def test_used_detached():
    x, w = leaf(), leaf()
    found = explain(x, (x.detach() * w).sum())  # used detached
    assert found.verdict == "used detached"
    assert re.search(rf"MulBackward \(.*{at('used detached')}", found.sentence)


def test_used_before_it_required_grad():
    x, w = genesis.ones(3), leaf()
    loss = (x * w).sum()  # too early
    x.requires_grad_()
    found = explain(x, loss)
    assert found.verdict == "used before requires_grad"
    assert re.search(at("too early"), found.sentence)


def test_freed_graph():
    x = leaf()
    loss = (x * x).sum()  # freed node
    loss.backward()  # first backward
    found = explain(x, loss)
    assert found.verdict == "freed"
    assert re.search(at("freed node"), found.sentence)
    assert re.search(rf"freed by the backward at .*{at('first backward')}", str(found))
    with pytest.raises(
        RuntimeError, match=rf"(?s){at('freed node')}.*freed by the backward at.*{at('first backward')}"
    ):
        loss.backward()


def test_rule_that_returns_none():
    x = leaf()
    found = explain(x, NoGradient.apply(x).sum())  # gives none
    assert found.verdict == "stopped"
    assert re.search(rf"NoGradientBackward \(.*{at('gives none')}", found.sentence)


def test_output_marked_non_differentiable():
    x = leaf()
    assert explain(x, Unmarked.apply(x).sum()).verdict == "no history"


def test_zero_gradient():
    x = leaf()
    found = explain(x, (-x).relu().sum())  # dead
    assert found.verdict == "zero"
    assert re.search(rf"ReluBackward \(.*{at('dead')}", found.sentence)


def test_gradient_that_is_not_finite():
    x = genesis.zeros(2, requires_grad=True)
    found = explain(x, (x.sqrt() * 2).sum())  # infinite
    assert found.verdict == "not finite"
    assert "SqrtBackward" in found.sentence
    assert re.search(at("infinite"), found.sentence)


def test_not_a_leaf():
    y = leaf() * 2  # computed
    found = explain(y, y.sum())
    assert found.verdict == "not a leaf"
    assert re.search(at("computed"), found.sentence)
    assert "retain_grad" in found.fix
    y.retain_grad()
    assert explain(y, y.sum()).verdict == "connected"


def test_does_not_require_grad():
    assert explain(genesis.ones(2), leaf().sum()).verdict == "does not require grad"
    assert "only floating" in explain(genesis.ones(2, dtype=genesis.int64), leaf().sum()).sentence


def test_never_used():
    found = explain(leaf(), leaf().sum())
    assert found.verdict == "not used"
    assert "may never have been used" in str(found)


def test_backward_that_fails():
    x = leaf()
    y = x * 2
    z = (y * y).sum()
    with genesis.no_grad():
        y.add_(1)
    found = explain(x, z)
    assert found.verdict == "failed"
    assert "modified in place by add_" in found.sentence


def test_the_path():
    x = leaf()
    y = x * 2  # step one
    found = explain(x, y.exp().sum())
    assert found.verdict == "connected"
    assert [n.name() for n in found.path] == ["AccumulateGrad", "MulBackward", "ExpBackward", "SumBackward"]
    text = str(found)
    assert re.search(rf"MulBackward \(.*{at('step one')}", text)
    assert x.grad is None
    y.exp().sum().backward()  # nothing was freed


def test_many_nodes_are_shortened():
    x = leaf()
    y = x
    for _ in range(50):
        y = y + 1
    assert "... 41 more nodes" in str(explain(x, y.sum()))


@pytest.mark.parametrize(("steps", "words"), [(10, None), (11, "... 2 more nodes")])
def test_twelve_nodes_are_not_many(steps, words):
    x = leaf()
    y = x
    for _ in range(steps):
        y = y + 1
    found = explain(x, y.sum())
    assert len(found.path) == steps + 2
    assert words in str(found) if words else "more nodes" not in str(found) and str(found).count("AddBackward") >= steps


def test_modules_and_dicts_are_explained_by_name():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    unused = nn.Linear(2, 2)
    found = explain(model, model(genesis.ones(3, 2)).sum())
    assert list(found) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert all(e.verdict == "connected" for e in found.values())
    both = explain({"used": model[0].weight, "not": unused.weight}, model(genesis.ones(3, 2)).sum())
    assert [both["used"].verdict, both["not"].verdict] == ["connected", "not used"]
    assert "not (shape [2, 2]" in both["not"].sentence


def test_a_function_is_explained_by_what_it_does_itself():
    x, w = leaf(), leaf()
    detached(x)
    found = explain(x, lambda: without_grad(x) * w.sum())
    assert [c.what.split(" ")[0] for c in found.cuts] == ["no_grad"]


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ((leaf(), 3.0), "output must be a tensor or a function that gives one, got float"),
        (("x", leaf()), "the input must be a tensor, got str"),
        (({"a": 1}, leaf()), "a must be a tensor, got int"),
    ],
)
def test_wrong_arguments(arguments, sentence):
    with pytest.raises(TypeError, match=re.escape(sentence)):
        explain(*arguments)


def test_random_graphs_agree_with_the_gradient():
    """Whatever the graph: connected exactly where `grad` gives a gradient that is not zero."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        leaves = [leaf() for _ in range(3)]
        pool = list(leaves)
        for _ in range(8):
            a, b = (pool[i] for i in rng.integers(0, len(pool), 2))
            kind = rng.integers(0, 4)
            pool.append(a * b if kind == 0 else a + b if kind == 1 else a.detach() * b if kind == 2 else b.exp() * 0.01)
        out = pool[-1].sum()
        for x in leaves:
            verdict = explain(x, out).verdict
            g = genesis.autograd.grad(out, x, allow_unused=True, retain_graph=True)[0] if out.requires_grad else None
            assert (verdict in ("connected", "not finite")) == (g is not None), verdict


def test_notes_keep_nothing_alive_and_stay_few():
    x = leaf()
    y = x * 2
    gone = weakref.ref(y._node)
    y.detach()
    gc.disable()
    try:
        del y
        assert gone() is None
    finally:
        gc.enable()
    for i in range(lost.LIMIT + 50):
        exec(compile("\n" * i + "x.detach()", "notes.py", "exec"), {"x": x})
    assert len(lost.cuts()) == lost.LIMIT
    before = list(lost.HISTORY_WATCHES)
    with genesis.no_grad():
        pass
    assert before == lost.HISTORY_WATCHES
