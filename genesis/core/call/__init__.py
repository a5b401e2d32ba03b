"""From a call to its result.

`op`         the record of an op, and the registry         `kinds`      what all ops of one kind have in common
`dispatch`   the ways of a call                            `fast`       those of elementwise ops on usual tensors
`operands`   what arguments become                         `promotion`  the dtypes of the computation
`computing`  kernels and interpreters of arrays            `recording`  the node that a call becomes
`kernels`    who computes an op on which arrays            `generated`  functions made of text
`scalars`    what an elementwise op does to one element    `scalar_lowering`  the same in fewer functions
`views`      views, and their history after a write        `paths`      how a view lies in its base
`writes`     writes in place                               `inplace_methods`  ``x.add_(y)``, ``x += y``
`strides`    the layout of results                         `halves`     composites compute 16-bit floats in float32
`casts`      arguments under autocast                      `overrides`  users' functions instead of ops
`refusal`    errors that name the call                     `layer_writes`  writes of batched and dual values
`out`        results in memory that is there             `older`      factors in front of the operands
`creating`   keywords of what makes tensors
"""
