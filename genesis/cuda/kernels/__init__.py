"""What computes ops on GPUs.

`choose`   what computes an op: a view, a kernel, or the host
`views`    the same memory, seen in another way
`host`     the way over the CPU, for ops without a kernel
"""
