"""Tensors of which each rank has some rows: parameters, their gradients, and what states hold of them.

The rows are divided as ``chunk`` does: the first ranks have as many each as it takes, the last what is left, which may
be none. A tensor says so by ``_sharding``; for all else it is the tensor of this rank's rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from genesis.core.call.subclasses import no_torch_function
from genesis.core.graph.parameter import Parameter
from genesis.core.graph.tensor import Tensor, wrap
from genesis.distributed import pieces
from genesis.distributed.collectives import all_gather_into_tensor
from genesis.distributed.device_mesh import DeviceMesh, mesh_of

if TYPE_CHECKING:
    from genesis.distributed.groups import ProcessGroup


class Sharding:
    """How many rows all ranks of a group have together, and which are this rank's.

    Args:
        length: the rows of all
        ranks: a group, or a mesh: rows are divided along its last dimension, and along others ranks have the same rows
    """

    __slots__ = ("begin", "end", "length", "members", "mesh", "padded")

    def __init__(self, length: int, ranks: ProcessGroup | DeviceMesh) -> None:
        self.mesh = mesh_of(ranks)
        self.length, self.members = length, self.mesh.get_group(self.mesh.ndim - 1)
        size, rank = self.members.size(), self.members.rank()
        self.padded = -(-length // size)  # rows of each rank as they are sent
        self.begin, self.end = min(rank * self.padded, length), min((rank + 1) * self.padded, length)

    @property
    def rows(self) -> int:
        """How many rows this rank has."""
        return self.end - self.begin

    @property
    def replicas(self) -> ProcessGroup | None:
        """The ranks that have the same rows; None where there is only this one."""
        group = self.mesh.get_group(0) if self.mesh.ndim > 1 else None
        return group if group is not None and group.size() > 1 else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sharding) and (self.length, self.members) == (other.length, other.members)

    __hash__ = None  # type: ignore[assignment]

    def whole_of(self, rows: Any) -> Any:
        """The array of all ranks' rows; all ranks call it."""
        size, rest = self.members.size(), rows.shape[1:]
        if size == 1:
            return rows.copy()
        whole = pieces.empty((size * self.padded, *rest), rows.dtype, rows)
        all_gather_into_tensor(wrap(whole), wrap(self.padded_with_zeros(rows)), self.members)
        return pieces.rows(whole, 0, self.length)

    def padded_with_zeros(self, rows: Any) -> Any:
        """This rank's rows with zeros behind them, as many as other ranks have."""
        padded = pieces.zeros((self.padded, *rows.shape[1:]), rows.dtype, rows)
        if rows.size:
            pieces.assign(pieces.rows(padded, 0, self.rows), rows)
        return padded


class ShardedTensor(Tensor):
    """This rank's rows of a tensor.

    >>> import genesis, genesis.distributed as dist
    >>> dist.init_process_group()
    >>> x = ShardedTensor(genesis.ones(2), Sharding(2, dist.group.WORLD)); x.full_tensor()
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """

    __slots__ = ()
    __torch_function__ = classmethod(no_torch_function)  # type: ignore[assignment, arg-type]

    def __init__(self, rows: Tensor, sharding: Sharding) -> None:
        self._array, self._counter, self._node, self._view = rows._array, rows._counter, None, None
        self._sharding = sharding

    def full_tensor(self) -> Tensor:
        """The rows of all ranks, in memory of their own; all ranks call it."""
        return wrap(self._sharding.whole_of(self._array))

    def to_local(self) -> Tensor:
        """This rank's rows, which is what the tensor is."""
        return self


class ShardedParameter(Parameter):
    """This rank's rows of a parameter."""

    __slots__ = ()

    def __init__(self, rows: Tensor, sharding: Sharding, requires_grad: bool = True) -> None:
        super().__init__(rows, requires_grad)
        self._sharding = sharding

    full_tensor, to_local = ShardedTensor.full_tensor, ShardedTensor.to_local

    def __repr__(self) -> str:
        at = self._sharding
        return f"Rows {at.begin} to {at.end} of {at.length} of a parameter containing:\n" + Tensor.__repr__(self)
