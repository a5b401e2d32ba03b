"""Tensors out of nothing, out of Python and NumPy, at random, and of other dtypes and devices."""
