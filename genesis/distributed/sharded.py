"""How tensors lie on the ranks of a mesh: which rows, or parts along another dimension, are this rank's.

They are divided as ``chunk`` does: the first ranks have as many each as it takes, the last what is left, which may
be none. A tensor that lies so is a `DTensor`, and says it by ``_layout``; that class is here, and what it does in
`tensor/dtensor.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.base.errors import ArgumentValueError, message
from genesis.base.late import Late
from genesis.core.call.subclasses import no_torch_function
from genesis.core.graph.size import Size
from genesis.core.graph.tensor import Tensor, wrap
from genesis.distributed import pieces
from genesis.distributed.device_mesh import DeviceMesh, mesh_of
from genesis.distributed.groups import group_of
from genesis.distributed.movement import all_gather_into_tensor
from genesis.distributed.placements import Placement, Replicate, Shard

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
    def groups(self) -> list[ProcessGroup]:
        """Those whose ranks have other parts of the tensor, together all of it."""
        return [self.members] if self.within is None else [self.members, *self.within.groups]

    def layout(self, part: Sequence[int]) -> Layout:
        """How a tensor lies of which this rank has a part of such a shape."""
        lies: tuple[Placement, ...] = (*[Replicate()] * (self.mesh.ndim - 1), Shard(self.dim))
        if self.within is None:
            return Layout(self.mesh, lies, self.shape_of(part), self)
        outer = self.within.layout(part)
        return Layout(self.mesh.joined(outer.mesh), (*lies, *outer.placements), self.shape_of(part), self)

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


class Layout:
    """How a tensor lies on the ranks of a mesh.

    Args:
        placements: along each dimension of the mesh
        shape: of the whole tensor
        sharding: this rank's part, where it is one along the last dimension of the mesh, or of such a part; where it is not
            given, it is known by the placements
    """

    def __init__(
        self, mesh: DeviceMesh, placements: Sequence[Placement], shape: Sequence[int], sharding: Sharding | None = None
    ) -> None:
        self.mesh, self.placements, self.shape = mesh, tuple(placements), Size(shape)
        if sharding is not None:
            self.sharding = sharding

    @functools.cached_property
    def sharding(self) -> Sharding | None:
        """Where the tensor lies as rows of parameters do."""
        *others, last = self.placements
        if not isinstance(last, Shard) or not all([each.is_replicate() for each in others]):
            return None
        return Sharding(self.shape[last.dim], self.mesh, last.dim)

    @property
    def nested(self) -> bool:
        """Whether parts are rows of other parts: where these begin, placements do not say."""
        known = self.__dict__.get("sharding")
        return known is not None and known.within is not None

    @property
    def groups(self) -> list[ProcessGroup]:
        """Those whose ranks have other parts of the tensor, together all of it."""
        if self.sharding is not None:
            return self.sharding.groups
        return [self.mesh.get_group(number) for number, each in enumerate(self.placements) if each.is_shard()]

    def __eq__(self, other: object) -> bool:
        return other is self or (isinstance(other, Layout) and self._look() == other._look())

    def _look(self) -> tuple[Any, ...]:
        return self.mesh, self.placements, self.shape, self.nested and self.sharding

    __hash__ = None  # type: ignore[assignment]


class DTensor(Tensor):
    """A tensor that all ranks of a mesh have together; the class of all of them is `Distributed` (`tensor/dtensor.py`)."""

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
        if local_tensor._layout is not None:
            text = "the tensor is a DTensor already"
            raise ArgumentValueError(
                message("from_local", text, hint="x.redistribute(placements=...), or x.to_local()")
            )
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


def own_part(value: Tensor, at: Layout) -> Tensor:
    """What this rank has of the tensor that a value is, lying so: of a whole one its part, on the same memory. A tensor of
    another shape is as it was. Where a value lies otherwise, all ranks call it.
    """
    kind = _dtensor.Distributed
    if isinstance(value, DTensor):
        if value._layout == at:
            return value
        value = value.full_tensor()  # type: ignore[attr-defined]
    if tuple(value.shape) != at.shape:
        return value
    if at.sharding is not None:
        return kind.of(at.sharding.part_of(value.detach()), at)  # type: ignore[no-any-return]
    return kind.around(value.detach(), at.mesh, [Replicate()] * at.mesh.ndim, at.shape).redistribute(  # type: ignore[no-any-return]
        placements=at.placements
    )
