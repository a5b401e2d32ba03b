"""What happens to a compiled step from outside: signals, forks, threads, errors in its kernels, many calls."""

from __future__ import annotations

import gc
import os
import random
import signal
import threading
import time
import weakref

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis import nn, optim

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


class Stop(KeyboardInterrupt):
    pass


def training(dropout=True, size=16):
    """A step, and what there is of it between two calls, as bytes."""
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, size), nn.Tanh(), nn.Dropout(0.1 if dropout else 0.0), nn.Linear(size, 4))
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    x, y = genesis.randn(16, 8), genesis.randn(16, 4)

    def step():
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    def state():
        tensors = [genesis.get_rng_state(), *model.parameters(), *[p.grad for p in model.parameters()]]
        tensors += [v for p in model.parameters() for v in optimizer.state[p].values()]
        return b"".join([np.asarray(x.detach() if isinstance(x, genesis.Tensor) else x).tobytes() for x in tensors])

    return genesis.compile(step), state


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that send signals")
@pytest.mark.parametrize("dropout", [False, True], ids=["native", "with a part of the host"])
def test_a_signal_leaves_the_state_before_or_behind_a_call(dropout):
    """Ctrl-C at random times: never parameters of one call and counts or gradients of another."""
    step, state = training(dropout)
    known, stops, call = {}, 0, 0
    for i in range(1500):
        step()
        known[state()] = i
    assert len(known) == 1500
    step, state = training(dropout)
    for _ in range(4):
        step()
    spans = []
    for _ in range(10):
        begun = time.perf_counter()
        for _ in range(8):
            step()
        spans.append(time.perf_counter() - begun)
    span = min(spans)  # a call that had to wait for the processor says nothing
    rng = random.Random(0)

    def stop(*_):
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    try:
        while stops < 200 and call < 1400:
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-6 + rng.random() * span)
                for _ in range(8):
                    step()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Stop:
                stops += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            call = known[state()]
    finally:
        signal.signal(signal.SIGALRM, before)
    assert stops > 20 and genesis.is_grad_enabled()


def in_a_child(work):
    """What a function gives in a forked process, which has half a minute."""
    come, go = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(30)
        os.write(go, work())
        os._exit(0)
    os.close(go)
    with os.fdopen(come, "rb") as told:
        there = told.read()
    return os.waitpid(child, 0)[1], there


@forks
def test_a_child_goes_on_where_its_parent_was():
    step, state = training(size=256)
    for _ in range(4):
        step()

    def work():
        for _ in range(3):
            step()
        return state()

    status, there = in_a_child(work)
    assert status == 0 and there == work()


@forks
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_waits_for_the_steps_of_other_threads():
    """The lock of a step would never open in the child, and its parameters would be between two calls."""
    step, state = training(dropout=False, size=512)
    known = set()
    for _ in range(200):
        step()
        known.add(state())
    step, state = training(dropout=False, size=512)
    for _ in range(4):
        step()
    over = threading.Event()

    def train():
        for _ in range(180):
            step()
            if over.is_set():
                break

    def work():
        there = state()
        step()
        return there

    thread = threading.Thread(target=train)
    thread.start()
    try:
        for _ in range(4):
            time.sleep(0.02)
            status, there = in_a_child(work)
            assert status == 0
            assert there in known
    finally:
        over.set()
        thread.join()


def test_an_error_in_a_kernel_leaves_everything_as_it_was():
    """An index out of range, looked up by several threads, behind and before what is written."""
    genesis.manual_seed(0)
    table, count = nn.Embedding(50, 32), genesis.zeros(())
    optimizer = optim.SGD(table.parameters(), lr=0.1, momentum=0.9)

    @genesis.compile
    def step(rows):
        count.add_(1)
        optimizer.zero_grad()
        loss = table(rows).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    rows = genesis.arange(4096) % 50
    for _ in range(3):
        step(rows)
    wrong = rows.clone()
    wrong[3000] = 50
    before = table.weight.detach().clone(), table.weight.grad.clone(), count.item()
    for _ in range(3):
        with pytest.raises(IndexError, match="50"):
            step(wrong)
        assert genesis.equal(table.weight, before[0]) and genesis.equal(table.weight.grad, before[1])
        assert count.item() == before[2]
    assert step(rows).item() > 0 and count.item() == before[2] + 1
    assert len(step._recent) == 1


def test_threads_that_call_one_step_at_once_make_all_of_its_calls():
    step, state = training(dropout=True)
    for _ in range(64):
        step()
    expected = state()
    step, state = training(dropout=True)
    for _ in range(4):
        step()
    threads = [threading.Thread(target=lambda: [step() for _ in range(10)]) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state() == expected


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="this system does not say how much memory is in use")
def test_ten_thousand_calls_keep_nothing():
    step, _ = training()
    through = genesis.compile(nn.Sequential(nn.Linear(8, 8), nn.GELU()))
    x, kept = genesis.randn(4, 8), []

    def calls(count):
        for _ in range(count):
            step()
            through(x).sum().backward()

    calls(100)
    gc.collect()
    objects, sizes = len(gc.get_objects()), [_resident()]
    for _ in range(4):
        calls(2500)
        gc.collect()
        kept.append(len(gc.get_objects()) - objects)
        sizes.append(_resident())
    assert max(kept) < 50, kept
    assert sizes[-1] - sizes[1] < 2**21, sizes


def test_classes_of_compiled_functions_go_with_them():
    def made():
        weights = genesis.ones(3)

        class Scaled(nn.Module):
            def forward(self, x):
                return x * weights

        step = genesis.compile(Scaled())
        assert step(genesis.ones(3)).tolist() == [1.0, 1.0, 1.0]
        return weakref.ref(weights)

    seen = made()
    gc.collect()
    assert seen() is None


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="this system does not say how much memory is in use")
def test_a_hundred_thousand_calls_need_no_more_memory():
    step, _ = training(dropout=True)
    for _ in range(5000):
        step()
    gc.collect()
    objects, sizes = len(gc.get_objects()), [_resident()]
    for _ in range(10):
        for _ in range(10_000):
            step()
        sizes.append(_resident())
    gc.collect()
    assert len(gc.get_objects()) - objects < 50
    assert sizes[-1] - sizes[1] < 2**20, sizes


def _resident():
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as told:
        return int(told.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
