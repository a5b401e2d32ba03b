"""Batch normalisation of a trained network, taken into the layer before it."""

from __future__ import annotations

import copy
from typing import Any

from genesis.base.errors import ArgumentError, ShapeError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.ops.creation.create import ones_like, zeros_like


def _fused(weight: Any, bias: Any, scale_shape: list[int], bn: tuple[Any, Any, float, Any, Any]) -> Any:
    mean, var, eps, scale, shift = bn
    scale = (ones_like(mean) if scale is None else scale) * (var + eps).rsqrt()
    old = zeros_like(mean) if bias is None else bias
    new = (old - mean) * scale + (zeros_like(mean) if shift is None else shift)
    grads = weight.requires_grad, bias is not None and bias.requires_grad
    fused = (weight * scale.reshape(scale_shape)).to(weight.dtype), new.to(weight.dtype if bias is None else bias.dtype)
    return tuple(Parameter(x.detach(), g) for x, g in zip(fused, grads, strict=True))


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution with the batch normalisation behind it, in evaluation mode."""
    shape = [1, -1] if transpose else [-1, 1]
    return _fused(conv_w, conv_b, shape + [1] * (conv_w.ndim - 2), (bn_rm, bn_rv, bn_eps, bn_w, bn_b))  # type: ignore[no-any-return]


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear layer with the batch normalisation behind it, in evaluation mode."""
    return _fused(linear_w, linear_b, [-1, 1], (bn_rm, bn_rv, bn_eps, bn_w, bn_b))  # type: ignore[no-any-return]


def _check(name: str, layer: Any, bn: Any) -> None:
    for module in (layer, bn):
        if not isinstance(module, Module):
            raise ArgumentError(message(name, f"expected modules, got {type(module).__name__}"))
        if module.training:
            raise ArgumentError(message(name, f"{type(module).__name__} is in training mode", hint="module.eval()"))
    if getattr(bn, "running_mean", None) is None or getattr(bn, "running_var", None) is None:
        raise ArgumentError(message(name, f"{type(bn).__name__} has no running statistics"))
    if not isinstance(getattr(layer, "weight", None), Tensor):
        raise ArgumentError(message(name, f"{type(layer).__name__} has no weight"))


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that does what it does with the batch normalisation behind it; both in evaluation mode.

    Raises:
        TypeError: not modules, in training mode, or without statistics
    """
    _check("fuse_conv_bn_eval", conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A linear layer that does what it does with the batch normalisation behind it; both in evaluation mode.

    Raises:
        TypeError: not modules, in training mode, or without statistics
        RuntimeError: they have different numbers of features

    >>> import genesis
    >>> from genesis import nn
    >>> linear, bn = nn.Linear(2, 3).eval(), nn.BatchNorm1d(3).eval(); x = genesis.randn(4, 2)
    >>> genesis.allclose(nn.utils.fuse_linear_bn_eval(linear, bn)(x), bn(linear(x)), atol=1e-5)
    True
    """
    _check("fuse_linear_bn_eval", linear, bn)
    if bn.num_features not in (1, linear.out_features):
        raise ShapeError(
            message("fuse_linear_bn_eval", f"{linear.out_features} features, and a normalisation of {bn.num_features}")
        )
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        linear.weight, linear.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


explain_all(globals())
