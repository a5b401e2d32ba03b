"""Step 1: a box for an array.

Everything that is computed later is kept in boxes. A box can be given another array: the box is who it is, the array is
what it holds today. That difference is what a gradient, a name or a history will be attached to.
"""

import numpy as np


class Variable:
    def __init__(self, data):
        self.data = data


x = Variable(np.array(1.0))
print(x.data)  # 1.0

x.data = np.array(2.0)
print(x.data)  # 2.0
