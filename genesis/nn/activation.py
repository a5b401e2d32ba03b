"""Activations as modules."""

from __future__ import annotations

import inspect
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.core.call.refusal import check_types, described, explain_all
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor
from genesis.nn import functional as F
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.ops.creation import create


class _Activation(Module):
    """A function of one tensor with fixed options, which are attributes of the module."""

    function: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        options = list(inspect.signature(type(self).function).parameters.values())[1:]
        names = [p.name for p in options]
        given = dict(zip(names, args, strict=False)) | kwargs
        unknown = set(given) - set(names)
        if unknown or len(args) > len(names):
            raise ArgumentError(
                message(
                    type(self).__name__,
                    "unexpected arguments "
                    f"{', '.join(sorted(unknown)) or ', '.join(map(described, args[len(names) :]))}",
                    hint=", ".join(names) or None,
                )
            )
        for p in options:
            if p.name not in given and p.default is p.empty:
                raise ArgumentError(message(type(self).__name__, f"argument {p.name!r} is missing"))
            setattr(self, p.name, given.get(p.name, p.default))
        check_types(type(self).__name__, options, given)
        super().__setattr__("_options", names)

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, **{name: getattr(self, name) for name in self._options})  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        if self._options == ["lambd"]:  # Hardshrink(0.5), as PyTorch prints it
            return f"{self.lambd}"
        return ", ".join(
            f"{name}={getattr(self, name)!r}" for name in self._options if not (name == "inplace" and not self.inplace)
        )


def _module(name: str, function: Any) -> type[Module]:
    first = (inspect.getdoc(function) or "").partition("\n\n>>>")[0]
    doc = f"`{function.__name__}` as a module.\n\n{first}\n"
    return type(name, (_Activation,), {"function": staticmethod(function), "__doc__": doc, "__module__": __name__})


def _plain(name: str) -> Any:
    """A function of the tensor alone (an op also takes ``out=``, which a module does not)."""
    op = getattr(F, name)

    def function(input: Tensor) -> Tensor:
        return op(input)  # type: ignore[no-any-return]

    function.__name__, function.__doc__ = name, op.__doc__
    return function


def _with_inplace(name: str) -> Any:
    op = getattr(F, name)

    def function(input: Tensor, inplace: bool = False) -> Tensor:
        return getattr(input, name + "_")() if inplace else op(input)  # type: ignore[no-any-return]

    function.__name__, function.__doc__ = name, op.__doc__
    return function


ReLU = _module("ReLU", _with_inplace("relu"))
Sigmoid, Tanh = _module("Sigmoid", _plain("sigmoid")), _module("Tanh", _plain("tanh"))
ReLU6, LeakyReLU, ELU, CELU, SELU = (
    _module(n, getattr(F, n.lower() if n != "LeakyReLU" else "leaky_relu"))
    for n in ("ReLU6", "LeakyReLU", "ELU", "CELU", "SELU")
)
GELU, SiLU, Mish, Softplus, Softsign = (
    _module(n, getattr(F, n.lower())) for n in ("GELU", "SiLU", "Mish", "Softplus", "Softsign")
)
Hardtanh, Hardsigmoid, Hardswish = (_module(n, getattr(F, n.lower())) for n in ("Hardtanh", "Hardsigmoid", "Hardswish"))
LogSigmoid, Tanhshrink, Threshold, GLU, Hardshrink, Softshrink = (
    _module(n, getattr(F, n.lower()))
    for n in ("LogSigmoid", "Tanhshrink", "Threshold", "GLU", "Hardshrink", "Softshrink")
)


def _over(name: str) -> Any:
    op = getattr(F, name)

    def function(input: Tensor, dim: int | None = None) -> Tensor:
        return op(input, dim)  # type: ignore[no-any-return]

    function.__name__, function.__doc__ = name, op.__doc__
    return function


Softmax, LogSoftmax, Softmin = (
    _module("Softmax", _over("softmax")),
    _module("LogSoftmax", _over("log_softmax")),
    _module("Softmin", _over("softmin")),
)


class PReLU(Module):
    """`prelu` with slopes of its own, 0.25 at first.

    >>> import genesis
    >>> genesis.nn.PReLU()(genesis.tensor([-4., 4.])).detach()
    tensor([-1.,  4.])
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(create.full((num_parameters,), float(init), device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        """Set all slopes to the first value."""
        with no_grad():
            self.weight.fill_(self.init)  # type: ignore[attr-defined]

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)  # type: ignore[attr-defined, no-any-return]

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """`rrelu`: random slopes in training, their mean else.

    >>> import genesis
    >>> genesis.nn.RReLU(0.1, 0.4).eval()(genesis.tensor([-4., 1.]))
    tensor([-1.,  1.])
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)  # type: ignore[attr-defined, no-any-return]

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Softmax2d(Module):
    """`softmax` over the channels of (N, C, H, W) or (C, H, W).

    Raises:
        ValueError: another number of dimensions

    >>> import genesis
    >>> genesis.nn.Softmax2d()(genesis.zeros(2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ArgumentValueError(message("Softmax2d", f"input must have 3 or 4 dimensions, it has {input.ndim}"))
        return F.softmax(input, -3)  # type: ignore[attr-defined, no-any-return]


explain_all(globals())

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]
