"""Numbers of the host in compiled functions: those that change from call to call are inputs, nothing is traced again."""

from __future__ import annotations

import copy
import ctypes
import datetime
import decimal
import fractions
import linecache
import math
import warnings
from array import array
from types import SimpleNamespace

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis import nn, optim
from genesis.testing import fuzz_compile

KINDS = [
    name
    for name in optim.__all__
    if name not in ("Optimizer", "LBFGS", "SparseAdam", "lr_scheduler", "swa_utils", "Adafactor", "Muon")
]


class Settings:
    """What a program reads numbers from."""

    rate, kind = 0.5, "mean"


def data(call):
    stream = genesis.Generator().manual_seed(call)
    return genesis.randn(6, 4, generator=stream), genesis.randn(6, 2, generator=stream)


def both(make, calls=10):
    """What a step returns and leaves, as it is and compiled; ``make(model)`` gives the step, and what changes after a call."""
    seen, step = [], None
    for compiled in (False, True):
        genesis.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        step, after = make(model)
        step = genesis.compile(step, fullgraph=True) if compiled else step
        losses = []
        for call in range(calls):
            losses.append(step(*data(call)).item())
            after(call)
        seen.append(losses + [p.detach().sum().item() for p in model.parameters()])
    np.testing.assert_allclose(seen[1], seen[0], rtol=2e-5, atol=1e-6)
    return step


def with_options(made, change):
    def make(model):
        optimizer = made(model.parameters())

        def step(x, y):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return step, lambda call: change(optimizer, optimizer.param_groups[0], call)

    return make


@pytest.mark.parametrize("name", KINDS)
def test_options_that_are_floats_may_change(name):
    def change(optimizer, group, call):
        for key, value in group.items():
            if key == "betas":
                group[key] = (0.8 + 0.01 * call, 0.99 + 0.0005 * call)
            elif type(value) is float and value != 0:
                group[key] = value * (1.02 if key in ("lr", "eps", "weight_decay") else 0.99)

    step = both(with_options(lambda ps: getattr(optim, name)(ps, lr=0.01), change))
    assert len(step._recent) == 1


@pytest.mark.parametrize("made", [lambda ps: optim.AdamW(ps, lr=0.01), lambda ps: optim.SGD(ps, lr=0.01, momentum=0.9)])
def test_a_schedule_of_rate_and_momentum_is_followed(made):
    schedules = []

    def change(optimizer, group, call):
        if call == 0:
            schedules.append(optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=30))
        schedules[-1].step()

    step = both(with_options(made, change), 14)
    assert len(step._recent) == 1 and "0 graphs" not in step.explain()


def test_an_option_that_python_decides_by_has_a_graph_for_each_decision():
    def change(optimizer, group, call):
        group["weight_decay"] = 0.01 * (call % 3)

    step = both(with_options(lambda ps: optim.SGD(ps, lr=0.01, momentum=0.9, weight_decay=0.0), change), 12)
    assert len(step._recent) == 2
    assert "bool(SGD.param_groups[0]['weight_decay'])" in step.explain()


def reading(where):
    """A step that reads a number that changes."""
    settings, first = Settings(), 0.5

    def make(model):
        model.scale, settings.rate, cell = first, first, first
        optimizer = optim.SGD(model.parameters(), lr=0.01)

        def step(x, y):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            if where == "an attribute":
                loss = loss * (1 - settings.rate) + settings.rate**2
            elif where == "a module":
                loss = loss * model.scale
            elif where == "a closure":
                loss = loss * cell
            elif where == "a decision":
                loss = loss * settings.rate if settings.rate < 0.8 else loss / 2
            loss.backward()
            if where == "a bound":
                nn.utils.clip_grad_norm_(model.parameters(), settings.rate * 0.1)
            optimizer.step()
            return loss

        def after(call):
            nonlocal cell
            new = first + 0.05 * call
            if where == "a module":
                model.scale = new
            elif where == "a closure":
                cell = new
            else:
                settings.rate = new

        return step, after

    return make


@pytest.mark.parametrize("where", ["an attribute", "a module", "a closure", "a decision", "a bound"])
def test_a_number_that_changes_becomes_an_input(where):
    step = both(reading(where), 12)
    assert len(step._recent) == (3 if where == "a decision" else 2)  # the first graph takes it for a constant


def test_arguments_that_are_floats_become_inputs():
    @genesis.compile(fullgraph=True)
    def scaled(x, factor, *, power=1.0):
        return x * factor + power

    x = genesis.ones(3)
    for call in range(12):
        assert scaled(x, 0.5 * call, power=2.0 - call).tolist() == (x * (0.5 * call) + (2.0 - call)).tolist()
    assert len(scaled._recent) <= 4
    assert scaled(x, 2, power=1.0).tolist() == [3.0] * 3  # another kind of number


def test_what_functions_in_c_compute_of_a_number_stays_a_constant_of_its_graph():
    settings = Settings()

    @genesis.compile
    def decayed(x):
        return x * math.exp(-settings.rate) + np.sin(settings.kind_of) + x * settings.other

    settings.kind_of, settings.other = 1.0, 0.1
    x = genesis.ones(2)
    for call in range(5):
        settings.rate, settings.kind_of = 0.1 * call, 1.0 + call
        expected = math.exp(-settings.rate) + np.sin(settings.kind_of) + settings.other
        assert decayed(x).tolist() == pytest.approx([expected] * 2)


