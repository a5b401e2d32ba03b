"""Gradients of several processes, combined in buckets while backward still runs.

A bucket is one piece of memory for the gradients of parameters that become ready one after the other; their ``.grad``
are views of it. When the last gradient of a bucket is there, an `all_reduce` of all of it begins, and backward goes on.
Buckets are begun in one order in all ranks. The first backward shows in which order gradients come; the buckets of those
after it follow that of rank 0.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from weakref import ref

import numpy as np

from genesis.arrays.memory import DeviceArray, memory_of
from genesis.arrays.protocol import device_of
from genesis.base.device import MEMORIES
from genesis.base.errors import ArgumentError, DistributedError, GraphError, UnsupportedError, message
from genesis.base.late import Late
from genesis.core.call.halves import HALVES
from genesis.core.graph import engine
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import at_end, tracer
from genesis.nn.parallel.graph_buckets import GraphBuckets
from genesis.nn.parallel.shards import sum_of_ranks

_processes, _collectives = Late("genesis.distributed"), Late("genesis.distributed.nn.ops")
_watching = Late("genesis.distributed.watching")
_FIRST = 2**20  # bytes of the first bucket: it is small, so that something is on its way early
_UNHELD = 2  # references to memory that nobody else holds, as `sys.getrefcount` says: its bucket's, and the argument's


class Bucket:
    """Parameters, by their numbers, and the memory for their gradients, of which so many ranks may have equal parts."""

    def __init__(self, numbers: Sequence[int], parameters: Sequence[Tensor], parts: int = 1) -> None:
        self.numbers, self.shapes = list(numbers), [tuple(parameters[n].shape) for n in numbers]
        ends = np.cumsum([parameters[n].numel() for n in numbers])
        self.ranges = list(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True))
        first = parameters[numbers[0]]._array
        self.dtype, self.size = first.dtype, -(-self.ranges[-1][1] // parts) * parts
        self.device = first.device if isinstance(first, DeviceArray) else None  # None: memory of the CPU
        self.memory: Any = None
        self.missing = 0
        self.work: Any = None

    def prepare(self, parameters: Sequence[Tensor]) -> None:
        """Before a backward: memory that holds the gradients there are, or that nobody else looks at."""
        self.missing, self.work = len(self.numbers), None
        if self.memory is None or (sys.getrefcount(self.memory) > _UNHELD and not self._holds(parameters)):
            if self.device is None:
                self.memory = np.empty(self.size, self.dtype)
                self.memory[self.ranges[-1][1] :] = 0
            else:
                self.memory = MEMORIES[self.device.type].zeros((self.size,), self.dtype, self.device)

    def _holds(self, parameters: Sequence[Tensor]) -> bool:
        grads = [parameters[n].grad for n in self.numbers]
        return any([g is not None and g._array.base is self.memory for g in grads])

    def view(self, at: int) -> Any:
        """The memory for one gradient."""
        begin, end = self.ranges[at]
        if self.device is None:
            return self.memory[begin:end].reshape(self.shapes[at])
        return wrap(self.memory)[begin:end].view(self.shapes[at])._array  # type: ignore[attr-defined]

    @no_grad()
    def take(self, at: int, g: Any, share: float) -> Any:
        """Put a gradient into the memory, where it may lie already; what it is there. Of memory of the CPU the share of it."""
        view = self.view(at)
        if self.device is None:
            np.multiply(g, self.dtype.type(share), out=view)
        elif g.base is not self.memory:
            memory_of(view).assign(view, g)
        return view

    @no_grad()
    def divide(self, share: float) -> None:
        """The share of what lies on a device: by one kernel, when all gradients are there."""
        if self.device is not None:
            wrap(self.memory).mul_(float(self.dtype.type(share)))  # type: ignore[attr-defined]

    def clear(self, at: int | None = None) -> None:
        """Zeros for one gradient, or for all."""
        view = self.memory if at is None else self.view(at)
        if self.device is None:
            view[...] = 0
        else:
            wrap(view).zero_()  # type: ignore[attr-defined]

    def advance(self) -> None:
        """Bring what is on its way forward. On a device that takes nothing yet: its stream would wait for it."""
        if self.device is None:
            self.work.is_completed()
        else:
            self.work.advance()


class Hooked:
    """What a hook of a program makes of a bucket: a future of the tensor with the combined gradients."""

    def __init__(self, bucket: Bucket, future: Any) -> None:
        self.bucket, self.future = bucket, future

    def is_completed(self) -> bool:
        """Brings it forward."""
        return bool(self.future.done())

    advance = is_completed

    def wait(self) -> None:
        """Until it is there, in the bucket's memory."""
        came = self.future.wait()
        came = came[0] if isinstance(came, list | tuple) else came
        there = wrap(self.bucket.memory)
        if not isinstance(came, Tensor) or came.numel() != there.numel():
            said = came._spec() if isinstance(came, Tensor) else type(came).__name__
            text = f"the hook's future gives {said}, expected the {there.numel()} elements of bucket.buffer()"
            raise ArgumentError(message("register_comm_hook", text))
        if came._array is not self.bucket.memory:
            with no_grad():
                there.copy_(came.reshape(-1))  # type: ignore[attr-defined]


