"""The functions that modules call: activations, losses, normalisation, attention, look-ups.

They are the ops of `genesis.ops`, under PyTorch's names.
"""

from __future__ import annotations

from genesis import ops
from genesis.ops.elementwise import tanh
from genesis.ops.matmul import bilinear, linear
from genesis.ops.random import dropout

globals().update(ops.FUNCTIONAL)

__all__ = ["bilinear", "dropout", "linear", "tanh", *sorted(ops.FUNCTIONAL)]
