"""How a tensor lies on the ranks along one dimension of a mesh, in PyTorch's words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Placement:
    """One of `Replicate`, `Shard` and `Partial`."""

    def is_replicate(self) -> bool:
        """Whether each rank has all of it."""
        return isinstance(self, Replicate)

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it is divided along a dimension, or along this one."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether each rank has a term of it."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Replicate(Placement):
    """All of it on each rank."""


@dataclass(frozen=True)
class Shard(Placement):
    """Parts along a dimension.

    >>> Shard(0).is_shard(), Shard(0).is_shard(1), Shard(0) == Shard(0)
    (True, False, True)
    """

    dim: int


@dataclass(frozen=True)
class Partial(Placement):
    """Terms of what it is when they are combined."""

    reduce_op: str = "sum"
