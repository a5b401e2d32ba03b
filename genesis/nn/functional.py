"""The functions that modules call: activations, losses, normalisation, attention, look-ups.

They are the ops of `genesis.ops`, under PyTorch's names.
"""

from __future__ import annotations

from functools import partial as _partial
from typing import TYPE_CHECKING

from genesis import ops
from genesis.base.imports import of_pytorch as _of_pytorch
from genesis.core.call.refusal import explained
from genesis.core.graph.tensor import Tensor
from genesis.ops.learning import activation
from genesis.ops.learning.dropout import dropout
from genesis.ops.pointwise.elementwise import tanh
from genesis.ops.products.linear import bilinear, linear

if TYPE_CHECKING:
    from genesis.nn.functions import *

globals().update(ops.FUNCTIONAL)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Rectifier, $\\max(x, 0)$, with slope 0 at 0; written into ``input`` with ``inplace=True``.

    >>> import genesis
    >>> genesis.nn.functional.relu(genesis.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    return activation.relu(input) if inplace is False else _relu_or_inplace(input, inplace)


def _relu_or_inplace(input: Tensor, inplace: bool) -> Tensor:
    return activation.relu_(input) if inplace else activation.relu(input)


_relu_or_inplace = explained(_relu_or_inplace, "relu")


if not TYPE_CHECKING:  # who checks types knows all there is
    __getattr__ = _partial(_of_pytorch, __name__)  # names that only PyTorch has

__all__ = ["bilinear", "dropout", "linear", "relu", "tanh", *sorted(ops.FUNCTIONAL)]
