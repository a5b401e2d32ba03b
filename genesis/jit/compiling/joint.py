"""A function and its gradient in one trace, and as two programs.

The results of a model have a history that leads to its parameters and arguments: somebody will call ``backward`` later.
So the trace goes on behind the function: it takes the gradients of the results, for any gradients that come in. What
results and writes need of the calls is the program of the forward; all else is that of the backward, and what it uses of
the forward is saved.
"""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from genesis.arrays.protocol import Layer
from genesis.autograd.gradients import grad
from genesis.base.device import MEMORIES
from genesis.base.errors import GenesisError, GraphError, UnsupportedError, message, told_of_errors
from genesis.base.pytree import TreeDef
from genesis.core.call.kinds import OPAQUE
from genesis.core.call.op import Op
from genesis.core.graph.node import FREED, AccumulateGrad, Edge, Node, node_of
from genesis.core.graph.switches import PACKING
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import Dependable, HostNumber
from genesis.jit.arguments import Var
from genesis.jit.binding import Graph
from genesis.jit.compiling.hosts import Hosts
from genesis.jit.compiling.leaves import HostCall
from genesis.jit.compiling.origins import Asked, share_origins
from genesis.jit.compiling.results import leaves_of
from genesis.jit.compiling.slots import Slot
from genesis.jit.compiling.stops import Conflict, Leaked, Moving, Stopped
from genesis.jit.compiling.stores import caught
from genesis.jit.compiling.values import HostValue, Number, Values
from genesis.jit.compiling.young import is_young
from genesis.jit.guards import Unchanged
from genesis.jit.memory import Capture
from genesis.jit.numbers import Formula
from genesis.jit.program import Program
from genesis.jit.traced import Traced
from genesis.jit.tracer import Tracer


@dataclass(frozen=True, slots=True)
class Joint:
    """A forward and its backward.

    Attributes:
        forward: the graph of what the function does; its results are those of the function, and then what is saved
        backward: its arguments are what is saved and the gradients of `outputs`, its results the gradients of `inputs`
        outputs: the results that have a history, by index; those that share memory may be views
        views: results that are views of one of these, of an argument or of a captured tensor, by what they are views of
        inputs: what gradients go to: the index of an argument, or a captured leaf
        saved: where each of what the backward uses is found: among arguments, captured tensors, or what the forward
            returns behind the results of the function ("made")
        numbers: which of the numbers of the forward the backward takes
        decided: what Python asked for
        reached: for each of `inputs` the places in `outputs` of the results whose gradients go on to it
    """

    forward: Graph
    backward: Program
    outputs: tuple[int, ...]
    views: Mapping[int, int | None]
    inputs: tuple[int | Tensor, ...]
    saved: tuple[tuple[str, int], ...]
    numbers: tuple[int, ...]
    decided: Decided
    reached: tuple[set[int], ...]


Ends = tuple[tuple[int, tuple[int | Tensor, ...]], ...]  # by index: arguments and captured leaves


@dataclass(frozen=True, slots=True)
class Decided:
    """What Python asked for in a trace.

    Attributes:
        asked: the variables
        answers: what they were
        returned: the results that are numbers, by index
        calls: what Python does at each call
        told: how many tensors these are told: they are results behind those of the function
        behind: how many of the calls come before each question
        turned: arguments and captured leaves that begin to require grad, or stop
        modes: the modules of which the function sets whether they are in training, and whether they are in the end
        gradients: those that were asked for while arguments that require grad led to the roots
        slots: what the function sets; it is among the arguments behind those of the function, and among the results
        loads: whether it may have read what was in them before
        puts_before: whether they have to be set before what Python does when all has been computed
        puts_last: whether they have to be set behind it
        ahead: which of them, by index, are set before it anyway
        shared: which of these are ("result", i), ("argument", i), or ("told", i) as another one
        closed: the results that nothing flows through any more, for a backward inside has freed what that needs: by
            index, where their history led to, an argument or a captured leaf
        closed_told: the same of what statements are told
        inference: the results that were made in inference mode, by index
        leaves: whether the function asks if arguments are leaves
    """

    asked: tuple[Var, ...] = ()
    answers: tuple[Any, ...] = ()
    returned: tuple[int, ...] = ()
    calls: tuple[HostCall, ...] = ()
    told: int = 0
    behind: tuple[int, ...] = ()
    closed: Ends = ()
    closed_told: Ends = ()
    turned: tuple[tuple[int | Tensor, bool], ...] = ()
    modes: tuple[tuple[Any, bool], ...] = ()
    shared: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    gradients: Asked | None = None
    slots: tuple[Slot, ...] = ()
    loads: tuple[bool, ...] = ()
    puts_before: bool = False
    puts_last: bool = False
    ahead: frozenset[int] = frozenset()
    inference: tuple[int, ...] = ()
    leaves: bool = False

    @property
    def draws(self) -> bool:
        """Whether Python draws random numbers that the graph takes."""
        return any([call.is_asked for call in self.calls])

    @property
    def ways(self) -> bool:
        """Whether Python decides by what is computed or drawn: then there are graphs for several ways."""
        return bool(self.answers) or any([call.number is not None for call in self.calls])

    @property
    def in_parts(self) -> bool:
        """Whether Python does or decides something before all is computed."""
        return bool(self.asked) or any([call.early for call in self.calls])


