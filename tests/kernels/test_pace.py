"""Short steps are run by several threads where that is faster."""

from __future__ import annotations

import pytest

import genesis
from genesis.kernels.llvm import loops
from genesis.kernels.native import pace
from genesis.kernels.native.pace import Pace

WORKERS, ONE = (7, 8, 2), (7, 8, 1)


def calls(now, times, count):
    """Who ran so many calls, which take so long by one thread and by two."""
    seen = []
    for _ in range(count):
        entry = now.entry(WORKERS)
        seen.append(entry[2])
        now.left -= 1
        if now.left < 0:
            now.took(times[entry[2]])
    return seen


@pytest.mark.parametrize(("times", "best"), [({1: 9e-5, 2: 1.2e-4}, 1), ({1: 9e-5, 2: 6e-5}, 2)])
def test_the_faster_way_is_kept_and_looked_at_again(times, best):
    now = Pace()
    first = calls(now, times, 2 * pace.BLOCK)
    assert first == [2] * pace.BLOCK + [1] * pace.BLOCK
    assert set(calls(now, times, pace.CALLS)) == {best}
    times[1], times[2] = times[2], times[1]
    assert calls(now, times, 2 * pace.BLOCK) == first
    assert set(calls(now, times, pace.CALLS)) == {3 - best}


def test_a_single_slow_call_at_the_beginning_of_a_block_does_not_count():
    now = Pace()
    for i in range(2 * pace.BLOCK):
        threads = now.entry(WORKERS)[2]
        now.took(9e-2 if i % pace.BLOCK < pace.UNUSED else {1: 9e-5, 2: 6e-5}[threads])
    assert now.entry(WORKERS) == WORKERS


def test_a_single_slow_call_does_not_decide():
    now = Pace()
    for i in range(2 * pace.BLOCK):
        threads = now.entry(WORKERS)[2]
        now.took(9e-2 if i == pace.BLOCK - 3 else {1: 9e-5, 2: 6e-5}[threads])
    assert now.entry(WORKERS) == WORKERS and 0 < now.left <= pace.CALLS


def test_long_steps_have_all_threads():
    now = Pace()
    assert calls(now, {1: 0.1, 2: 0.06}, 50) == [2] * 50


def test_the_number_of_threads_is_kept():
    now = Pace()
    assert now.entry(ONE) == ONE and now.left > 1 << 50
    assert now.entry(WORKERS) == WORKERS and now.left == 0  # measured anew
    assert now.entry((7, 8, 3))[2] == 3 and now.threads == 3


@pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")
def test_calls_of_a_step(monkeypatch):
    """Results are the same in both ways, and the step tells in which it is run."""
    genesis.manual_seed(0)
    a, b = genesis.randn(128, 256), genesis.randn(256, 256)
    compiled = genesis.compile(lambda a, b: (a @ b).relu())
    before = genesis.get_num_threads()
    try:
        genesis.set_num_threads(1)
        expected = compiled(a, b)
        genesis.set_num_threads(2)
        seen, runner = set(), compiled._recent[0].step._runner
        assert runner.parallel
        for _ in range(2 * pace.BLOCK + 5):
            seen.add(runner.pace.alone)
            assert genesis.equal(compiled(a, b), expected)
        assert seen == {True, False} and runner.pace.left > 0
    finally:
        genesis.set_num_threads(before)
