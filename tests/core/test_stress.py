"""Eight threads at a switch interval of a microsecond: each works as if it were alone. Forks and Ctrl-C in the middle
of things.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time

import numpy as np
import pytest
from custom_functions import Cube

import genesis
from genesis.autograd import forward_ad
from genesis.autograd.checking.surroundings import at_once
from genesis.core.graph import lost, modes, switches
from genesis.core.graph.engine import current

THREADS = 8


def in_threads(work, repeats=20):
    """The results of ``work(k)`` for k in range(8), each called ``repeats`` times in a thread of its own, all at once."""
    return at_once(work, THREADS, repeats)


def blocks(k):
    """Blocks of every kind without recording, in which something with history is used, or nothing is."""
    x = genesis.ones(2, requires_grad=True)
    with genesis.no_grad():
        inner = (x * k).requires_grad
        with genesis.enable_grad():
            outer = (x * k).requires_grad
    with genesis.no_grad():
        genesis.ones(2)
    with genesis.set_grad_enabled(False):
        genesis.ones(2) * 2
    genesis.set_grad_enabled(False)
    (x + 1).sum()
    genesis.set_grad_enabled(True)
    with genesis.inference_mode():
        y = x * k
    return inner, outer, y.is_inference(), genesis.is_grad_enabled()


def training(k):
    generator = genesis.Generator().manual_seed(k)
    w = genesis.randn(4, 3, generator=generator, requires_grad=True)
    optimizer = genesis.optim.Adam([w], lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        (genesis.randn(2, 4, generator=generator) @ w).tanh().square().mean().backward()
        optimizer.step()
    return w.tolist()


def batches(k):
    x = genesis.arange(6.0).reshape(2, 3) + k
    double = genesis.vmap(lambda a: genesis.vmap(lambda b: b * k)(a) + a.sum())(x).tolist()
    written = genesis.vmap(lambda a: genesis.zeros(3).add_(a).cumsum(0))(x).tolist()
    return double, written, genesis.func.jacrev(lambda a: a * a)(x[0]).tolist()


def tangents(k):
    x = genesis.arange(3.0) + k
    out = [t.tolist() for t in genesis.func.jvp(lambda a: a * a, (x,), (genesis.ones(3),))]
    forward_ad.enter_dual_level()
    y = forward_ad.make_dual(x, genesis.ones(3)) * k
    out.append(forward_ad.unpack_dual(y).tangent.tolist())
    forward_ad.exit_dual_level()
    with forward_ad.dual_level(), forward_ad.dual_level():
        y = forward_ad.make_dual(x, genesis.ones(3)).exp()
        return [*out, forward_ad.unpack_dual(y).tangent.tolist()]


def traces(k):
    w = genesis.full((3,), float(k + 1), requires_grad=True)
    graph = genesis.jit.trace(lambda x: (x * w).sum(), genesis.ones(3))
    return graph.replay(genesis.arange(3.0)).item()


def precisions(k):
    w = genesis.ones(3, 3, requires_grad=True)
    with genesis.autocast():
        inside = (w @ w).dtype
        with genesis.autocast(enabled=False):
            off = (w @ w).dtype
    return inside, off, (w @ w).dtype


def saving(k):
    x = genesis.full((3,), float(k), requires_grad=True)
    packed = []
    with genesis.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.tolist()) or t, lambda t: t):
        y = (x * x).sum()
    y.backward()
    return packed, x.grad.tolist()


def functions(k):
    x = genesis.full((3,), float(k), requires_grad=True)
    (g,) = genesis.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (g2,) = genesis.autograd.grad(g.sum(), x)
    y = x.clone()
    y[1:].mul_(2)
    y.sum().backward()
    return g.tolist(), g2.tolist(), x.grad.tolist()


def watching(k):
    x = genesis.full((3,), float(k + 1), requires_grad=True)
    seen = []
    with genesis.autograd.profile() as p:
        (x * x).sum().backward()
    with (
        genesis.autograd.graph.every_node(after=lambda node, gi, go: seen.append(node.name())),
        genesis.autograd.detect_anomaly(),
    ):
        x.exp().sum().backward()
    return [(e.name, e.phase) for e in p.events], seen, len(genesis.autograd.record((x * 2).sum()).steps)


def registering(k):
    x = genesis.full((3,), 2.0)
    with (
        genesis.ops.register_function("sigmoid", lambda x: genesis.ops.sigmoid(x)),
        genesis.ops.register_function("softmax", lambda x, dim=None, dtype=None: genesis.ops.softmax(x, dim)),
    ):
        found = x.sigmoid().tolist(), x.softmax(0).tolist()
    return found, x.sigmoid().tolist(), x.softmax(0).tolist()


WORKS = [blocks, training, batches, tangents, traces, precisions, saving, functions, watching, registering]


def nothing_is_open():
    assert switches.ACTIVE == switches.LEVELS == switches.ESCAPES == switches.HISTORY_WATCHES == []
    assert switches.OVERRIDES == {}
    assert modes.grad_mode.get() and current() is None and lost._innermost.get() is None


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.__name__)
def test_threads_that_do_the_same(work):
    expected = [work(k) for k in range(THREADS)]
    for found, want in zip(in_threads(work), expected, strict=True):
        assert all(result == want for result in found)
    nothing_is_open()


def test_threads_that_do_different_things():
    expected = [work(3) for work in WORKS]
    found = in_threads(lambda k: [WORKS[(k + i) % len(WORKS)](3) for i in range(len(WORKS))], repeats=4)
    for k, repeats in enumerate(found):
        for results in repeats:
            for i, result in enumerate(results):
                if WORKS[(k + i) % len(WORKS)] is not watching:  # sees the overrides of all threads
                    assert result == expected[(k + i) % len(WORKS)]
    nothing_is_open()


@pytest.mark.parametrize("shape", [(1,), (3, 5), (200, 50)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64"])
def test_one_gradient_of_many_threads_loses_nothing(shape, dtype):
    kind = getattr(genesis, dtype)
    w = genesis.zeros(shape, dtype=kind, requires_grad=True)
    b = genesis.zeros((), dtype=kind, requires_grad=True)
    in_threads(lambda k: ((w + b) * 1).sum().backward(genesis.ones((), dtype=kind)), repeats=16)
    assert (w.grad == 128).all()
    assert w.grad._version == 127
    assert b.grad.item() in (128 * w.numel(), float("inf")) or dtype in ("float16", "bfloat16")


def test_one_gradient_with_hooks_and_history_loses_nothing():
    w = genesis.zeros(3, requires_grad=True)
    v = genesis.zeros(3, requires_grad=True)
    seen = []
    w.register_post_accumulate_grad_hook(lambda t: seen.append(1))
    in_threads(lambda k: (w * v + w + v).sum().backward(create_graph=k % 2 == 1), repeats=10)
    assert w.grad.tolist() == v.grad.tolist() == [80.0] * 3
    assert len(seen) == 80


def test_draws_of_one_generator_are_those_of_one_thread():
    generator = genesis.Generator().manual_seed(3)
    found = in_threads(lambda k: genesis.rand(4, generator=generator).tolist(), repeats=50)
    everything = sorted(tuple(numbers) for repeats in found for numbers in repeats)
    generator.manual_seed(3)
    assert everything == sorted(tuple(row) for row in genesis.rand(400, 4, generator=generator).tolist())


def test_handles_of_hooks_are_different():
    x = genesis.ones(1, requires_grad=True)
    seen = []
    y = x * 1
    in_threads(lambda k: y.register_hook(lambda g: seen.append(1)), repeats=100)
    y.backward()
    assert len(seen) == 800


# ---- forks


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_while_other_threads_work_is_not_stuck():
    stop = threading.Event()
    shared = genesis.zeros(4, requires_grad=True)

    def busy():
        while not stop.is_set():
            genesis.rand(3)
            genesis.randn(1 << 14)
            (shared * 2).sum().backward()
            genesis.zeros(2).add_(1)

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                signal.alarm(20)  # kills a child that is stuck
                try:
                    good = bool(genesis.rand(8).numpy().max() < 1)
                    w = genesis.ones(3, requires_grad=True)
                    (w * genesis.randn(3)).sum().backward()
                    w.grad.add_(1)
                    shared.detach().add_(1)
                    (shared * 2).sum().backward()
                finally:
                    os._exit(0 if good else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_child_continues_the_stream_of_its_parent():
    genesis.manual_seed(5)
    genesis.rand(3)
    state = genesis.get_rng_state()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, genesis.rand(4).numpy().tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    genesis.set_rng_state(state)
    assert os.read(read, 100) == genesis.rand(4).numpy().tobytes()
    os.close(read), os.close(write)


# ---- Ctrl-C


def twice_its_time(work):
    """Twice what a call takes where nothing else gets the processor meanwhile, in seconds."""
    spans = []
    for _ in range(10):
        begun = time.perf_counter()
        work()
        spans.append(time.perf_counter() - begun)
    return 2 * min(spans)


def interrupted(work, tries, longest, seed=0):
    """Call ``work`` so many times, each with a Ctrl-C after a random time; yields after each."""
    rng = random.Random(seed)
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    # may be ignored, where the tests run in the background
    ctrl_c = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for _ in range(tries):
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, longest))
                work()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                pass
            signal.setitimer(signal.ITIMER_REAL, 0)
            yield
    finally:
        assert signal.signal(signal.SIGINT, ctrl_c) is signal.default_int_handler
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("tries", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("first", [True, False])
def test_a_backward_that_is_interrupted_leaves_all_gradients_or_none(tries, first):
    genesis.manual_seed(0)
    leaves = [genesis.randn(3, requires_grad=True) for _ in range(12)]
    leaves[3] = genesis.randn(3, dtype=genesis.float16, requires_grad=True)
    leaves[5].register_hook(lambda g: g * 1)
    before = [np.zeros(3)] * 12
    want = None
    seen = set()

    def backward():
        (sum((w.float() * (w * 2).float()).sum() for w in leaves) * 0.5).backward()

    backward()
    want = [w.grad.numpy().copy() for w in leaves]
    longest = twice_its_time(backward)
    for w in leaves:
        w.grad = None if first else genesis.zeros(3, dtype=w.dtype)
    for _ in interrupted(backward, tries, longest):
        assert genesis.is_grad_enabled() and current() is None
        given = [
            w.grad is not None and not np.array_equal(w.grad.numpy(), b) for w, b in zip(leaves, before, strict=True)
        ]
        seen.add(all(given))
        assert all(given) or not any(given)
        if all(given):
            for w, g in zip(leaves, want, strict=True):
                np.testing.assert_array_equal(w.grad.numpy(), g)
                w.grad = None if first else genesis.zeros(3, dtype=w.dtype)
    assert seen == {True, False}


@pytest.mark.parametrize("tries", [200, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_a_step_that_is_interrupted_updates_all_parameters_or_none(kind, tries):
    genesis.manual_seed(0)
    parameters = [genesis.randn(3, requires_grad=True) for _ in range(6)]
    for p in parameters:
        p.grad = genesis.ones(3)
    optimizer = getattr(genesis.optim, kind)(parameters, lr=0.1)
    optimizer.step()
    seen, longest = set(), twice_its_time(optimizer.step)
    for _ in range(tries // 200):
        before = [p.tolist() for p in parameters]
        states = [
            {k: v.tolist() if hasattr(v, "tolist") else v for k, v in optimizer.state[p].items()} for p in parameters
        ]
        for _ in interrupted(optimizer.step, 200, longest, seed=len(seen)):
            genesis.set_grad_enabled(True)
            after = [p.tolist() for p in parameters]
            later = [
                {k: v.tolist() if hasattr(v, "tolist") else v for k, v in optimizer.state[p].items()}
                for p in parameters
            ]
            changed = [a != b for a, b in zip(after, before, strict=True)] + [
                a != b for a, b in zip(later, states, strict=True) if a
            ]
            assert all(changed) or not any(changed)
            seen.add(all(changed))
            before, states = after, later
    assert seen == {True, False}
