"""The core: tensors and their graph, the call path, the layers of transforms, and the functions of users.

`graph`      what a tensor is, the recorded graph, and the engine that differentiates it
`call`       what an op is, and the way from a call to its result
`layers`     ops on dual and batched arrays: forward mode and vmap
`functions`  differentiable operations of your own

Each builds on those above it only; import-linter holds the order.
"""
