"""Random programs of hooks: what hooks see is what probes get, and PyTorch calls the same ones with the same gradients."""

from __future__ import annotations

import pytest

import genesis
from genesis.core.call import views
from genesis.core.graph import engine, plan
from genesis.core.graph.hooks import NodeHooks
from genesis.testing import fuzz_hooks


def explain(wrong):
    return "\n\n".join(f"seed {number}: {detail}\n" + "\n".join(lines) for number, lines, detail in wrong)


def test_what_hooks_see_is_what_probes_get():
    assert not [difference for seed in range(60) if (difference := fuzz_hooks.probed(seed))]


def test_a_wrong_gradient_is_found(monkeypatch):
    right = NodeHooks.on_outputs
    monkeypatch.setattr(
        NodeHooks, "on_outputs", lambda self, node, g: (right(self, node, g if isinstance(g, list) else g * 2), g)[1]
    )
    assert any(fuzz_hooks.probed(seed) for seed in range(60))


@pytest.mark.parity
def test_a_few_programs_as_in_pytorch():
    kinds, wrong = fuzz_hooks.fuzz(pytest.importorskip("torch"), 80, seed=1_000_000)
    assert not wrong, explain(wrong)
    assert kinds["equal"] > 50


@pytest.mark.slow
@pytest.mark.parity
def test_twenty_thousand_programs_as_in_pytorch():
    kinds, wrong = fuzz_hooks.fuzz(pytest.importorskip("torch"), 20_000)
    assert not wrong, explain(wrong)
    assert kinds["equal"] > 14_000


def inputs_run(monkeypatch):
    right = plan.leading_to
    monkeypatch.setattr(engine, "leading_to", lambda *args: (right(*args)[0],) * 2)


def retained_gradients_stay(monkeypatch):
    monkeypatch.setattr(views, "_come_from", lambda x, new: setattr(x, "_node", new))


@pytest.mark.parity
@pytest.mark.parametrize("break_it", [inputs_run, retained_gradients_stay])
def test_what_is_broken_is_found(monkeypatch, break_it):
    reference = pytest.importorskip("torch")
    break_it(monkeypatch)
    assert any(
        fuzz_hooks.compare(fuzz_hooks.Writer(seed).program(14), genesis, reference)[0] == "wrong"
        for seed in range(1500)
    )
