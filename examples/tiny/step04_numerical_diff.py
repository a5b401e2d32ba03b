"""Step 4: a derivative by trying.

Move x a little to both sides and see by how much f(x) moves: (f(x + eps) - f(x - eps)) / (2 eps). It needs nothing but
f, and it has two faults: it is only close (of the last result here seven digits are right), and a function of a million
inputs must be called two million times. It is the right tool for one thing, checking a derivative that was found in a
better way (step 10).
"""

import numpy as np


class Variable:
    def __init__(self, data):
        self.data = data


class Function:
    def __call__(self, input):
        return Variable(self.forward(input.data))

    def forward(self, x):
        raise NotImplementedError(f"{type(self).__name__}.forward is not written")


class Square(Function):
    def forward(self, x):
        return x**2


class Exp(Function):
    def forward(self, x):
        return np.exp(x)


def numerical_diff(f, x, eps=1e-4):
    """The derivative of f at x, for an f that works on each element of x by itself."""
    below = Variable(x.data - eps)
    above = Variable(x.data + eps)
    return (f(above).data - f(below).data) / (2 * eps)


print(numerical_diff(Square(), Variable(np.array(2.0))))  # 4.000000000004, and 2 x is 4


A = Square()
B = Exp()
C = Square()


def f(x):
    return C(B(A(x)))


print(numerical_diff(f, Variable(np.array(0.5))))  # 3.2974426293330694
