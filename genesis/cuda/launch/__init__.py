"""How a kernel gets onto a device, and is started.

`kernel`       a kernel: its code, its launches, and what it does to memory
`several`      one launch of a kernel for several sets of operands
`mixed`        ... or of several kernels
`triton`       Triton as a compiler; the only file that imports it, with `interpreting`
`cubins`       machine code kept on disk
`interpreter`  ... or, on the emulated device, run by Triton's interpreter in a process of its own: `interpreting`
"""
