"""Step 5: the chain rule, and why backwards.

The derivative of a composition is the product of the derivatives of its parts:

    x -> a = x^2 -> b = exp(a) -> y = b^2            dy/dx = dy/db * db/da * da/dx

A product may be multiplied from either end. Training has millions of inputs and one result, and then one starts from
the result's end: every factor that is carried along is as large as one result, not as one million inputs.
"""

import numpy as np

x = np.array(0.5)
a = x**2
b = np.exp(a)
y = b**2

dy_db, db_da, da_dx = 2 * b, np.exp(a), 2 * x
print("from the result:", dy_db * db_da * da_dx)  # 3.297442541400256
print("from the input: ", dy_db * (db_da * da_dx))  # 3.297442541400256

# Many inputs, one result: the factors are matrices (rows: outputs, columns: inputs).
n = 1000
first, second, last = np.ones((n, n)), np.ones((n, n)), np.ones((1, n))
print("numbers carried from the result:", (last @ second).size)  # 1000
print("numbers carried from the inputs:", (second @ first).size)  # 1000000

# A value that was used twice moves the result in two ways, and its derivative is the sum of both: y = x * x.
x = 3.0
through_the_left, through_the_right = x, x  # the derivative of u * v is v with respect to u, and u with respect to v
print("x used twice:", through_the_left + through_the_right)  # 6.0, and 2 x is 6