class Buckets:
    """What combines the gradients of a model's parameters: their mean over the ranks of a group."""

    def __init__(
        self,
        named: Sequence[tuple[str, Tensor]],
        group: Any,
        cap: int,
        unused: bool,
        in_tree: bool = False,
        changing: bool = False,
    ) -> None:
        self.names, self.parameters = [name for name, _ in named], [p for _, p in named]
        self.group, self.cap, self.unused = group, cap, unused
        self.in_tree = in_tree
        self.changing = changing  # whether ranks may use other parameters, and in each step others
        self.hook: Callable[[Any], Any] | None = None  # of the program, which combines the gradients of a bucket
        self.expected = False  # whether the next backward combines gradients
        self.ranks = group.size()  # that have gradients: the mean is over them
        self.seen: list[int] | None = []  # the order in which gradients came, in the first backward
        self.ready: set[int] = set()
        self.next = 0  # the first bucket that is not on its way
        self.traced: GraphBuckets | None = None  # in a trace
        self.buckets: list[Bucket] = []
        self._lay_out(list(reversed(range(len(self.parameters)))))
        for number, parameter in enumerate(self.parameters):
            parameter.register_post_accumulate_grad_hook(partial(_came, ref(self), number))

    def _lay_out(self, order: Sequence[int]) -> None:
        """Buckets of parameters in this order, for each dtype and device its own."""
        done: list[list[int]] = []
        begun: dict[Any, list[int]] = {}
        sizes: dict[Any, int] = {}
        for number in order:
            array = self.parameters[number]._array
            kind = array.dtype, device_of(array)
            begun.setdefault(kind, []).append(number)
            sizes[kind] = sizes.get(kind, 0) + array.nbytes
            if sizes[kind] >= (min(_FIRST, self.cap) if not done else self.cap):
                done.append(begun.pop(kind))
                del sizes[kind]
        parts = self.group.size() if self.in_tree else 1
        self.buckets = [Bucket(numbers, self.parameters, parts) for numbers in [*done, *begun.values()]]
        self.where = {n: (bucket, at) for bucket in self.buckets for at, n in enumerate(bucket.numbers)}

    # ---- one backward

    def prepare(self) -> None:
        """Before a forward whose backward combines gradients."""
        self.expected, self.next, self.traced = True, 0, None
        at_end(self._refuse_half)
        _watching.Progress.step += 1
        self.ready.clear()
        for bucket in self.buckets:
            bucket.prepare(self.parameters)

    def came(self, number: int, parameter: Tensor) -> None:
        """A gradient is there."""
        if not self.expected:
            return
        if number in self.ready:
            raise self._twice(number)
        if not self.ready:
            task = engine.current()
            assert task is not None, "a gradient comes in a backward"
            task.at_end.append(self.finish if tracer.get() is None else self._finish_trace)
        self.ready.add(number)
        g = parameter.grad
        usual = g is not None and (g._array.__class__ is np.ndarray or isinstance(g._array, DeviceArray))
        if g is None or not usual or g._node is not None or tracer.get() is not None:
            self._unusual(number, g)
            return
        if self.seen is not None:
            self.seen.append(number)
        self._take(number, g)
        bucket = self.where[number][0]
        bucket.missing -= 1
        if bucket.missing == 0:
            self._start()
        elif self.next:
            self.buckets[self.next - 1].advance()

    def _take(self, number: int, g: Tensor) -> None:
        """Put the share of a gradient into its bucket, which it is a view of from then on."""
        bucket, at = self.where[number]
        view = bucket.take(at, g._array, 1 / self.ranks if self.hook is None else 1.0)
        if g._array.base is not bucket.memory:
            self.parameters[number].grad = wrap(view)

    def _start(self) -> None:
        """Begin with the buckets that are full and whose turn it is."""
        while self.next < len(self.buckets) and self.buckets[self.next].missing == 0:
            bucket = self.buckets[self.next]
            if self.hook is None:
                bucket.divide(1 / self.ranks)
                bucket.work = self._sum(bucket.memory)
            else:
                bucket.work = Hooked(bucket, self.hook(self._of_program(bucket)))
            self.next += 1

    def _of_program(self, bucket: Bucket) -> Any:
        """A bucket as hooks of a program get it."""
        gradients = [wrap(bucket.view(at)) for at in range(len(bucket.numbers))]
        parameters = [self.parameters[n] for n in bucket.numbers]
        last = self.next == len(self.buckets) - 1
        return _processes.GradBucket(wrap(bucket.memory), gradients, parameters, self.next, last)

    def _sum(self, memory: Any) -> Any:
        if self.in_tree:
            return sum_of_ranks(memory, self.group)
        return _processes.all_reduce(wrap(memory), group=self.group, async_op=True)

    def finish(self) -> None:
        """At the end of a backward: wait for all of them."""
        absent = [n for n in range(len(self.parameters)) if n not in self.ready]
        if absent and not self.unused:
            raise self._unfinished(absent)
        for number in absent:
            bucket, at = self.where[number]
            bucket.clear(at)
            bucket.missing -= 1
        self._start()
        self.expected = False
        for bucket in self.buckets:
            bucket.work.wait()
        if self.unused:
            self._give_to_others(absent)
        if self.seen is not None:
            self._follow_the_order(absent)

    def add_nothing(self) -> None:
        """What a rank that has no gradients does while others combine theirs: it gets them."""
        self.prepare()
        for bucket in self.buckets:
            bucket.clear()
            bucket.missing = 0
        self._start()
        self.expected = False
        for bucket in self.buckets:
            bucket.work.wait()
        every = list(range(len(self.parameters)))
        if self.unused:
            self._give_to_others(every)
        else:
            for number in every:
                bucket, at = self.where[number]
                self.parameters[number].grad = wrap(bucket.view(at))
        if self.seen is not None:
            self._follow_the_order(every)

    def _give_to_others(self, absent: Sequence[int]) -> None:
        """Gradients for parameters that this rank did not use and another did; those that none did keep what they have."""
        used = np.ones(len(self.parameters), np.uint8)
        used[list(absent)] = 0
        _processes.all_reduce(wrap(used), _processes.ReduceOp.MAX, self.group)
        for number in absent:
            if used[number]:
                bucket, at = self.where[number]
                self.parameters[number].grad = wrap(bucket.view(at))

    def _follow_the_order(self, absent: Sequence[int]) -> None:
        order = np.array([*(self.seen or ()), *absent])
        self.seen = None
        _processes.broadcast(wrap(order), group=self.group, group_src=0)
        self._lay_out(order.tolist())

    # ---- what is not a gradient in memory

    def _unusual(self, number: int, g: Tensor | None) -> None:
        if g is None or getattr(g, "is_sparse", False):
            text = "sparse gradients are not combined"
            raise UnsupportedError(message(_NAME, text, hint="sparse=False in the embedding"))
        if self.hook is not None and g._node is None:
            text = "gradients of a trace are nodes, of which the hook of register_comm_hook knows nothing"
            raise UnsupportedError(message(_NAME, text, hint="no compiled step, or no hook"))
        if g._node is not None:
            text = "gradients with a history (create_graph=True) are not combined"
            raise UnsupportedError(
                message(_NAME, text, hint="differentiate twice with the module inside: model.module")
            )
        if self.changing:
            text = "which parameters are used in which rank (find_unused_parameters) is no part of a graph"
            raise UnsupportedError(message(_NAME, text, hint="static_graph=True, where all ranks always use all"))
        if self.traced is None:
            order = [n for bucket in self.buckets for n in bucket.numbers]
            self.traced = GraphBuckets(order, self.parameters, self._sum_in_graph, self._share_in_graph)
        self.traced.add(number, g)

    def _finish_trace(self) -> None:
        """At the end of a backward in a trace: all gradients have come."""
        absent = [n for n in range(len(self.parameters)) if n not in self.ready]
        if absent and self.unused:
            text = f"no gradient came for {self.names[absent[0]]}, which other ranks may have used"
            raise UnsupportedError(message(_NAME, text, hint="no compiled step"))
        if absent:
            raise self._unfinished(absent)
        self.expected, self.traced = False, None

    def _refuse_half(self) -> None:
        """At the end of a trace: the backward was in it, too, for nothing would combine gradients of another one."""
        if self.expected:
            self.expected = False
            text = "its gradients would not be combined in a backward behind what is compiled"
            hint = "genesis.compile of the DistributedDataParallel itself, or of the step with its backward"
            raise UnsupportedError(message(_NAME, text, hint=hint))

    def _sum_in_graph(self, g: Any) -> Any:
        """The sum over ranks as a node of a trace; of 16-bit numbers the mean, which is rounded once."""
        key = None if self.group is _processes.GroupMember.WORLD else self.group.key
        if self.in_tree:
            return _collectives.sum_in_tree(g, key)
        return _collectives.all_reduce(g, "mean" if g._array.dtype in HALVES else "sum", key)

    def _share_in_graph(self, total: Any) -> Any:
        """The mean: divided by itself, so that what reads it divides."""
        if self.in_tree:
            return total * (1 / self.group.size())
        return total if total._array.dtype in HALVES else total / self.group.size()

    def _twice(self, number: int) -> Exception:
        text = f"the gradient of {self.names[number]} came twice after one forward"
        return GraphError(
            message(_NAME, text, hint="one backward() of the sum of the losses; or no_sync() around all but the last")
        )

    def _unfinished(self, absent: Sequence[int]) -> Exception:
        self.expected = False
        names = ", ".join([self.names[n] for n in absent[:5]]) + (", ..." if len(absent) > 5 else "")
        text = f"no gradient came for {names}, {len(absent)} of {len(self.names)} parameters: the loss does not depend on them"
        return DistributedError(
            message(_NAME, text, hint="find_unused_parameters=True, or requires_grad_(False) on them")
        )


_NAME = "DistributedDataParallel"


def _came(buckets: ref[Buckets], number: int, parameter: Tensor) -> None:
    alive = buckets()
    if alive is not None:
        alive.came(number, parameter)
