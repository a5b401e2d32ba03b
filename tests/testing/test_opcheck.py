"""`opcheck` of operations of users, and that it finds what is deliberately wrong in its surroundings: warnings as
errors, and threads.
"""

from __future__ import annotations

import threading
import time
import warnings

import numpy as np
import pytest

import genesis
from genesis import Function, library
from genesis.core.call.op import REGISTRY
from genesis.testing import CHECKS, case, opcheck

SAMPLES = lambda t: [case(t(2, 3))]  # noqa: E731


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


@pytest.fixture
def own():
    """Declares an op of NumPy arrays for a test."""
    names = []

    def declare(kernel, mutates_args=()):
        names.append(f"opchecked::op{len(names)}")
        return library.custom_op(names[-1], kernel, mutates_args=mutates_args)

    yield declare
    for name in names:
        library.remove(name)


def cube(x):
    return genesis.from_numpy(x.detach().numpy() ** 3)


def test_operations_of_users_are_checked(own):
    done = [f"Square float64 {check}" for check in ("warnings", "memory", "gradient", "threads")]
    assert opcheck(Square, SAMPLES) == opcheck(Square.apply, SAMPLES) == done
    op = own(cube)
    op.register_autograd(
        lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    assert len(opcheck(op, SAMPLES)) == 4


def test_operations_without_samples_are_refused(own):
    with pytest.raises(TypeError, match=r"opcheck: Square has no samples\n.*try: opcheck\(Square, samples="):
        opcheck(Square)


def test_a_wrong_gradient_is_found():
    class Wrong(Square):
        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    with pytest.raises(AssertionError, match="gradient .*, differences give"):
        opcheck(Wrong, SAMPLES)


# ---- warnings as errors


def logarithm(x):
    return genesis.from_numpy(np.log(x.detach().numpy() * 0))


def test_a_warning_is_found(own):
    words = r"op0: gives RuntimeWarning\('divide by zero encountered in log'\) where NumPy is told to warn\n  try: compute in `with np.errstate"
    with pytest.raises(AssertionError, match=words):
        opcheck(own(logarithm), SAMPLES)
    with (
        pytest.raises(RuntimeError, match="test_warnings of opchecked::op1 failed: .*divide by zero"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        library.opcheck(own(logarithm), (genesis.ones(2),))


def test_a_warning_in_backward_is_found(own):
    op = own(cube)
    op.register_autograd(lambda ctx, g: (warnings.warn("slow", stacklevel=1), g)[1])
    with pytest.raises(AssertionError, match=r"gives UserWarning\('slow'\)"):
        opcheck(op, SAMPLES)


def again_after_a_warning(x, y):
    try:
        np.add(x.numpy(), y.numpy(), out=x.numpy())
    except (RuntimeWarning, FloatingPointError):
        np.add(x.numpy(), y.numpy(), out=x.numpy())


def test_a_second_write_after_a_warning_is_found(own):
    op = own(again_after_a_warning, mutates_args=("x",))
    numbers = (genesis.tensor([3e38, 2.0]), genesis.tensor([3e38, 1.0]))
    with pytest.raises(
        RuntimeError,
        match=r"with warnings as errors argument 0 after the call is \[inf, *4.\], not \[inf, *3.\]\n  try: do not "
        r"compute again",
    ):
        library.opcheck(op, numbers)


def test_an_in_place_form_that_writes_twice_is_found(monkeypatch):
    def twice(self, other):
        again_after_a_warning(self, other)
        return self

    sample = case(genesis.tensor([3e38, 2.0]), genesis.tensor([3e38, 1.0]))
    CHECKS["warnings"](REGISTRY["add"], sample)
    monkeypatch.setattr(genesis.Tensor, "add_", twice)
    with pytest.raises(
        AssertionError,
        match=r"add: after add_, with warnings as errors, the tensor is \[inf, *4.\], not \[inf, "
        r"*3.\]",
    ):
        CHECKS["warnings"](REGISTRY["add"], sample)
    monkeypatch.setattr(genesis.Tensor, "add_", lambda self, other: self.copy_(self + other).mul_(1))
    with pytest.raises(AssertionError, match="add: add_ counts 2 writes, not one"):
        CHECKS["warnings"](REGISTRY["add"], sample)


# ---- threads


class OnTheClass(Square):
    @staticmethod
    def forward(ctx, x):
        OnTheClass.x = x
        time.sleep(0.001)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * OnTheClass.x


def test_state_on_a_class_is_found():
    words = r"OnTheClass: while 3 other threads make the call, too, gradient 0 is .*, not .*\n  try: keep what a call needs in its own variables"
    with pytest.raises(AssertionError, match=words):
        opcheck(OnTheClass, SAMPLES)


def test_a_shared_buffer_is_found(own):
    buffer = np.zeros(6)

    def through_a_buffer(x):
        buffer[:] = x.detach().numpy().reshape(-1)
        time.sleep(0.001)
        return genesis.from_numpy(buffer * 2)

    with pytest.raises(RuntimeError, match="test_threads of opchecked::op0 failed: .*result 0 is"):
        library.opcheck(own(through_a_buffer), (genesis.arange(6.0),))


def in_threads_only(change):
    return lambda x: change(x) if threading.current_thread() is not threading.main_thread() else x + 0


def fails(error):
    raise error


def test_another_graph_is_found():
    with pytest.raises(
        AssertionError,
        match="<lambda>: while 3 other threads make the call, too, the graph is MulBackward.*, not AddBackward",
    ):
        opcheck(in_threads_only(lambda x: x * 1), SAMPLES)


def test_an_error_in_a_thread_only_is_found():
    with pytest.raises(AssertionError, match="it fails with 'RuntimeError: mine'"):
        opcheck(in_threads_only(lambda x: fails(RuntimeError("mine"))), SAMPLES)


def test_random_numbers_are_no_difference():
    assert len(opcheck(lambda x: x.detach() + genesis.rand(3), lambda t: [case(t(3))])) == 4
