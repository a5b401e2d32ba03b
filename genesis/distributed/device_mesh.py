"""Ranks in a grid: a group for each line of it, and smaller grids by the names of dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.base.device import memory_named
from genesis.base.errors import ArgumentValueError, UnsupportedError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor, wrap
from genesis.distributed.groups import GroupMember, ProcessGroup, get_rank, group_of, new_group


class DeviceMesh:
    """Ranks in a grid; all processes make it together.

    ``mesh["dp", "tp"]`` is the part of it in which this rank is, along the dimensions of these names.

    Args:
        device_type: ``"cpu"``, or another whose memory is there
        mesh: ranks of the world, in a nest of lists or a tensor
        mesh_dim_names: a name for each dimension

    >>> import genesis.distributed as dist
    >>> dist.init_process_group()
    >>> mesh = dist.DeviceMesh("cpu", [[0]], mesh_dim_names=("dp", "tp")); mesh.size(), mesh.get_local_rank("dp")
    (1, 0)
    >>> mesh["tp"]
    DeviceMesh('cpu', [0], mesh_dim_names=('tp',))
    >>> dist.destroy_process_group()
    """

    def __init__(
        self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None, **others: Any
    ) -> None:
        ranks = _checked(device_type, mesh)
        self._describe(device_type, ranks, _names("DeviceMesh", mesh_dim_names, ranks.ndim))
        self._groups = [_group_along(ranks, dim) for dim in range(ranks.ndim)]
        self._root, self._dims = self, tuple(range(ranks.ndim))

    def _describe(self, device_type: str, ranks: Any, names: tuple[str, ...] | None) -> None:
        self.device_type, self.mesh, self.mesh_dim_names = device_type, wrap(ranks), names
        self._flat: dict[str, DeviceMesh] = {}  # dimensions that were made one, by their new names

    @classmethod
    def from_group(
        cls, group: Any, device_type: str, mesh: Any = None, *, mesh_dim_names: Sequence[str] | None = None
    ) -> DeviceMesh:
        """The mesh of groups that there are: of one, or of one for each dimension of ``mesh``.

        Raises:
            ValueError: another number of groups than dimensions, or ranks that are not those of the groups
        """
        groups = [group_of("DeviceMesh.from_group", each) for each in (group if isinstance(group, list) else [group])]
        ranks = _checked(device_type, groups[0].ranks if mesh is None else mesh)
        here = ranks.ndim == len(groups) and (at := np.argwhere(ranks == get_rank())).size
        if not here or any([_line(ranks, at[0], [d]).tolist() != list(g.ranks) for d, g in enumerate(groups)]):
            text = f"the groups have the ranks {[list(each.ranks) for each in groups]}, the mesh is {ranks.tolist()}"
            raise ArgumentValueError(
                message("DeviceMesh.from_group", text, hint="a group for each dimension, in order")
            )
        made: DeviceMesh = object.__new__(cls)
        made._describe(device_type, ranks, _names("DeviceMesh.from_group", mesh_dim_names, ranks.ndim))
        made._groups, made._root, made._dims = groups, made, tuple(range(ranks.ndim))
        return made

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
        if isinstance(mesh_dim, str) and mesh_dim in self._flat:
            return self._flat[mesh_dim].get_group()
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

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        wanted = (names,) if isinstance(names, str) else tuple(names)
        if len(wanted) == 1 and wanted[0] in self._root._flat:
            return self._root._flat[wanted[0]]
        dims, at = [self._number(name) for name in wanted], self.get_coordinate()
        if at is None:
            raise ArgumentValueError(message("DeviceMesh", f"rank {get_rank()} is not in the mesh"))
        if not dims or len(set(dims)) < len(dims):
            raise ArgumentValueError(
                message("DeviceMesh", f"the part of the dimensions {wanted}", hint="each name once")
            )
        return self._part(dims, at)

    def _part(self, dims: list[int], at: Sequence[int]) -> DeviceMesh:
        """The part of it along some dimensions that has the rank at a position."""
        part: DeviceMesh = object.__new__(DeviceMesh)
        names = self.mesh_dim_names and tuple([self.mesh_dim_names[dim] for dim in dims])
        part._describe(self.device_type, _line(self.mesh._array, at, dims), names)
        part._groups = [self._groups[dim] for dim in dims]
        part._root, part._dims = self._root, tuple([self._dims[dim] for dim in dims])
        return part

    def joined(self, other: DeviceMesh) -> DeviceMesh:
        """The mesh of the dimensions of both, parts of one; where they are not, this one."""
        root, dims = self._root, [*self._dims, *other._dims]
        at = root.get_coordinate()
        if other._root is not root or at is None or len(set(dims)) < len(dims):
            return self
        return root if dims == list(range(root.ndim)) else root._part(dims, at)

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """The same ranks in one dimension, which the whole mesh knows by its name from now on; all processes call it."""
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ("flat",))
        root = self._root
        if name in (root.mesh_dim_names or ()) and self.ndim > 1:
            raise ArgumentValueError(message("DeviceMesh._flatten", f"there is a dimension {name!r} already"))
        if self.ndim == 1:
            flat = DeviceMesh.from_group(self.get_group(), self.device_type, mesh_dim_names=(name,))
        else:
            lines = np.moveaxis(root.mesh._array, self._dims, range(-self.ndim, 0)).reshape(-1, self.size())
            group = group_of("DeviceMesh._flatten", _own_of(lines))
            flat = DeviceMesh.from_group(group, self.device_type, mesh_dim_names=(name,))
        root._flat[name] = flat
        return flat

    def _number(self, mesh_dim: int | str) -> int:
        if isinstance(mesh_dim, str):
            names = self.mesh_dim_names or ()
            if mesh_dim not in names:
                text = f"there is no dimension {mesh_dim!r}, the names are {list(names)}"
                raise ArgumentValueError(message("DeviceMesh", text))
            return names.index(mesh_dim)
        return mesh_dim

    def __eq__(self, other: object) -> bool:
        return other is self or (isinstance(other, DeviceMesh) and self._identity == other._identity)

    def __hash__(self) -> int:
        return hash(self._identity)

    def __deepcopy__(self, memo: Any) -> DeviceMesh:
        return self  # a copied model is of the same ranks

    @property
    def _identity(self) -> tuple[Any, ...]:
        return self.device_type, self.shape, tuple(self.mesh._array.reshape(-1).tolist()), self.mesh_dim_names

    def __repr__(self) -> str:
        names = "" if self.mesh_dim_names is None else f", mesh_dim_names={self.mesh_dim_names}"
        return f"DeviceMesh({self.device_type!r}, {self.mesh.tolist()}{names})"  # type: ignore[attr-defined]


def _checked(device_type: str, mesh: Any) -> Any:
    """The ranks of a mesh, as an array."""
    if device_type != "cpu" and memory_named(device_type) is None:
        raise UnsupportedError(message("DeviceMesh", f"there are no devices {device_type!r} here", hint="'cpu'"))
    ranks = np.asarray(mesh._array if isinstance(mesh, Tensor) else mesh, np.int64)
    if not ranks.ndim or len(np.unique(ranks)) != ranks.size:
        text = f"the mesh is {ranks.tolist()}"
        raise ArgumentValueError(message("DeviceMesh", text, hint="each rank once, in a list or a nest of lists"))
    return ranks


def _names(name: str, given: Sequence[str] | None, ndim: int) -> tuple[str, ...] | None:
    names = None if given is None else tuple(given)
    if names is not None and (len(names) != ndim or len(set(names)) != len(names)):
        text = f"mesh_dim_names are {names}, the mesh has {ndim} dimensions"
        raise ArgumentValueError(message(name, text, hint="a name for each"))
    return names


def _line(ranks: Any, at: Sequence[int], dims: Sequence[int]) -> Any:
    """The ranks that differ from the one at a place in some dimensions only, in the order of these."""
    part = ranks[tuple([slice(None) if dim in dims else n for dim, n in enumerate(at)])]
    kept = sorted(dims)
    return part.transpose([kept.index(dim) for dim in dims]).copy()


def _group_along(ranks: Any, dim: int) -> Any:
    """The group of this process along a dimension."""
    if ranks.ndim == 1 and ranks.tolist() == list(group_of("DeviceMesh").ranks):
        return group_of("DeviceMesh")
    return _own_of(np.moveaxis(ranks, dim, -1).reshape(-1, ranks.shape[dim]))


def _own_of(lines: Any) -> Any:
    """The group of this process; all processes make all groups."""
    made = [(new_group([int(rank) for rank in line], sort_ranks=False), get_rank() in line) for line in lines]
    return next((group for group, here in made if here), GroupMember.NON_GROUP_MEMBER)


def mesh_of(ranks: Any) -> DeviceMesh:
    """A mesh as it is, or that of a group."""
    if isinstance(ranks, DeviceMesh):
        return ranks
    return DeviceMesh.from_group(ranks, "cpu")


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
