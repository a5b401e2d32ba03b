"""Tensors of which each rank has some rows: parameters, their gradients, and what states hold of them.

The rows are divided as ``chunk`` does: the first ranks have as many each as it takes, the last what is left, which may
be none. A tensor says so by ``_sharding``; for all else it is the tensor of this rank's rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.base.errors import ArgumentValueError, UnsupportedError, message
from genesis.core.call.subclasses import no_torch_function
from genesis.core.graph.parameter import Parameter
from genesis.core.graph.tensor import Tensor, wrap
from genesis.distributed import pieces
from genesis.distributed.device_mesh import DeviceMesh, mesh_of
from genesis.distributed.groups import group_of
from genesis.distributed.movement import all_gather_into_tensor
from genesis.distributed.placements import Placement, Replicate, Shard

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

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How the tensor lies along each dimension of the mesh."""
        return (*[Replicate()] * (self.mesh.ndim - 1), Shard(0))

    def parameter(self) -> type[Parameter]:
        """The class of parameters that lie so."""
        return ShardedParameter

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

    @staticmethod
    def from_local(
        local_tensor: Tensor, device_mesh: Any = None, placements: Any = None, **others: Any
    ) -> ShardedTensor:
        """The tensor of which each rank has these rows; all ranks call it.

        Raises:
            ValueError: ranks have other numbers of rows than ``chunk`` divides them into
        """
        mesh = mesh_of_rows("from_local", device_mesh, placements)
        members = mesh.get_group(mesh.ndim - 1)
        rows = np.empty(members.size(), np.int64)
        all_gather_into_tensor(wrap(rows), wrap(np.array([local_tensor.shape[0]])), members)
        at = Sharding(int(rows.sum()), mesh)
        expected = [min(at.padded, max(0, at.length - at.padded * rank)) for rank in range(members.size())]
        if rows.tolist() != expected:
            text = f"the ranks have {rows.tolist()} rows, and chunk divides {at.length} into {expected}"
            raise ArgumentValueError(message("from_local", text, hint="the rows of each as chunk divides them"))
        return ShardedTensor(local_tensor.detach(), at)

    @property
    def device_mesh(self) -> DeviceMesh:
        """The ranks that have it."""
        return self._sharding.mesh  # type: ignore[no-any-return]

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How it lies along each dimension of the mesh."""
        return self._sharding.placements  # type: ignore[no-any-return]

    def full_tensor(self) -> Tensor:
        """The rows of all ranks, in memory of their own; all ranks call it."""
        return wrap(self._sharding.whole_of(self._array))

    def to_local(self) -> Tensor:
        """This rank's rows, which is what the tensor is."""
        return self


class ShardedParameter(ShardedTensor, Parameter):
    """This rank's rows of a parameter."""

    __slots__ = ()

    def __init__(self, rows: Tensor, sharding: Sharding, requires_grad: bool = True) -> None:
        Parameter.__init__(self, rows, requires_grad)
        self._sharding = sharding

    def __repr__(self) -> str:
        at = self._sharding
        return f"Rows {at.begin} to {at.end} of {at.length} of a parameter containing:\n" + Tensor.__repr__(self)


def mesh_of_rows(name: str, mesh: Any, placements: Any) -> DeviceMesh:
    """The mesh that is meant, of tensors that lie so.

    Raises:
        NotImplementedError: rows are not what these placements divide, along the last dimension
    """
    mesh = mesh_of(group_of(name, None) if mesh is None else mesh)
    expected = (*[Replicate()] * (mesh.ndim - 1), Shard(0))
    if placements is not None and tuple(placements) != expected:
        text = f"placements are {list(placements)}, and rows along the last dimension of a mesh are what is divided"
        raise UnsupportedError(message(name, text, hint=f"{list(expected)}"))
    return mesh
