"""NVIDIA's own libraries, where they are installed: each is one file, and done without where it is not there.

`loading`   which of them this process has, and why not the others
`cublaslt`  products of matrices, with a bias
`cudnn`     attention and convolutions of 16-bit floats
`nccl`      tensors of several processes combined and moved

None of them has been called on a GPU yet: what they are called with is checked by stand-ins in the tests.
"""
