"""Dropout, and rectifiers with random slopes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base.errors import ArgumentValueError, message
from genesis.core.call.halves import F32, wide
from genesis.core.call.kinds import case, composite, drawn, random
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.inplace_methods import inplace_method
from genesis.core.graph import normals
from genesis.core.graph.generator import Generator, default_generator
from genesis.core.graph.tensor import Tensor, wrap
from genesis.ops.creation.create import in_order, order_of
from genesis.ops.creation.random import uniform_like
from genesis.ops.pointwise.choice import where


@random("dropout", samples=lambda t: [case((2, 3), F32, 0.5)])
def dropout_factors(stream: Generator, shape: tuple[int, ...], dtype: Any, p: float) -> Any:
    """0 with probability p, 1 / (1 - p) otherwise."""
    kind = np.float64 if dtype == np.float64 else np.float32
    make = normals.uniform_maker(np.dtype(kind), True) if isinstance(stream, Generator) else None
    if make is not None:
        count = math.prod(shape)
        return make(shape, count, *stream.reserve(count), p)
    return (stream.uniform(shape, kind) >= p) * kind(1 / (1 - p))


@composite(method=False, torch_name="nn.functional.dropout")
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero elements with probability ``p`` and scale the others by 1 / (1 - p) (Srivastava et al. 2014).

    Raises:
        ValueError: ``p`` outside [0, 1]

    >>> import genesis
    >>> genesis.nn.functional.dropout(genesis.ones(3), 0.5, training=False)
    tensor([1., 1., 1.])
    """
    if not 0 <= p <= 1:
        raise ArgumentValueError(message("dropout", f"p must be between 0 and 1, got {p}"))
    if not training or p == 0:
        return input
    if p == 1:
        result = input * 0.0
    elif isinstance(input._array, Spec):
        result = input * 1.0
    else:
        x = wide(input)  # a factor of 16 bits would be rounded, and the product again
        factors = wrap(
            drawn(default_generator, "dropout", tuple(x._array.shape), x._array.dtype, float(p), device=x.device)
        )
        result = (x * in_order(factors, order_of(x, None))).to(input._array.dtype)
    return input.copy_(result) if inplace else result


samples(dropout, lambda t: [case(t(3, 4), 0.0), case(t(3, 4), 0.5, False), case(t(3), 1.0)])

wrong_inputs(dropout, (lambda t: case(t(3), 1.5), ValueError, "dropout: p must be between 0 and 1, got 1.5"))


@composite(method=False, inplace=True, torch_name="nn.functional.rrelu")
def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """`leaky_relu` with slopes drawn from [lower, upper) for each element in training, else with their mean (Xu et al.
    2015).

    Raises:
        ValueError: ``lower`` is above ``upper``

    >>> import genesis
    >>> genesis.nn.functional.rrelu(genesis.tensor([-4., 1.]), 0.1, 0.4)
    tensor([-1.,  1.])
    """
    if lower > upper:
        raise ArgumentValueError(message("rrelu", f"the lower slope {lower} is above the upper one, {upper}"))
    slope = (
        uniform_like(None, tuple(input._array.shape), input) * (upper - lower) + lower
        if training
        else (lower + upper) / 2
    )
    return where(input > 0, input, input * slope)


samples(rrelu, lambda t: [case(t(3, 4)), case(t(2, 3), 0.2, 0.4)])

wrong_inputs(
    rrelu, (lambda t: case(t(3), 0.5, 0.1), ValueError, "rrelu: the lower slope 0.5 is above the upper one, 0.1")
)


rrelu_ = inplace_method(rrelu.op)  # type: ignore[attr-defined]

__all__ = [
    "rrelu",
    "rrelu_",
]

FUNCTIONAL = [
    "rrelu",
    "rrelu_",
]
