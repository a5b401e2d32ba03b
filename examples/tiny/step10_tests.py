"""Step 10: tests.

Two that know the answer, and one that needs to know nothing: a random input, the gradient of `backward`, and the same
by trying (step 4). A wrong `backward` does not stay hidden from the third.

    python examples/tiny/step10_tests.py
"""

import sys
import unittest

import numpy as np


class Variable:
    def __init__(self, data):
        if not isinstance(data, np.ndarray | np.generic):
            raise TypeError(f"{type(data)} is not supported")
        self.data = np.asarray(data)
        self.grad = None
        self.creator = None

    def set_creator(self, function):
        self.creator = function

    def backward(self):
        grads = {self: np.ones_like(self.data) if self.creator is None or self.grad is None else self.grad}
        waits_for = count_uses(self)
        ready = [self]
        while ready:
            y = ready.pop()
            y.grad = grads.pop(y)
            f = y.creator
            if f is None:  # nobody made it: here the way ends
                continue
            gxs = f.backward(y.grad)
            for x, gx in zip(f.inputs, gxs if isinstance(gxs, tuple) else (gxs,), strict=True):
                grads[x] = grads[x] + gx if x in grads else gx
                waits_for[x] -= 1
                if waits_for[x] == 0:
                    ready.append(x)


def count_uses(last):
    """How many times each box was used on the way to the last one."""
    uses = {last: 0}
    boxes = [last]
    for box in boxes:  # the list grows while it is walked
        for x in box.creator.inputs if box.creator else ():
            if x not in uses:
                uses[x] = 0
                boxes.append(x)
            uses[x] += 1
    return uses


class Function:
    def __call__(self, *inputs):
        output = Variable(self.forward(*[x.data for x in inputs]))
        output.set_creator(self)
        self.inputs = inputs
        self.input = inputs[0]
        return output

    def forward(self, *xs):
        raise NotImplementedError(f"{type(self).__name__}.forward is not written")

    def backward(self, gy):
        raise NotImplementedError(f"{type(self).__name__}.backward is not written")


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


class Add(Function):
    def forward(self, x, y):
        return x + y

    def backward(self, gy):
        return gy, gy


def square(x):
    return Square()(x)


def exp(x):
    return Exp()(x)


def add(x, y):
    return Add()(x, y)


def numerical_diff(f, x, eps=1e-4):
    """The derivative of f at x, for an f that works on each element of x by itself."""
    below = Variable(x.data - eps)
    above = Variable(x.data + eps)
    return (f(above).data - f(below).data) / (2 * eps)


class SquareTest(unittest.TestCase):
    def test_forward(self):
        x = Variable(np.array(2.0))
        y = square(x)
        expected = np.array(4.0)
        self.assertEqual(y.data, expected)

    def test_backward(self):
        x = Variable(np.array(3.0))
        y = square(x)
        y.backward()
        expected = np.array(6.0)
        self.assertEqual(x.grad, expected)

    def test_gradient_check(self):
        x = Variable(np.random.rand(1))
        y = square(x)
        y.backward()
        num_grad = numerical_diff(square, x)
        self.assertTrue(np.allclose(x.grad, num_grad))


if __name__ == "__main__":
    unittest.main(testRunner=unittest.TextTestRunner(sys.stdout, verbosity=2))
