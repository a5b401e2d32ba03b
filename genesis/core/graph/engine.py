"""The backward engine: walk the recorded graph from its results to its leaves, each node once.

1. `planned` counts, for each node, how many uses of its output still owe it a gradient (a loop, never
   recursion: a graph a million nodes deep works).
2. `run` takes a node that is owed nothing more, runs its hooks, asks it for its inputs' gradients, and
   hands those on, summing where a value was used more than once. Where there are hooks, the node that was recorded
   last is taken first.
3. Leaf gradients are put into ``.grad`` at the very end, all or none: an exception on the way leaves
   every ``.grad`` as it was (`core/graph/delivery.py`). A leaf with hooks that run after the accumulation gets its
   gradient at once, so that an optimizer can run inside backward.

The order of the hooks around a node: `core/graph/hooks.py`.
"""

from __future__ import annotations

import sys
from bisect import insort
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.arrays.memory import LENT
from genesis.base.errors import ShapeError
from genesis.core.graph import autocast
from genesis.core.graph.delivery import deliver
from genesis.core.graph.hooks import HOOKED, SPECIAL
from genesis.core.graph.lost import number_of_run
from genesis.core.graph.modes import closed, grad_mode, kernels_are_forced, kernels_only, opened, repair, watchers
from genesis.core.graph.node import FREED, FUNCTION, LEAF, OP, AccumulateGrad, Edge, Node, Output, edge_key
from genesis.core.graph.plan import all_leaves, leading_to, planned
from genesis.core.graph.saved import PACKED
from genesis.core.graph.switches import ACTIVE, OVERRIDES
from genesis.core.graph.tracing import tracer, unwatched
from genesis.core.graph.version import SHARED, WRITES

if TYPE_CHECKING:
    from genesis.core.graph.tensor import Tensor

# How often CPython counts a reference: if a gradient that a user's function returned is held by nobody else, it need
# not be wrapped. Python 3.14 counts differently; there (and elsewhere) it always is.
refs: Callable[[Any], int] = (
    sys.getrefcount if sys.implementation.name == "cpython" and sys.version_info < (3, 14) else lambda _: 0
)


def owns(array: Any) -> bool:
    """Whether an array has memory of its own, or alone has all of some that was lent."""
    base = array.base
    if base.__class__ is not np.ndarray or array.__class__ is not np.ndarray:
        return base is None or base.__class__ in LENT
    whole = base.nbytes == array.nbytes and array.flags.c_contiguous
    return whole and base.base.__class__ in LENT and refs(base) == 3


_running: dict[int, _Task | None] = {}  # the innermost backward of each thread in which one runs


def current() -> _Task | None:
    """The innermost backward that runs in this thread, or None."""
    return _running.get(get_ident())


# (before, after): hooks around every node of every backward in this thread, see `genesis.autograd.graph`
around_node: ContextVar[tuple[tuple[Any, Any], ...]] = ContextVar("genesis_every_node", default=())


@contextmanager
def around_nodes(before: Any, after: Any) -> Iterator[None]:
    """Open a pair of `around_node`."""
    opened(around_node, (before, after))
    try:
        yield
    finally:
        closed(around_node, (before, after))


def run(
    roots: Sequence[Edge],
    seeds: Sequence[Tensor],
    *,
    keep_graph: bool = False,
    create_graph: bool = False,
    inputs: Sequence[Edge] | None = None,
    accumulate: bool = True,
    since: int = 0,
) -> list[Tensor | None]:
    """Differentiate from ``roots``; returns the gradients of ``inputs`` when ``accumulate`` is off. No node with a
    number below ``since`` runs.
    """
    setting = _setting() if ACTIVE or OVERRIDES else None
    if setting is not None:
        with setting:
            return run(
                roots,
                seeds,
                keep_graph=keep_graph,
                create_graph=create_graph,
                inputs=inputs,
                accumulate=accumulate,
                since=since,
            )
    mode, thread = grad_mode.get(), get_ident()
    outer = _running.get(thread)
    try:
        grad_mode.set(create_graph)
        task = _Task(roots, seeds, keep_graph, create_graph, inputs, accumulate, since)
        _running[thread] = task
        active = tracer.get() if ACTIVE else None
        if active is not None:
            active.differentiates(
                task.reached, task.reached if task.wanted is None else task.wanted, inputs, keep_graph
            )
        if active is not None and task.is_ours():
            unwatched(task.loop)
            if accumulate:
                unwatched(partial(deliver, task.finished, create_graph))
        else:
            task.loop()
            if accumulate:
                deliver(task.finished, create_graph)
        if not accumulate:
            task.captured.update({node: g._shared() if held else g for node, g, held in task.finished})  # type: ignore[union-attr]
        for callback in task.at_end:
            callback()
    finally:
        try:  # Ctrl-C may come between the two
            grad_mode.set(mode)
        finally:
            if outer is None:
                _running.pop(thread, None)
            else:
                _running[thread] = outer
    return (
        []
        if inputs is None or task.captured is None
        else [task.captured.get(edge_key(edge) if edge.__class__ is Output else edge) for edge in inputs]
    )


