"""Weights that a hook computes before each forward: `weight_norm` and `spectral_norm` as they were before
`parametrizations`.
"""

from __future__ import annotations

from typing import Any

from genesis.base.errors import ArgumentValueError, GraphError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.modes import no_grad
from genesis.core.graph.site import warn_user
from genesis.core.graph.tracing import sets
from genesis.nn.hooks import hooks_of
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.nn.utils.parametrizations import (
    _check_dim,
    as_matrix,
    check_iterations,
    default_rows,
    norm_except_dim,
    random_direction,
)
from genesis.ops.learning.norm import normalize


class _Computed:
    """A hook that computes a tensor of a module out of parameters, before each forward."""

    def __init__(self, name: str) -> None:
        self.name = name

    def compute(self, module: Any, training: bool) -> Any:
        raise NotImplementedError

    def __call__(self, module: Any, inputs: Any) -> None:
        weight = self.compute(module, module.training)
        sets(module, self.name)
        setattr(module, self.name, weight)

    def begin(self, module: Any) -> None:
        """Take the place of the parameter, whose name is free now."""
        setattr(module, self.name, self.compute(module, False))
        module.register_forward_pre_hook(self)

    def end(self, module: Any, *names: str) -> None:
        """Make it a parameter again, of the value that it has."""
        with no_grad():
            value = self.compute(module, False)
        for name in (self.name, *names):
            delattr(module, name)
        module.register_parameter(self.name, Parameter(value.detach()))


class WeightNorm(_Computed):
    """The hook of `weight_norm`."""

    def __init__(self, name: str, dim: int) -> None:
        super().__init__(name)
        self.dim = dim

    def compute(self, module: Any, training: bool) -> Any:
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / norm_except_dim(v, self.dim))


class SpectralNorm(_Computed):
    """The hook of `spectral_norm`."""

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__(name)
        self.n_power_iterations, self.dim, self.eps = n_power_iterations, dim, eps

    def compute(self, module: Any, training: bool) -> Any:
        weight, u, v = (getattr(module, self.name + part) for part in ("_orig", "_u", "_v"))
        matrix = as_matrix(weight, self.dim)
        if training:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(normalize(matrix.T.mv(u), dim=0, eps=self.eps))
                    u.copy_(normalize(matrix.mv(v), dim=0, eps=self.eps))
            u, v = u.clone(), v.clone()
        return weight / u.dot(matrix.mv(v))


def hook_on(module: Any, kind: type, name: str) -> tuple[int, Any] | None:
    """The hook of a class on a tensor of a module, and its number."""
    for number, entry in hooks_of(module).forward_pre.items():
        if isinstance(entry[0], kind) and entry[0].name == name:
            return number, entry[0]
    return None


def _free(function: str, module: Any, name: Any, kind: type) -> Any:
    """The parameter of a module that a hook is to take the place of."""
    weight = module._parameters.get(name) if isinstance(module, Module) and isinstance(name, str) else None
    if isinstance(module, Module) and hook_on(module, kind, name):
        raise GraphError(message(function, f"{name!r} has such a hook already"))
    if weight is None:
        raise ArgumentValueError(message(function, f"{type(module).__name__} has no parameter {name!r}"))
    return weight


def _remove(function: str, module: Any, name: str, kind: type, *parts: str) -> Any:
    hook = hook_on(module, kind, name) if isinstance(module, Module) else None
    if hook is None:
        raise ArgumentValueError(message(function, f"{name!r} of {type(module).__name__} has no such hook"))
    del hooks_of(module).forward_pre[hook[0]]
    hook[1].end(module, *(name + part for part in parts))
    return module


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """`genesis.nn.utils.parametrizations.weight_norm` by a hook, with the parameters ``name_g`` and ``name_v``."""
    warn_user(message("weight_norm", "this form is deprecated", hint="parametrizations.weight_norm"), FutureWarning)
    weight = _free("weight_norm", module, name, WeightNorm)
    _check_dim("weight_norm", weight, dim)
    hook = WeightNorm(name, -1 if dim is None else dim)
    del module._parameters[name]
    module.register_parameter(name + "_g", Parameter(norm_except_dim(weight.detach(), hook.dim)))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    hook.begin(module)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Undo `weight_norm`, with the weight as it is."""
    return _remove("remove_weight_norm", module, name, WeightNorm, "_g", "_v")


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """`genesis.nn.utils.parametrizations.spectral_norm` by a hook, with the parameter ``name_orig``."""
    weight = _free("spectral_norm", module, name, SpectralNorm)
    rows = default_rows(module) if dim is None else dim
    _check_dim("spectral_norm", weight, rows)
    check_iterations(n_power_iterations)
    hook = SpectralNorm(name, n_power_iterations, rows, eps)
    matrix = as_matrix(weight.detach(), rows)
    del module._parameters[name]
    module.register_parameter(name + "_orig", weight)
    module.register_buffer(name + "_u", random_direction(weight, matrix.shape[0], eps))
    module.register_buffer(name + "_v", random_direction(weight, matrix.shape[1], eps))
    setattr(module, name, weight.detach())
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Undo `spectral_norm`, with the weight as it is."""
    return _remove("remove_spectral_norm", module, name, SpectralNorm, "_orig", "_u", "_v")


explain_all(globals(), "weight_norm", "remove_weight_norm", "spectral_norm", "remove_spectral_norm")
