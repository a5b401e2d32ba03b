"""The backward engine: sums, seeds, modes of accumulation, freeing, depth, memory, errors."""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref

import numpy as np
import pytest

import genesis as torch
from genesis.core.graph import modes
from genesis.core.graph.switches import ACTIVE


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


def test_fan_out_sums():
    x = leaf(1.0, 2.0)
    y = x * 3
    (y * y + y).sum().backward()
    assert x.grad.tolist() == [3 * (2 * 3 + 1), 3 * (2 * 6 + 1)]


def test_accumulates_across_calls():
    x = leaf(1.0, 1.0)
    x.sum().backward()
    assert x.grad.tolist() == [1, 1]
    (x * 2).sum().backward()
    assert x.grad.tolist() == [3, 3]
    x.grad = None
    x.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_depth_of_a_hundred_thousand():
    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.backward()
    assert x.grad.tolist() == [1.0]


@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 2)])
@pytest.mark.parametrize("of", [list, tuple])
def test_backward_takes_a_list_of_one_gradient(shape, of):
    x = torch.ones(*shape, requires_grad=True)
    seed = torch.full(shape, 3.0)
    (2 * x).backward(of([seed]))
    assert x.grad.shape == shape
    assert (x.grad == 6).all()


def test_a_list_of_numbers_is_a_gradient():
    x = torch.ones(1, requires_grad=True)
    (2 * x).backward([torch.tensor(3.0)])  # of the output's shape as a list, not alone
    (2 * x).backward([3.0])
    assert x.grad.tolist() == [12.0]


def test_second_backward_is_an_error_unless_retained():
    x = leaf(2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8.0]
    with pytest.raises(
        RuntimeError,
        match="MulBackward was already differentiated and what it saved was freed\n(?s:.*)try: pass retain_graph=True",
    ):
        y.backward()
    assert x.grad.tolist() == [8.0]


def test_ops_that_save_nothing_can_be_differentiated_twice():
    x = leaf(2.0)
    y = x + 1
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2.0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: leaf(1.0, 2.0).backward(), r"created implicitly only for one element, the output has shape \[2\]"),
        (lambda: torch.ones(1).backward(), "does not require grad and has no grad_fn"),
        (lambda: torch.tensor([1]).backward(), "its dtype genesis.int64 cannot carry gradients"),
        (lambda: leaf(1.0, 2.0).backward(torch.ones(3)), r"the gradient's shape \[3\] is not the output's, \[2\]"),
        (lambda: leaf(1.0).sum().backward(inputs=[torch.ones(1)]), r"inputs\[0\] does not require grad"),
        (lambda: torch.autograd.grad(leaf(1.0).sum(), leaf(1.0)), r"the outputs do not depend on inputs\[0\]"),
        (
            lambda: torch.tensor([1, 2], dtype=torch.int64, requires_grad=True),
            "only floating and complex tensors can require grad",
        ),
        (lambda: leaf(1.0).numpy(), r"NumPy would lose the history\n  try: x.detach\(\).numpy\(\)"),
        (lambda: setattr(leaf(1.0), "grad", torch.ones(2)), r"the gradient's shape \[2\] is not the tensor's, \[1\]"),
    ],
)
def test_errors(make, words):
    with pytest.raises(RuntimeError, match=words):
        make()


def test_backward_under_no_grad_says_so():
    x = leaf(1.0)
    with torch.no_grad():
        y = x * 2
    assert not y.requires_grad and y.is_leaf
    with pytest.raises(RuntimeError, match="made under no_grad, detached"):
        y.sum().backward()


def test_inputs_and_grad_leave_others_alone():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x * w).sum().backward(inputs=[w])
    assert x.grad is None and w.grad.tolist() == [1, 2]
    y = x * w
    gx, gy = torch.autograd.grad(y.sum(), [x, y])
    assert gx.tolist() == [3, 4] and gy.tolist() == [1, 1]
    assert torch.autograd.grad(x.sum(), [w], allow_unused=True) == (None,)
    assert torch.autograd.grad(x.sum(), [w], materialize_grads=True)[0].tolist() == [0, 0]


def test_create_graph_to_third_order():
    x = leaf(2.0)
    y = x**4
    for expected in (32.0, 48.0, 48.0, 24.0):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        assert y.tolist() == [pytest.approx(expected)]


