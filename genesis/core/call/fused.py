"""Kernels of composites: computed in one call, forward and backward, where nothing but plain arrays is involved.

See `genesis.core.call.kernels` for how they are written and attached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from genesis.arrays.memory import memory_of
from genesis.arrays.protocol import Layer, device_of
from genesis.arrays.spec import Spec, contiguous_strides, spec_of, strides_of
from genesis.base.device import CPU, MEMORIES
from genesis.base.errors import InplaceError
from genesis.base.quiet import directly, quietly
from genesis.core.call.generated import LateSignature
from genesis.core.call.halves import called
from genesis.core.call.kinds.others import FUSION
from genesis.core.call.op import Op
from genesis.core.call.recording import made_inside, refuse_inference
from genesis.core.call.writes import bump, bump_all, write
from genesis.core.graph import engine
from genesis.core.graph.autocast import Autocast
from genesis.core.graph.lost import HISTORY_WATCHES, history_used
from genesis.core.graph.modes import ACTIVE, LEVELS, enable_grad, grad_mode, inference, interception, watchers
from genesis.core.graph.node import Node, recorded, stale_message
from genesis.core.graph.seeds import edge_of
from genesis.core.graph.site import site_here
from genesis.core.graph.switches import ONLOOKERS, PACKING
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import HostNumber, tracer
from genesis.core.graph.version import SHARED, WRITES

_new = object.__new__

Kernel = Callable[..., Any]
When = Callable[..., bool]
Infer = Callable[..., tuple[Spec, tuple[Any, ...]]]


_AS_USUAL = object()  # what is open changes nothing of a call
RESULT = "out"  # how `infer` says that a kernel keeps its result
FUSED: dict[str, Op] = {}  # fused calls, and their backwards, as ops of programs: by name
# for classes of layers with which kernels run: call(kernel, args), the kernel that is attached for NumPy's arrays
IN_LAYERS: dict[type, Callable[[Any, tuple[Any, ...]], Any]] = {}


class Fused:
    """A kernel of a composite, with what it keeps for its backward."""

    together: Kernel | None = None  # does many calls at once, see `many`
    again: Callable[..., bool] | None = None

    def __init__(
        self,
        op: Op,
        arrays: type,
        kernel: Kernel,
        when: When | None,
        infer: Infer | None,
        before: Fused | None,
        quiet: bool = False,
    ) -> None:
        self.op, self.arrays, self.kernel, self.when, self.infer, self.before = op, arrays, kernel, when, infer, before
        self.call = directly if quiet else quietly
        self.pull: Kernel | None = None
        self.decides = False  # whether `when` alone says if it takes a call
        self.laid: Callable[[Any], Sequence[Any]] | None = None
        self.reads: tuple[int, ...] = ()
        parameters = op.names
        self.tensors = tuple([i for i, annotation in enumerate(op.annotations) if "Tensor" in annotation])
        self.written = tuple([i for i, name in enumerate(parameters) if name in op.written])
        title = "".join(part.capitalize() for part in op.name.split("_")) + "Backward"
        names = tuple([parameters[i] for i in self.tensors])
        self.node = type(
            title, (FusedNode,), {"__slots__": (), "op": op, "op_name": op.name, "input_names": names, "fused": self}
        )
        self.kinds = {arrays, type(None)}
        self.number: int = 1 if before is None else before.number + 1
        self.forward_op: Op | None = None
        self.backward_op: Op | None = None
        self.alone: Kernel | None = None  # the result alone, where nothing is recorded and that takes less
        if infer is not None:
            self.forward_op, self.backward_op = self._as_ops()
        elif self.written and arrays is np.ndarray:  # programs have one call of the name: that of the CPU
            self.forward_op = self._as_pure_op()

    def backward(
        self,
        pull: Kernel | None = None,
        *,
        reads: Sequence[str] | None = None,
        laid: Callable[[Any], Sequence[Any]] | None = None,
    ) -> Any:
        """Decorate ``pull(g, kept, needs)``, the gradients of the tensor parameters in order (None where ``needs`` is
        False), arrays of their own; NotImplemented for what the composition is to compute (of kernels without `infer`).

        Args:
            reads: the parameters whose values it needs; a later write to one of these is an error. All, unless given.
            laid: the strides of the gradients by the specs of what was kept, None for row-major order without gaps, as all
                are unless it is given; then what `infer` gives has its own strides, too
        """
        if pull is None:
            return lambda pull: self.backward(pull, reads=reads, laid=laid)
        names, self.laid = self.op.names, laid
        self.pull, self.reads = pull, self.tensors if reads is None else tuple(names.index(name) for name in reads)
        self.decides = self.when is not None
        return pull

    def many(self, kernel: Kernel | None = None, *, again: Callable[..., bool] | None = None) -> Any:
        """Decorate ``kernel(rows, *others)``, which does many calls one after the other that differ in their tensors
        alone: a row has the arrays of one. See `call_many`.

        Args:
            again: ``again(columns, *others)`` does the same if it did before with arrays laid out in the same way, and
                says whether; a column has the arrays of one parameter of the op, or is None
        """
        if kernel is None:
            return lambda kernel: self.many(kernel, again=again)
        self.together, self.again = kernel, again
        return kernel

    def choose(self, arrays: Sequence[Any], recording: bool) -> Fused | None:
        """The kernel that takes a call: this one, or the first before it that does."""
        kernel: Fused | None = self
        while kernel is not None and (
            (recording and kernel.pull is None) or (kernel.when is not None and not kernel.when(*arrays))
        ):
            kernel = kernel.before
        return kernel

    def run(self, args: tuple[Any, ...], arrays: Sequence[Any], edges: Sequence[Any], recording: bool) -> Any:
        """The result, or NotImplemented where the composition is to compute it."""
        if self.written:
            return self._write(args, arrays)
        kernel = self.kernel if recording or self.alone is None else self.alone
        try:
            result = self.call(kernel, *arrays) if not ONLOOKERS else self._watched(arrays)
        except Exception:
            return NotImplemented  # the composition explains
        array, kept = result if result.__class__ is tuple else (result, None)
        if array.__class__ is not self.arrays:
            array = np.asarray(array)
        return self._wrapped(array, kept, args, tuple(edges), recording)

    def _wrapped(self, array: Any, kept: Any, args: tuple[Any, ...], edges: tuple[Any, ...], recording: bool) -> Tensor:
        out = wrap(array)
        if recording:
            out._node = self._record(args, edges, kept, out)
            for watch in watchers.get() if ONLOOKERS else ():
                watch.new_node(out._node)
        elif HISTORY_WATCHES and any([edge is not None for edge in edges]):
            history_used(*edges)
        if ACTIVE:
            made_inside(out)
        return out

    def _watched(self, arrays: Sequence[Any]) -> Any:
        """The call as profiles see it."""
        run = partial(quietly, self.kernel, *arrays)
        for between in interception.get():
            run = partial(between, self.op, arrays, run)
        return run()

    def _write(self, args: tuple[Any, ...], arrays: Sequence[Any]) -> None:
        arrays = self._own(args, arrays)
        if ONLOOKERS:
            self._watched(arrays)
        else:
            quietly(self.kernel, *arrays)
        bump_all([args[i] for i in self.written if args[i] is not None], self.op.name)

    def _own(self, args: Sequence[Any], arrays: Sequence[Any]) -> Sequence[Any]:
        """The arrays, with memory that others may read copied before it is written to."""
        for i in self.written:
            if args[i] is not None and args[i]._counter is SHARED:
                args[i]._own_memory()
                arrays = [*arrays[:i], args[i]._array, *arrays[i + 1 :]]
        return arrays

    def _record(self, args: tuple[Any, ...], edges: tuple[Any, ...], kept: Any, out: Tensor) -> Node:
        read = [args[i] for i in self.reads if args[i] is not None]
        refuse_inference(self.op.name, tuple(read))
        return recorded(self.node, edges, out._array, (read, kept, args))  # type: ignore[no-any-return]

    def _write_many(self, rows: list[tuple[Any, ...]], arrays: list[list[Any]], others: tuple[Any, ...]) -> None:
        if not rows:
            return
        written = [x for i in self.written for x in [row[i] for row in rows] if x is not None]
        if SHARED in [x._counter for x in written]:
            arrays = [[*self._own(row, given)] for row, given in zip(rows, arrays, strict=True)]
        quietly(self.together, arrays, *others)  # type: ignore[arg-type]
        bump_all(written, self.op.name)

    def _write_again(self, rows: Sequence[tuple[Any, ...]], others: tuple[Any, ...]) -> bool:
        """The calls, if `again` does them."""
        if self.again is None:
            return False
        columns: list[Any] = []
        written: list[Any] = []
        for i, column in enumerate(zip(*rows, strict=True)):
            kinds = set(map(type, column))
            if type(None) in kinds:
                if len(kinds) > 1:
                    return False
                columns.append(None)
                continue
            columns.append([x._array for x in column])
            written += column if i in self.written else ()
        if SHARED in [x._counter for x in written] or not quietly(self.again, columns, *others):
            return False
        bump_all(written, self.op.name)
        return True

    def gradients(self, g: Any, kept: Any, needs: tuple[bool, ...]) -> Any:
        """The gradients of the tensor parameters, None where none is needed; or NotImplemented."""
        gradients = self.call(self.pull, g, kept, needs)  # type: ignore[arg-type]
        if gradients is NotImplemented:
            return gradients
        return [array if needed else None for array, needed in zip(gradients, needs, strict=True)]

    # ---- in programs

    def _as_ops(self) -> tuple[Op, Op]:
        """The call and its backward as ops: ``(out, *kept) = fused.name(*args)`` and ``gradients =
        fused.name.backward(g, kept, wanted)``.

        ``wanted`` has the shape and the dtype of each gradient, None where none is needed. What is kept of the
        parameters is no result.
        """
        assert self.infer is not None
        name, infer = f"fused.{self.op.name}" + (f".{self.number}" if self.number > 1 else ""), self.infer
        if self.arrays is not np.ndarray:  # of a device: another kernel, which keeps other things
            name += f".{self.arrays.__name__}"
        # what is kept and is no parameter: by who is None, switches, and words
        masks: dict[Any, list[bool]] = {}

        def forward(*arrays: Any) -> tuple[Any, ...]:
            out, kept = self.kernel(*arrays)
            given = tuple([a if a is None or a.__class__ in (bool, str) else () for a in arrays])
            own = masks.get(given)
            if own is None:
                specs = infer(*[spec_of(a) if isinstance(a, self.arrays) else a for a in arrays])[1]
                own = masks[given] = [isinstance(spec, Spec) for spec in specs]
            return (out, *[x for x, mine in zip(kept, own, strict=True) if mine])

        def results(*specs: Any) -> list[Spec]:
            out, kept = infer(*specs)
            device = specs[self.tensors[0]].device
            specs = tuple([s for s in (out, *kept) if isinstance(s, Spec)])
            return [Spec(s.shape, s.dtype, device, None if self.laid is None else s.strides) for s in specs]

        def backward(g: Any, kept: Any, wanted: tuple[Any, ...]) -> tuple[Any, ...]:
            gradients = self.gradients(g, kept, tuple([each is not None for each in wanted]))
            return tuple([array for array in gradients if array is not None])

        def gradients(g: Any, kept: Any, wanted: tuple[Any, ...]) -> list[Spec]:
            laid = [None] * len(wanted) if self.laid is None else self.laid(kept)
            return [
                Spec(each[0], each[1], g.device, strides)
                for each, strides in zip(wanted, laid, strict=True)
                if each is not None
            ]

        ops = (
            Op(name, FUSION, self.op.signature, self.op.meaning, infer=results),
            Op(f"{name}.backward", FUSION, LateSignature(lambda: backward), backward, infer=gradients),
        )
        ops[0].kernel, ops[0].tensors, ops[1].kernel, ops[1].tensors = forward, self.tensors, backward, (0,)
        FUSED.update({op.name: op for op in ops})
        return ops

    def _as_pure_op(self) -> Op:
        """A call that writes as one that does not: ``written = fused.name(*args)``, what it would have written."""

        def forward(*arrays: Any) -> tuple[Any, ...]:
            copies = [_copied(a) if i in self.written and a is not None else a for i, a in enumerate(arrays)]
            of_device = self.op.kernels.get(copies[self.tensors[0]].__class__, self)
            of_device.kernel(*copies)
            return tuple([copies[i] for i in self.written if copies[i] is not None])

        def meaning(*args: Any) -> tuple[Any, ...]:
            copies = [a.clone() if i in self.written and a is not None else a for i, a in enumerate(args)]
            self.op.meaning(*copies)
            return tuple([copies[i] for i in self.written if copies[i] is not None])

        def infer(*specs: Any) -> list[Spec]:
            return [Spec(x.shape, x.dtype, x.device) for x in [specs[i] for i in self.written] if x is not None]

        op = Op(f"fused.{self.op.name}", FUSION, self.op.signature, meaning, infer=infer)
        op.kernel, op.tensors, op.written = forward, self.tensors, self.op.written
        FUSED[op.name] = op
        return op

    def traced(
        self, args: tuple[Any, ...], specs: Sequence[Any], edges: tuple[Any, ...], recording: bool, active: Any
    ) -> Any:
        """The call in a trace, as one call of the program."""
        if self.forward_op is None:
            return NotImplemented
        out, *results = active.record(self.forward_op, args)
        if self.infer is None:
            return self._traced_writes(args, [out, *results])
        names, made, kept = list(self.op.signature.parameters), iter(results), []
        for each in self.infer(*specs)[1]:
            if isinstance(each, Spec):
                kept.append(next(made))
            elif each == RESULT:
                kept.append(out)
            else:
                given = None if each is None else args[names.index(each)]
                kept.append(active.value(given) if isinstance(given, Tensor) else given)
        return self._wrapped(out, tuple(kept), args, edges, recording)

    def _traced_writes(self, args: tuple[Any, ...], results: list[Any]) -> None:
        site = site_here()
        for x, result in zip([args[i] for i in self.written if args[i] is not None], results, strict=True):
            write(x, wrap(result))
            bump(x, self.op.name, site)


class FusedNode(Node):
    """The node of a fused call: its backward is the kernel's where arrays of its class arrive, else the composition's."""

    __slots__ = ()
    fused: Fused

    def _pull(self, g: Any) -> Sequence[Any]:
        _, kept, args = self._saved if self._epoch is WRITES[0] else self._unpack()
        active = tracer.get() if ACTIVE else None
        if not open_to_kernels(active) or grad_mode.get() or g._array.dtype != self._dtype:
            return self._composed(g, args)
        if active is not None:
            return self._traced(g, kept, args, active)
        if g._array.__class__ is not self.fused.arrays:
            return self._composed(g, args)
        needs = tuple([edge is not None for edge in self._edges])
        gradients = self.fused.gradients(g._array, kept, needs)
        if gradients is NotImplemented:
            return self._composed(g, args)
        return [None if array is None else wrap(array) for array in gradients]

    def _traced(self, g: Any, kept: Any, args: tuple[Any, ...], active: Any) -> Sequence[Any]:
        op, tensors = self.fused.backward_op, self.fused.tensors
        if op is None or isinstance(g._array, Layer | Spec):
            return self._composed(g, args)
        arrays = [None if edge is None else args[i]._array for i, edge in zip(tensors, self._edges, strict=True)]
        wanted = tuple([None if a is None else (tuple(a.shape), a.dtype) for a in arrays])
        rest = iter(active.record(op, (g, kept, wanted)))
        return [None if each is None else wrap(next(rest)) for each in wanted]

    def _composed(self, g: Any, args: tuple[Any, ...]) -> Sequence[Any]:
        """Run the composite's function on the same tensors, and differentiate that."""
        further = grad_mode.get()
        changed, sources = list(args), []
        for i, edge in zip(self.fused.tensors, self._edges, strict=True):
            x = args[i]
            if x is not None and x._counter is not None and x._counter.stamp > self._epoch:
                raise InplaceError(stale_message(self, x, x._counter))
            if edge is not None:
                with enable_grad():
                    changed[i] = x.clone()
                sources.append(changed[i]._node)
        with enable_grad():
            out = called(self.op, self.op.meaning, tuple(changed))
        results = iter(
            engine.run([edge_of(out)], [g], keep_graph=further, create_graph=further, inputs=sources, accumulate=False)
        )
        return [None if edge is None else next(results) for edge in self._edges]


