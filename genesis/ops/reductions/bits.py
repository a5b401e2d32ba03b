"""A number that stands for all bits of a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.base.errors import ArgumentValueError, ShapeError, message
from genesis.core.call.kinds import normalize_dims
from genesis.core.call.out import takes_out
from genesis.core.call.refusal import expect_tensor, explain_all
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.outside import tensor


@takes_out
def hash_tensor(input: Tensor, dim: Any = (), *, keepdim: bool = False, mode: int = 0) -> Tensor:
    """The exclusive or of the bits of all elements, or of those along dimensions: of floats as float64, of integers as
    int64.

    Raises:
        RuntimeError: no elements, and no dimension
        ValueError: a mode other than 0

    >>> import genesis
    >>> genesis.hash_tensor(genesis.tensor([1, 2])).item()
    3
    """
    every = dim is None or (isinstance(dim, tuple | list) and not len(dim))
    if mode != 0:
        raise ArgumentValueError(message("hash_tensor", f"mode must be 0, got {mode}"))
    if every and not expect_tensor("hash_tensor", "input", input).numel():
        raise ShapeError(message("hash_tensor", "there are no elements", [("input", input._spec())], "dim=0"))
    values = (input.detach().double() if input.is_floating_point() else input.detach().long())._on_host()  # type: ignore[attr-defined]
    axes = tuple(range(input.ndim)) if every else normalize_dims("hash_tensor", dim, input.ndim)
    return tensor(np.bitwise_xor.reduce(values.view(np.uint64), axis=axes[: input.ndim], keepdims=keepdim))


explain_all(globals(), "hash_tensor")
Tensor.hash_tensor = hash_tensor

__all__ = ["hash_tensor"]
