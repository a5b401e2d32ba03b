"""Parameters whose rows one call of a collective moves, and the memory that they are whole in.

A large parameter is gathered from the memory of its shard into that of the whole one, and its gradient is scattered in
the same way: nothing is copied on the way. Small ones of one dtype travel together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray
from genesis.arrays.protocol import device_of
from genesis.arrays.spec import Spec
from genesis.base.device import META
from genesis.base.errors import DeviceError, UnsupportedError, message
from genesis.base.late import Late
from genesis.core.graph.modes import no_grad
from genesis.core.graph.parameter import Parameter
from genesis.core.graph.tensor import Tensor, wrap
from genesis.distributed import pieces
from genesis.distributed.device_mesh import DeviceMesh
from genesis.distributed.movement import all_gather_into_tensor
from genesis.distributed.reductions import ReduceOp, all_reduce, reduce_scatter_tensor
from genesis.distributed.sharded import Sharding

_dtensor = Late("genesis.distributed.tensor.dtensor")
_ALONE = 2**16  # bytes of a shard from which a parameter travels alone


class Part:
    """A parameter: this rank's rows, and the whole one that a forward computes with.

    Args:
        name: in the module that was sharded
        owners: modules that have it, each with the name that it has there
        dtype: in which it is computed with; None for its own
    """

    def __init__(
        self, name: str, given: Parameter, owners: Sequence[tuple[Any, str]], mesh: DeviceMesh, dtype: Any
    ) -> None:
        if not given.shape:
            text = f"{name} has no dimension, of which ranks could have rows"
            raise UnsupportedError(message("fully_shard", text, hint="a parameter of shape [1]"))
        if given._array.__class__ is not np.ndarray and not isinstance(given._array, Spec | DeviceArray):
            text = f"{name} is {given._spec()}, whose rows cannot be divided among ranks"
            raise UnsupportedError(message("fully_shard", text, hint="a tensor with memory"))
        if given._layout is not None and given._sharding is None:
            text = f"{name} lies as {list(given.placements)}"  # type: ignore[attr-defined]
            raise UnsupportedError(message("fully_shard", text, hint="parts along the last dimension of a mesh"))
        self.name, self.owners = name, list(owners)
        self.shape, self.dtype = tuple(given._array.shape), given._array.dtype if dtype is None else dtype
        self.sharding = at = Sharding(self.shape[0], mesh, within=given._sharding)
        self.store, rows = _stored(given._array, at)  # what is sent, and this rank's part of it
        self.shard = Parameter(_dtensor.Distributed.of(wrap(rows), at.layout(rows.shape)), given.requires_grad)
        self.nothing = pieces.nothing(self.shape, self.dtype, self.store)  # while there is no whole one
        self.whole = Parameter(wrap(self.nothing), given.requires_grad)
        self.version = -1  # the writes to the shard when it was gathered
        self.hooked: Any = None  # the node of the whole one that tells of its gradient
        self.device: str | None = None  # where the rows have to be
        self.kept: Any = None  # this rank's rows of gradients that its replicas have not combined yet

    def _take_over(self) -> None:
        """Another parameter may have been assigned to the module, as ``load_state_dict(assign=True)`` does."""
        module, name = self.owners[0]
        given = module._parameters[name]
        if given is not self.shard and given is not self.whole:
            if given._layout is None:  # the same object, as an optimizer may have it
                self.shard._become(given)  # type: ignore[attr-defined]
            self.shard = given
            self.put(False)

    def rows(self) -> Any:
        """This rank's rows with zeros behind them, in memory that can be sent."""
        self._take_over()
        array = self.shard._array
        if isinstance(array, Spec):
            text = f"{self.name} is on the meta device, where it has no values"
            raise DeviceError(message("fully_shard", text, hint="to_empty(device='cpu') and first values, or a state"))
        if array.base is not self.store:  # ``data`` was assigned, or the module was converted
            if array.shape != (self.sharding.rows, *self.shape[1:]):
                text = f"{self.name} has the shape {list(array.shape)}, this rank's rows were {self.sharding.rows}"
                raise UnsupportedError(message("fully_shard", text, hint="copy_ into the parameter"))
            self.store = self.sharding.padded_with_zeros(array)
            self.shard.data = wrap(pieces.rows(self.store, 0, self.sharding.rows))
            self.nothing = pieces.nothing(self.shape, self.dtype, self.store)
            if self.device is not None:
                self.stay_on_cpu()
        return pieces.in_dtype(self.store, self.dtype)

    def stay_on_cpu(self) -> None:
        """Refuse memory of another device for the rows, now and when a module that had no memory gets some."""
        self.device, device = "cpu", self.shard.device.type
        if device not in ("cpu", "meta"):
            text = f"{self.name} is on {device}, and shards stay on the device of the parameter"
            raise UnsupportedError(message("fully_shard", text, hint="offload_policy=OffloadPolicy()"))

    def put(self, whole: bool) -> None:
        """Let modules have the whole parameter, or this rank's rows."""
        for module, name in self.owners:
            module._parameters[name] = self.whole if whole else self.shard

    @no_grad()
    def add(self, rows: Any) -> None:
        """Add this rank's rows of a gradient to those that are there."""
        g, known = wrap(pieces.in_dtype(rows, self.shard._array.dtype)), Tensor.grad.fget(self.shard)  # type: ignore[attr-defined]
        if known is None:
            Tensor.grad.fset(self.shard, g)  # type: ignore[attr-defined]
        else:
            known.add_(g)
        hooks: Any = self.shard._node and self.shard._node._hooks
        if hooks is not None:
            for hook in list(hooks.post_accumulate.values()):
                hook(self.shard)


