"""Step 9: pleasant to use.

- `square(x)` makes a new function object for every call, as it must: each call has its own input to remember.
- dy/dy is always one, so `backward` begins with ones unless it is told otherwise.
- A box says at once when it is given what it cannot compute with. (NumPy makes numbers out of 0-d arrays: the square of
  `np.array(3.0)` is an `np.float64`. So NumPy's numbers are welcome, and become arrays.)
"""

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


x = Variable(np.array(0.5))
y = square(exp(square(x)))
y.backward()
print(x.grad)  # 3.297442541400256

x = Variable(np.array(3.0))
y = add(square(x), x)
y.backward()
print(y.data, x.grad)  # 12.0 7.0

x.backward()  # nobody made x: dx/dx
print(x.grad)  # 1.0

try:
    Variable(1.0)
except TypeError as error:
    print("TypeError:", error)
