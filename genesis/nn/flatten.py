"""Changes of shape as modules."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.nn.module import Module
from genesis.ops.shapes.reshape import flatten, unflatten


class Flatten(Module):
    """Merge the dimensions from ``start_dim`` to ``end_dim``.

    >>> import genesis
    >>> genesis.nn.Flatten()(genesis.zeros(2, 3, 4)).shape
    genesis.Size([2, 12])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Split one dimension into several.

    >>> import genesis
    >>> genesis.nn.Unflatten(1, (3, 4))(genesis.zeros(2, 12)).shape
    genesis.Size([2, 3, 4])
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return unflatten(input, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


explain_all(globals())