def _setting() -> AbstractContextManager[Any] | None:
    """What a backward switches off while it runs: autocast (rules compute in the precision of what they get), then users'
    functions instead of ops; None where that is done.
    """
    if ACTIVE and autocast.state() is not None:
        return autocast.restored(None)
    return kernels_only() if OVERRIDES and not kernels_are_forced() else None


def release(roots: Sequence[Edge]) -> None:
    """Free what the nodes below these edges saved, as a backward does that does not keep the graph."""
    for node in planned([edge.node if edge.__class__ is Output else edge for edge in roots])[1]:
        node._release()


def _tell(error: Exception, node: Node | None) -> None:
    """Add to an exception from a rule where its forward was called, if it does not say so itself."""
    for watch in watchers.get() if node is not None else ():
        watch.failed(node)
    site = None if node is None else node.where()
    if (
        node is None
        or site is None
        or str(site) in str(error)
        or any(str(site) in note for note in getattr(error, "__notes__", ()))
    ):
        return
    error.add_note(f"in the backward of {type(node).__name__}, called at {site}")
    calls = node._hooks.metadata.get("calls") if node._hooks is not None else None  # from anomaly mode
    if calls:
        import traceback

        error.add_note(
            "The forward of this node was called from (most recent call last):\n"
            + "".join(traceback.format_list(calls)).rstrip()
        )


