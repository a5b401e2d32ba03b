"""`trace`: run a function once on traced arrays, and keep what it did as a graph."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from genesis.arrays.protocol import Layer, Virtual, value_of
from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.base.device import CPU, META
from genesis.base.errors import GraphError, message
from genesis.base.pytree import tree_flatten, tree_unflatten
from genesis.core import dispatch, draws
from genesis.core.draws import DRAWS
from genesis.core.generator import Generator
from genesis.core.layout import view_strides, with_strides
from genesis.core.modes import ACTIVE
from genesis.core.node import AccumulateGrad
from genesis.core.op import Op
from genesis.core.site import line_here, site_of, user_site
from genesis.core.tensor import Tensor, wrap
from genesis.core.tracing import HostNumber, tracer
from genesis.jit.graph import Draw, Graph, Node, Var, Write, inferred
from genesis.jit.traced import Cell, Traced

_SCALAR = Spec((), np.dtype(np.float64), META)  # of numbers of the host: they have no dtype of their own


def trace(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Graph:
    """Record what a function does with tensors as a graph of primitives.

    The function runs once, on tensors that stand for any values. Everything is recorded: forward, ``backward()``, the writes of
    an optimizer, random draws. Tensors that it captures (parameters, buffers, an optimizer's state) are inputs of the graph, and those that it
    writes to are outputs; nothing of the outside is changed by the trace. Numbers of the host that change (a learning rate, a count of
    steps) are inputs where the code says so with `host` and `advance`, which the optimizers do; any other number is a constant.

    Returns:
        a `Graph`: ``replay(*args)`` runs it, ``print`` shows it, ``verify()`` checks it, ``draw()`` draws it

    Raises:
        RuntimeError: the function needs a value (``if x > 0``, ``.item()``, ``.numpy()``), or keeps a tensor that it made

    >>> import genesis
    >>> graph = genesis.jit.trace(lambda x: (x * 2).sum(), genesis.ones(3))
    >>> [node.op for node in graph.nodes], graph.replay(genesis.tensor([1., 2., 3.]))
    (['mul', 'sum'], tensor(12.))
    """
    if tracer.get() is not None:
        raise GraphError(message("trace", "a trace is being made already", hint="trace the inner function by itself, or not at all"))
    recording = Tracer(getattr(fn, "__name__", type(fn).__name__))
    return recording.run(fn, args, kwargs)


def _spec_of(array: Any) -> Spec:
    """The spec of an array with its strides: they say which reshapes are views."""
    strides = None if array.flags.c_contiguous else tuple(s // array.itemsize for s in array.strides)
    return Spec(tuple(array.shape), array.dtype, strides=strides)


class Capture:
    """An array of the outside, an argument or captured: its memory in the trace, the variable that it is at first, and a tensor that holds it."""

    __slots__ = ("array", "cell", "tensor", "var")

    def __init__(self, array: Any) -> None:
        self.array = array
        self.var = Var(_spec_of(array))
        self.cell = Cell(self.var, outside=True)
        self.tensor: Callable[[], Tensor | None] = lambda: None  # a weak reference, once there is one

    def references(self) -> tuple[int, int]:
        """How often the array and the one that owns its memory are counted."""
        return sys.getrefcount(self.array), sys.getrefcount(self.array.base)

    def is_ours(self) -> bool:
        """Whether nobody else can read or write this memory: it was made inside, for the moment."""
        counts = self.references()
        if self.array.base is None:
            return counts[0] <= ALONE[0] or not self.array.flags.writeable
        if not isinstance(self.array.base, np.ndarray):
            return False
        return (counts[0] <= ALONE[0] and counts[1] <= ALONE[1]) or not self.array.base.flags.writeable


ALONE = Capture(np.empty(2)[:1]).references()  # of an array that nobody else holds; Python versions count differently


class Tracer:
    """A trace while it is made."""

    def __init__(self, name: str) -> None:
        self.name = "function" if name == "<lambda>" else name
        self.nodes: list[Node] = []
        self.captures: dict[Any, Capture] = {}  # by memory, see `_key`
        self.numbers: list[tuple[Var, Callable[[], float]]] = []
        self.counts: list[tuple[Any, str]] = []
        self.streams: list[tuple[Generator, int]] = []  # where they began
        self.alive: weakref.WeakSet[Traced] = weakref.WeakSet()
        self.kept: dict[AccumulateGrad, Any] = {}  # the .grad of leaves before the function changed them
        self.cleared: set[AccumulateGrad] = set()  # those that it set to None
        self.plain: list[Any] = []
        self.twins: list[Tensor | None] = []  # of the arguments that require grad
        self.made: set[int] = set()  # ids of plain tensors that the function made; those from outside live all the time, and have others
        self.wrote = False  # then results may depend on which reshapes are views, and so on the layout of arguments
        self.open = True
        self.marker: Any = None

    # ---- what the rest of the system calls

    def note(self, array: Traced) -> None:
        self.alive.add(array)

    def host(self, value: Callable[[], float]) -> float:
        number = HostNumber(value())
        number.var = Var(_SCALAR)
        self.numbers.append((number.var, value))
        return number

    def advanced(self, counts: Any, key: str) -> None:
        self.counts.append((counts, key))

    def drawn(self, stream: Generator, name: str, shape: tuple[int, ...], dtype: Any, options: tuple[Any, ...]) -> Traced:
        """A random node; the stream itself stays where it is."""
        place = next((i for i, (g, _) in enumerate(self.streams) if g is stream), None)
        if place is None:
            place = len(self.streams)
            self.streams.append((stream, stream._block))
        before = stream._block
        sample = DRAWS[name](stream, shape, dtype, *options)
        var = Var(Spec(tuple(sample.shape), sample.dtype))
        at = Draw(place, before - self.streams[place][1])
        self.nodes.append(Node("draw", (name, shape, dtypes.from_numpy(dtype).name, options, at), (var,), self._site()))
        return Traced(self, Cell(var), var.spec)

    def snapshot(self, array: Any) -> Any:
        """What an array holds now, whatever is written to it later."""
        return self.array(array).copy()

    def grad_changes(self, node: AccumulateGrad, cleared: bool) -> None:
        """The function is about to change the .grad of a leaf."""
        self.kept.setdefault(node, node._grad)
        if cleared:
            self.cleared.add(node)

    def created(self, tensor: Tensor) -> None:
        """The function made a plain tensor: its numbers are known, until it is written to."""
        self.made.add(id(tensor))

    def refuse_numbers(self, tensor: Tensor) -> None:
        """The numbers of a tensor from outside may be others at the next call."""
        found = self.captures.get(_key(tensor._array))
        if id(tensor) not in self.made or (found is not None and found.cell.written):
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
        found = self._captured(array)
        return Traced(self, found.cell, found.var.spec)

    def capture(self, tensor: Tensor) -> Traced:
        """The array of a tensor; the tensor is remembered, so that a replay reads (and writes) it."""
        if isinstance(tensor._array, np.ndarray):
            found = self._captured(tensor._array)
            known = found.tensor()
            if known is None or (known._node is None and isinstance(tensor._node, AccumulateGrad)):
                found.tensor = weakref.ref(tensor)
        return self.array(tensor._array)

    def _captured(self, array: Any) -> Capture:
        key = _key(array)
        found = self.captures.get(key)
        if found is None:
            found = self.captures[key] = Capture(array)
        return found

    def _check_overlaps(self, outside: list[Capture]) -> None:
        """Two tensors from outside that share memory are two variables: fine, unless one of them is written to."""
        spans = sorted(((*byte_bounds(c.array), c.cell) for c in outside if c.array.size), key=lambda span: (span[0], -span[1]))
        reach, known = 0, None
        for begin, end, cell in spans:
            if known is not None and begin < reach and (known.written or cell.written):
                raise GraphError(
                    message("trace", "a tensor is written to, and another argument or captured tensor shares its memory",
                            operands=[("one", known.value.spec), ("the other", cell.value.spec)],
                            hint="take the view inside the traced function, and pass a tensor once")
                )  # fmt: skip
            if end > reach:
                reach, known = end, cell

    def var(self, value: Any) -> Any:
        """Anything that an op is called with, with variables for tensors, arrays and numbers of the host."""
        if isinstance(value, HostNumber):
            return value.var
        if isinstance(value, Tensor):
            return self.capture(value).var()
        if isinstance(value, Virtual | np.ndarray):
            return self.array(value).var()
        if isinstance(value, list):
            return [self.var(v) for v in value]
        if isinstance(value, tuple):
            return tuple([self.var(v) for v in value])
        return value

    def emit(self, name: str, args: tuple[Any, ...]) -> Var:
        """Record a primitive with one result."""
        return self._node(name, tuple([self.var(a) for a in args]))[0]

    def _node(self, name: str, args: tuple[Any, ...]) -> tuple[Var, ...]:
        node = Node(name, args, (), self._site())
        outs = tuple([Var(Spec(tuple(s.shape), s.dtype, strides=s.strides)) for s in inferred(node)])
        self.nodes.append(Node(name, args, outs, node.site))
        return outs

    def _site(self) -> Any:
        return site_of(*user_site(sys._getframe(2)))

    def interpret(self, op: Op, args: tuple[Any, ...]) -> Any:
        """An op on arrays, any of which may be traced."""
        if op.kind == "view":
            source = self.array(args[0])
            rest = tuple([self.var(a) for a in args[1:]])
            operands = [source.spec, *args[1:]]
            spec = with_strides(op, operands, dispatch.infer(op, operands))
            copies = op.name == "reshape" and view_strides(op, operands, spec) is None
            if not copies and op.name not in ("real", "imag", "view_dtype"):
                return source.view(op.name, rest, replace(spec, device=CPU))
        outs = self._node(op.name, tuple([self.var(a) for a in args]))
        arrays = [Traced(self, Cell(v), v.spec) for v in outs]
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    # ---- the trace

    def run(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Graph:
        graph = self._record(fn, args, kwargs)
        self._refuse_leaks()
        return graph

    def _record(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Graph:
        leaves, structure = tree_flatten((args, kwargs))
        arguments: list[Capture] = []
        inner = []
        for x in leaves:
            if not isinstance(x, Tensor):
                inner.append(x)
                self.plain.append(x)
                continue
            if isinstance(value_of(x._array), Virtual):
                raise GraphError(message("trace", f"an argument is {type(x._array).__name__.lower()}, a trace takes tensors with data", hint="trace outside of vmap and jvp, and use those inside"))
            argument = Capture(x._array)
            arguments.append(argument)
            twin = wrap(Traced(self, argument.cell, argument.var.spec), type(x))
            twin.__dict__.update(x.__dict__)
            inner.append(twin.requires_grad_() if x.requires_grad else twin)
            self.twins.append(twin if x.requires_grad else None)
        token, draw_token = tracer.set(self), draws.recorder.set(self.drawn)
        self.marker = Traced(self, Cell(Var(_SCALAR)), _SCALAR)
        ACTIVE.append(self)
        try:
            inner_args, inner_kwargs = tree_unflatten(inner, structure)
            result = fn(*inner_args, **inner_kwargs)
            return self._finish(result, arguments, structure)
        finally:
            ACTIVE.pop()
            tracer.reset(token)
            draws.recorder.reset(draw_token)
            self.open = False
            for counts, key in self.counts:
                counts[key] -= 1
            for stream, start in self.streams:
                stream._position(start)
            self._forget_gradients()

    def _finish(self, result: Any, arguments: list[Capture], structure: Any) -> Graph:
        self._check_overlaps([*arguments, *self.captures.values()])
        leaves, out_structure = tree_flatten(result)
        results = [self.capture(y).var() if isinstance(y, Tensor) and not isinstance(y._array, Layer) else y for y in leaves]
        writes = [Write("argument", i, a.cell.value) for i, a in enumerate(arguments) if a.cell.value is not a.var]
        captured: list[tuple[Var, Tensor]] = []
        constants: list[tuple[Var, Any]] = []
        for capture in self.captures.values():
            cell, var, tensor = capture.cell, capture.var, capture.tensor()
            if capture.is_ours():
                constants.append((var, capture.array.copy()))
                continue
            tensor = wrap(capture.array) if tensor is None else tensor
            place = len(captured)
            captured.append((var, tensor))
            if cell.value is not var:
                writes.append(Write("captured", place, cell.value))
            node = tensor._node
            grad = node._grad if isinstance(node, AccumulateGrad) else None
            if isinstance(grad, Tensor) and isinstance(grad._array, Traced):
                writes.append(Write("grad" if node in self.cleared else "add grad", place, grad._array.var()))
        for i, twin in enumerate(self.twins):
            grad = twin._node._grad if twin is not None and isinstance(twin._node, AccumulateGrad) else None
            if isinstance(grad, Tensor) and isinstance(grad._array, Traced):
                writes.append(Write("argument grad", i, grad._array.var()))
        gradients = self._gradients(captured)
        streams = [(g, g._block - start) for g, start in self.streams]
        return Graph(self.name, self.nodes, [a.var for a in arguments], captured, constants, self.numbers, list(self.counts), streams, results, writes, structure, out_structure,
                     self.plain, gradients, self.wrote)  # fmt: skip

    def _gradients(self, captured: list[tuple[Var, Tensor]]) -> dict[int, int]:
        """Which captured tensors are the .grad of which others: a replay looks them up again, for they come and go."""
        places = {id(tensor._array): i for i, (_, tensor) in enumerate(captured)}
        found = {}
        for i, (_, tensor) in enumerate(captured):
            node = tensor._node
            if isinstance(node, AccumulateGrad):
                grad = self.kept.get(node, node._grad)
                if isinstance(grad, Tensor) and id(grad._array) in places:
                    found[places[id(grad._array)]] = i
        return found

    def _forget_gradients(self) -> None:
        """Captured leaves have the gradients of the trace: those are outputs of the graph, the leaves get back what they had."""
        for leaf, before in self.kept.items():
            leaf._grad = before
        self.kept.clear()
        self.cleared.clear()
        self.twins.clear()
        for capture in self.captures.values():
            node = getattr(capture.tensor(), "_node", None)
            if isinstance(node, AccumulateGrad) and isinstance(node._grad, Tensor) and isinstance(node._grad._array, Traced):
                node._grad = None

    def _refuse_leaks(self) -> None:
        self.marker = None
        if not self.alive:
            return
        gc.collect()
        left = [a for a in self.alive if any(isinstance(r, Tensor) for r in gc.get_referrers(a))]
        if left:
            raise GraphError(
                message("trace", f"{self.name} keeps {len(left)} tensor{'s' if len(left) > 1 else ''} that it made while it was traced",
                        operands=[("the first", left[0].spec)],
                        hint="an optimizer's state or a cache that the first call sets up: call the function once before tracing it")
            )  # fmt: skip


def _key(array: Any) -> Any:
    """The same memory, seen in the same way."""
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype if array.size else id(array)


def _leaked(name: str, array: Traced) -> str:
    return message(name, f"a tensor made while tracing {array.tracer.name} is used after the trace",
                   operands=[("tensor", array.spec)], hint="return it from the traced function; replay gives its value")  # fmt: skip


def interpret(op: Op, args: tuple[Any, ...], top: Traced) -> Any:
    if not top.tracer.open:
        raise GraphError(_leaked(op.name, top))
    return top.tracer.interpret(op, args)


dispatch.INTERPRETERS[Traced] = interpret
