"""Nested tensors: batches of tensors that differ in one size, in one piece of memory.

>>> import genesis
>>> x = genesis.nested.nested_tensor([genesis.ones(2, 3), genesis.ones(4, 3)])
>>> x.shape, (x * 2).sum(1)
(genesis.Size([2, j, 3]), tensor([[4., 4., 4.],
        [8., 8., 8.]]))
>>> genesis.nn.functional.linear(x, genesis.ones(1, 3)).to_padded_tensor(0.0).shape
genesis.Size([2, 4, 1])
"""

from __future__ import annotations

from genesis.nested.creation import (
    as_nested_tensor,
    masked_select,
    narrow,
    nested_tensor,
    nested_tensor_from_jagged,
    to_padded_tensor,
)
from genesis.nested.tensor import NestedTensor

__all__ = [
    "NestedTensor",
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]
