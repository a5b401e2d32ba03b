"""What the ten steps from a variable to a tested engine promise, in `genesis.tiny` and in the engine itself."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis import tiny
from genesis.tiny import Function, Variable


class Square(Function):
    def forward(self, x):
        return x**2

    def backward(self, gy):
        return 2 * self.input.data * gy


class Exp(Function):
    def forward(self, x):
        return np.exp(x)

    def backward(self, gy):
        return np.exp(self.input.data) * gy


def test_step_1_variable():
    x = Variable(np.array(1.0))
    assert x.data == 1.0
    x.data = np.array(2.0)
    assert x.data == 2.0


def test_step_2_function_and_what_is_missing():
    assert Square()(Variable(np.array(10.0))).data == 100.0
    with pytest.raises(NotImplementedError):
        Function()(Variable(np.array(1.0)))


def test_step_3_composition_prints_float64():
    y = Square()(Exp()(Square()(Variable(np.array(0.5)))))
    assert str(y.data) == "1.648721270700128"
    x = genesis.tensor(np.array(0.5))  # the engine keeps float64, too
    assert x.dtype is genesis.float64
    assert ((x**2).exp() ** 2).item() == 1.648721270700128


def test_step_4_numerical_diff():
    assert tiny.numerical_diff(Square(), Variable(np.array(2.0))) == pytest.approx(4.0, abs=1e-8)
    assert tiny.numerical_diff(
        lambda x: Square()(Exp()(Square()(x))), Variable(np.array(0.5)), eps=1e-4
    ) == pytest.approx(3.2974426293330694)


def test_steps_5_and_6_backward_by_hand():
    a, b, c = Square(), Exp(), Square()
    x = Variable(np.array(0.5))
    y = c(b(a(x)))
    y.grad = np.array(1.0)
    gb = c.backward(y.grad)
    ga = b.backward(gb)
    assert a.backward(ga) == pytest.approx(3.297442541400256, abs=1e-15)


def test_step_7_creators():
    a = Square()
    x = Variable(np.array(0.5))
    y = a(x)
    assert y.creator is a
    assert y.creator.input is x


def test_step_8_a_loop_not_recursion():
    x = Variable(np.array(1.0))
    y = x
    for _ in range(20_000):
        y = y + 0.0
    y.backward()
    assert x.grad == 1.0
    t = genesis.ones(1, requires_grad=True)
    z = t
    for _ in range(100_000):
        z = z + 0
    z.backward()
    assert t.grad.item() == 1.0


def test_step_9_functions_seeds_and_types():
    x = Variable(np.array(0.5))
    y = tiny.square(tiny.exp(tiny.square(x)))
    y.backward()
    assert x.grad == pytest.approx(3.297442541400256, abs=1e-15)
    Variable(np.float64(1.0))  # the square of a 0-d array is one
    for refused in ("text", 1.0, [1.0]):
        with pytest.raises(TypeError) as error:
            Variable(refused)
        assert str(error.value).splitlines()[0] == f"{type(refused)} is not supported"


def test_steps_6_to_9_the_output_is_there_and_a_second_backward_replaces():
    f = Square()
    x = Variable(np.array(3.0))
    f(x)
    assert f.output.data == 9.0 and f.output.creator is f
    y = f.output
    y.backward()
    y.backward()
    assert x.grad == 6.0


def test_beyond_fan_out_and_a_leaf():
    x = Variable(np.array(3.0))
    y = tiny.square(x)
    z = y + y
    z.backward()
    assert x.grad == 12.0
    leaf = Variable(np.array(3.0))
    leaf.backward()
    assert leaf.grad == 1.0
