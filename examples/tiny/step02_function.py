"""Step 2: functions from box to box.

What all functions share (open the box, compute, put the result in a new box) is written once, in `__call__`. A
particular function says only how to compute, with arrays, in `forward`.
"""

import numpy as np


class Variable:
    def __init__(self, data):
        self.data = data


class Function:
    def __call__(self, input):
        x = input.data
        y = self.forward(x)
        return Variable(y)

    def forward(self, x):
        raise NotImplementedError(f"{type(self).__name__}.forward is not written")


class Square(Function):
    def forward(self, x):
        return x**2


x = Variable(np.array(10))
f = Square()
y = f(x)
print(type(y))  # <class '__main__.Variable'>
print(y.data)  # 100

try:
    Function()(x)
except NotImplementedError as error:
    print("NotImplementedError:", error)  # Function.forward is not written
