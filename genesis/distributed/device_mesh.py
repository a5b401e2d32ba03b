"""Ranks in a grid: a group for each line of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentValueError, UnsupportedError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor, wrap
from genesis.distributed.groups import ProcessGroup, get_rank, group_of, new_group


class DeviceMesh:
    """Ranks in a grid; all processes make it together.

    Args:
        device_type: ``"cpu"``
        mesh: ranks of the world, in a nest of lists or a tensor
        mesh_dim_names: a name for each dimension

    >>> import genesis.distributed as dist
    >>> dist.init_process_group()
    >>> mesh = dist.DeviceMesh("cpu", [0], mesh_dim_names=("dp",)); mesh.size(), mesh.get_local_rank("dp")
    (1, 0)
    >>> dist.destroy_process_group()
    """

    def __init__(
        self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None, **others: Any
    ) -> None:
        if device_type != "cpu":
            raise UnsupportedError(message("DeviceMesh", f"there are no devices {device_type!r} here", hint="'cpu'"))
        ranks = np.asarray(mesh._array if isinstance(mesh, Tensor) else mesh, np.int64)
        names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        if names is not None and (len(names) != ranks.ndim or len(set(names)) != len(names)):
            text = f"mesh_dim_names are {names}, the mesh has {ranks.ndim} dimensions"
            raise ArgumentValueError(message("DeviceMesh", text, hint="a name for each"))
        if not ranks.ndim or len(np.unique(ranks)) != ranks.size:
            text = f"the mesh is {ranks.tolist()}"
            raise ArgumentValueError(message("DeviceMesh", text, hint="each rank once, in a list or a nest of lists"))
        self.device_type, self.mesh, self.mesh_dim_names = device_type, wrap(ranks), names
        self._groups = [_group_along(ranks, dim) for dim in range(ranks.ndim)]

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return int(self.mesh.ndim)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many ranks each dimension has."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """How many ranks there are, in all or along a dimension."""
        return self.mesh.numel() if mesh_dim is None else self.shape[mesh_dim]

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The ranks that differ from this one in one dimension only."""
        if mesh_dim is None and self.ndim > 1:
            text = f"the mesh has {self.ndim} dimensions"
            raise ArgumentValueError(message("DeviceMesh.get_group", text, hint="mesh_dim=0"))
        return group_of("DeviceMesh.get_group", self._groups[self._number(mesh_dim or 0)])

    def get_all_groups(self) -> list[ProcessGroup]:
        """The group of each dimension."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    def get_rank(self) -> int:
        """The rank of this process in the world."""
        return get_rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The rank of this process along a dimension."""
        return self.get_group(mesh_dim).rank()

    def get_coordinate(self) -> list[int] | None:
        """Where this process is in the grid; None where it is not in it."""
        at = np.argwhere(self.mesh._array == get_rank())
        return None if not len(at) else [int(i) for i in at[0]]

    def __getitem__(self, name: str) -> DeviceMesh:
        dim, at = self._number(name), self.get_coordinate()
        if at is None:
            raise ArgumentValueError(message("DeviceMesh", f"rank {get_rank()} is not in the mesh"))
        part: DeviceMesh = object.__new__(DeviceMesh)
        line = self.mesh._array[tuple([slice(None) if i == dim else n for i, n in enumerate(at)])]
        part.device_type, part.mesh, part.mesh_dim_names = self.device_type, wrap(line.copy()), (name,)
        part._groups = [self._groups[dim]]
        return part

    def _number(self, mesh_dim: int | str) -> int:
        if isinstance(mesh_dim, str):
            names = self.mesh_dim_names or ()
            if mesh_dim not in names:
                text = f"there is no dimension {mesh_dim!r}, the names are {list(names)}"
                raise ArgumentValueError(message("DeviceMesh", text))
            return names.index(mesh_dim)
        return mesh_dim

    def __repr__(self) -> str:
        names = "" if self.mesh_dim_names is None else f", mesh_dim_names={self.mesh_dim_names}"
        return f"DeviceMesh({self.device_type!r}, {self.mesh.tolist()}{names})"  # type: ignore[attr-defined]


def _group_along(ranks: Any, dim: int) -> Any:
    """The group of this process along a dimension; all processes make all groups."""
    own: Any = None
    if ranks.ndim == 1 and ranks.tolist() == list(group_of("DeviceMesh").ranks):
        return group_of("DeviceMesh")
    for line in np.moveaxis(ranks, dim, -1).reshape(-1, ranks.shape[dim]):
        made = new_group([int(rank) for rank in line], sort_ranks=False)
        own = made if get_rank() in line else own
    return own


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Sequence[str] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """All ranks in a grid of this shape, in their order.

    Raises:
        ValueError: the shape has another number of ranks than there are

    >>> import genesis.distributed as dist
    >>> dist.init_process_group()
    >>> dist.init_device_mesh("cpu", (1,))
    DeviceMesh('cpu', [0])
    >>> dist.destroy_process_group()
    """
    ranks = group_of("init_device_mesh").ranks
    if int(np.prod(mesh_shape)) != len(ranks):
        text = f"a mesh of shape {list(mesh_shape)} has {int(np.prod(mesh_shape))} ranks, there are {len(ranks)}"
        raise ArgumentValueError(message("init_device_mesh", text, hint=f"({len(ranks)},)"))
    return DeviceMesh(device_type, np.reshape(ranks, tuple(mesh_shape)), mesh_dim_names=mesh_dim_names)


explain_all(globals())
