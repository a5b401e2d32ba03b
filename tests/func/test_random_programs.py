"""Random programs of views, writes and Functions, traced, batched and in forward mode."""

from __future__ import annotations

import pytest

from genesis.jit.traced import Traced
from genesis.testing.fuzz_transforms import check


def explain(wrong):
    return "\n\n".join(f"seed {number}, {way}:\n" + "\n".join(lines) for number, way, lines in wrong)


def test_a_hundred_programs():
    counts, wrong = check(100, seed=50_000)
    assert not wrong, explain(wrong)
    assert (
        counts["trace equal"] > 80
        and counts["passes equal"] > 80
        and counts["vmap equal"] > 80
        and counts["jvp equal"] > 70
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 3000, 500))
def test_three_thousand_programs(seed):
    counts, wrong = check(500, seed)
    assert not wrong, explain(wrong)
    with_gradient = 500 - counts["no gradient"]
    assert with_gradient > 440 and counts["trace equal"] == with_gradient
    assert counts["vmap equal"] >= with_gradient - 2 and counts["jvp equal"] > 400


def views_are_copies(monkeypatch):
    monkeypatch.setattr(
        Traced,
        "view",
        lambda self, name, args, spec: Traced(
            self.tracer, type(self.cell)(self.tracer.emit(name, (self.var(), *args))), spec
        ),
    )


def writes_are_lost(monkeypatch):
    monkeypatch.setattr(Traced, "assign", lambda self, value: None)


@pytest.mark.parametrize("broken", [views_are_copies, writes_are_lost], ids=lambda f: f.__name__)
def test_it_finds_what_is_broken(monkeypatch, broken):
    broken(monkeypatch)
    _, wrong = check(60, seed=50_000)
    assert wrong
