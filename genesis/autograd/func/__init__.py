"""Functions of functions: derivatives, batches, calls of modules without state. What `genesis.func` offers.

`derivatives`  grad, value_and_grad, vjp, jvp, linearize      `jacobians`  jacrev, jacfwd, hessian, hvp
`batches`      vmap                                           `stateless`  functional_call, stack_module_state
`linear`       a derivative as a linear map, and its transpose

Each runs its function on tensors that hold another kind of array, or have another node in the graph; none of them
knows of the others, which is why they nest in any order.
"""
