"""Step 8: a loop instead of recursion.

A list of boxes that are ready replaces the calls inside calls, and then depth is no problem. The list solves a second
one:
a box that was used twice has to wait until both uses have answered, and gets the sum. So uses are counted first, and
a function may now have several inputs.
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
        grads = {self: self.grad}
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


class Neg(Function):
    def forward(self, x):
        return -x

    def backward(self, gy):
        return -gy


x = Variable(np.array(0.5))
y = Square()(Exp()(Square()(x)))
y.grad = np.array(1.0)
y.backward()
print(x.grad)  # 3.297442541400256

x = Variable(np.array(2.0))
a = Square()(x)  # used twice: y = a^2 + a^2 = 2 x^4
y = Add()(Square()(a), Square()(a))
y.grad = np.array(1.0)
y.backward()
print(x.grad)  # 64.0, and 8 x^3 is 64

x = y = Variable(np.array(1.0))
for _ in range(100_000):
    y = Neg()(y)
y.grad = np.array(1.0)
y.backward()
print("after 100000 functions:", x.grad)  # 1.0
