"""Tensors of which each rank has some rows, or parts along another dimension: parameters, their gradients, and what states
hold of them.

They are divided as ``chunk`` does: the first ranks have as many each as it takes, the last what is left, which may
be none. A tensor says so by ``_sharding``; for all else it is the tensor of this rank's part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.base.errors import ArgumentValueError, UnsupportedError, message
from genesis.base.late import Late
from genesis.core.call.subclasses import no_torch_function
from genesis.core.graph.modes import is_grad_enabled
from genesis.core.graph.parameter import Parameter
from genesis.core.graph.tensor import Tensor, wrap
from genesis.distributed import pieces
from genesis.distributed.device_mesh import DeviceMesh, mesh_of
from genesis.distributed.groups import group_of
from genesis.distributed.movement import all_gather_into_tensor
from genesis.distributed.placements import Placement, Replicate, Shard

_exchange = Late("genesis.distributed.tensor.exchange")
_dtensor = Late("genesis.distributed.tensor.dtensor")

if TYPE_CHECKING:
    from genesis.distributed.groups import ProcessGroup


class Sharding:
    """How many rows all ranks of a group have together, and which are this rank's.

    Args:
        length: the rows of all
        ranks: a group, or a mesh: rows are divided along its last dimension, and along others ranks have the same rows
        dim: the dimension of the tensor that is divided; what is said of rows is true of it
        within: where these are rows of a part of the tensor, how that is divided: all rows of its ranks are one part
    """

    __slots__ = ("begin", "dim", "end", "length", "members", "mesh", "padded", "within")

    def __init__(
        self, length: int, ranks: ProcessGroup | DeviceMesh, dim: int = 0, within: Sharding | None = None
    ) -> None:
        self.mesh, self.dim, self.within = mesh_of(ranks), dim, within
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
        inner = () if self.within is None else self.within.placements
        return (*[Replicate()] * (self.mesh.ndim - 1), Shard(self.dim), *inner)

    @property
    def groups(self) -> list[ProcessGroup]:
        """Those whose ranks have other parts of the tensor, together all of it."""
        return [self.members] if self.within is None else [self.members, *self.within.groups]

    def parameter(self) -> type[Parameter]:
        """The class of parameters that lie so."""
        return ShardedParameter

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sharding) and self._look() == other._look()

    def _look(self) -> tuple[Any, ...]:
        return self.length, self.members, self.dim, self.within and self.within._look()

    __hash__ = None  # type: ignore[assignment]

    def shape_of(self, part: Sequence[int]) -> tuple[int, ...]:
        """The shape of the whole tensor, of which parts have such a shape."""
        shape = (*part[: self.dim], self.length, *part[self.dim + 1 :])
        return shape if self.within is None else self.within.shape_of(shape)

    def part_of(self, whole: Any) -> Any:
        """This rank's part of a whole tensor or array, as a view."""
        whole = whole if self.within is None else self.within.part_of(whole)
        return whole[(slice(None),) * self.dim + (slice(self.begin, self.end),)]

    def whole_of(self, rows: Any) -> Any:
        """The array of all ranks' rows; all ranks call it."""
        if self.within is not None:
            return self.within.whole_of(Sharding(self.length, self.mesh, self.dim).whole_of(rows))
        if self.dim:
            first = Sharding(self.length, self.mesh).whole_of(np.ascontiguousarray(np.moveaxis(rows, self.dim, 0)))
            return np.ascontiguousarray(np.moveaxis(first, 0, self.dim))
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


