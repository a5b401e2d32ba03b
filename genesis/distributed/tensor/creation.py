"""Tensors of which each rank makes its part, and modules whose parameters are divided by a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from genesis.base.errors import UnsupportedError, message
from genesis.base.late import Late
from genesis.core.call.refusal import explain_all
from genesis.core.graph.size import Size
from genesis.distributed.device_mesh import DeviceMesh, mesh_of
from genesis.distributed.groups import group_of
from genesis.distributed.placements import Placement, Replicate, Shard
from genesis.distributed.sharded import Sharding
from genesis.ops.creation import create, random

_dtensor = Late("genesis.distributed.tensor.dtensor")
_tensor = Late("genesis.distributed.tensor")


def _sizes(size: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size


def _made(
    name: str, size: tuple[Any, ...], made: Callable[..., Any], drawn: bool, dtype: Any, requires_grad: bool,
    device_mesh: DeviceMesh | None, placements: Sequence[Placement] | None,
) -> Any:  # fmt: skip
    """The tensor of this shape; of numbers that are drawn, each rank draws all, and keeps its part."""
    shape = _sizes(size)
    mesh = mesh_of(group_of(name, None) if device_mesh is None else device_mesh)
    lies = _dtensor.normal([Replicate()] * mesh.ndim if placements is None else placements, len(shape))
    own, whole = list(shape), made(shape, dtype=dtype) if drawn else None
    for number, each in enumerate(lies):
        if each.is_partial():
            raise UnsupportedError(message(name, "a tensor is not made terms of a sum", hint="DTensor.from_local"))
        if isinstance(each, Shard):
            at = Sharding(shape[each.dim], mesh.get_group(number), each.dim)
            own[each.dim], whole = at.rows, at.part_of(whole) if drawn else None
    local = whole.clone() if drawn else made(tuple(own), dtype=dtype)
    out = _dtensor.Distributed.around(local, mesh, lies, Size(shape))
    return out.requires_grad_() if requires_grad else out


def _maker(name: str, made: Callable[..., Any], drawn: bool, what: str) -> Callable[..., Any]:
    def make(
        *size: Any, dtype: Any = None, layout: Any = None, requires_grad: bool = False,
        device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
    ) -> Any:  # fmt: skip
        return _made(name, size, made, drawn, dtype, requires_grad, device_mesh, placements)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""{what}, of which each rank has its part; without placements all of it."""
    return make


zeros = _maker("zeros", create.zeros, False, "Zeros")
ones = _maker("ones", create.ones, False, "Ones")
empty = _maker("empty", create.empty, False, "What the memory holds")
rand = _maker("rand", random.rand, True, "Uniform numbers, those that one rank would draw")
randn = _maker("randn", random.randn, True, "Normal numbers, those that one rank would draw")


def full(
    size: Any, fill_value: Any, *, dtype: Any = None, layout: Any = None, requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
) -> Any:  # fmt: skip
    """One number, of which each rank has its part; without placements all of it.

    >>> import genesis.distributed as dist
    >>> dist.init_process_group()
    >>> full((2, 2), 3.0).sum().item()
    12.0
    >>> dist.destroy_process_group()
    """

    def made(shape: tuple[int, ...], dtype: Any) -> Any:
        return create.full(shape, fill_value, dtype=dtype)

    return _made("full", (size,), made, False, dtype, requires_grad, device_mesh, placements)


def distribute_module(
    module: Any,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Any, DeviceMesh], None] | None = None,
    input_fn: Callable[[Any, Any, DeviceMesh], Any] | None = None,
    output_fn: Callable[[Any, Any, DeviceMesh], Any] | None = None,
) -> Any:
    """Divide the parameters of a module by a function, and say how its inputs and outputs lie; returns the module.

    Args:
        partition_fn: called with the name of each module in it, the module and the mesh; parameters that it leaves are
            those of the first rank, which all have
        input_fn, output_fn: what becomes of the arguments, a tuple, and of the result at each call

    >>> import genesis, genesis.distributed as dist
    >>> dist.init_process_group()
    >>> distribute_module(genesis.nn.Linear(2, 1))(genesis.ones(2)).shape
    genesis.Size([1])
    >>> dist.destroy_process_group()
    """
    mesh = mesh_of(group_of("distribute_module", None) if device_mesh is None else device_mesh)
    for name, each in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, each, mesh)
        for own, p in list(each.named_parameters(recurse=False)):
            if p._layout is None:
                setattr(each, own, _tensor.distribute_tensor(p, mesh))
    if input_fn is not None:
        module.register_forward_pre_hook(partial(_given, input_fn, mesh))
    if output_fn is not None:
        module.register_forward_hook(partial(_returned, output_fn, mesh))
    return module


def _given(f: Callable[..., Any], mesh: DeviceMesh, module: Any, args: Any) -> Any:
    return f(module, args, mesh)


def _returned(f: Callable[..., Any], mesh: DeviceMesh, module: Any, args: Any, out: Any) -> Any:
    return f(module, out, mesh)


__all__ = ["distribute_module", "empty", "full", "ones", "rand", "randn", "zeros"]

explain_all(globals())