def test_text_that_is_made_of_a_number_follows_it():
    """``%`` reads floats past their methods."""
    pattern = "%.3f"

    @genesis.compile
    def f(x, rate):
        return {"rate %.3f" % rate: x * rate, pattern % rate: x}  # noqa: UP031

    for rate in (0.5, 0.5, 0.25, 0.125, 0.0625):
        text = f"{rate:.3f}"
        assert list(f(genesis.ones(()), rate)) == [f"rate {text}", text]


def test_gradients_through_a_function_follow_its_numbers():
    settings = Settings()
    double = genesis.compile(lambda x: (x * settings.rate).tanh().sum(), fullgraph=True)
    x = genesis.randn(5, requires_grad=True)
    for call in range(6):
        settings.rate = 0.3 * call
        (g,) = genesis.autograd.grad(double(x), [x])
        (expected,) = genesis.autograd.grad((x * settings.rate).tanh().sum(), [x])
        assert genesis.allclose(g, expected, atol=1e-6)
    assert len(double._recent) == 2


def test_the_message_at_the_end_of_graphs_names_what_changed():
    settings = Settings()
    settings.size = 0

    @genesis.compile
    def padded(x):
        return F.pad(x, (settings.size, 0))

    with pytest.warns(UserWarning, match="it was traced 8 times, .*settings.size is 8, it was"):
        for settings.size in range(12):
            assert padded(genesis.ones(2)).numel() == settings.size + 2


def test_a_graph_with_options_as_inputs_can_be_bound_to_another_optimizer():
    def made(momentum):
        p = nn.Parameter(genesis.ones(3))
        optimizer = optim.SGD([p], lr=0.1, momentum=momentum)

        def step():
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()

        step()
        return p, optimizer, step

    (p, first, step), (q, second, _), (r, _, expected) = made(0.9), made(0.5), made(0.5)
    bound = genesis.jit.trace(step).bind((p, q), (first, second))
    for _ in range(3):
        bound.replay()
        expected()
    assert q.tolist() == r.tolist()


def test_learning_rates_of_other_kinds_are_those_of_eager_steps():
    """The formulas of an optimizer are written into the call; what is no float there is asked for in the other way."""
    results = []
    for made in (lambda f: f, genesis.compile):
        weight = nn.Parameter(genesis.ones(3))
        optimizer = genesis.optim.AdamW([weight], lr=0.1)

        def step(x, weight=weight, optimizer=optimizer):
            optimizer.zero_grad()
            (weight * x).square().sum().backward()
            optimizer.step()

        call, values = made(step), []
        for rate in (0.1, 0.05, 1, np.float64(0.25), 0.125):
            optimizer.param_groups[0]["lr"] = rate
            call(genesis.tensor([1.0, -2.0, 0.5]))
            values.append(weight.detach().tolist())
        results.append(values)
    np.testing.assert_allclose(*results, rtol=1e-6)


@pytest.mark.parametrize(
    "line",
    [
        "optimizer.param_groups[-1]['lr'] *= 0.9",
        "optimizer.param_groups[last]['lr'] *= 0.9",
        "optimizer.param_groups[len(optimizer.param_groups) - 1]['lr'] *= 0.9",
        "optimizers[0].param_groups[1]['lr'] = 0.5 * optimizers[-1].param_groups[0]['lr']",
        "optimizer.param_groups[-1].update(lr=optimizer.param_groups[-1]['lr'] * 0.9)",
        "[g.update(lr=g['lr'] * 0.9) for g in optimizer.param_groups]",
        "for g, f in zip(optimizer.param_groups, (0.5, 0.9)): g['lr'] = g['lr'] * f",
        "for i, _ in enumerate(optimizer.param_groups): optimizer.param_groups[i]['lr'] *= 0.9 + 0.01 * i",
    ],
)
@pytest.mark.parametrize("kind", ["SGD", "AdamW"])
def test_rates_that_the_step_changes_before_it_takes_them(line, kind):
    """Found by fuzz_recipes, seed 3002598: Python did not know which numbers change, and changed them behind the step."""

    def seen(compiled):
        w, v = genesis.ones(3, requires_grad=True), genesis.ones(3, requires_grad=True)
        optimizer = getattr(genesis.optim, kind)([{"params": [w]}, {"params": [v], "lr": 0.2}], lr=0.1)
        scope = {"optimizer": optimizer, "optimizers": [optimizer], "last": -1, "w": w, "v": v}
        lines = [line, "optimizer.zero_grad()", "((w * x).sum() + (v * x).sum()).backward()", "optimizer.step()"]
        source, name = "def step(x):\n    " + "\n    ".join(lines), f"<{kind}, {line}>"
        linecache.cache[name] = len(source), None, source.splitlines(True), name
        exec(compile(source, name, "exec"), scope)
        run, results = genesis.compile(scope["step"]) if compiled else scope["step"], []
        for call in range(6):
            run(genesis.ones(3) * call)
            results += [w.tolist(), v.tolist(), [g["lr"] for g in optimizer.param_groups]]
        return results

    with fuzz_compile.arithmetic(False):
        assert seen(True) == seen(False)


