"""Kernels for NumPy arrays.

`optim`   optimizer steps
"""