def test_pruned_branches_do_not_run():
    class Explodes(torch.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise AssertionError("this branch is not needed")

    x, w = leaf(1.0), leaf(2.0)
    (g,) = torch.autograd.grad((Explodes.apply(x) * w).sum(), [w])
    assert g.tolist() == [1.0]


def test_exception_leaves_grads_as_they_were():
    class Fails(torch.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise KeyError("no")

    x, w = leaf(1.0), leaf(2.0)
    with pytest.raises(KeyError):
        (w * 2 + Fails.apply(x)).sum().backward()
    assert x.grad is None and w.grad is None


def test_gradients_alias_neither_the_seed_nor_each_other():
    a, b, seed = leaf(1.0, 1.0), leaf(1.0, 1.0), torch.ones(2)
    (a + b).backward(seed)
    a.grad.mul_(5)
    assert b.grad.tolist() == [1, 1] and seed.tolist() == [1, 1]
    x = torch.ones(2, 2, requires_grad=True)
    x.t().reshape(-1).backward(torch.arange(4.0))
    x.grad.zero_()
    assert x.grad.tolist() == [[0, 0], [0, 0]]


def test_a_backward_that_writes_to_its_gradient_is_safe():
    class Halve(torch.Function):
        @staticmethod
        def forward(ctx, x):
            return x / 2

        @staticmethod
        def backward(ctx, g):
            return g.mul_(0.5)

    x, seed = leaf(1.0, 1.0), torch.ones(2)
    (Halve.apply(x) + x).backward(seed)
    assert x.grad.tolist() == [1.5, 1.5] and seed.tolist() == [1, 1]


def test_hooks_order_and_replacement():
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append("first") or g * 10)
    handle = y.register_hook(lambda g: seen.append("second"))
    y.retain_grad()
    x.register_post_accumulate_grad_hook(lambda p: seen.append(f"accumulated {p.grad.item()}"))
    y.sum().backward()
    assert seen == ["first", "second", "accumulated 20.0"]
    assert y.grad.tolist() == [10.0] and y.retains_grad
    handle.remove()
    with pytest.raises(RuntimeError, match=r"the hook returned shape \[2\], the gradient has \[1\]"):
        z = x * 1
        z.register_hook(lambda g: torch.ones(2))
        z.sum().backward()


def test_graph_can_be_inspected():
    x = leaf(1.0)
    y = x + 1
    assert repr(y.grad_fn) == "<AddBackward>" and y.grad_fn.name() == "AddBackward"
    ((accumulate, index), (nothing, _)) = y.grad_fn.next_functions
    assert accumulate.variable is x and index == 0 and nothing is None
    assert x.is_leaf and not y.is_leaf and x.grad_fn is None


def test_no_reference_cycles_and_flat_memory():
    gc.collect()
    gc.disable()
    try:
        x = torch.randn(50, requires_grad=True)

        def step():
            y = (x.exp() * x).sigmoid()
            z = y.view(5, 10)[1:3].softmax(1)
            loss = (z * z).sum()
            loss.backward()
            x.grad = None
            return weakref.ref(z)

        assert step()() is None, "a result outlived its graph"
        for _ in range(50):
            step()
        before = len(gc.get_objects())
        for _ in range(200):
            step()
        assert len(gc.get_objects()) - before < 50, "objects stay behind that only the collector would free"
    finally:
        gc.enable()


def test_threads_have_their_own_grad_mode():
    found = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: found.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert found == [True]


def test_parallel_backward_of_separate_graphs():
    results = {}

    def work(seed):
        x = torch.tensor(np.full(100, float(seed)), requires_grad=True)
        for _ in range(20):
            (x * x).sum().backward()
        results[seed] = x.grad.tolist()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert all(results[i] == [40.0 * i] * 100 for i in range(4))


def test_gradient_modes():
    x = leaf(1.0)

    @torch.no_grad()
    def plain():
        return x * 2

    @torch.no_grad
    def bare():
        return x * 2

    @torch.no_grad()
    def steps():
        yield (x * 2).requires_grad
        yield torch.is_grad_enabled()

    assert not plain().requires_grad and not bare().requires_grad
    for value in steps():
        assert value is False and torch.is_grad_enabled()
    with torch.no_grad(), torch.enable_grad():
        assert (x * 2).requires_grad
    torch.set_grad_enabled(False)
    assert not (x * 2).requires_grad
    torch.set_grad_enabled(True)
    with torch.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_nothing_is_recorded_inside_of_inference_mode():
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        with torch.enable_grad():
            assert not (x * 2).requires_grad
        with torch.set_grad_enabled(True):
            assert not (x * 2).requires_grad
        with torch.inference_mode(False):
            assert (x * 2).requires_grad


def test_inference_mode():
    x = leaf(1.0)
    with torch.inference_mode():
        y = x * 2
        z = y.view(1, 1)
        y.add_(1)
    assert y.is_inference() and z.is_inference() and not y.requires_grad
    with pytest.raises(RuntimeError, match="inference_mode cannot be saved for backward"):
        y * x
    with pytest.raises(RuntimeError, match="written to outside it"):
        y.add_(1)
    assert (y.clone() * x).requires_grad


def test_complex_gradients_follow_pytorch_convention():
    z = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    (z * z.conj()).real.sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), 2 * z.detach().numpy())


