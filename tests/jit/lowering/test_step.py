"""Calls of compiled steps: what they write where, threads, errors, memory."""

from __future__ import annotations

import os
import sys
import threading

import numpy as np
import pytest
from by_elements import phases

import genesis
from genesis import jit
from genesis.base.errors import GraphError
from genesis.jit.lowering import runner
from genesis.jit.lowering.step import Step
from genesis.kernels.cpu import memory
from genesis.kernels.llvm import loops

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")


def stepped(function, *args, native=True):
    """The step of a function, and the arrays to run it with. Every call that can be a kernel is one."""
    graph = jit.trace(function, *args)
    program = graph.program
    seed = next(s for s in range(100) if all(p.stages for p in phases(program, s))) if native else 0
    step = Step(program, phases(program, seed) if native else None)
    assert not native or all(phase.stages for phase in step.plan.phases)
    return step, tuple([x._array for x in (*args, *graph.binding.captured)])


def kinds(step):
    """Where the values that are no arguments are."""
    return sorted([where.kind for var, where in step.plan.where.items() if var not in step.takes])


def numbers(*shape):
    return genesis.tensor(np.random.default_rng(3).normal(size=shape).astype(np.float32))


def test_a_value_is_computed_right_in_the_memory_that_it_is_written_to():
    w = numbers(5, 3)
    step, arrays = stepped(lambda x: w.add_(x), numbers(5, 3))
    assert kinds(step) == ["outside"]
    assert not any("copied" in phase.why for phase in step.plan.phases)
    before = arrays[1].copy()
    assert step.run(arrays) == ()
    assert np.array_equal(arrays[1], before + arrays[0])


def test_memory_that_eager_calls_kept_goes_before_a_large_step_is_compiled(monkeypatch):
    left = []
    compiling = runner.native.addresses_in
    monkeypatch.setattr(
        runner.native,
        "addresses_in",
        lambda *given: (left.append(sum(map(len, memory._kept.values()))), compiling(*given))[1],
    )
    memory.empty((1 << 20,), np.uint8)  # and given back
    assert memory._kept
    stepped(lambda x: (x @ x) @ x, numbers(400, 400), native=False)
    assert left[0] == 0


def test_the_old_value_is_read_later():
    w = numbers(5, 3)

    def function(x):
        old = w * x
        w.add_(x)
        return old * (w - x)

    step, arrays = stepped(function, numbers(5, 3))
    x, before = (a.copy() for a in arrays)
    (y,) = step.run(arrays)
    assert np.array_equal(arrays[1], before + x)
    assert np.array_equal(y, before * x * ((before + x) - x))


def test_a_kernel_behind_the_write_reads_the_old_value():
    w = numbers(4)

    def function(x):
        old = w.clone()
        w.mul_(x)
        return old, w * x

    step, arrays = stepped(function, numbers(4), native=False)
    x, before = (a.copy() for a in arrays)
    old, y = step.run(arrays)
    assert np.array_equal(old, before) and np.array_equal(arrays[1], before * x) and np.array_equal(y, before * x * x)


def test_two_tensors_are_exchanged():
    a, b = numbers(4), numbers(4) * 2

    def function(x):
        old = a - x
        a.copy_(b)
        b.copy_(old + x)

    step, arrays = stepped(function, numbers(4), native=False)
    x, *rest = arrays
    values = {id(array): array.copy() for array in rest}
    step.run(arrays)
    first, second = a._array, b._array
    assert np.array_equal(first, values[id(second)])
    assert np.array_equal(second, values[id(first)] - x + x)


def test_views_of_memory_that_is_written_to():
    w = numbers(4, 3)

    def function(x):
        w[1:].mul_(x)
        return w[1:] * x, w.t() * 1.0

    step, arrays = stepped(function, numbers(3), native=False)
    x, before = (a.copy() for a in arrays)
    y, t = step.run(arrays)
    want = before.copy()
    want[1:] *= x
    assert np.array_equal(arrays[1], want) and np.array_equal(y, want[1:] * x) and np.array_equal(t, want.T)
    assert t.strides == want.T.strides