def attach_fused(op: Op, arrays: type, fused: Fused) -> Fused:
    op.kernels[arrays] = fused
    # see `kinds.composite`: the global of a function made of text
    op.call.__globals__["fused"] = _chooser(op, fused.tensors)
    return fused


def open_to_kernels(active: Any) -> bool:
    """Whether nothing is open but a trace, inference mode, autocast and what looks on: kernels of composites run, or are
    recorded. (What autocast asks for has been done to the operands; a kernel computes in their precision.)
    """
    if PACKING or (LEVELS and not all([level.kernels for level in LEVELS])):  # type: ignore[attr-defined]
        return False
    return not ACTIVE or len(ACTIVE) == (active is not None) + inference.get() + len(ONLOOKERS) + _regions()


def _regions() -> int:
    """How many regions of autocast are open, in any thread."""
    return sum([mode.__class__ is Autocast for mode in ACTIVE])


def _chooser(op: Op, indices: tuple[int, ...]) -> Callable[..., Any]:
    """What the public function of a composite asks first."""
    table = op.kernels

    def fused(*args: Any) -> Any:
        if ACTIVE or LEVELS or PACKING:
            result = _while_open(op, indices, args)
            if result is not _AS_USUAL:
                return result
        arrays = list(args)
        edges: list[Any] = []
        kind: Any = None
        recording = False
        for i in indices:
            x = args[i]
            if x is None:
                edges.append(None)
                continue
            if x.__class__ is not Tensor and not isinstance(x, Tensor):
                return NotImplemented
            arrays[i] = array = x._array
            if array.__class__ is not kind:
                if kind is not None:
                    return _in_layers(table, indices, args)
                kind = array.__class__
            edge = x._node
            edges.append(edge)
            if edge is not None:
                recording = True
        entry = table.get(kind)
        if entry is None:
            return _in_layers(table, indices, args)
        if recording:
            recording = grad_mode.get()
        if not entry.decides:
            entry = entry.choose(arrays, recording)
        elif not entry.when(*arrays):
            entry = None if entry.before is None else entry.before.choose(arrays, recording)
        if entry is None:
            return NotImplemented
        if recording or entry.call is not directly or entry.written or ACTIVE or HISTORY_WATCHES:
            return entry.run(args, arrays, edges, recording)
        try:  # `run`, without its calls
            array = (entry.alone or entry.kernel)(*arrays)
        except Exception:
            return entry.run(args, arrays, edges, recording)
        if array.__class__ is tuple:
            array = array[0]
        if array.__class__ is not kind:
            array = np.asarray(array)
        out = _new(Tensor)
        out._array = array
        out._node = out._counter = out._view = None
        return out

    return fused