class JointTracer(Tracer):
    """A trace that takes the gradients of results with a history."""

    knows_again = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.outputs: list[int] = []
        self.views: dict[int, int | None] = {}
        self.inputs: list[int | Tensor] = []
        self.reached: tuple[set[int], ...] = ()
        self.structure: TreeDef | None = None
        self.results = self.given = 0
        self.values, self.hosts = Values(self), Hosts(self)
        self.watch: Any = None  # what looks on while the function runs
        self.refusals: list[GraphError] = []  # errors that were raised, which the function may have caught
        self.told = 0  # tensors that statements of Python are told
        self.shared: dict[int, tuple[str, int]] = {}  # see `Decided`
        self.returned: list[int] = []  # results that are numbers
        self.answers: tuple[Any, ...] = ()
        self.behind: tuple[int, ...] = ()
        self.closed: Ends = ()
        self.closed_told: Ends = ()
        self.turned: list[tuple[int | Tensor, bool]] = []  # see `Decided`
        self.modes: tuple[tuple[Any, bool], ...] = ()  # see `Decided`
        self.modes_before: dict[int, tuple[Any, bool]] = {}  # of these modules
        self.asked_gradients: Asked | None = None  # see `Decided`
        self.walked = dict[int, Any]()  # modules that the function goes through, by id
        self.still = list[Tensor]()  # those from outside that are told to require grad, or not to, and did so before
        self.masks = list[Unchanged]()  # how many elements those from outside name
        self.inference: tuple[int, ...] = ()  # see `Decided`
        self.own_gradients: list[Tensor | None] = []  # of arguments that require no grad
        self.loads: tuple[bool, ...] = ()  # see `Decided`

    def _arguments(self, leaves: list[Any]) -> tuple[list[Capture], list[Any]]:
        arguments, inner = super()._arguments(leaves)
        self.own_gradients = [x._own_grad for x in leaves if isinstance(x, Tensor)]
        for name in [name for x in leaves if isinstance(x, Tensor) for name in x.__dict__]:
            if not hasattr(Tensor, name):
                raise GraphError(message("compile", f"an argument has an attribute {name} of its own"))
        return arguments, inner

    def takes(self, x: Tensor) -> Tensor:
        """What stands for a tensor that is one more argument: Python makes it at each call, before all that is computed."""
        argument = Capture(x._array)
        tensor = wrap(Traced(self, argument.cell, argument.var.spec))
        argument.tensor = weakref.ref(tensor)
        self.arguments.append(argument)
        self.own_gradients.append(None)
        return tensor

    def number(self, tensor: Tensor) -> Any:
        return self.values.number(tensor)

    def unwatched(self, work: Callable[[], Any]) -> Any:
        """Call ``work()`` without the profile function of the watch, which sees most calls in vain: of a training step
        of 0.07 s it makes 0.3.
        """
        seeing = sys.getprofile()
        if self.watch is None or seeing is not self.watch.seeing:
            return work()
        sys.setprofile(None)
        try:
            return work()
        finally:
            sys.setprofile(seeing)

    def computes(self, op: Op, work: Callable[[], Any]) -> Any:
        """Only in ops that are the program's own, and in hooks on what is saved, does code of it run."""
        return work() if op.kind is OPAQUE or PACKING else self.unwatched(work)

    def record(self, op: Op, args: tuple[Any, ...]) -> list[Traced]:
        known = super().record
        return self.computes(op, lambda: known(op, args))  # type: ignore[no-any-return]

    defers = True
    runs_nodes_of_outside = False

    def differentiates(
        self, reached: Collection[Node], running: Iterable[Node], inputs: Sequence[Edge] | None, kept: bool
    ) -> None:
        """See there. Arguments are taken for tensors that come from nowhere: refused where the gradients that are asked
        for would also go through what an argument came from.
        """
        super().differentiates(reached, running, inputs, kept)
        met = self.gradients.of_arguments(reached)
        if inputs is None or not met:
            return  # all gradients: that of an argument, too, is refused elsewhere
        of_arguments = {leaf.raw[0]: leaf.argument for leaf in self.gradients.leaves.values() if leaf.argument >= 0}
        asked, before, start = [node_of(edge) for edge in inputs], self.asked_gradients or Asked(), self.gradients.start
        self.asked_gradients = Asked(
            before.reached.union([n for n in reached if n._number < start]),
            before.nodes.union([n for n in asked if n._number < start]),
            before.arguments.union([of_arguments[n] for n in asked if n in of_arguments]),
        )
        origins: list[Any] = [None] * (1 + max(leaf.argument for leaf in met))
        for leaf in met:
            origins[leaf.argument] = leaf.origin
        if share_origins(origins, self.asked_gradients):
            text = "an argument that requires grad is, or came from, what a gradient is asked for"
            raise GraphError(message("trace", text, [("argument", met[0].tensor._spec())], "compute it inside"))

    def depends(self, thing: Dependable, read: str = "") -> None:
        titles = [call.title for call in self.hosts.calls if any([setting.changes(thing) for setting in call.sets])]
        if titles:
            raise GraphError(message("compile", f"a {type(thing).__name__} is set to something else at {titles[0]}"))
        super().depends(thing, read)

    def kept(self) -> int:
        return len(self.hosts.calls)

    def decided(self, name: str, number: HostNumber, others: tuple[Any, ...]) -> bool:
        for x in [x for x in (number, *others) if x.__class__ is HostNumber]:
            self.hosts.refuse_to_decide(x)
        return super().decided(name, number, others)

    def _made_of(self, formula: Formula, parts: list[HostNumber], whole: bool) -> HostNumber:
        """See there. An error would come of it in a call, not in the trace: where the function catches it, it is refused."""
        exact = formula.name.strip("_").removeprefix("r") in ("add", "sub", "mul", "neg", "pos", "abs")
        if not exact and self.watch is not None and caught(sys._getframe(1), self.watch.saw):
            raise Leaked(set())
        return super()._made_of(formula, parts, whole)

    def draws_number(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], frame: Any) -> Any:
        """The program draws a random number of Python or NumPy."""
        number = self.hosts.drawn.number(function, args, kwargs, frame) if self.watch is not None else None
        if number is None:
            if self.watch is None:
                return function(*args, **kwargs)
            self.watch._note(f"a use of {function.__name__}", frame)
        return number

    def acts(self, function: Any, args: tuple[Any, ...], changes: tuple[Any, ...]) -> bool:
        self.hosts.action(function, args, changes)
        return True

    def decide(self, tensor: Tensor) -> bool:
        return bool(self.values.answer(tensor))

    def finished(self, result: Any, arguments: list[Capture]) -> Any:
        if self.refusals:
            raise self.refusals.pop(0)
        self.hosts.settle()
        self.hosts.refuse_things(self.guards.things)
        self.hosts.refuse_walks(self.walked.values())
        self._refuse_histories(arguments)
        self.turned = self._turns(arguments)
        self.modes = self._modes()
        leaves, self.structure = leaves_of(result, [a.tensor() for a in arguments])
        self.results, self.given = len(leaves), len(arguments)
        self.returned = [i for i, y in enumerate(leaves) if isinstance(y, Number)]
        leaves = [self._as_result(y) for y in leaves]
        self.inference = tuple([i for i, y in enumerate(leaves) if isinstance(y, Tensor) and y.is_inference()])
        self.shared = self.hosts.shared(leaves)
        self.closed_told = tuple([(k, self._ends_of(x, arguments)) for k, x in self.hosts.closed])
        self.hosts.closed = []
        gradients = self._gradients(leaves, arguments)
        self.answers = tuple([q.answer for q in self.values.questions])
        self.behind = tuple([q.behind for q in self.values.questions])
        asked = [q.tensor for q in self.values.questions]
        self.values.forget()
        told, self.hosts.tensors = self.hosts.tensors, []
        self.told = len(told)
        return [*leaves, *gradients, *told, *asked]

    def _as_result(self, y: Any) -> Any:
        """What stands for something that is returned: a number of the host is asked for when all has been computed."""
        if isinstance(y, HostNumber):
            title = "what is returned"
            return HostValue(self.hosts._asked(y, title), title)
        return y.tensor if isinstance(y, Number) else y

    def _refuse_histories(self, arguments: list[Capture]) -> None:
        """A tensor that the function was given, or captures, and has written something with a history into."""
        given = [("an argument", a.tensor()) for a in arguments]
        changed = [x for x, before, _ in self.gradients.histories.values() if x._node is not before]
        captured = [("a captured tensor", x) for x in changed if not self.memory.was_made(x._array)]
        for what, x in (*given, *captured):
            if x is not None and x._node is not None and not x._node.is_leaf:
                text = f"what is written into {what} has a history, which would be that of the tensor then"
                hint = "write under no_grad, or what is detached"
                raise GraphError(message("compile", text, [("tensor", x._spec()), ("by", x._node.name())], hint))

    def goes_through(self, thing: Dependable) -> None:
        self.walked[id(thing)] = thing

    def changes(self, thing: Any, what: str) -> None:
        """See there. What the function makes itself it may change."""
        if not is_young(thing):
            raise GraphError(message("compile", f"{what}: a compiled call would not do it again"))

    def mask_counted(self, mask: Any) -> None:
        """See there. A call in which it names another number has a graph of its own."""
        super().mask_counted(mask)
        self.masks.append(Unchanged("", lambda: {"how many elements a mask names": int(np.count_nonzero(mask))}))

    def sets(self, thing: Any, name: str, store: dict[str, Any] | None = None) -> None:
        if is_young(thing):
            return
        slot = Slot(vars(thing) if store is None else store, name, f"{type(thing).__name__}.{name}", thing)
        if store is None:
            self.hosts.slots.sets_ahead(slot)
        else:
            self.hosts.slots.sets_them([slot])

    def hooked(self, node: Node) -> None:
        """See there. On a tensor from outside it would stay, and there would be one more after each call."""
        if any([x is not None and x._node is node for x in [a.tensor() for a in self.arguments]]):
            raise GraphError(message("compile", "a hook is registered on an argument"))
        self.changes(node, "a hook is registered on a tensor from outside")

    def mode_set(self, module: Any, mode: bool) -> None:
        """See there. The graph holds for calls before which it was what it is before this one: who knows what read it."""
        self.depends(module)
        if module.training is not mode:
            self.modes_before.setdefault(id(module), (module, module.training))

    def _record(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        token = told_of_errors.set(self._error_made)
        try:
            return super()._record(fn, args, kwargs)
        finally:
            told_of_errors.reset(token)
            for module, before in self.modes_before.values():
                module.__dict__["training"] = before  # what was read before it was set, for the guards

    def _error_made(self, error: GenesisError) -> None:
        """What only a trace cannot do is no error in a call: where the function may catch it, it is refused."""
        of_traces = isinstance(error, GraphError | UnsupportedError) and self.watch is not None
        if of_traces and caught(sys._getframe(2), self.watch.saw):
            self.refusals.append(error)

    def _modes(self) -> tuple[tuple[Any, bool], ...]:
        """Whether the modules are in training now of which the function has set that."""
        if self.modes_before and any([call.raises or call.may_raise or not call.blind for call in self.hosts.calls]):
            text = "whether a module is in training is set beside what Python does, which may look at that"
            raise GraphError(message("compile", text, hint="set it outside"))
        return tuple([(module, module.training) for module, _ in self.modes_before.values()])

    def _turns(self, arguments: list[Capture]) -> list[tuple[int | Tensor, bool]]:
        """What requires grad now and did not before, or the other way."""
        began = {leaf.argument for leaf in self.gradients.leaves.values()}
        for i, a in enumerate(arguments):
            x = a.tensor()
            if i not in began and x is not None and x.grad is not self.own_gradients[i]:
                raise GraphError(message("compile", "the .grad of an argument is looked at, or changes"))
        given = [(i, i in began, a.tensor()) for i, a in enumerate(arguments)]
        changed = [(x, before) for x, before, _ in self.gradients.histories.values()]
        captured = [(x, before is not None, x) for x, before in changed if not self.memory.was_made(x._array)]
        self.still = [x for x, before, _ in captured if (x._node is not None) is before]
        return [
            (what, not before)
            for what, before, x in (*given, *captured)
            if x is not None and (x._node is not None) is not before
        ]

    def _gradients(self, leaves: list[Any], arguments: list[Capture]) -> Sequence[Any]:
        """The gradients of what the results with a history come from."""
        live = {i: y for i, y in enumerate(leaves) if isinstance(y, Tensor) and y._node is not None}
        if any([self._is_own(y._node, arguments) for y in live.values()]):
            text = "a result is a leaf that the function made: its gradient would be found there"
            raise GraphError(message("compile", text, hint="return it without requires_grad"))
        seen: dict[int, int] = {}
        self.outputs = [i for i, y in live.items() if seen.setdefault(id(y), i) == i and self._is_open(y)]
        self.closed = tuple([(i, self._ends_of(y, arguments)) for i, y in live.items() if not self._is_open(y)])
        if not self.outputs:
            return ()
        edges = [leaves[i]._node for i in self.outputs]
        sources = [node for node in self._sources(edges) if not self._is_own(node, arguments)]
        for i in self.outputs:
            if not any([node is source for node in _nodes([leaves[i]._node]) for source in sources]):
                text = "a result has a history that leads to nothing but tensors that the function made"
                raise GraphError(message("compile", text, hint="return what is detached"))
        outputs = self._heads(leaves, arguments, sources)
        if not outputs:
            return ()
        cotangents = []
        for y in outputs:
            spec = self.array(y._array).spec
            capture = Capture(MEMORIES[spec.device.type].zeros(spec.shape, spec.dtype, spec.device))
            arguments.append(capture)
            cotangents.append(wrap(Traced(self, capture.cell, capture.var.spec)))
        tensors = [node.tensor() for node in sources]
        if any([x is y and not now for y, now in self.turned for x in tensors]):
            raise GraphError(message("compile", "a captured tensor that a result comes from stops requiring grad"))
        self.inputs = [self._input(x, arguments) for x in tensors]
        held = [(node, node._hooks) for node in sources]
        try:  # the hooks of leaves run when the gradients arrive there
            for node, _ in held:
                node._hooks = None
            with self._only_computing():
                gradients = grad(outputs, tensors, cotangents, retain_graph=len(outputs) > 1, allow_unused=True)
                self.reached = self._reached(outputs, tensors, cotangents, gradients)
        finally:
            for node, hooks in held:
                node._hooks = hooks
        return gradients  # type: ignore[no-any-return]

    def _heads(self, leaves: list[Any], arguments: list[Capture], sources: list[AccumulateGrad]) -> list[Tensor]:
        """Where gradients begin: at the results; of views that share memory at what they are views of, for they are taken
        of that at each call, and may be written to.
        """
        arrays = {
            id(y): self.array(y._array) for y in leaves if isinstance(y, Tensor) and not isinstance(y._array, Layer)
        }
        shared = Counter([x.cell for x in arrays.values()])
        outside = {c.cell: c.tensor() for c in (*arguments, *self.memory.captures.values()) if not c.made}
        heads = dict[int, Tensor]()
        for i in self.outputs:
            y, cell = leaves[i], arrays[id(leaves[i])].cell
            head = y if y._view is None or not y._view.recorded else y._view.base
            if cell in outside and head is not y and head is outside[cell]:
                self.views[i] = None
            elif cell in outside or shared[cell] == 1 or self.array(head._array).steps:
                heads[i] = y
            elif (known := next((k for k, x in heads.items() if x is head), None)) is not None:
                self.views[i] = known
            else:
                heads[i], self.views[i] = head, i
        self.outputs = [i for i, y in heads.items() if not self._is_source(y, sources)]
        if self.views and not self.outputs:  # nothing would give the views a history
            raise GraphError(message("compile", "all results that gradients flow through are views of what is given"))
        return [heads[i] for i in self.outputs]

    @contextmanager
    def _only_computing(self) -> Iterator[None]:
        """A backward is computed again at each call, but nothing else of it is done again: refuse what it does besides, in
        hooks, in backwards of Functions or where a checkpoint runs its function once more.
        """
        before = self.hosts.outside()
        try:
            with self.watch.behind() if self.watch is not None else nullcontext():
                yield
        except (Stopped, Conflict, Moving) as stop:
            effect = self.watch.effect or f"{stop.args[1]} is read, which a statement changes"
            raise GraphError(f"{effect}, in the backward: a compiled call would not do it again") from None
        if self.hosts.outside() != before:
            text = "the backward writes to tensors from outside, or draws random numbers"
            raise GraphError(message("compile", text, hint="compile the whole step, with its backward"))

    def _reached(self, outputs: Any, tensors: Any, cotangents: Any, gradients: Any) -> tuple[set[int], ...]:
        """Which results' gradients go on to each of `tensors`. Mostly the calls show it; zeros are made of nothing, and
        what they come from is asked for again.
        """
        if len(outputs) == 1:
            return tuple([set() if g is None else {0} for g in gradients])
        known = {self.var(g): {i} for i, g in enumerate(cotangents)}
        for call in self.calls:
            origins = [known[v] for v in call.inputs if v in known]
            known |= dict.fromkeys(call.outs, set().union(*origins)) if origins else {}
        reached = [set() if g is None else set(known.get(self.var(g), ())) for g in gradients]
        for i, y in enumerate(outputs):
            behind = set(_nodes([y._node]))
            unsure = [j for j, x in enumerate(tensors) if x._node in behind and i not in reached[j]]
            if not unsure:
                continue
            again = grad(y, [tensors[j] for j in unsure], cotangents[i], retain_graph=True, allow_unused=True)
            for j, g in zip(unsure, again, strict=True):
                reached[j] |= set() if g is None else {i}
        return tuple(reached)

    def _ends_of(self, y: Tensor, arguments: list[Capture]) -> tuple[int | Tensor, ...]:
        """The leaves in a history, as `inputs`."""
        leaves = [node.tensor() for node in _nodes([y._node]) if node.is_leaf]
        return tuple([self._input(x, arguments) for x in leaves if x is not None])

    def _is_open(self, y: Tensor) -> bool:
        """Whether a backward could begin at a tensor: nothing behind it was freed by one."""
        return all(node._saved is not FREED for node in _nodes([y._node]))

    def _is_own(self, node: Any, arguments: list[Capture]) -> bool:
        """Whether a node is that of a leaf that the function made."""
        if not node.is_leaf or node._number < self.gradients.start:
            return False
        x = node.tensor()
        outside = id(x) in self.gradients.histories and not self.memory.was_made(x._array)
        return not outside and not any([a.tensor() is x for a in arguments])

    def _is_source(self, y: Tensor, sources: list[AccumulateGrad]) -> bool:
        return any(y._node is node for node in sources)

    def _sources(self, edges: list[Any]) -> list[AccumulateGrad]:
        """The leaves that gradients would go to."""
        sources = []
        for node in _nodes(edges):
            if node.is_leaf:
                if node.tensor() is not None:
                    sources.append(node)
            elif node._number < self.gradients.start:
                text = "a captured tensor was computed before: its gradient would have to go on to where it came from"
                raise GraphError(message("compile", text, [("computed by", node.name())], "pass it as an argument"))
        return sources

    def _input(self, x: Tensor, arguments: list[Capture]) -> int | Tensor:
        return next((i for i, a in enumerate(arguments[: self.given]) if a.tensor() is x), x)


def _nodes(edges: list[Any]) -> Iterator[Any]:
    """The nodes behind edges, each once."""
    ahead, seen = [e for e in edges if e is not None], set()
    while ahead:
        edge = ahead.pop()
        node = node_of(edge)
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            ahead += [e for e in node._edges if e is not None]