class DTensor(Tensor):
    """A tensor that all ranks of a mesh have together: one that programs compute with (`tensor/dtensor.py`), or rows that a
    rank has of a parameter and its states, which for all else are a tensor of these rows.
    """

    __slots__ = ()
    __torch_function__ = classmethod(no_torch_function)  # type: ignore[assignment, arg-type]

    @staticmethod
    def from_local(
        local_tensor: Tensor, device_mesh: Any = None, placements: Any = None, *, run_check: bool = False,
        shape: Any = None, stride: Any = None, grad_placements: Any = None,
    ) -> Any:  # fmt: skip
        """The tensor of which each rank has this part, all of it, or a term; all ranks call it. Gradients flow to it.

        Args:
            shape: of the whole, where it is known; else ranks ask each other
            run_check, stride, grad_placements: accepted for PyTorch's sake

        Raises:
            ValueError: ranks have other parts than those that ``chunk`` divides the whole into
        """
        mesh = mesh_of(group_of("from_local", None) if device_mesh is None else device_mesh)
        lies = _dtensor.normal([Replicate()] * mesh.ndim if placements is None else placements, local_tensor.ndim)
        whole = list(local_tensor.shape)
        for number, each in enumerate(lies):
            if isinstance(each, Shard):
                members = mesh.get_group(number)
                whole[each.dim] = shape[each.dim] if shape is not None else _length(members, whole[each.dim])
        local = (
            local_tensor.view_as(local_tensor) if local_tensor.is_leaf and local_tensor.requires_grad else local_tensor
        )  # type: ignore[attr-defined]
        return _dtensor.Distributed.around(local, mesh, lies, whole)

    def redistribute(self, device_mesh: Any = None, placements: Any = None, **others: Any) -> Any:
        """The same tensor, lying otherwise: divided along a dimension, or whole on each rank; all ranks call it. It has a
        gradient, which all ranks ask for together.

        Raises:
            NotImplementedError: another mesh, or placements that are not here

        >>> import genesis, genesis.distributed as dist
        >>> dist.init_process_group()
        >>> x = ShardedTensor(genesis.ones(2, 1), Sharding(2, dist.group.WORLD))
        >>> x.redistribute(placements=[Replicate()]).redistribute(placements=[Shard(1)]).placements
        (Shard(dim=1),)
        >>> dist.destroy_process_group()
        """
        whole = self._sharding.shape_of(self._array.shape)
        if self._sharding.within is not None:
            text = "rows of a part of a tensor cannot be moved"
            raise UnsupportedError(message("redistribute", text, hint="full_tensor()"))
        given = _dtensor.Distributed.around(self._alias(self._node), self.device_mesh, self.placements, whole)
        return given.redistribute(device_mesh, placements)

    @property
    def device_mesh(self) -> DeviceMesh:
        """The ranks that have it."""
        raise NotImplementedError

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How it lies along each dimension of the mesh."""
        raise NotImplementedError

    def to_local(self) -> Tensor:
        """What this rank has, which is what the tensor is."""
        return self

    def full_tensor(self) -> Tensor:
        """All of it, in memory of its own; all ranks call it."""
        raise NotImplementedError


def _length(members: ProcessGroup, rows: int) -> int:
    """The rows of all ranks.

    Raises:
        ValueError: they are not as ``chunk`` divides them
    """
    every = np.empty(members.size(), np.int64)
    all_gather_into_tensor(wrap(every), wrap(np.array([rows])), members)
    length = int(every.sum())
    padded = -(-length // members.size())
    expected = [min(padded, max(0, length - padded * rank)) for rank in range(members.size())]
    if every.tolist() != expected:
        text = f"the ranks have {every.tolist()} rows, and chunk divides {length} into {expected}"
        raise ArgumentValueError(message("from_local", text, hint="the rows of each as chunk divides them"))
    return length


class ShardedTensor(DTensor):
    """This rank's rows of a tensor.

    >>> import genesis, genesis.distributed as dist
    >>> dist.init_process_group()
    >>> x = ShardedTensor(genesis.ones(2), Sharding(2, dist.group.WORLD)); x.full_tensor()
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """

    __slots__ = ()

    def __init__(self, rows: Tensor, sharding: Sharding) -> None:
        self._array, self._counter, self._node, self._view = rows._array, rows._counter, rows._node, None
        self._sharding = sharding

    def detach(self) -> Tensor:
        """The same rows without history."""
        return ShardedTensor(Tensor.detach(self), self._sharding)

    @property
    def device_mesh(self) -> DeviceMesh:
        """The ranks that have it; where rows are those of a part, the ranks that have that part."""
        return self._sharding.mesh  # type: ignore[no-any-return]

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How it lies along each dimension of the mesh."""
        return self._sharding.placements  # type: ignore[no-any-return]

    def full_tensor(self) -> Tensor:
        """The rows of all ranks, in memory of their own; all ranks call it, and gradients flow to each rank's own rows."""
        if self.requires_grad and is_grad_enabled():
            at, whole = self._sharding, self
            while at is not None:
                whole, at = _exchange.gathered(whole, at), at.within
            return whole
        return wrap(self._sharding.whole_of(self._array))


def own_part(value: Tensor, at: Sharding) -> Tensor:
    """What this rank has of the tensor that a value is, lying so: of a whole one its part, as a view; a part as it is. Where it
    lies otherwise, all ranks call it.
    """
    if isinstance(value, DTensor):
        if value._sharding == at:
            return value if isinstance(value, ShardedTensor) else ShardedTensor(value.detach().to_local(), at)  # type: ignore[attr-defined]
        value = value.full_tensor()
    whole = value.ndim > max([each.dim for each in (at, at.within or at)]) and at.shape_of(value.shape) == tuple(
        value.shape
    )
    return ShardedTensor(at.part_of(value.detach()), at) if whole else value


class ShardedParameter(ShardedTensor, Parameter):
    """This rank's rows of a parameter."""

    __slots__ = ()

    def __init__(self, rows: Tensor, sharding: Sharding, requires_grad: bool = True) -> None:
        Parameter.__init__(self, rows, requires_grad)
        self._sharding = sharding

    def __repr__(self) -> str:
        at = self._sharding
        what = f"of dimension {at.dim}, " if at.dim else ""
        return f"Rows {what}{at.begin} to {at.end} of {at.length} of a parameter containing:\n" + Tensor.__repr__(self)


def layout(name: str, mesh: Any, placements: Any, ndim: int) -> tuple[DeviceMesh, int | None]:
    """The mesh that is meant, and the dimension of a tensor that is divided along the last one of it; None: no dimension is.

    Raises:
        NotImplementedError: other placements
    """
    mesh = mesh_of(group_of(name, None) if mesh is None else mesh)
    if placements is None:
        return mesh, 0
    *others, last = placements
    along = range(-ndim, ndim)
    known = last.is_replicate() or (last.is_shard() and last.dim in along)
    if len(placements) != mesh.ndim or not all([each.is_replicate() for each in others]) or not known:
        text = f"placements are {list(placements)}, and what is divided is a dimension of the tensor along the last one of a mesh"
        raise UnsupportedError(message(name, text, hint=f"{[*[Replicate()] * (mesh.ndim - 1), Shard(0)]}"))
    return mesh, None if last.is_replicate() else last.dim % ndim
