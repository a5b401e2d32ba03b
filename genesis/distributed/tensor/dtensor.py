"""`DTensor` as programs compute with it: it has the shape of the whole, and functions of it compute in parts where they can.

What goes on beneath are ordinary tensors, this rank's, with an ordinary history; how it is computed is said in `propagation`, how results lie in `rules`. This
module is imported when the first such tensor is made: functions ask for its class from then on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from weakref import ref

from genesis.arrays.spec import contiguous_strides
from genesis.base.errors import UnsupportedError, message
from genesis.core.call.subclasses import disabled, is_disabled
from genesis.core.graph.parameter import Parameter
from genesis.core.graph.size import Count, Size
from genesis.core.graph.tensor import Tensor
from genesis.distributed.device_mesh import DeviceMesh
from genesis.distributed.placements import Placement, Replicate, Shard
from genesis.distributed.sharded import DTensor, Layout, Sharding
from genesis.distributed.tensor import propagation, rules  # noqa: F401 (rules fills the table)
from genesis.distributed.tensor.exchange import gathered, moved


def _nothing() -> None:
    return None


class Distributed(DTensor):
    """A tensor that all ranks of a mesh have together.

    >>> import genesis, genesis.distributed as dist
    >>> from genesis.distributed.tensor import Shard, distribute_tensor
    >>> dist.init_process_group()
    >>> x = distribute_tensor(genesis.ones(4, 2), dist.init_device_mesh("cpu", (1,)), [Shard(0)])
    >>> (x @ genesis.nn.Parameter(genesis.ones(2, 3))).placements, x.sum().item()
    ((Shard(dim=0),), 8.0)
    >>> dist.destroy_process_group()
    """

    __slots__ = ()

    _layout: Layout

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        with disabled():
            return propagation.computed(func, args, kwargs or {})

    # ---- made of this rank's part

    @staticmethod
    def around(local: Tensor, mesh: DeviceMesh, placements: Sequence[Placement], shape: Sequence[int]) -> Distributed:
        """The tensor of this shape of which a rank has this part."""
        return Distributed.of(local, Layout(mesh, normal(placements, len(shape)), shape))

    @staticmethod
    def of(local: Tensor, layout: Layout) -> Distributed:
        """The tensor that lies so, of which a rank has this part."""
        out: Distributed = object.__new__(Distributed)
        out._counter, out._node, out._view = local._shared_counter(), local._node, None
        out._array, out._layout = local._array, layout
        return out

    def _become(self, p: Parameter) -> None:
        """Make a parameter that has this rank's part one that lies as this tensor does."""
        p._layout, p.__class__ = self._layout, DistributedParameter

    @staticmethod
    def same(x: Tensor, mesh: DeviceMesh) -> Distributed:
        """A tensor that all ranks have."""
        return Distributed.of(x, Layout(mesh, [Replicate()] * mesh.ndim, x.shape))

    @classmethod
    def even(cls, local: Tensor, mesh: DeviceMesh, placements: Sequence[Placement]) -> Distributed:
        """The same where all ranks have parts of one shape."""
        shape = list(local.shape)
        for number, each in enumerate(placements):
            if each.is_shard():
                shape[each.dim] *= mesh.size(number)  # type: ignore[attr-defined]
        return cls.around(local, mesh, placements, shape)

    def lying(self, mesh: DeviceMesh, to: Sequence[Placement], terms: bool | Sequence[bool] = False) -> Tensor:
        """This rank's part where it lies otherwise; ``terms`` as for `moved`, for each dimension of the mesh."""
        if self._layout.nested:
            text = "rows of a part of a tensor cannot be moved"
            raise UnsupportedError(message("redistribute", text, hint="full_tensor()"))
        if mesh != self._mesh:
            raise UnsupportedError(message("redistribute", f"from {self._mesh} to {mesh}", hint="the same mesh"))
        local = self.to_local()
        for number, (source, wanted) in enumerate(zip(self._placements, normal(to, self.ndim), strict=True)):
            length = self.shape[source.dim] if source.is_shard() else None  # type: ignore[attr-defined]
            each = terms if isinstance(terms, bool) else terms[number]
            local = moved(local, mesh.get_group(number), source, wanted, length, each and local.requires_grad)
        return local

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """This rank's part, an ordinary tensor on the same memory.

        Args:
            grad_placements: how its gradient lies, if not as the tensor does; ``Partial()`` for terms of a sum
        """
        local = self._alias(self._node)
        for number, (lies, of_grad) in enumerate(zip(self._placements, grad_placements or (), strict=False)):
            if lies.is_replicate() and of_grad.is_partial():
                local = moved(local, self._mesh.get_group(number), lies, lies, terms=True)
        return local

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """All of it, in memory of its own; all ranks call it."""
        if self._layout.nested:
            return self.without_rows().full_tensor()
        whole = self.redistribute(placements=[Replicate()] * self._mesh.ndim)
        local = whole.to_local(grad_placements=grad_placements)  # type: ignore[call-arg]
        return local.clone() if whole is self else local  # type: ignore[attr-defined, no-any-return]

    def redistribute(
        self, device_mesh: Any = None, placements: Any = None, *, async_op: bool = False, **others: Any
    ) -> Any:
        """The same tensor, lying otherwise; all ranks call it, and go backward through it together."""
        if placements is None:
            text, hint = "placements are missing", f"placements={[Replicate()] * self._mesh.ndim}"
            raise UnsupportedError(message("redistribute", text, hint=hint))
        to = normal(placements, self.ndim)
        if to == self._placements and device_mesh in (None, self._mesh):
            return self
        with disabled():
            return Distributed.around(self.lying(device_mesh or self._mesh, to), self._mesh, to, self.shape)

    def without_rows(self) -> Distributed:
        """Of rows of a part of a tensor: the part, which all ranks have that have rows of it; all of them call it."""
        with disabled():
            at: Any = self._layout.sharding
            part = gathered(self.to_local(), at)
            lies = at.within.layout(part.shape)
            if self._mesh is at.mesh:  # it and the mesh of the part are not parts of one
                return Distributed.of(part, lies)
            return Distributed.around(part, self._mesh, [*[Replicate()] * at.mesh.ndim, *lies.placements], self.shape)

    # ---- what it says of itself

    @property
    def device_mesh(self) -> DeviceMesh:
        """The ranks that have it."""
        return self._layout.mesh  # type: ignore[no-any-return]

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How it lies along each dimension of the mesh."""
        return self._layout.placements  # type: ignore[no-any-return]

    _mesh, _placements = device_mesh, placements

    @property
    def _sharding(self) -> Sharding | None:  # type: ignore[override]
        """Where it lies as rows of parameters do."""
        return self._layout.sharding  # type: ignore[no-any-return]

    @property
    def shape(self) -> Size:
        return self._layout.shape  # type: ignore[no-any-return]

    @property
    def size(self) -> Count:
        count = Count(self.shape.numel())
        count._shape = tuple(self.shape)
        return count

    def numel(self) -> int:
        return int(self.shape.numel())

    nelement = numel

    @property
    def nbytes(self) -> int:
        return self.numel() * self.itemsize

    def stride(self, dim: int | None = None) -> Any:
        """Steps between neighbours in the whole tensor, where its elements lie one after the other."""
        strides = contiguous_strides(tuple(self.shape))
        return strides if dim is None else strides[dim]

    @property
    def grad(self) -> Any:
        """Its gradient, which lies as it does; inside of `disabled`, as in the step of an optimizer, this rank's part."""
        g = Tensor.grad.fget(self)  # type: ignore[attr-defined]
        if g is None or isinstance(g, DTensor) or is_disabled():
            return g
        known = self.__dict__.get("_known_grad", _nothing)()  # the same object while somebody has it
        if known is None or known._local is not g:
            known = Distributed.of(g, self._layout)
            known._local, self._known_grad = g, ref(known)
        return known

    @grad.setter
    def grad(self, value: Any) -> None:
        Tensor.grad.fset(self, self._as_it_lies(value))  # type: ignore[attr-defined]

    @grad.deleter
    def grad(self) -> None:
        Tensor.grad.fset(self, None)  # type: ignore[attr-defined]

    def _as_it_lies(self, value: Any) -> Any:
        """This rank's part of a tensor of the mesh that may lie otherwise; another tensor is one."""
        if not isinstance(value, Distributed):
            return value
        return value.to_local() if value._layout == self._layout else value.lying(self._mesh, self._placements)

    @property
    def data(self) -> Any:
        return Distributed.of(self._alias(None), self._layout)

    @data.setter
    def data(self, value: Any) -> None:
        Tensor.data.fset(self, self._as_it_lies(value))  # type: ignore[attr-defined]

    def backward(self, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
        """The gradients of leaves; all ranks call it."""
        whole = gradient.full_tensor() if isinstance(gradient, DTensor) else gradient
        with disabled():
            self.lying(self._mesh, [Replicate()] * self._mesh.ndim).backward(whole, *args, **kwargs)

    # ---- values, which all ranks ask for together

    def item(self) -> Any:
        return self.full_tensor().item()  # type: ignore[attr-defined]

    def tolist(self) -> Any:
        return self.full_tensor().tolist()  # type: ignore[attr-defined]

    def numpy(self, **options: Any) -> Any:
        return self.full_tensor().numpy(**options)

    def __bool__(self) -> bool:
        return bool(self.full_tensor())

    def __int__(self) -> int:
        return int(self.full_tensor())

    def __float__(self) -> float:
        return float(self.full_tensor())

    def __len__(self) -> int:
        return len(self.to_local()) if not self.ndim else self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.unbind(0))  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        with disabled():
            return (
                f"DTensor(local_tensor={self._alias(None)!r}, device_mesh={self._mesh}, placements={self._placements})"
            )

    def __reduce__(self) -> Any:
        text = "this rank has a part of a tensor that others have, too"
        raise UnsupportedError(message("pickle", text, hint="genesis.distributed.checkpoint.save, or x.full_tensor()"))

    def __deepcopy__(self, memo: Any) -> Any:
        with disabled():
            local = self._alias(None).clone()  # type: ignore[attr-defined]
        copied: Any = Distributed.of(local, self._layout)
        if isinstance(self, Parameter):
            copied = Parameter(copied, self.requires_grad)
        memo[id(self)] = copied
        return copied.requires_grad_() if self.requires_grad else copied


