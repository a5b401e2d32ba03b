"""The forms in which a gradient of one's own can be written; all make one kind of node (`rules`).

`functions`   four ops as `Function` classes          `custom`      closures and pairs of functions
`transposed`  rules in forward mode                   `identities`  values as they are, gradients changed
`tape`        gradients as TensorFlow writes them      `foreign`     functions of NumPy, SciPy and Numba
`native`      functions of single numbers and of C     `closures` `captures`   tensors that are no arguments
"""
