"""Step 6: backwards by hand.

A function gets a second method: `backward` turns the derivative with respect to its output, gy, into the derivative
with respect to its input, by multiplying with its own. For that it must remember its input. A box gets a place for the
result.
"""

import numpy as np


class Variable:
    def __init__(self, data):
        self.data = data
        self.grad = None


class Function:
    def __call__(self, input):
        self.input = input
        return Variable(self.forward(input.data))

    def forward(self, x):
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


A = Square()
B = Exp()
C = Square()

x = Variable(np.array(0.5))
a = A(x)
b = B(a)
y = C(b)

y.grad = np.array(1.0)  # dy/dy
b.grad = C.backward(y.grad)
a.grad = B.backward(b.grad)
x.grad = A.backward(a.grad)
print(x.grad)  # 3.297442541400256