def _while_open(op: Op, indices: tuple[int, ...], args: tuple[Any, ...]) -> Any:
    """The call while something is open: recorded in a trace, left to the composition, or `_AS_USUAL`."""
    active = tracer.get()
    writes_there = op.written and active is None and len(ACTIVE) != len(ONLOOKERS) + _regions()
    if writes_there or not open_to_kernels(active):
        return NotImplemented
    if active is not None:
        return active.unwatched(partial(_in_trace, op.kernels, indices, args, active))
    return _AS_USUAL


def _in_layers(table: dict[type, Any], indices: tuple[int, ...], args: tuple[Any, ...]) -> Any:
    """The call where some arrays are no memory: by the kernel of NumPy's, if their class says how."""
    kinds = {args[i]._array.__class__ for i in indices if isinstance(args[i], Tensor)} - {np.ndarray}
    call = IN_LAYERS.get(kinds.pop()) if len(kinds) == 1 else None
    entry = table.get(np.ndarray)
    return NotImplemented if call is None or entry is None else call(entry, args)


def call_many(call: Any, rows: Sequence[tuple[Any, ...]], *others: Any) -> None:
    """``call(*row, *others)`` for each row of tensors, one after the other, of an op that writes: by one call of its
    kernel where that takes many. (A call for each costs 8 us, most of it on the way.)
    """
    entry = call.op.kernels.get(type(rows[0][0]._array) if rows else np.ndarray)
    if ACTIVE or LEVELS or PACKING or not isinstance(entry, Fused) or entry.together is None:
        for row in rows:
            call(*row, *others)
        return
    if entry._write_again(rows, others):
        return
    taken: list[tuple[Any, ...]] = []
    arrays: list[list[Any]] = []
    for row in rows:
        given = _arrays_of(row)
        if entry.kinds.issuperset(map(type, given)) and (entry.when is None or entry.when(*given, *others)):
            taken.append(row)
            arrays.append(given)
        else:  # those before it come first
            entry._write_many(taken, arrays, others)
            call(*row, *others)
            taken, arrays = [], []
    entry._write_many(taken, arrays, others)