class _Task:
    """One call of backward: the counts, the gradients in flight, and what is to be written at the end."""

    # Rare things are attributes of the instance; these are what an ordinary backward has.
    inputs: set[Any] | None = None
    wanted: set[Node] | None = None
    captured: dict[Any, Tensor | None] | None = None
    ends: Set[Node] = frozenset()  # nodes that are reached but do not run: their gradient is all that was asked for
    given: Any = None  # to the rule of the node that was visited last

    def __init__(
        self,
        roots: Sequence[Edge],
        seeds: Sequence[Tensor],
        keep_graph: bool,
        create_graph: bool,
        inputs: Sequence[Edge] | None,
        accumulate: bool,
        since: int,
    ) -> None:
        self.keep_graph, self.create_graph, self.accumulate = keep_graph, create_graph, accumulate
        self.like: Any = seeds[0] if seeds else None  # what zeros are made like
        self.grads: dict[Node, Any] = {}  # a tensor, or for a node with several outputs a list of them
        # leaves, their gradients, and whether others hold these or their memory
        self.finished: list[tuple[AccumulateGrad, Tensor, bool]] = []
        self.at_end: list[Callable[[], None]] = []
        self.number = number_of_run(sys._getframe(2))  # what it frees remembers it by this
        self.repair = repair.get()
        nodes: list[Node] = []
        for index, edge in enumerate(roots):
            nodes.append(edge.node if edge.__class__ is Output else edge)
            seed = seeds[index]
            if seed._counter is not SHARED:
                seed = seed._shared()
                if create_graph:  # what is saved of it must not see what its owner writes to it
                    seed._own_memory()
            self._add(edge, seed)
        self.owed, self.reached = planned(nodes)
        if inputs is not None:
            self.inputs, self.captured = {edge_key(edge) if edge.__class__ is Output else edge for edge in inputs}, {}
            if (
                since
                or accumulate
                or not all([node in self.inputs for node in self.reached if node._role is LEAF])
                or not all_leaves(inputs)
            ):
                self.wanted, running = leading_to(self.reached, self.inputs, since)
                if not accumulate:
                    self.ends = self.wanted - running
        self.ready = nodes if len(nodes) == 1 else [n for n in dict.fromkeys(nodes) if n not in self.owed]
        # hooks are called in the reverse order of the forward, as in PyTorch: they may take what the forward's left of a
        # module that is used several times from the end of a list
        self.in_order = False
        if HOOKED[0]:
            for node in self.reached:
                if node._hooks is not None and node._hooks is not SPECIAL and node._hooks.are_called:
                    self.in_order = True
                    break
        if self.in_order:
            self.ready.sort(key=Node._sequence_nr)

    def is_ours(self) -> bool:
        """Whether no code of the program runs: no Function, no hook, nothing that a hook has packed."""
        plain = [n._role is not FUNCTION and n._epoch != PACKED and n._hooks in (None, SPECIAL) for n in self.reached]
        return self.repair is None and not around_node.get() and all(plain)

    def loop(self) -> None:
        ready, grads, owed, wanted = self.ready, self.grads, self.owed, self.wanted
        keep_graph, finished, freed, in_order = self.keep_graph, self.finished, self.number, self.in_order
        plain = wanted is None and not self.create_graph and not around_node.get() and self.repair is None
        straight = LEAF if plain else None  # leaves that are done when their gradient comes, if nothing hangs on them
        node: Node | None = None
        try:
            while ready:
                node = ready.pop()
                g, role = grads.pop(node, None), node._role
                while node is not None:  # a chain of nodes is followed without going through the tables
                    if plain and g is not None and node._hooks is None:
                        if role is LEAF:
                            finished.append((node, g, False))  # type: ignore[arg-type]
                            break
                        before = WRITES[0]
                        if role is FUNCTION and node._epoch is before:  # `Context._pull`, written out: it saves 0.1 us
                            results = node._backward(g)  # type: ignore[attr-defined]
                            if (
                                results.__class__ is not tuple
                                or len(results) != len(node._edges)
                                or before is not WRITES[0]
                            ):
                                results = node._settled(results, before)  # type: ignore[attr-defined]
                        else:
                            results = node._pull(g)
                        if not keep_graph and node._saved and (role is FUNCTION or node._frees):
                            node._saved, node._epoch = FREED, freed
                    elif plain and role is LEAF and g is not None and self.inputs is None:
                        self._finish(node, node._hooks.before(node, g))  # type: ignore[union-attr, arg-type]
                        break
                    elif plain and node._hooks is SPECIAL and g is not None and self.inputs is None:  # saves 1 us
                        if node._outputs is not None:
                            g = materialize(node, g)
                        results = node._pull_special(g)
                        if not keep_graph:
                            self._free(node)
                    else:
                        results = self._visit(node, g)
                        g = self.given
                    following, index = None, -1
                    for edge in node._edges:
                        index += 1  # zip costs 0.25 us more
                        if edge is None:
                            continue
                        gx = results[index]
                        target = edge.node if edge.__class__ is Output else edge
                        left = owed.get(target) if owed else None
                        if gx is not None and (wanted is None or target in wanted):
                            try:
                                array = gx._array
                            except AttributeError:
                                raise node.no_tensor(edge, gx) from None
                            if array.shape != edge._shape or array.dtype is not edge._dtype:
                                gx = fit(node, edge, gx)
                                array = gx._array
                            to = target._role
                            if to is not OP:
                                # a function or a leaf may write to gx: copied, unless nobody else holds it or its array
                                held = not (
                                    (refs(gx) == 3 and refs(array) == 3 if role is FUNCTION
                                     else g.__class__ is not list and array is not g._array)
                                    and (array.base is None or owns(array))
                                )  # fmt: skip
                                if to is straight and left is None and (target._hooks is None or self.inputs is None):
                                    if target._hooks is None:
                                        finished.append((target, gx, held))  # type: ignore[arg-type]
                                    elif target._hooks.sees_sums_only:  # at once, as PyTorch does: an optimizer may
                                        self._finish(target, gx, held)  # type: ignore[arg-type]  # run in it
                                    else:
                                        self._finish(target, target._hooks.before(target, gx))  # type: ignore[arg-type]
                                    continue
                                if held:
                                    gx = gx._shared()
                            if left is None and following is None and edge is target and not in_order:
                                following, passed, next_role = edge, gx, to
                                continue
                            self._add(edge, gx)
                        if left is not None and left > 1:
                            owed[target] = left - 1
                            continue
                        if left is not None:
                            del owed[target]
                        if target._role is LEAF:  # at once, as PyTorch does: its hooks send it on its way
                            self._visit(target, grads.pop(target, None))
                        elif in_order:
                            insort(ready, target, key=Node._sequence_nr)
                        else:
                            ready.append(target)
                    node = following
                    if node is not None:
                        g, role = passed, next_role
        except Exception as error:
            _tell(error, node)
            raise

    def _visit(self, node: Node, g: Any) -> Sequence[Any]:
        """A node with hooks, several outputs, or requested inputs; or a leaf."""
        hooks = node._hooks if node._hooks is not SPECIAL else None
        idle = node in self.ends or (self.wanted is not None and node not in self.wanted)
        if g is not None and (idle or (node.is_leaf and not self.accumulate)):
            g = g if hooks is None else hooks.on_outputs(node, g)
            if self.captured is not None:
                self._capture(node, g)
            return [None] * len(node._edges)
        if self.inputs is not None and not self.accumulate:
            # as PyTorch does: what the hooks of a node that runs make of it is for that node alone
            self._capture(node, g)
        if hooks is not None and g is not None:
            g = hooks.before(node, g)
        if node.is_leaf:
            if g is not None:
                self._finish(node, g)  # type: ignore[arg-type]
            return ()
        if idle or (g is None and node._role is not FUNCTION):
            return [None] * len(node._edges)
        came = g
        if g is None:  # all that used its results gave None: a user's function is asked all the same, as PyTorch does
            g = self._nothing(node)
        if node._outputs is not None:
            g = materialize(node, g)
        watching = around_node.get()
        for before, _ in watching:
            if before is not None:
                before(node, tuple(g) if isinstance(g, list) else (g,))
        # others saw the gradient, or what comes of it: then nothing of it is taken for memory that nobody else holds
        self.given = g if hooks is None and not watching and self.repair is None else []
        results = node._pull_special(g)
        if self.repair is not None:
            results = self.repair(node, g, results)
        for _, after in reversed(watching):
            if after is not None:
                after(node, tuple(results), tuple(g) if isinstance(g, list) else (g,))
        if hooks is not None:
            if hooks.post and self.wanted is not None and node._role is OP:  # nobody asked for the others
                results = [
                    r if e is not None and (e.node if e.__class__ is Output else e) in self.wanted else None
                    for e, r in zip(node._edges, results, strict=True)
                ]
            if hooks.post:  # they see what goes on, without the dimensions of a broadcast
                results = [
                    r if e is None or getattr(r, "_array", None) is None else fit(node, e, r)
                    for e, r in zip(node._edges, results, strict=True)
                ]
            results = hooks.after(node, results, came)
        if not self.keep_graph:
            self._free(node)
        return results

    def _free(self, node: Node) -> None:
        node._release()
        if node._saved is FREED:
            node._epoch = self.number

    def _nothing(self, node: Node) -> Any:
        """What a function gets whose results got no gradient: zeros, or None if it asked for that."""
        zeros = getattr(node, "materialize_grads", True)
        if node._outputs is None:
            return self.like._zeros(node._shape, node._dtype) if zeros else None
        return [None if spec is None or not zeros else self.like._zeros(*spec) for spec in node._outputs]

    def will_reach(self, edges: Sequence[Edge]) -> int:
        """At how many of these edges a gradient arrives in this backward."""
        reached = set(self.reached) if self.wanted is None else self.wanted
        return sum((edge.node if isinstance(edge, Output) else edge) in reached for edge in edges)

    def _add(self, edge: Edge, gx: Tensor) -> None:
        if edge.__class__ is not Output:
            before = self.grads.get(edge)
            self.grads[edge] = gx if before is None else before + gx
            return
        slots = self.grads.setdefault(edge.node, [None] * len(edge.node._outputs or ()))
        before = slots[edge.index]
        slots[edge.index] = gx if before is None else before + gx

    def _capture(self, node: Node, g: Any) -> None:
        assert self.inputs is not None and self.captured is not None
        if node._outputs is None:
            if node in self.inputs:
                self.captured[node] = g
        elif g is not None:
            for index, part in enumerate(g):
                if (node, index) in self.inputs:
                    self.captured[node, index] = part

    def _finish(self, node: AccumulateGrad, g: Tensor, held: bool = False) -> None:
        if not self.accumulate or (self.inputs is not None and node not in self.inputs):
            return  # `_capture` has it
        if node._hooks is not None and (node._hooks.post_accumulate or node._hooks.post):
            deliver([(node, g, held)], self.create_graph)
            node._hooks.after_accumulation(node, g)
        else:
            self.finished.append((node, g, held))