def test_empty_tensors():
    w = genesis.zeros(0, 3)
    step, arrays = stepped(lambda x: (w.add_(x), x * x, x.t() - x.t())[1:], genesis.zeros(0, 3))
    first, second = step.run(arrays)
    assert first.shape == (0, 3) and second.shape == (3, 0)


def test_an_array_that_overlaps_one_that_is_written_to_is_read_as_it_was():
    w = numbers(6)
    step, arrays = stepped(lambda x: (w.add_(x), w * x)[1], numbers(6))
    memory = np.arange(8, dtype=np.float32)
    x, target = memory[:6], memory[2:]
    before, given = target.copy(), x.copy()
    for _ in range(2):  # the addresses are known at the second
        memory[:] = np.arange(8)
        (y,) = step.run((x, target))
        assert np.array_equal(target, before + given) and np.array_equal(y, (before + given) * given)
    (y,) = step.run(arrays)
    assert np.array_equal(y, arrays[1] * arrays[0])


def test_two_arrays_that_are_written_to_overlap():
    a, b = numbers(6), numbers(6)
    step, arrays = stepped(lambda x: (a.add_(x), b.mul_(x))[:0], numbers(6))
    memory = np.arange(12, dtype=np.float32)
    with pytest.raises(GraphError, match="written to overlap"):
        step.run((arrays[0], memory[:6], memory[2:8]))
    assert np.array_equal(memory, np.arange(12))
    step.run(arrays)


def test_results_have_memory_of_their_own():
    step, arrays = stepped(lambda x: (x * x, x + x), numbers(7))
    first, again = step.run(arrays), step.run(arrays)
    every = [*first, *again, *arrays]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(every) for b in every[:i])
    first[0][:] = 0
    assert np.array_equal(again[0], arrays[0] * arrays[0])


def test_an_error_of_the_host_leaves_all_as_it_was():
    w = numbers(3)

    def function(x, index):
        w.add_(x)
        return x.gather(0, index)

    step, arrays = stepped(function, numbers(3), genesis.tensor([0, 2]), native=False)
    x, _, target = arrays
    before = target.copy()
    for _ in range(2):
        with pytest.raises(IndexError):
            step.run((x, np.array([0, 7]), target))
        assert np.array_equal(target, before)
    (y,) = step.run(arrays)
    assert np.array_equal(target, before + x) and np.array_equal(y, x[[0, 2]])


def test_without_native_code(monkeypatch):
    w = numbers(4, 3)

    def function(x):
        old = w * x
        w[1:].mul_(x)
        return old.t(), w - x

    seen = []
    for native in (True, False):
        monkeypatch.setattr(loops, "available", lambda native=native: native)
        before = w.clone()
        step, arrays = stepped(function, numbers(3), native=False)
        assert (step.compiled is not None) is native
        seen.append([(a.strides, a.tobytes()) for a in (*step.run(arrays), arrays[1])])
        w.copy_(before)
    assert seen[0] == seen[1]


def test_threads_that_call_the_same_step():
    step, arrays = stepped(lambda x: ((x * x + x) * x - x) * (x * x), numbers(4000))
    inputs = [arrays[0] * k for k in range(1, 6)]
    expected = [step.run((x,))[0].tobytes() for x in inputs]
    wrong = []

    def work(x, want):
        for _ in range(200):
            if step.run((x,))[0].tobytes() != want:
                wrong.append(x)

    workers = [threading.Thread(target=work, args=pair) for pair in zip(inputs, expected, strict=True)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_many_calls_need_no_more_memory():
    resource = pytest.importorskip("resource")
    w = numbers(16)
    step, arrays = stepped(lambda x: (w.mul_(x), w * x + x)[1], numbers(16))
    run, x = step.run, arrays[0]
    for _ in range(1000):
        run(arrays)
    objects, peak = sys.getallocatedblocks(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(100_000):
        run(arrays)
    assert sys.getallocatedblocks() - objects < 500
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 2000
    assert np.isfinite(x).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_process_goes_on():
    step, arrays = stepped(lambda x: x * x + x, numbers(4000))
    (want,) = step.run(arrays)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(step.run(arrays)[0], want) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert np.array_equal(step.run(arrays)[0], want)
