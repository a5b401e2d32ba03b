"""Programs of the compiler on a GPU: a whole step as a few kernels, repeated as one graph.

`lowered`   a program for rules of loops: without draws, and with float32 for 16 bits
`regions`   which calls run together as one kernel, and which are called as in eager mode
`stages`    launches of loops, of draws, and of small products with loops at their ends
`halves`    products of 16-bit floats that rules of gradients widened
`joined`    gradients of attention that are written to parts of one array
`losses`    losses that are computed together with their gradient
`held`      kernels whose numbers of the host lie in the device's memory
`together`  the same loop over many tensors as one launch, and small products that nothing waits for
`step`      a program as one call: the plan of its memory, the first call, and the graph of all later ones
`told`      what a step does, for `explain`
"""
