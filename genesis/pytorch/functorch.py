"""The package ``functorch``: ``torch.func`` under its older name, and modules as functions of their parameters."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from genesis.base.errors import GraphError, message
from genesis.core.graph.tensor import Tensor
from genesis.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vjp,
    vmap,
)
from genesis.nn import Module

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "vjp",
    "vmap",
]

Tensors = Sequence[Tensor]


class FunctionalModuleWithBuffers(Module):
    """A module as a function of its parameters, its buffers and its inputs."""

    def __init__(self, model: Module) -> None:
        super().__init__()
        self.stateless_model = model
        self.param_names = tuple(name for name, _ in model.named_parameters())
        self.buffer_names = tuple(name for name, _ in model.named_buffers())

    def forward(self, params: Tensors, buffers: Tensors, *args: Any, **kwargs: Any) -> Any:
        names = (*self.param_names, *self.buffer_names)
        return functional_call(
            self.stateless_model, dict(zip(names, (*params, *buffers), strict=True)), args, kwargs or None
        )


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module without buffers as a function of its parameters and its inputs."""

    def forward(self, params: Tensors, *args: Any, **kwargs: Any) -> Any:
        return super().forward(params, (), *args, **kwargs)


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """A function of a copy of the module, its parameters and its buffers.

    Args:
        disable_autograd_tracking: the parameters do not require grad

    >>> import genesis
    >>> from genesis.pytorch.functorch import grad, make_functional_with_buffers
    >>> f, params, buffers = make_functional_with_buffers(genesis.nn.BatchNorm1d(2, affine=False).eval())
    >>> f(params, buffers, genesis.zeros(1, 2))
    tensor([[0., 0.]])
    """
    return _function_of(model, disable_autograd_tracking, FunctionalModuleWithBuffers)


def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """A function of a copy of the module, and its parameters.

    Raises:
        RuntimeError: the module has buffers

    >>> import genesis
    >>> from genesis.pytorch.functorch import grad, make_functional
    >>> f, params = make_functional(genesis.nn.Linear(2, 1, bias=False))
    >>> grad(lambda p: f(p, genesis.ones(2)).sum())(params)
    (tensor([[1., 1.]]),)
    """
    function, params, buffers = _function_of(model, disable_autograd_tracking, FunctionalModule)
    if buffers:
        raise GraphError(message("make_functional", "the module has buffers", hint="make_functional_with_buffers"))
    return function, params


def _function_of(model: Module, detached: bool, kind: Any) -> tuple[Any, tuple[Tensor, ...], tuple[Tensor, ...]]:
    model = copy.deepcopy(model)
    params = tuple(p.detach() if detached else p for p in model.parameters())
    return kind(model), params, tuple(model.buffers())


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """A function of modules of one kind, and their parameters and buffers, each stacked, for `vmap`. They do not
    require grad.

    >>> import genesis
    >>> from genesis.pytorch.functorch import combine_state_for_ensemble, vmap
    >>> f, params, buffers = combine_state_for_ensemble([genesis.nn.Linear(2, 1) for _ in range(3)])
    >>> vmap(f, (0, 0, None))(params, buffers, genesis.ones(5, 2)).shape
    genesis.Size([3, 5, 1])
    """
    params, buffers = stack_module_state(models)
    function, _, _ = make_functional_with_buffers(models[0])
    return function, tuple(p.detach() for p in params.values()), tuple(buffers.values())