def test_steps_are_counted_once_where_python_does_something_between():
    """Found by fuzz_recipes, seed 3002807: both steps were taken for the second one, as numbers were asked for again."""

    def seen(compiled):
        w, box = genesis.arange(3.0).requires_grad_(), SimpleNamespace(last=None)
        optimizer = genesis.optim.Adam([w], lr=0.1)

        def step(x):
            box.last = w.detach()
            optimizer.zero_grad()
            (w * x).square().sum().backward()
            optimizer.step()
            optimizer.step()

        run, results = genesis.compile(step) if compiled else step, []
        for call in range(6):
            run(genesis.ones(3) * call)
            results += [w.tolist(), box.last.tolist(), optimizer.state[w]["step"]]
        return results

    with fuzz_compile.arithmetic(False):
        assert seen(True) == seen(False)


# ---- what looks into numbers past their methods

LOOKS = {
    "a dictionary": lambda rate: {0.25: 0.5, 0.5: 2.0}.get(rate, 1.0),
    "an item": lambda rate: {0.25: 0.5, 0.5: 2.0, 0.75: 3.0, 0.3: 4.0}[rate],
    "a set": lambda rate: float(rate in {0.25, 0.3}),
    "a class": lambda rate: 1.0 if type(rate) is float else 2.0,
    "an attribute": lambda rate: 1.0 if rate.__class__ is float else 2.0,
    "isinstance": lambda rate: 1.0 if isinstance(rate, float) else 2.0,
    "a sign": lambda rate: +rate,
    "a copy": lambda rate: copy.deepcopy({"a": rate})["a"],
    "a decimal": lambda rate: float(decimal.Decimal(rate)),
    "a fraction": lambda rate: float(fractions.Fraction(rate)),
    "an array": lambda rate: array("d", [rate])[0],
    "a type of C": lambda rate: ctypes.c_double(rate).value,
    "a slot": lambda rate: float.__add__(rate, 1.0),
    "seconds": lambda rate: datetime.timedelta(seconds=rate).total_seconds(),
    "whole seconds": lambda rate: datetime.timedelta(seconds=4 * rate).seconds,
    "a cosine": lambda rate: math.cos(rate),
}
SHOWN = Settings()


@pytest.mark.filterwarnings("ignore:compile")  # what is not compiled is right
@pytest.mark.parametrize("where", ["an argument", "an attribute"])
@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_what_looks_into_a_number(look, where):
    def read(x):
        return x * look(SHOWN.rate)

    def step(x, rate):
        if where == "an argument":
            return x * look(rate)
        SHOWN.rate = rate
        return read(x)

    compiled, x = genesis.compile(step), genesis.ones(3)
    for rate in (0.5, 0.25, 0.75, 0.5, 0.3, 0.25):
        assert compiled(x, rate).tolist() == step(x, rate).tolist(), rate


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize(
    "asked", [lambda v: isinstance(v, float), lambda v: type(v) is float, lambda v: isinstance(v, int)]
)
def test_the_class_of_a_number_taken_out_of_a_tensor(asked):
    def step(x):
        v = x.sum().item()
        return x * 2 if asked(v) else x * 3

    compiled = genesis.compile(step)
    for x in (genesis.ones(3), genesis.zeros(3), genesis.tensor([1, 2])):
        assert compiled(x).tolist() == step(x).tolist()


class Settings:
    rate, before = 0.5, 0.0


@pytest.mark.parametrize("line", ["settings.before = old", "settings.before = old * 2", "drop.p = abs(rate) / 2"])
def test_a_number_that_is_read_before_a_statement_sets_it(line):
    source = f"""
def step(x, rate):
    old = settings.rate
    y = x * settings.rate
    settings.rate = rate
    {line}
    return y * 2
"""

    def run(compiled):
        settings, drop = Settings(), nn.Dropout(0.1)
        scope = {"settings": settings, "drop": drop}
        name = f"<read before {line}>"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        exec(compile(source, name, "exec"), scope)
        step = genesis.compile(scope["step"]) if compiled else scope["step"]
        rates = [0.25, 0.0, 0.0, 0.75, 0.75, 0.0, 0.25]
        return [(step(genesis.ones(2), rate).tolist(), settings.rate, settings.before, drop.p) for rate in rates]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(True) == run(False)


@pytest.mark.parametrize("body", ["x * float(x.numpy().sum()) * n", "x * n"])
def test_calls_of_ever_new_kinds_are_not_traced_for_ever(body):
    scope = {}
    exec(f"def step(x, n):\n    return {body}", scope)
    compiled, x = genesis.compile(scope["step"]), genesis.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(1, 40):
            assert genesis.equal(compiled(x, n), scope["step"](x, n))
    assert len(compiled.reasons.traces) <= 8
    assert len(compiled.reasons.refusals) <= 8
    assert len(compiled._left) <= 8
