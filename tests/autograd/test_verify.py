"""`verify`: right rules pass, seeded bugs are found and named, and the report says so in words."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import genesis
from genesis.autograd import Report, VerifyError, verify

ROOT = Path(__file__).parent.parent.parent


def load(name):
    """A script of the benchmarks, as a module."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


rules, mutations = load("rules"), load("mutations")
SOME = [
    r
    for r in rules.RULES
    if r.name in ("Square", "Exp", "Linear", "Softmax", "LayerNorm", "SineAndCosine", "ComplexMultiply")
]


@pytest.mark.parametrize("good", rules.RULES, ids=lambda r: r.name)
def test_no_false_alarm(good):
    for seed in (0, 1):
        report = verify(good.rule, *good.make(), seed=seed)
        assert report, str(report)


@pytest.mark.parametrize("index", range(len(mutations.PATTERNS)), ids=lambda i: mutations.PATTERNS[i].name)
def test_seeded_bugs_are_found_and_named(index):
    outcome = mutations.study(index, SOME)
    if not outcome.seeded:  # it needs rules that are not among the few
        outcome = mutations.study(index)
    assert outcome.seeded and outcome.detected >= 0.9 * outcome.seeded - 0.5, outcome.misses
    assert outcome.named >= 0.8 * outcome.seeded - 0.5, outcome.misses


@pytest.mark.slow
def test_the_study_meets_its_targets():
    outcomes = [mutations.study(i) for i in range(len(mutations.PATTERNS))]
    assert sum(o.caught for o in outcomes) >= 28 and not mutations.false_alarms()
    assert sum(o.named for o in outcomes) >= 0.8 * sum(o.seeded for o in outcomes)


def test_the_page_is_that_of_the_script():
    page = (ROOT / "docs/verify_study.md").read_text()
    assert len(re.findall(r"^\| (?!seeded bug|---)", page, re.M)) == len(mutations.PATTERNS)
    assert f"into {len(rules.RULES)} right rules" in page


