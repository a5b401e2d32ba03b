"""NVIDIA's own libraries, where they are installed: each is one file, and done without where it is not there.

`loading`   which of them this process has, and why not the others
`cublaslt`  products of matrices, with a bias
`cudnn`     attention and convolutions of 16-bit floats
`cufft`     Fourier transforms
`cusolver`  factors of matrices, systems of equations and spectra, with cuBLAS
`nccl`      tensors of several processes combined and moved
`workspaces`  memory that they compute in

What they are called with is checked by stand-ins in the tests.
"""
