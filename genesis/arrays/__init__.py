"""What a tensor can hold: one small protocol, and the arrays that obey it.

`protocol`  what every array offers: shape, dtype, device; virtual arrays and layers
`memory`    what a device does with its arrays
`spec`      shape, dtype and device without data (``device="meta"``)
`dual`      a value and its tangent (forward mode)
`batched`   a hidden dimension of samples (`vmap`)

A traced array, a node of a graph that is being recorded, lives in `genesis.jit`.
"""