def _stored(given: Any, at: Sharding) -> tuple[Any, Any]:
    """Memory for this rank's rows with zeros behind them, and the rows; on the meta device none, and what they look like."""
    if isinstance(given, Spec):
        rest = given.shape[1:]
        nothing = np.broadcast_to(np.zeros((), given.dtype), (at.padded, *rest))
        return nothing, Spec((at.rows, *rest), given.dtype, META)
    store = at.padded_with_zeros(pieces.rows(pieces.without_gaps(given), at.begin, at.end))
    return store, pieces.rows(store, 0, at.rows)


class Unit:
    """Parts that travel together.

    Args:
        members: ranks that have other rows; replicas: those that have the same ones, None for this one only
    """

    def __init__(self, parts: Sequence[Part], members: Any, replicas: Any) -> None:
        self.parts, self.members, self.replicas, self.size = list(parts), members, replicas, members.size()
        self.memory: Any = None  # where the parameters are whole
        self._came: Any = None

    # ---- rows to whole parameters

    def gather(self) -> Any:
        """Begin to gather: what `gathered` waits for."""
        rows = [part.rows() for part in self.parts]
        for part in self.parts:
            part.version = part.shard._version
        if self.size == 1:
            self._came = rows[0]
            return None
        sent = rows[0] if len(rows) == 1 else pieces.joined([pieces.shaped(each, (each.size,)) for each in rows])
        self._came = pieces.empty((self.size * sent.shape[0], *sent.shape[1:]), sent.dtype, sent)
        return all_gather_into_tensor(wrap(self._came), wrap(sent), self.members, async_op=True)

    def gathered(self, work: Any) -> None:
        """Wait, and make the whole parameters what came."""
        if work is not None:
            work.wait()
        came, self._came = self._came, None
        if len(self.parts) == 1:
            part, self.memory = self.parts[0], came
            part.whole._array = pieces.rows(came, 0, part.sharding.length)
            return
        self.memory = pieces.empty((came.size,), came.dtype, came)
        by_rank, at, begin = pieces.shaped(came, (self.size, came.size // self.size)), 0, 0
        for part in self.parts:
            padded = part.store.size
            block = pieces.rows(self.memory, at, at + self.size * padded)
            pieces.assign(pieces.shaped(block, (self.size, padded)), pieces.columns(by_rank, begin, begin + padded))
            part.whole._array = pieces.shaped(pieces.rows(block, 0, math.prod(part.shape)), part.shape)
            at, begin = at + self.size * padded, begin + padded

    def forget(self) -> None:
        """Give the memory back."""
        self.memory = self._came = None
        for part in self.parts:
            part.whole._array = part.nothing

    # ---- gradients to rows

    def scatter(self, grads: Sequence[tuple[Part, Any]], dtype: Any, factor: float | None) -> tuple[Any, ...]:
        """Begin to combine gradients: what `scattered` waits for."""
        wide = [(part, g if dtype is None else pieces.in_dtype(g, dtype)) for part, g in grads]
        padded = [pieces.lengthened(g, part.sharding.padded * self.size) for part, g in wide]
        if len(padded) == 1:
            sent = padded[0]
            out = pieces.empty((sent.shape[0] // self.size, *sent.shape[1:]), sent.dtype, sent)
        else:
            sent = pieces.joined([pieces.shaped(g, (self.size, g.size // self.size)) for g in padded], 1)
            out = pieces.empty((1, sent.shape[1]), sent.dtype, sent)
        op = ReduceOp.AVG if factor is None else ReduceOp.SUM
        work = reduce_scatter_tensor(wrap(out), wrap(sent), op, self.members, async_op=True)
        return [part for part, _ in grads], out, work, factor

    def scattered(self, parts: Sequence[Part], out: Any, work: Any, factor: float | None, replicated: bool) -> None:
        """Wait, and add what came to the gradients of the shards; without ``replicated`` keep it for the next time."""
        work.wait()
        rows = _rows_of(parts, out)
        if self.replicas is not None:
            for part, each in zip(parts, rows, strict=True):
                if part.kept is not None:
                    pieces.add(each, part.kept)
                part.kept = None if replicated else each.copy()
            if not replicated:
                return
            all_reduce(wrap(out), ReduceOp.AVG if factor is None else ReduceOp.SUM, self.replicas)
        if factor is not None:
            rows = _rows_of(parts, pieces.divided(out, factor))
        for part, each in zip(parts, rows, strict=True):
            part.add(each if len(parts) == 1 else each.copy())


def _rows_of(parts: Sequence[Part], out: Any) -> list[Any]:
    """This rank's rows of each part, in memory that has them one behind the other, with the zeros behind them."""
    flat, begin, rows = pieces.shaped(out, (out.size,)), 0, []
    for part in parts:
        count = part.store.size
        blocks = pieces.shaped(pieces.rows(flat, begin, begin + count), part.store.shape)
        rows.append(pieces.rows(blocks, 0, part.sharding.rows))
        begin += count
    return rows


def units_of(parts: Sequence[Part], members: Any, replicas: Any) -> list[Unit]:
    """Parts that travel together: large ones alone, small ones with those of their dtypes."""
    together: dict[Any, list[Part]] = {}
    units = []
    for part in parts:
        if members.size() == 1 or part.store.nbytes >= _ALONE:
            units.append(Unit([part], members, replicas))
        else:
            together.setdefault((part.dtype, part.store.dtype, device_of(part.store)), []).append(part)
    return [*units, *[Unit(alike, members, replicas) for alike in together.values()]]
