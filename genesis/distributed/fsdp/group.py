"""The parameters that one call of `fully_shard` divides: when they are whole, and where their gradients go.

Forward: they are gathered when the module begins and given back when it ends. Backward: gathered when a node asks for
one of them (`saved`), given back when all their gradients have come, which then are combined, each rank getting its
rows. While one group computes, the next is on its way.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from weakref import ref

import numpy as np

from genesis.arrays.memory import DeviceArray
from genesis.base.errors import UnsupportedError, message
from genesis.core.graph import engine
from genesis.core.graph.tensor import Tensor, wrap
from genesis.distributed import pieces
from genesis.distributed.fsdp.saved import MEMORIES
from genesis.distributed.fsdp.units import Part, units_of
from genesis.distributed.reductions import ReduceOp, all_reduce


class ShardedGroup:
    """Parts that are whole at the same time.

    Args:
        reduce_dtype: in which gradients are sent; None for their own
    """

    def __init__(self, parts: Sequence[Part], reduce_dtype: Any) -> None:
        self.parts, self.reduce_dtype, at = list(parts), reduce_dtype, parts[0].sharding
        self.members, self.replicas = at.members, at.replicas
        self.units = units_of(parts, self.members, self.replicas)
        self.sync = True  # whether gradients are combined at the end of a backward
        self.replicated = True  # ... and then those of replicas, too
        self.reshard_after_backward = True
        self.factor: float | None = None  # what sums of gradients are divided by; None: the number of ranks
        self.next_in_backward: list[ShardedGroup] | None = None  # what is gathered ahead; None: what ran before
        self.is_whole = False
        self._works: list[Any] | None = None  # of a gather that was begun
        self._ready: set[int] = set()  # parts whose gradient came in this backward
        self._scattered: list[tuple[Any, ...]] = []
        for part in self.parts:
            part.put(False)

    @property
    def name(self) -> str:
        return f"fully_shard ({', '.join([part.name for part in self.parts[:2]])}{', ...' * (len(self.parts) > 2)})"

    # ---- whole or not

    def begin(self) -> None:
        """Begin to gather."""
        if not self.is_whole and self._works is None:
            self._works = [unit.gather() for unit in self.units]

    def unshard(self) -> None:
        """Be whole: wait for what was begun. A group that is whole but was written to is gathered anew."""
        if self.is_whole and any([part.version != part.shard._version for part in self.parts]):
            self.reshard()
        if self.is_whole:
            return
        self.begin()
        works, self._works = self._works or [], None
        for unit, work in zip(self.units, works, strict=True):
            unit.gathered(work)
            MEMORIES[id(unit.memory)] = (self, unit)
        self.is_whole = True
        for i, part in enumerate(self.parts):
            self._tell_of_gradients(i, part)
            part.put(True)

    def _tell_of_gradients(self, number: int, part: Part) -> None:
        if part.whole.requires_grad != part.shard.requires_grad:
            part.whole.requires_grad_(part.shard.requires_grad)
        if part.whole.requires_grad and part.hooked is not part.whole._node:
            part.whole.register_post_accumulate_grad_hook(partial(_came, ref(self), number))
            part.hooked = part.whole._node

    def reshard(self) -> None:
        """Be sharded: give the memory back."""
        if self._works is not None:  # nobody asked for what was begun
            for unit, work in zip(self.units, self._works, strict=True):
                unit.gathered(work)
                unit.forget()
            self._works = None
        if self.is_whole:
            self.is_whole = False
            for part in self.parts:
                part.put(False)
            for unit in self.units:
                MEMORIES.pop(id(unit.memory), None)
                unit.forget()

    # ---- a backward

    def unshard_for_backward(self) -> None:
        """Be whole, as a node of the backward that runs needs it."""
        BACKWARDS.uses(self)
        if not self.is_whole:
            self.unshard()
            for group in BACKWARDS.ahead_of(self) if self.next_in_backward is None else self.next_in_backward:
                BACKWARDS.uses(group)
                group.begin()

    def came(self, number: int, whole: Tensor) -> None:
        """The gradient of a part is there."""
        g = whole.grad
        usual = g is not None and (g._array.__class__ is np.ndarray or isinstance(g._array, DeviceArray))
        if g is None or g._node is not None or not usual:
            whole.grad = None
            raise self._refused(g)
        BACKWARDS.uses(self)
        self._ready.add(number)
        if len(self._ready) == sum([part.whole.requires_grad for part in self.parts]):
            self._end()

    def _refused(self, g: Any) -> Exception:
        if g is None or g.is_sparse:
            text = "sparse gradients are not combined"
            return UnsupportedError(message(self.name, text, hint="sparse=False in the embedding"))
        text = "gradients with a history (create_graph=True) are not combined"
        return UnsupportedError(message(self.name, text, hint="differentiate twice before the module is sharded"))

    def _end(self) -> None:
        """All gradients are there: combine them, and give the parameters back."""
        self._ready.clear()
        if self.sync:
            BACKWARDS.combining(self)
            self._combine()
        if self.reshard_after_backward:
            self.reshard()

    def _combine(self) -> None:
        for unit in self.units:
            for part in unit.parts:
                if part.kept is not None and part.whole.grad is None:  # it was used in a backward before this one
                    self._give_zeros(part)
            grads = [(part, part.whole.grad._array) for part in unit.parts if part.whole.grad is not None]
            if not grads:
                continue
            if unit.size == 1 and unit.replicas is None:
                part, g = grads[0]
                part.add(g if self.factor is None else pieces.divided(g, self.factor))
            else:
                self._scattered.append((unit, *unit.scatter(grads, self.reduce_dtype, self.factor)))
            for part, _ in grads:
                part.whole.grad = None

    def finish_combining(self) -> None:
        """Wait for gradients that are on their way."""
        scattered, self._scattered = self._scattered, []
        for unit, *rest in scattered:
            unit.scattered(*rest, self.replicated)

    def end_of_backward(self) -> None:
        """No further gradient comes: of some parts there was none."""
        if self._ready:
            if self.sync:
                self._agree()
            self._end()
        if self.reshard_after_backward:
            self.reshard()

    def _agree(self) -> None:
        """Zeros for parts that this rank did not use and another did."""
        trained = [part for part in self.parts if part.whole.requires_grad]
        used = np.array([part.whole.grad is not None for part in trained], np.uint8)
        for group in (self.members, self.replicas):
            if group is not None and group.size() > 1:
                all_reduce(wrap(used), ReduceOp.MAX, group)
        for part, other in zip(trained, used.tolist(), strict=True):
            if other and part.whole.grad is None:
                self._give_zeros(part)

    @staticmethod
    def _give_zeros(part: Part) -> None:
        part.whole.grad = wrap(pieces.zeros(part.shape, part.dtype, part.store))

    def abandon(self) -> None:
        """A backward ended with an error: forget what it did."""
        self._ready.clear()
        for *_, work, _ in self._scattered:
            work.wait()
        self._scattered = []
        for part in self.parts:
            part.whole.grad = None
        self.reshard()


class Backwards:
    """The backwards that run, and the groups that they use."""

    def __init__(self) -> None:
        self.order: list[ShardedGroup] = []  # as their forwards ended
        self._used: dict[Any, dict[ShardedGroup, None]] = {}  # by the backward
        self._combining: ShardedGroup | None = None

    def uses(self, group: ShardedGroup) -> None:
        """The backward that runs uses a group; when it ends, the group is finished."""
        task = engine.current()
        if task is None:  # a saved tensor is looked at outside of a backward
            return
        if task not in self._used:
            self._used[task] = {}
            task.at_end.append(partial(self._finish, task))
        self._used[task][group] = None

    def ahead_of(self, group: ShardedGroup) -> list[ShardedGroup]:
        """The group whose forward ended before this one's."""
        for at in range(len(self.order) - 1, 0, -1):
            if self.order[at] is group:
                return [self.order[at - 1]]
        return []

    def combining(self, group: ShardedGroup) -> None:
        """A group begins to combine gradients: that of the one before is waited for, so that one is on its way."""
        if self._combining is not None:
            self._combining.finish_combining()
        self._combining = group

    def _finish(self, task: Any) -> None:
        for group in self._used.pop(task):
            group.end_of_backward()
        if self._combining is not None:
            self._combining.finish_combining()
            self._combining = None
        self.order.clear()

    def clear(self) -> None:
        """Before a forward: a backward that did not come to its end is over."""
        if not self._used or engine.current() is not None:
            return
        for task in list(self._used):
            for group in self._used.pop(task):
                group.abandon()
        self._combining = None
        self.order.clear()


BACKWARDS = Backwards()


def _came(group: ref[ShardedGroup], number: int, whole: Tensor) -> None:
    alive = group()
    if alive is not None:
        alive.came(number, whole)
