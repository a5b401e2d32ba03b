"""Step 3: functions after one another.

A function takes a box and gives a box, so the result of one is the input of the next: y = (exp(x^2))^2. The result has
many digits because NumPy computes in double precision; in single precision the same numbers end after 1.648721.
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


A = Square()
B = Exp()
C = Square()

x = Variable(np.array(0.5))
y = C(B(A(x)))
print(y.data)  # 1.648721270700128
