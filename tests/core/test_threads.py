"""Threads: graphs of their own in parallel, modes of their own, hooks where backward was called."""

from __future__ import annotations

import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import genesis
from genesis import Function, nn


def test_graphs_of_their_own():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    def work(k):
        results = []
        for i in range(50):
            x = genesis.full((4,), float(k + i), requires_grad=True)
            y = Square.apply(x)
            v = y[1:]
            v.mul_(2)
            y.sum().backward()
            results.append(x.grad.tolist())
        return results

    with ThreadPoolExecutor(8) as pool:
        for k, found in enumerate(pool.map(work, range(8))):
            assert found == [[2.0 * (k + i)] + [4.0 * (k + i)] * 3 for i in range(50)]


def test_one_model_and_gradients_by_grad():
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    parameters = list(model.parameters())
    data = [genesis.randn(5, 4) for _ in range(8)]
    expected = [genesis.autograd.grad(model(x).sum(), parameters) for x in data]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda x: genesis.autograd.grad(model(x).sum(), parameters), data * 5))
    for i, gradients in enumerate(found):
        for a, b in zip(gradients, expected[i % 8], strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_a_graph_that_is_kept_may_be_shared():
    x = genesis.ones(3, requires_grad=True)
    loss = (x.exp() * x).sum()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: genesis.autograd.grad(loss, x, retain_graph=True)[0].tolist(), range(100)))
    assert all(g == found[0] for g in found)


def test_a_graph_that_is_freed_is_used_by_one_and_refused_to_the_others():
    for _ in range(20):
        x = genesis.ones(3, requires_grad=True)
        loss = (x.exp() * x).sum()
        outcomes = []

        def run(loss=loss, x=x, outcomes=outcomes):
            try:
                outcomes.append(genesis.autograd.grad(loss, x)[0].tolist())
            except RuntimeError as error:
                outcomes.append("freed" if "freed" in str(error) else repr(error))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        right = (x.exp() * (1 + x)).tolist()
        assert all(o == "freed" or np.allclose(o, right) for o in outcomes)


def test_modes_belong_to_their_thread():
    def modes():
        return (
            genesis.is_grad_enabled(),
            genesis.is_inference_mode_enabled(),
            genesis.is_autocast_enabled(),
            genesis.autograd.is_anomaly_enabled(),
        )

    found = []
    with genesis.no_grad(), genesis.inference_mode(), genesis.autocast(), genesis.autograd.detect_anomaly():
        thread = threading.Thread(target=lambda: found.append(modes()))
        thread.start()
        thread.join()
        assert modes() == (False, True, True, True)
    assert found == [(True, False, False, False)]


def test_hooks_and_rules_run_in_the_calling_thread():
    seen = []

    class Where(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            seen.append(threading.get_ident())
            return g

    x = genesis.ones(1, requires_grad=True)
    x.register_hook(lambda g: seen.append(threading.get_ident()))
    y = Where.apply(x)
    thread = threading.Thread(target=lambda: (seen.append(threading.get_ident()), y.backward()))
    thread.start()
    thread.join()
    assert len(seen) == 3
    assert len(set(seen)) == 1
    assert seen[0] != threading.get_ident()


def test_backwards_inside_backwards_in_several_threads():
    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            with genesis.enable_grad():
                t = ctx.saved_tensors[0].detach().requires_grad_()
                (d,) = genesis.autograd.grad((t**3).sum(), t)
            return g * d

    def work(k):
        x = genesis.full((2,), float(k), requires_grad=True)
        Inner.apply(x).sum().backward()
        return x.grad.tolist()

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(work, range(60))) == [[3.0 * k * k] * 2 for k in range(60)]


def test_a_pool_takes_the_mode_of_its_caller_on_request():
    x = genesis.ones(1, requires_grad=True)
    with ThreadPoolExecutor(1) as pool, genesis.no_grad():
        assert pool.submit(lambda: (x * 2).requires_grad).result()
        assert not pool.submit(contextvars.copy_context().run, lambda: (x * 2).requires_grad).result()
