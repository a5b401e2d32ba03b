"""The core: tensors, the call path, the recorded graph and the engine that differentiates it.

`op`        the record of an op, and the registry          `tensor`    what a tensor is
`kinds`     what all ops of one kind have in common        `node`      the recorded graph
`dispatch`  from a call to its result                      `engine`    backward
`kernels`   who computes an op on which arrays             `generated` functions made of text
`scalars`   what an elementwise op does to one element
`views`     views and in-place writes                      `hooks`     functions that see gradients
`function`  differentiable operations of your own          `modes`     no_grad and its relatives
`forward`   ops on dual arrays                             `batching`  ops on batched arrays
`boundary`  the ways in and out of a transform             `tracing`   what a trace is told
`printing`  how tensors look; the other rooms are in docs/ARCHITECTURE.md
"""