def materialize(node: Node, g: list[Tensor | None]) -> list[Tensor | None]:
    """Zeros for the outputs that nothing used, unless the node asked for None."""
    for part in g:
        if part is None:
            break
    else:
        return g
    if not getattr(node, "materialize_grads", True):
        return g
    like = next(part for part in g if part is not None)
    assert node._outputs is not None
    return [
        like._zeros(*spec) if part is None and spec is not None else part
        for part, spec in zip(g, node._outputs, strict=True)
    ]


def fit(node: Node, edge: Edge, gx: Tensor) -> Tensor:
    """Sum a gradient back over broadcast axes and give it the dtype of the value it belongs to.

    Only shapes that broadcasting explains are summed; anything else is an error of the rule.
    """
    shape, want = gx._array.shape, edge._shape
    if shape != want:
        extra = len(shape) - len(want)
        explained = extra >= 0 and all(n in (1, m) for m, n in zip(shape[extra:], want, strict=True))
        if not explained or not (node.sums_broadcasts or node.may_reduce(shape, want)):
            raise ShapeError(node.shape_message(edge, shape))
        axes = tuple(range(extra)) + tuple(i + extra for i, n in enumerate(want) if n == 1 != shape[i + extra])
        gx = gx.sum(axes).reshape(want) if axes else gx.reshape(want)
    if gx._array.dtype is not edge._dtype:
        if gx._array.dtype.kind == "c" and edge._dtype.kind != "c":
            gx = gx.real
        gx = gx.to(edge._dtype)
    return gx