def test_a_gradient_with_history_makes_no_cycle():
    x = torch.ones(3, requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        (x**3).sum().backward(create_graph=True)
        (h,) = torch.autograd.grad(x.grad.sum(), x)
        assert h.tolist() == [6, 6, 6]
        (x**3).sum().backward(create_graph=True)
        assert x.grad.tolist() == [6, 6, 6]
        node, gradient = weakref.ref(x._node), weakref.ref(x.grad)
        del x
        assert (node(), gradient()) == (None, None)
        x = torch.ones(3, requires_grad=True)
        (x**3).sum().backward(create_graph=True)
        x.grad = None
        (x**2).sum().backward()
        assert x.grad.tolist() == [2, 2, 2]
        assert not x.grad.requires_grad
    finally:
        gc.enable()


@pytest.mark.parametrize(("home", "elsewhere"), [("cpu", "meta"), ("meta", "cpu")])
def test_a_gradient_on_another_device_is_an_error(home, elsewhere):
    class Elsewhere(torch.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return torch.empty(3, device=elsewhere)

    x = torch.ones(3, device=home, requires_grad=True)
    for _ in range(2):  # with and without a .grad to add to
        with pytest.raises(RuntimeError, match=f"the gradient of a leaf is on {elsewhere}, the tensor on {home}"):
            Elsewhere.apply(x).backward(torch.ones(3, device=home))
        x.grad = torch.ones(3, device=home)
    assert x.grad.device.type == home


def test_a_leaf_that_was_given_data_of_another_device_gets_gradients_there():
    x = torch.ones(3, requires_grad=True)
    x.data = torch.ones(3, device="meta")
    (x * 2).backward(torch.ones(3, device="meta"))
    assert x.grad.device.type == "meta"


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, torch.enable_grad])
def test_a_mode_that_is_interrupted_on_its_way_in_is_not_left_on(mode, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    with torch.set_grad_enabled(mode is not torch.enable_grad):
        monkeypatch.setattr(modes, "block_opened", interrupted)
        before = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), list(ACTIVE)
        with contextlib.suppress(KeyboardInterrupt), mode():
            pass
        assert (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), list(ACTIVE)) == before


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + 1,
        lambda x: torch.cat([x, x]),
        lambda x: x.sort().values,
        lambda x: x.sum(),
        lambda x: x[0],
        lambda x: x @ x,
        lambda x: torch.einsum("i,j", x, x),
        lambda x: torch.zeros(2),
    ],
)
def test_what_is_made_in_inference_mode_is_an_inference_tensor(call):
    with torch.inference_mode():
        assert call(torch.ones(3)).is_inference()


def test_batched_gradients_of_what_is_not_used():
    x, z = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
    y = x * 2
    gx, gz = torch.autograd.grad(y, (x, z), torch.eye(2), is_grads_batched=True, allow_unused=True, retain_graph=True)
    assert gx.tolist() == [[2, 0], [0, 2]] and gz is None
    gx, gz = torch.autograd.grad(
        y, (x, z), torch.eye(2), is_grads_batched=True, materialize_grads=True, retain_graph=True
    )
    assert gz.tolist() == [[0, 0, 0]] * 2
    with pytest.raises(RuntimeError, match="do not depend on"):
        torch.autograd.grad(y, (x, z), torch.eye(2), is_grads_batched=True)


def test_a_root_that_another_one_uses_waits_for_it():
    x = torch.tensor(3.0, requires_grad=True)
    y = x * x
    z = y * y
    torch.autograd.backward([y, z])
    assert x.grad == 6 + 4 * 27
    x.grad = None
    y = x * x
    z = y * y
    torch.autograd.backward([z, y, y])
    assert x.grad == 12 + 4 * 27
