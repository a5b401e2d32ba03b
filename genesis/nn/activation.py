"""Activations as modules, and multi-head attention."""

from __future__ import annotations

import inspect
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.core.call.refusal import check_types, described, explain_all
from genesis.core.graph.tensor import Tensor
from genesis.nn import functional as F
from genesis.nn import init
from genesis.nn.linear import Linear
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
LogSigmoid, Tanhshrink, Threshold, GLU = (
    _module(n, getattr(F, n.lower())) for n in ("LogSigmoid", "Tanhshrink", "Threshold", "GLU")
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
    >>> genesis.nn.PReLU()(genesis.tensor([-4., 4.]))
    tensor([-1.,  4.], grad_fn=<SelectWhereBackward>)
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(create.full((num_parameters,), init))

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)  # type: ignore[attr-defined, no-any-return]

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class MultiheadAttention(Module):
    """Attention of several heads, with projections before and after (Vaswani et al. 2017).

    Args:
        embed_dim: features in and out; num_heads: heads that share them; dropout: of the attention weights
        batch_first: tensors are (batch, sequence, features) instead of (sequence, batch, features)

    Raises:
        ValueError: the features cannot be divided among the heads

    >>> import genesis
    >>> x = genesis.randn(2, 5, 8)
    >>> genesis.nn.MultiheadAttention(8, 2, batch_first=True)(x, x, x)[0].shape
    genesis.Size([2, 5, 8])
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, batch_first: bool = False
    ) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise ArgumentValueError(
                message("MultiheadAttention", f"{embed_dim} features cannot be divided among {num_heads} heads")
            )
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.in_proj_weight = Parameter(create.empty(3 * embed_dim, embed_dim))
        self.register_parameter("in_proj_bias", Parameter(create.zeros(3 * embed_dim)) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias)
        init.xavier_uniform_(self.in_proj_weight)
        if bias:
            init.zeros_(self.out_proj.bias)

    def _heads(self, x: Tensor, part: int) -> Tensor:
        n = self.embed_dim
        bias = None if self.in_proj_bias is None else self.in_proj_bias[part * n : (part + 1) * n]
        out = F.linear(x, self.in_proj_weight[part * n : (part + 1) * n], bias)  # type: ignore[attr-defined]
        return out.reshape(*x.shape[:2], self.num_heads, n // self.num_heads).transpose(1, 2)  # type: ignore[no-any-return]

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The attended values and the attention weights; masks are True (or -inf) where attention is not allowed.

        Without a batch: (L, E) in, (L, E) and (L, S) out.
        """
        if query.ndim == 2:
            at = 0 if self.batch_first else 1
            out, weights = self.forward(
                query.unsqueeze(at),
                key.unsqueeze(at),
                value.unsqueeze(at),
                None if key_padding_mask is None else key_padding_mask.unsqueeze(0),  # type: ignore[attr-defined]
                need_weights,
                attn_mask,
                average_attn_weights,
                is_causal,
            )
            return out.squeeze(at), None if weights is None else weights.squeeze(0)  # type: ignore[attr-defined]
        if not self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))  # type: ignore[attr-defined]
        q, k, v = self._heads(query, 0), self._heads(key, 1), self._heads(value, 2)
        scores = (q * (q.shape[-1] ** -0.5)) @ k.mT  # type: ignore[operator, attr-defined]
        for mask in (attn_mask, None if key_padding_mask is None else key_padding_mask[:, None, None, :]):  # type: ignore[index]
            if mask is not None:
                scores = scores.masked_fill(mask, float("-inf")) if mask.dtype.name == "bool" else scores + mask
        weights = scores.softmax(-1)
        out = F.dropout(weights, self.dropout, self.training) @ v  # type: ignore[attr-defined]
        out = self.out_proj(out.transpose(1, 2).reshape(*query.shape[:2], self.embed_dim))
        out = out if self.batch_first else out.transpose(0, 1)
        if not need_weights:
            return out, None
        return out, weights.mean(1) if average_attn_weights else weights


explain_all(globals())

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "MultiheadAttention",
    "PReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmin",
    "Softplus",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]
