"""What everything on a GPU goes through: the driver, devices, streams and events.

`driver`      all calls of CUDA that are made, as one interface; `connection`: who answers them
`bindings`    NVIDIA's driver
`emulated`    ... or NumPy, with ``GENESIS_CUDA=emulate``: `emulated_memory`, `emulated_queues`
`clocks`      what happens before what, which the emulated driver checks
`errors`      what can go wrong; `parameters`: the arguments of kernels in memory
`devices`     contexts, and the current device; `streams`: streams and events; `reports`: what kernels report
"""
