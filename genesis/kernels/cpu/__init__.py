"""Kernels for NumPy arrays, where the meaning of an op is not what is fastest.

`matmul`  large outer products
`optim`   optimizer steps
`memory`  memory of large arrays, used again
`native`  machine code through LLVM, where llvmlite is installed
"""

from genesis.kernels.cpu import matmul as matmul