class DistributedParameter(Distributed, Parameter):
    """A parameter that all ranks of a mesh have together: what `Parameter` makes of a `DTensor`.

    >>> import genesis, genesis.distributed as dist
    >>> from genesis.distributed.tensor import Shard, distribute_tensor
    >>> dist.init_process_group()
    >>> p = genesis.nn.Parameter(distribute_tensor(genesis.ones(4, 2), dist.init_device_mesh("cpu", (1,)), [Shard(0)]))
    >>> type(p).__name__, p.shape, p.placements
    ('DistributedParameter', genesis.Size([4, 2]), (Shard(dim=0),))
    >>> dist.destroy_process_group()
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "Parameter containing:\n" + Distributed.__repr__(self)


def local_of(x: Any) -> Any:
    """This rank's part of a tensor of a mesh; another tensor as it is."""
    return x.to_local() if isinstance(x, Distributed) else x


def normal(placements: Sequence[Placement], ndim: int) -> tuple[Placement, ...]:
    """Placements with dimensions counted from the front.

    Raises:
        NotImplementedError: a dimension that there is not, or one that is divided twice
    """
    several = tuple([Shard(p.dim + ndim if p.dim < 0 else p.dim) if isinstance(p, Shard) else p for p in placements])
    dims = [p.dim for p in several if isinstance(p, Shard)]
    if any([not 0 <= dim < ndim for dim in dims]) or len(set(dims)) < len(dims):
        text = f"placements are {list(placements)}, of a tensor of {ndim} dimensions"
        raise UnsupportedError(message("DTensor", text, hint="each dimension along one of the mesh"))
    return several
