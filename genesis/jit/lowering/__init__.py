"""From a program to machine code that runs it in one call.

`phases`   what a compiled program is made of: kernels, and when they run
`regions`  which calls run together
`step`     the whole program as one call
"""
