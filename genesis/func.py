"""Functions of functions: derivatives, batches, modules without state; the names of PyTorch's ``torch.func`` and a few
more.

They nest in any order: ``vmap(grad(f))`` gives one gradient for each sample, ``jacfwd(jacrev(f))`` is the Hessian.

>>> import genesis
>>> from genesis.func import grad, vmap
>>> vmap(grad(lambda x: x ** 3))(genesis.tensor([1.0, 2.0]))
tensor([ 3., 12.])
"""

from __future__ import annotations

from genesis.autograd.func.batches import vmap
from genesis.autograd.func.derivatives import grad, grad_and_value, jvp, value_and_grad, vjp
from genesis.autograd.func.jacobians import hessian, hvp, jacfwd, jacrev
from genesis.autograd.func.linear import linear_transpose, linearize
from genesis.autograd.func.stateless import functional_call, stack_module_state

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jvp",
    "linear_transpose",
    "linearize",
    "stack_module_state",
    "value_and_grad",
    "vjp",
    "vmap",
]
