"""Step 7: backwards by itself.

The order of the calls to `backward` need not be written down if every box remembers the function that made it: from y
one gets to C, from C to its input b, from b to B, and so on until a box that nobody made. The record is made while the
program runs, so it follows every `if` and `for` of the program.
"""

import numpy as np


class Variable:
    def __init__(self, data):
        self.data = data
        self.grad = None
        self.creator = None

    def set_creator(self, function):
        self.creator = function

    def backward(self):
        f = self.creator
        if f is not None:
            x = f.input
            x.grad = f.backward(self.grad)
            x.backward()  # and so on, for the box before


class Function:
    def __call__(self, input):
        output = Variable(self.forward(input.data))
        output.set_creator(self)
        self.input = input
        return output

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

assert y.creator == C
assert y.creator.input == b
assert y.creator.input.creator == B
assert y.creator.input.creator.input == a
assert y.creator.input.creator.input.creator == A
assert y.creator.input.creator.input.creator.input == x

y.grad = np.array(1.0)
y.backward()
print(x.grad)  # 3.297442541400256

# It has a weakness. Each box calls the one before from inside its own call, and Python allows only so many at once.
x = y = Variable(np.array(1.0))
for _ in range(100_000):
    y = Square()(y)
y.grad = np.array(1.0)
try:
    y.backward()
except RecursionError:
    print("RecursionError after 100000 functions")