def function(forward, backward):
    return type("Rule", (genesis.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def saving(f):
    def forward(ctx, *args):
        ctx.save_for_backward(*args)
        return f(*args)

    return forward


X, W = (
    genesis.from_numpy(np.array([[0.3, -1.2, 0.8], [1.7, 0.4, -0.9]])),
    genesis.from_numpy(np.array([[0.5, -0.7, 1.1], [-1.3, 0.6, 0.2]])),
)

SENTENCES = [
    (lambda x: x * x, lambda ctx, g: 4 * g * ctx.saved_tensors[0], "the gradient of `x` is twice too large"),
    (lambda x: x * x, lambda ctx, g: -2 * g * ctx.saved_tensors[0], "the gradient of `x` has the wrong sign"),
    (lambda x: x * x, lambda ctx, g: 2.02 * g * ctx.saved_tensors[0], "the gradient of `x` is 1 % too large"),
    (
        lambda x: x * x,
        lambda ctx, g: 6 * g * ctx.saved_tensors[0],
        "too large by 3, the size of axis 1: a sum where a mean belongs",
    ),
    (lambda x: x * x, lambda ctx, g: 5 * g * ctx.saved_tensors[0], "the gradient of `x` is too large by a factor 2.5"),
    (
        lambda x: x.sin(),
        lambda ctx, g: g,
        "the gradient of `x` is grad_output unchanged: the factor f'(x), which is cos(`x`), is missing",
    ),
    (lambda x: x.t(), lambda ctx, g: g, "the gradient of `x` is transposed"),
    (lambda x: x.flip(1), lambda ctx, g: g.clone() * 1.0, "grad_output unchanged"),
    (lambda x: x * x, lambda ctx, g: None, "the gradient of `x` is missing (None)"),
    (lambda x: x * x, lambda ctx, g: 0 * g, "the gradient of `x` is zero everywhere"),
    (lambda x: x * x, lambda ctx, g: 2 * ctx.saved_tensors[0], "the gradient of `x` ignores grad_output"),
    (
        lambda x: x * x,
        lambda ctx, g: 2 * g * ctx.saved_tensors[0] + 1,
        "off by the constant 1 that does not depend on grad_output",
    ),
    (
        lambda x: x.abs() * x,
        lambda ctx, g: 2 * g * ctx.saved_tensors[0],
        "is wrong only where x < 0 (it has the wrong sign there)",
    ),
    (
        lambda x: x * x,
        lambda ctx, g: genesis.stack([g, g]) * ctx.saved_tensors[0],
        "the gradient of `x` is missing a sum over axis 0",
    ),
]


@pytest.mark.parametrize(("f", "backward", "words"), SENTENCES, ids=lambda v: v if isinstance(v, str) else "")
def test_sentences(f, backward, words):
    rule = function(lambda ctx, x: saving(f)(ctx, x), backward)
    if "missing a sum" in words:
        x = genesis.from_numpy(np.array([0.3, -1.2, 0.8]))
        report = verify(rule, x, checks="gradient")
    else:
        report = verify(rule, X, checks="gradient")
    assert not report and words in str(report), str(report)


def test_names_come_from_the_signature_and_swapped_gradients_are_named():
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * a, g * b

    def forward(ctx, left, right):
        ctx.save_for_backward(left, right)
        return left * right

    report = verify(function(forward, backward), X, W)
    assert "the gradients of `left` and `right` are swapped" in str(report) and report.kinds == ["swapped"]


def test_the_report():
    good = verify(SOME[0].rule, *SOME[0].make())
    assert good and not good.failures and good.raise_() is good and "all" in str(good) and isinstance(good, Report)
    with pytest.raises(KeyError, match="no check 'x'; there are same answer twice"):
        good["x"]
    bad = function(saving(lambda x: x * x), lambda ctx, g: g)
    with pytest.raises(
        VerifyError, match=r"verify Rule: \d of \d+ checks failed \(seed 3\)\n(.*\n)*  FAILED   gradient"
    ):
        verify(bad, X, raise_exception=True, seed=3)
    assert issubclass(VerifyError, RuntimeError)


def test_wrong_use():
    with pytest.raises(TypeError, match="verify: no argument is a floating tensor"):
        verify(lambda n: n, 3)
    with pytest.raises(TypeError, match="returned no floating or complex tensor"):
        verify(lambda x: 3, X)
    with pytest.raises(ValueError, match="verify: no check 'speed'\n  try: one of repeats, gradient"):
        verify(genesis.sin, X, checks=["speed"])
    with pytest.raises(ZeroDivisionError):
        verify(lambda x: 1 / 0, X)


def test_kinks_are_told_from_errors():
    report = verify(genesis.relu, genesis.tensor([-1.0, 0.0, 2.0, 0.0]))
    assert report and report["gradient of `input`"].words == "correct except at 2 kinks, moved off"
    wild = function(
        saving(lambda x: x.abs()),
        lambda ctx, g: g * genesis.where(ctx.saved_tensors[0] == 0, 7.0, ctx.saved_tensors[0].sign()),
    )
    assert verify(wild, genesis.tensor([-1.0, 0.0, 2.0])).kinds == ["kink"]


def test_structured_arguments_and_keywords():
    def model(params, x, *, scale=1.0):
        return {"out": (x @ params["w"].t() + params["b"][0]) * scale}

    report = verify(model, {"w": W, "b": [genesis.zeros(2)]}, X, scale=2.0)
    assert report, str(report)
    assert {row.check for row in report.rows} >= {
        "gradient of `params['w']`",
        "gradient of `params['b'][0]`",
        "gradient of `x`",
    }


def test_large_inputs_and_modules():
    good = next(r for r in rules.RULES if r.name == "Linear").rule

    class Bad(good):
        @staticmethod
        def backward(ctx, g):
            gx, gw, gb = good.backward(ctx, g)
            return gx, 1.01 * gw, gb

    report = verify(Bad, genesis.randn(32, 128), genesis.randn(256, 128), genesis.randn(256), checks=["gradient"])
    assert (
        report["gradient of `weight`"].words == "the gradient of `weight` is 1 % too large"
        and len(report.failures) == 1
    )
    assert "gradient of `input`" in str(verify(genesis.nn.Linear(4, 2), genesis.randn(5, 4), checks=["gradient"]))


def test_only_what_requires_grad_is_checked():
    x = genesis.randn(3, requires_grad=True)
    rows = verify(genesis.mul, x, genesis.randn(3)).rows
    assert [r.check for r in rows if r.check.startswith("gradient")] == ["gradient of `input`"]


def test_a_function_that_insists_on_float32():
    class Single(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            if x.dtype != genesis.float32:
                raise TypeError("float32 only")
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0].exp()

    class Wrong(Single):
        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0].exp() * 1.01

    x = genesis.randn(4, 3)
    report = verify(Single, x)
    assert report and report["float64"].status == "skipped", str(report)
    assert "1 % too large" in verify(Wrong, x)["gradient of `x`"].words


def test_a_saved_intermediate_is_found_by_the_second_order():
    class Rule(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            h = x * x
            ctx.save_for_backward(x, h)
            return h * x

        @staticmethod
        def backward(ctx, g):
            _, h = ctx.saved_tensors
            return g * 3 * h

    row = verify(Rule, X)["second order"]
    x = genesis.tensor(1.0, requires_grad=True)
    try:
        (g,) = genesis.autograd.grad(Rule.apply(x), x, create_graph=True)
        (second,) = genesis.autograd.grad(g, x, materialize_grads=True) if g.requires_grad else (genesis.zeros(()),)
    except RuntimeError:
        assert row.status == "skipped" and row.words.startswith("refuses: ")
        return
    assert row.status == ("passed" if second.item() == 6 else "failed")
    assert second.item() == 6 or "saved tensor 1 is an intermediate, a constant to the second derivative" in row.words


def test_a_rule_that_refuses_second_order_is_not_wrong():
    class Rule(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            if genesis.is_grad_enabled():
                raise NotImplementedError("no second order")
            return g * ctx.saved_tensors[0].cos()

    report = verify(Rule, X)
    assert report and report["second order"].words.startswith("refuses: ")


def test_random_functions_and_the_default_generator():
    before = genesis.get_rng_state()
    assert verify(lambda x: genesis.nn.functional.dropout(x, 0.5), genesis.from_numpy(np.linspace(1, 2, 12)))
    assert genesis.equal(genesis.get_rng_state(), before)
    report = verify(lambda x: x * float(np.random.default_rng().normal()), X)
    assert report.kinds == ["nondeterministic"] and "draw random numbers from Genesis's generator" in str(report)


def test_verify_changes_nothing():
    x = genesis.randn(3, 2, requires_grad=True)
    before = x.tolist()
    was = gc.isenabled()
    verify(SOME[0].rule, x)
    assert x.tolist() == before and x.grad is None and gc.isenabled() == was


def test_the_guide_lists_the_checks_and_the_rows_they_print():
    text = (ROOT / "docs/guide/debug_wrong_gradient.md").read_text()
    table = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", text, re.M))
    assert list(table) == list(importlib.import_module("genesis.autograd.checking.verify").CHECKS)
    for name, rows in table.items():
        report = verify(SOME[0].rule, genesis.randn(3, 2), checks=[name])
        printed = {
            line.strip().split("  ")[1].strip() for line in str(report).splitlines()[1:] if line.startswith("  ")
        }
        assert {row.strip() for row in rows.split(",")} <= printed, (name, printed)


def test_the_guide_runs_and_prints_what_it_says(tmp_path):
    text = (ROOT / "docs/guide/debug_wrong_gradient.md").read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.S))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(re.findall(r"```text\n(.*?)```", text, re.S))