def _arrays_of(row: Sequence[Any]) -> list[Any]:
    return [x if x is None else x._array for x in row]


def _ghost(spec: Spec, written: bool) -> Any:
    """What `when` is asked about instead of an array, whose numbers it does not look at."""
    return np.empty(spec.shape, spec.dtype) if written else np.broadcast_to(np.zeros((), spec.dtype), spec.shape)


def _copied(array: Any) -> Any:
    return np.array(array, order="C") if isinstance(array, np.ndarray) else memory_of(array).copy(array)


def _written_there(entry: Fused, tensors: list[Any]) -> bool:
    """Whether tensors that are written to are all on one device that has a kernel for it, too."""
    specs = [spec_of(x._array) for x in tensors]
    alike = all([(x.device, x.shape, x.dtype) == (specs[0].device, specs[0].shape, specs[0].dtype) for x in specs])
    plain = alike and specs[0].dtype.char in "fd"
    plain = plain and all([strides_of(x) == contiguous_strides(x.shape) for x in specs])
    return bool(entry.written) and plain and MEMORIES[specs[0].device.type].arrays in entry.op.kernels


def _for_trace(table: dict[type, Any], tensors: list[Any]) -> Fused | None:
    """The kernel that a trace records: that of the device where all tensors are, if programs can have it."""
    devices = {device_of(x._array) for x in tensors}
    ours = table.get(np.ndarray)
    if devices == {CPU}:
        return ours
    memory = MEMORIES.get(next(iter(devices)).type) if len(devices) == 1 else None
    theirs = None if memory is None else table.get(memory.arrays)
    if theirs is not None and theirs.infer is not None:
        return theirs  # type: ignore[no-any-return]
    return ours if ours is not None and _written_there(ours, tensors) else None


def _in_trace(table: dict[type, Any], indices: tuple[int, ...], args: tuple[Any, ...], active: Any) -> Any:
    """The call recorded as one, where its kernel would compute it outside of the trace."""
    tensors = [args[i] for i in indices if args[i] is not None]
    if not all([isinstance(x, Tensor) and not isinstance(x._array, Layer | Spec) for x in tensors]):
        return NotImplemented
    entry = _for_trace(table, tensors)
    if entry is None:
        return NotImplemented
    if any([isinstance(a, HostNumber) for a in args]) and not entry.written:
        return NotImplemented  # it may be another at each replay, and what is computed another function
    specs, ghosts = list(args), list(args)
    for i in indices:
        if args[i] is not None:
            specs[i] = spec_of(args[i]._array)
            ghosts[i] = _ghost(specs[i], i in entry.written)
    edges = tuple([None if args[i] is None else args[i]._node for i in indices])
    recording = grad_mode.get() and any([edge is not None for edge in edges])
    kernel = entry.choose(ghosts, recording)
    return NotImplemented if kernel is None else kernel.traced(args, specs, edges, recording, active)
