"""`trace`: run a function once on traced arrays, and keep what it did as a graph."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray, snapshot
from genesis.arrays.protocol import Dispatched, Layer, Virtual, asked_for_at, bottom, value_of
from genesis.arrays.spec import Spec
from genesis.base.device import CPU, META
from genesis.base.errors import GraphError, UnsupportedError, message
from genesis.base.narrow import NARROW
from genesis.base.pytree import tree_flatten, tree_unflatten
from genesis.core.call import computing
from genesis.core.call.op import Op
from genesis.core.call.strides import with_strides
from genesis.core.graph import autocast
from genesis.core.graph.generator import Generator
from genesis.core.graph.node import AccumulateGrad, ArgumentOfTrace, Edge, Node
from genesis.core.graph.site import line_here, site_of, user_site
from genesis.core.graph.switches import ACTIVE
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import Dependable, HostNumber, forget_begun, tracer
from genesis.core.layers.stored import check_moved
from genesis.jit.arguments import SIMPLE, Stream, Var, refused
from genesis.jit.asked import SCALAR, AskedNumbers
from genesis.jit.binding import Graph
from genesis.jit.gradients import Gradients
from genesis.jit.guards import Guards
from genesis.jit.memory import Capture, Memory, refuse_leaks
from genesis.jit.outcome import Outcome, graph_of, outcome_of
from genesis.jit.program import Call, inferred
from genesis.jit.traced import Cell, Traced


def trace(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Graph:
    """Record what a function does with tensors as a graph of primitives.

    The function runs once, on tensors that stand for any values. Everything is recorded: forward, ``backward()``, the
    writes of an optimizer, random draws. Tensors that it captures (parameters, buffers, an optimizer's state) are
    inputs of the graph, and those that it writes to are outputs; nothing of the outside is changed by the trace.
    Numbers of the host that change (a learning rate, a count of steps) are inputs where the code says so with `host`
    and `advance`, which the optimizers do; any other number is a constant.

    Returns:
        a `Graph`: ``graph(*args)`` or ``replay(*args)`` runs it, ``save(path)`` writes it to a file, ``print`` shows it, ``verify()`` checks it, ``draw()`` draws it

    Raises:
        RuntimeError: the function needs a value (``if x > 0``, ``.item()``, ``.numpy()``), or keeps a tensor that it
            made

    >>> import genesis
    >>> graph = genesis.jit.trace(lambda x: (x * 2).sum(), genesis.ones(3))
    >>> [node.op for node in graph.nodes], graph.replay(genesis.tensor([1., 2., 3.]))
    (['mul', 'sum'], tensor(12.))
    """
    if tracer.get() is not None:
        raise GraphError(
            message("trace", "a trace is being made already", hint="trace the inner function by itself, or not at all")
        )
    recording = Tracer(getattr(fn, "__name__", type(fn).__name__), Guards(fn))
    return recording.run(fn, args, kwargs)


class Tracer(AskedNumbers):
    """A trace while it is made."""

    def __init__(self, name: str, guards: Guards) -> None:
        super().__init__()
        self.name = "function" if name == "<lambda>" else name
        self.calls: list[Call] = []
        self.guards = guards
        self.memory = Memory()
        self.gradients = Gradients(self.memory)
        self.checks: list[Callable[[], None]] = []  # when the function has returned
        self.begun: list[tuple[Any, Any]] = []  # dictionaries of what is set up once, and those that they are in
        self.streams: list[tuple[Generator, int]] = []  # where they began
        self.own: dict[int, Any] = {}  # what objects of this package know of themselves in the trace, by id
        self.own_streams: list[Generator] = []
        self.arguments: list[Capture] = []
        self.asks_leaves = False  # whether the function asks if arguments are leaves
        self.alive: weakref.WeakSet[Traced] = weakref.WeakSet()
        self.plain: list[Any] = []
        self.wrote = False  # then results may depend on which reshapes are views, and so on the layout of arguments
        self.open = True
        self.marker: Any = None

    knows_again = False  # a tensor that is passed twice is one in the function, too

    # ---- what the rest of the system calls

    def note(self, array: Traced) -> None:
        self.alive.add(array)

    runs_nodes_of_outside = True  # which are kept; a subclass may leave such a function as it is
    defers = False  # whether calls of the host can be kept: a subclass may

    def acts(self, function: Callable[..., Any], args: tuple[Any, ...], changes: tuple[Any, ...]) -> bool:
        """Keep a call that Python makes at each replay; whether that can be."""
        return False

    def decide(self, tensor: Tensor) -> bool:
        """What Python decides by an element, which is another one at each call."""
        return bool(tensor)

    def unwatched(self, work: Callable[[], Any]) -> Any:
        """Call ``work()``, in which no code of the program runs; a subclass may be watching for that."""
        return work()

    def computes(self, op: Op, work: Callable[[], Any]) -> Any:
        """Call ``work()``, which computes an op."""
        return work()

    def stream_made(self, stream: Generator) -> None:
        self.own_streams.append(stream)

    def stream(self, stream: Generator) -> int | None:
        """The index of a stream of the outside among those of the graph, from where it is now; None for one that the
        function made: its numbers are always the same.
        """
        if any(own is stream for own in self.own_streams):
            return None
        index = next((i for i, (g, _) in enumerate(self.streams) if g is stream), None)
        if index is None:
            index = len(self.streams)
            self.streams.append((stream, stream._block))
        return index

    def stream_set(self, stream: Generator, to: tuple[int, int] | None) -> None:
        """A stream of the outside may go back to where it was in this call, a checkpoint does that; but not to a
        state of its own.
        """
        if any(own is stream for own in self.own_streams):
            return
        start = next((block for g, block in self.streams if g is stream), None)
        if to is None or start is None or to[0] != stream._seed or to[1] < start:
            raise GraphError(
                message(
                    "trace",
                    "a random stream from outside is set to a seed or a state: a replay would go on from where it is",
                    hint="seed it before the call; or draw from a Generator that the function makes",
                )
            )

    def seed_read(self, stream: Generator) -> None:
        """A stream may have another seed at the next call, and nobody could see what was computed of this one."""
        if not any(own is stream for own in self.own_streams):
            raise GraphError(message("trace", "the seed of a random stream from outside is asked for"))

    def state_read(self, stream: Generator, state: np.ndarray[Any, Any]) -> None:
        """The function may go back to a state, but not go on with its bytes: it has let go of them in the end."""
        if any(own is stream for own in self.own_streams):
            return
        read = weakref.ref(state)

        def check() -> None:
            if read() is not None:
                raise GraphError(message("trace", "the state of a random stream from outside is kept or computed with"))

        self.checks.append(check)

    def _drawn(self, op: Op, stream: Generator, *options: Any) -> Any:
        """A call of a random op. The stream moves on, so that later ones begin behind it; after the trace it goes back."""
        index, before = self.stream(stream), stream._block
        sample = op.kernel(stream, *options)
        if index is None:
            return sample
        var = self._call(op.name, (Stream(index, before - self.streams[index][1]), *options))[0]
        return Traced(self, Cell(var), var.spec)

    def snapshot(self, array: Any) -> Any:
        """What an array holds now, whatever is written to it later."""
        return self.array(array).copy()

    def grad_read(self, node: AccumulateGrad) -> None:
        """The function looks at the .grad of a leaf."""
        self.gradients.read(node)

    def own_grad_read(self, tensor: Tensor) -> None:
        """The function looks at the .grad of a tensor that requires none."""
        self.guards.without_history(tensor)

    def own_grad_set(self, tensor: Tensor, value: Tensor | None) -> None:
        """The function is about to set the .grad of a tensor that is no leaf, or requires none."""
        self.guards.without_history(tensor)
        same = value is None and tensor._own_grad is None and tensor._retained is None
        if not same and not isinstance(tensor._array, Virtual):
            text = "the .grad of a tensor from outside is set that is no leaf or does not require grad"
            raise GraphError(message("trace", text, [("tensor", tensor._spec())]))

    def differentiates(
        self, reached: Collection[Node], running: Iterable[Node], inputs: Sequence[Edge] | None, kept: bool
    ) -> None:
        """A backward is about to run nodes: refuse those that were recorded before where it would use them up, and where
        eager calls would look whether what they saved was written to.

        Args:
            reached: the nodes that lead to the roots, of which some are ``running``
            inputs: what the gradients are asked for; None: of all leaves
            kept: whether the graph can be gone through again
        """
        old = next((n for n in running if not n.is_leaf and n._number < self.gradients.start), None)
        if old is not None and not (kept and self.runs_nodes_of_outside):
            text = "a captured tensor was computed before: its gradient would have to go on to where it came from"
            raise GraphError(message("trace", text, [("computed by", old.name())], "compute it inside"))

    def grad_adds(self, node: AccumulateGrad) -> None:
        """A backward is about to add to the .grad of a leaf."""
        self.gradients.adds(node)

    def grad_assigned(self, node: AccumulateGrad) -> None:
        """The function is about to set the .grad of a leaf."""
        self.gradients.assigned(node)

    def first_gradient(self, node: AccumulateGrad, g: Tensor) -> Tensor:
        """The .grad of a leaf that had none in the trace."""
        return self.gradients.first(self, node, g)

    def history_changes(self, *tensors: Tensor | None) -> None:
        """The function is about to change what tensors come from."""
        for tensor in tensors:
            if tensor is not None:
                self.gradients.history_changes(tensor)

    def shape_changes(self, tensor: Tensor) -> None:
        """The function is about to give a tensor another shape in place: a replay would not."""
        array = bottom(tensor._array)
        if not (self.memory.is_made(array.cell) if isinstance(array, Traced) else self.memory.was_made(array)):
            text = "a tensor from outside gets another shape in place"
            raise GraphError(
                message("trace", text, [("tensor", tensor._spec())], "y = x.unsqueeze(0), not x.unsqueeze_(0)")
            )

    def created(self, tensor: Tensor) -> None:
        """The function made a plain tensor: its numbers are known, until it is written to."""
        self.memory.makes(tensor._array)

    def depends(self, thing: Dependable, read: str = "") -> None:
        self.guards.depends(thing, read)

    def goes_through(self, thing: Dependable) -> None:
        """The function goes through what is in a module; a subclass may remember that."""

    def changes(self, thing: Any, what: str) -> None:
        """Something of an object is about to change; a subclass may refuse that."""

    def mask_counted(self, mask: Any) -> None:
        """The graph is for as many elements as an array from outside names now."""
        if self.array(mask).cell.written:
            raise UnsupportedError(
                message(
                    "index",
                    "the shape of the result depends on the values of a mask that is written to in the function",
                    hint="use genesis.where(mask, x, other)",
                )
            )

    def hooked(self, node: Any) -> None:
        """A hook is about to be put on a node; a subclass may refuse that."""

    def mode_set(self, module: Any, mode: bool) -> None:
        """The function is about to set whether a module is in training."""

    def asks_modes(self) -> None:
        """The function asks whether gradients are recorded."""
        self.guards.modes.asks = True

    def number(self, tensor: Tensor) -> Any:
        """What stands for the element of a tensor as a number; None if there is nothing."""
        return None

    def version_read(self, tensor: Tensor) -> None:
        """The function asks how often a tensor was written to: in a graph there are no writes."""
        text = "how often a tensor was written to is another number at each call"
        raise GraphError(message("trace", text, [*asked_for_at(line_here()), ("tensor", tensor._spec())]))

    def is_leaf(self, tensor: Tensor) -> bool:
        """The function asks whether an argument that requires grad is a leaf."""
        self.asks_leaves = True
        known = self.gradients.leaves.get(id(tensor))
        return known is None or known.is_leaf

    def origin_read(self, tensor: Tensor) -> None:
        """The function asks what an argument comes from: another node, or other memory, at each call."""
        text = "what an argument comes from, its grad_fn or _base, is another at each call"
        raise GraphError(message("trace", text, [*asked_for_at(line_here()), ("tensor", tensor._spec())]))

    def is_argument(self, tensor: Tensor) -> bool:
        return any([capture.tensor() is tensor for capture in self.arguments])

    def keeps(self, tensor: Any) -> None:
        self.memory.keeps(tensor)

    def is_input(self, tensor: Tensor) -> bool:
        """Whether a tensor is known to come from outside."""
        if not isinstance(tensor._array, np.ndarray | DeviceArray):
            return False
        capture = self.memory.find(tensor._array)
        return capture is not None and not capture.made and capture.tensor() is tensor

    def refuse_numbers(self, tensor: Tensor) -> None:
        """The numbers of a tensor from outside may be others at the next call."""
        capture = self.memory.find(tensor._array)
        if not self.memory.was_made(tensor._array) or (capture is not None and capture.cell.written):
            raise self.array(tensor._array).refuse("numpy", line_here())

    def write(self, target: Any, source: Any) -> None:
        """A write into an array, which may be a captured one."""
        self.wrote = True
        into, value = self.array(target), self.var(source)
        if value.spec.dtype is not into.dtype:
            value = self.emit("convert", (value, into.dtype))
        if value.spec.shape != into.shape:
            value = self.emit("expand", (value, into.shape))
        into.assign(value)

    # ---- arrays and variables

    def array(self, array: Any) -> Traced:
        """Any array as a traced one; what the trace has not seen is captured."""
        if isinstance(array, Traced):
            if array.tracer is not self:
                raise GraphError(_leaked("trace", array))
            return array
        capture = self.memory.capture(array)
        return Traced(self, capture.cell, capture.var.spec)

    def capture(self, tensor: Tensor) -> Traced:
        """The array of a tensor; the tensor is remembered, so that a replay reads (and writes) it."""
        array = tensor._array
        if isinstance(array, np.ndarray | DeviceArray):
            self.memory.meet(tensor)
        return array if isinstance(array, Layer) else self.array(array)  # type: ignore[return-value]

    def aliased(self, tensor: Tensor) -> Any:
        """What another tensor on the same memory holds, which the function makes: that tensor is none of the outside."""
        array = self.capture(tensor)
        return tensor._array if self.memory.was_made(tensor._array) else array

    def var(self, value: Any) -> Any:
        """Anything that an op is called with, with variables for tensors, arrays and numbers of the host."""
        kind = value.__class__
        if kind in SIMPLE:
            return value
        if kind is tuple:
            return tuple([self.var(v) for v in value])
        if isinstance(value, HostNumber):
            return self.taken(value)
        if isinstance(value, Tensor):
            return self.capture(value).var()
        if isinstance(value, Dispatched | np.ndarray):
            return self.array(value).var()
        if isinstance(value, list):
            return [self.var(v) for v in value]
        if isinstance(value, tuple):
            return tuple([self.var(v) for v in value])
        return value.item() if isinstance(value, np.generic) else value

    def emit(self, name: str, args: tuple[Any, ...]) -> Var:
        """Record a primitive with one result."""
        return self._call(name, tuple([self.var(a) for a in args]))[0]

    def _call(self, name: str, args: tuple[Any, ...]) -> tuple[Var, ...]:
        wrong = refused(args)
        if wrong is not None:
            raise UnsupportedError(
                message(
                    name,
                    f"is called with {wrong[0]!r}, and a {type(wrong[0]).__name__} is no argument in a traced graph",
                    hint="pass tensors, numbers, strings, slices, dtypes, devices, and tuples and lists of them",
                )
            )
        call = Call(name, args, (), self._site())
        outs = tuple([Var(Spec(tuple(s.shape), s.dtype, _device_of(s), s.strides)) for s in inferred(call)])
        self.calls.append(Call(name, args, outs, call.site))
        return outs

    def _site(self) -> Any:
        return site_of(*user_site(sys._getframe(2)))

    def interpret(self, op: Op, args: tuple[Any, ...]) -> Any:
        """An op on arrays, any of which may be traced."""
        if op.kind.draws:
            return self._drawn(op, *args)
        if op.kind.views:
            source = self.array(args[0])
            rest = tuple([self.var(a) for a in args[1:]])
            operands = [source.spec, *args[1:]]
            spec = with_strides(op, operands, computing.infer(op, operands))
            copies = op.strides is not None and op.strides(*operands) is None
            if not copies:
                return source.view(op.name, rest, replace(spec, device=_device_of(spec)))
        arrays = self.record(op, args)
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    def record(self, op: Op, args: tuple[Any, ...]) -> list[Traced]:
        """A call of an op, and the arrays that stand for its results."""
        args = tuple([self.var(a) for a in self.floating(args)])
        return [Traced(self, Cell(v), v.spec) for v in self._call(op.name, args)]

    def value(self, tensor: Tensor) -> Traced:
        """What a tensor is now, whatever is written to it later."""
        var = self.var(tensor)
        return Traced(self, Cell(var), var.spec)

    # ---- the trace

    def run(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Graph:
        try:
            outcome = self._record(fn, args, kwargs)
            self.marker = None
            self.guards.settle()
            self.guards.refuse_begun([state for state, _ in self.begun])
            refuse_leaks(self.name, self.alive)
            self.gradients.refuse_new_leaves()
            captured, constants, writes = self.memory.sorted(self.name)
            return graph_of(self, outcome, captured, constants, writes)
        except BaseException:
            for state, states in self.begun:
                forget_begun(state, states)
            raise

    def _record(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
        """Run the function; what is returned holds no tensor of its."""
        leaves, structure = tree_flatten((args, kwargs))
        arguments, inner = self._arguments(leaves)
        self.arguments = arguments
        tokens = tracer.set(self), snapshot.set(self.snapshot)
        self.marker = Traced(self, Cell(Var(SCALAR)), SCALAR)
        ACTIVE.append(self)
        try:
            inner_args, inner_kwargs = tree_unflatten(inner, structure)
            with _casts_of_its_own():
                given = fn(*inner_args, **inner_kwargs)
                for check in self.checks:
                    check()
                result = self.finished(given, arguments)
            return outcome_of(self, result, arguments, structure)
        finally:
            ACTIVE.pop()
            for variable, token in zip((tracer, snapshot), tokens, strict=True):
                variable.reset(token)
            self.open = False
            for counts, key in self.counts:
                if key in counts:  # a state that was made in the trace may be forgotten already
                    counts[key] -= 1
            for stream, start in self.streams:
                stream._position(start)
            self.memory.uncount_writes()
            self.gradients.restore()

    def finished(self, result: Any, arguments: list[Capture]) -> Any:
        """What the function returned; a subclass may go on with it, and add arguments."""
        return result

    def _arguments(self, leaves: list[Any]) -> tuple[list[Capture], list[Any]]:
        """The captures of tensors among the arguments, and what the function gets instead of them."""
        arguments: list[Capture] = []
        inner: list[Any] = []
        traced: dict[int, Tensor] = {}
        for x in leaves:
            if not isinstance(x, Tensor):
                inner.append(x)
                self.plain.append(x)
                continue
            if isinstance(value_of(x._array), Virtual):
                raise GraphError(
                    message(
                        "trace",
                        f"an argument is {type(x._array).__name__.lower()}, a trace takes tensors with data",
                        hint="trace outside of vmap and jvp, and use those inside",
                    )
                )
            argument = Capture(x._array)
            arguments.append(argument)
            if self.knows_again and id(x) in traced:
                inner.append(traced[id(x)])
                continue
            if x.requires_grad and id(x) in traced:  # it has one .grad
                raise GraphError(
                    message(
                        "trace",
                        "a tensor that requires grad is passed twice",
                        operands=[("argument", x._spec())],
                        hint="pass it once",
                    )
                )
            tensor = traced[id(x)] = wrap(Traced(self, argument.cell, argument.var.spec), type(x))
            tensor.__dict__.update(x.__dict__)
            argument.tensor = weakref.ref(tensor)
            inner.append(tensor)
            if x.requires_grad:
                tensor.requires_grad_()
                if x.is_leaf:
                    tensor._node._hooks = x._node._hooks  # type: ignore[union-attr]
                    tensor._node._grad = x.grad  # type: ignore[union-attr]
                tensor._node.__class__ = ArgumentOfTrace
                self.gradients.argument(tensor, len(arguments) - 1, x._node)
        return arguments, inner


@contextmanager
def _casts_of_its_own() -> Iterator[None]:
    """An autocast region that is open around a trace casts parameters once in it, as in a call; it keeps what they are outside
    of the trace.
    """
    mode = autocast.state()
    with nullcontext() if mode is None or mode.cache is None else autocast.restored(mode._replace(cache={})):
        yield


def _device_of(spec: Spec) -> Any:
    """The device of a result; numbers of the host have none of their own."""
    return CPU if spec.device == META else spec.device


def _leaked(name: str, array: Traced) -> str:
    return message(name, f"a tensor made while tracing {array.tracer.name} is used after the trace",
                   operands=[("tensor", array.spec)], hint="return it from the traced function; replay gives its "
                                                           "value")  # fmt: skip


def interpret(op: Op, args: tuple[Any, ...], top: Traced) -> Any:
    if not top.tracer.open:
        raise GraphError(_leaked(op.name, top))
    for x in args:
        if isinstance(x, Traced | np.ndarray) and x.dtype in NARROW:
            check_moved(op, x)
    return top.tracer.interpret(op, args)


computing.INTERPRETERS[Traced] = interpret
