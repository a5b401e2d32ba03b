"""Compiled functions: they are traced at their first call, or run once as they are and traced at the next, and then run
as one call.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import replace
from types import MethodType
from typing import Any

import numpy as np

from genesis.base import collector, dtypes
from genesis.base.device import get_default_device, set_default_device
from genesis.base.errors import GenesisError, GraphError, UnsupportedError, message
from genesis.base.locks import object_lock
from genesis.base.pytree import tree_flatten, tree_unflatten
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.site import warn_user
from genesis.core.graph.tracing import Dependable, depends
from genesis.jit.binding import Graph
from genesis.jit.compiling.checks import Given
from genesis.jit.compiling.division import divided, undivided
from genesis.jit.compiling.effects import Watch
from genesis.jit.compiling.entries import Entry, aside, key_of, only_float
from genesis.jit.compiling.granted import granted, leave_changes
from genesis.jit.compiling.hosts import containers_in, within
from genesis.jit.compiling.joint import Decided, Joint, JointTracer
from genesis.jit.compiling.leaves import NotKept
from genesis.jit.compiling.reasons import Reasons
from genesis.jit.compiling.statements import rewritten
from genesis.jit.compiling.stops import Anew, Conflict, Effect, Leaked, Moving, Stopped
from genesis.jit.compiling.surroundings import changed, surroundings
from genesis.jit.compiling.taken import Taken
from genesis.jit.compiling.text import ELSEWHERE, MISS
from genesis.jit.compiling.told import Told
from genesis.jit.compiling.unknown import refuse_unnamed, slots_of, unknown
from genesis.jit.compiling.values import ValueNeeded
from genesis.jit.guards import Guards
from genesis.jit.numbers import Entry as NumberEntry
from genesis.jit.numbers import StillFloat, read_by
from genesis.jit.program import Program
from genesis.kernels.llvm import loops

LIMIT = 8  # graphs of one function
WAYS = 4  # graphs for calls that differ in what Python decided
ATTEMPTS = 3  # at tracing a call that sets something up
ONCE = (  # maybe not at the next call
    "that it made while it was traced",
    "the .grad of a tensor from outside is set",
    "is set to something else at",
    "is not done again: the result is kept",
)
STATEMENTS = 24  # that Python does at each call
watched: ContextVar[bool] = ContextVar("genesis_compile_watched", default=False)
compiling: ContextVar[bool] = ContextVar("genesis_compiling", default=False)
every: weakref.WeakSet[CompiledFunction] = weakref.WeakSet()
stance = ["default"]  # what `genesis.compiler.set_stance` says


class CompiledFunction:
    """A function that `genesis.compile` made.

    Attributes:
        original: the function as it was
    """

    def __init__(
        self,
        original: Callable[..., Any],
        fullgraph: bool = False,
        enabled: bool = True,
        name: str | None = None,
        limit: int | None = None,
    ) -> None:
        self.original, self.fullgraph, self.enabled, self.name = original, fullgraph, enabled, name
        self.limit = LIMIT if limit is None else limit
        functools.update_wrapper(self, original, updated=())
        self.reset()
        every.add(self)

    def reset(self) -> None:
        """Forget all graphs: the function is traced again when it is called."""
        self._lock = object_lock(reentrant=True)
        self._recent: tuple[Entry, ...] = ()
        self._entries: dict[Any, tuple[Entry, ...]] = {}
        self._left: dict[Any, int] = {}  # calls that are not compiled, by key: how often that was tried
        self._started = self._off = False
        self._read: dict[Any, NumberEntry] = {}  # floats of the outside that graphs ask for, for they change
        self._read_arguments: set[Any] = set()  # those among the arguments: (structure, index)
        self._taken = Taken()
        self._keeps = not self.fullgraph  # whether what computes with numbers is kept, too
        self._constant: set[Any] = set()  # those of both that no graph can ask for
        name = self.name or getattr(self.original, "__name__", type(self.original).__name__)
        self.reasons = Reasons(name, self.original)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for entry in self._recent:
            result = entry.call(False, args, kwargs)
            if result is not MISS and result is not ELSEWHERE:
                return result
        return self._otherwise(args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        return CompiledFunction, (self.original, self.fullgraph, self.enabled, self.name, self.limit)

    def __deepcopy__(self, memo: Any) -> CompiledFunction:
        original = deepcopy(self.original, memo)
        return CompiledFunction(original, self.fullgraph, self.enabled, self.name, self.limit)

    def __repr__(self) -> str:
        return f"<compiled {self.reasons.name}: {len(self._recent)} graphs>"

    def explain(self, *args: Any, times: bool = False, **kwargs: Any) -> Told:
        """What was compiled and what was not, and why, and why it was traced again; for each graph what it takes for
        granted, and its phases: chunks, bytes, operations, lines, and why each is one.

        Args:
            times: measure the phases of a call with these arguments, on copies of what it takes

        Returns:
            text, which has pictures in a notebook (memory, times, roofline), and as ``steps`` all of that as data: each
            kernel as loops, in Python, as LLVM code and as the processor's

        >>> import genesis
        >>> double = genesis.compile(lambda x: x * 2)
        >>> y = double(genesis.ones(3))
        >>> print(double.explain().splitlines()[0])
        <lambda>: 1 graphs, 1 traces
        """
        return Told(self.reasons.text(self._recent), self._recent, (args, kwargs) if times else None)

    # ---- calls that no written function knows

    def _otherwise(self, args: Any, kwargs: Any) -> Any:
        if not self.enabled or self._off or aside() or watched.get() or stance[0] == "force_eager":
            return self.original(*args, **kwargs)
        leaves, structure = tree_flatten((args, kwargs))
        try:
            key = key_of(leaves, structure, self._read_arguments)
            entries = self._entries.get(key, ())
        except TypeError:  # not hashable
            return self._not_compiled(None, "an argument cannot be hashed", args, kwargs)
        for entry in entries:
            result = entry.careful(args, kwargs)
            if result is not MISS:
                return result
        if self._left.get(key, 0) >= ATTEMPTS or (self._recent and stance[0] == "eager_on_recompile"):
            return self.original(*args, **kwargs)
        if self._recent and stance[0] == "fail_on_recompile":
            raise GraphError(message("compile", f"{self.reasons.name} would be traced again, the stance refuses that"))
        with self._lock:
            key = self._changing(key, leaves, structure)
            for entry in self._entries.get(key, ()):
                if not any([entry is tried for tried in entries]):  # another thread has traced meanwhile
                    result = entry.careful(args, kwargs)
                    if result is not MISS:
                        return result
            return self._new(key, leaves, args, kwargs)

    def _changing(self, key: Any, leaves: list[Any], structure: Any) -> Any:
        """See which floats are other ones than in the traces before: the next one asks for them. Returns the key."""
        for entry in [e for known in self._entries.get(key, ()) for e in known.moved()]:
            if entry.identity() not in self._constant:
                self._read.setdefault(entry.identity(), entry)
        for known in self._entries:
            i = only_float(known, key)
            if i is not None and (structure, i) not in self._constant:
                self._read_arguments.add((structure, i))
        return key_of(leaves, structure, self._read_arguments) if self._read_arguments else key

    def _new(self, key: Any, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """A call that is to be compiled."""
        wrong = next((x for x in leaves if isinstance(x, np.ndarray)), None)
        if wrong is not None:
            return self._not_compiled(key, "an argument is a NumPy array: pass a tensor", args, kwargs)
        if not self._started:
            return self._first(key, leaves, args, kwargs)
        if len([e for e in self._entries.get(key, ()) if e.decided.answers]) >= WAYS:
            return self._not_compiled(key, f"values that Python asks for led {WAYS} ways", args, kwargs)
        if len(self._recent) >= self.limit:
            return self._not_compiled(key, self._full(key), args, kwargs)
        self.reasons.retraced(key, [e.why_not() for e in self._entries.get(key, ())][:1], list(self._entries))
        try:
            with collector.waiting():
                key, entry = self._with_numbers(key, leaves, args, kwargs)
        except Stopped as stop:
            return self._stopped(stop, key, args, kwargs)
        except GenesisError as error:
            if any([text in str(error) for text in ONCE]) and self._left.get(key, 0) + 1 < ATTEMPTS:
                self._left[key] = self._left.get(key, 0) + 1
                return self.original(*args, **kwargs)
            return self._not_compiled(key, str(error), args, kwargs, error)
        except SystemExit:  # the call does what comes before it, and ends the same way
            return self.original(*args, **kwargs)
        except Exception as error:
            return self._not_compiled(key, f"{type(error).__name__}: {error}", args, kwargs, error)
        return self._added(key, entry, args, kwargs)

    def _added(self, key: Any, entry: Entry, args: Any, kwargs: Any) -> Any:
        """The first call of a new graph."""
        self._entries[key] = (entry, *self._entries.get(key, ()))
        self._recent = (entry, *self._recent)
        result = entry.careful(args, kwargs)
        return self.original(*args, **kwargs) if result is MISS else result

    def _with_numbers(self, key: Any, leaves: list[Any], args: Any, kwargs: Any) -> tuple[Any, Entry]:
        """A graph that asks for the floats that change, as far as that can be; and its key."""
        while self._read or self._read_arguments:
            try:
                return key, self._entry(leaves, args, kwargs)
            except Leaked as leak:
                constant = leak.args[0] & set(self._read)
            except Exception:
                constant = set()
            self._constant |= constant or (set(self._read) | self._read_arguments)
            self._read = {at: entry for at, entry in self._read.items() if at not in self._constant}
            self._read_arguments -= self._constant
            key = key_of(leaves, key[0], self._read_arguments)
        return key, self._entry(leaves, args, kwargs)

    def _first(self, key: Any, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """The first call of all. Where it sets up what is set up once, or does what only a call as it is can show, it
        runs as it is, and the next one is compiled.
        """
        if not loops.available():
            text = f"{self.reasons.name} is not compiled, it runs as it is: there is no llvmlite"
            warn_user(message("compile", text, hint='pip install "genesis-dl[jit]"'))
            self._off = True
            return self.original(*args, **kwargs)
        try:
            with collector.waiting():
                entry = self._entry(leaves, args, kwargs)
        except (Exception, Stopped, SystemExit):
            result = self._watched(key, args, kwargs)
            self._started = True
            return result
        self._started = True
        self.reasons.retraced(key, [], [])
        return self._added(key, entry, args, kwargs)

    def _watched(self, key: Any, args: Any, kwargs: Any) -> Any:
        """A call as it is, watched for effects."""
        watch, token = Watch(), watched.set(True)
        watch.seen = self._taken.seen
        try:
            with watch:
                result = self.original(*args, **kwargs)
        finally:
            watched.reset(token)
        if watch.effect is not None and self.fullgraph:
            self._leave(key, self._effect(watch.effect))
        self._taken.learn(watch)
        if watch.effect is not None and not all([self._taken.take_one(lines) for lines in watch.effects.values()]):
            self._leave(key, self._effect(watch.effect))
            self._off = True
        return result

    def _stopped(self, stop: Stopped, key: Any, args: Any, kwargs: Any) -> Any:
        """The function does something that Python cannot do apart; or it runs code that was not looked at before."""
        (watch,) = stop.args
        if watch.unknown:
            return self._watched(key, args, kwargs)
        self._leave(key, self._effect(watch.effect))
        self._off = True
        return self.original(*args, **kwargs)

    def _effect(self, effect: Effect) -> str:
        return f"{effect}: a compiled call would not do it again"

    def _entry(self, leaves: list[Any], args: Any, kwargs: Any) -> Entry:
        """Trace and compile; what Python has to do at each call is taken out of the function, statement by statement."""
        given = self._given(leaves, tree_flatten((args, kwargs))[1])
        for _ in range(STATEMENTS):
            watch, token = self._taken.watch(), compiling.set(True)
            try:
                with rewritten(self._taken.statements.values()):
                    traced, decided = self._traced(watch, args, kwargs, given)
                    graph = traced.forward if isinstance(traced, Joint) else traced
                    if slots := slots_of(decided.calls, graph.binding, self._read):
                        watch = self._taken.watch()
                        with unknown(slots):
                            self._traced(watch, args, kwargs, given)
                if decided.calls and not graph.program.calls:
                    raise NotKept(f"Python does all of it, at {decided.calls[0].title}")
                if not self._started and _holds_once(graph.program):
                    raise NotKept("it asks for gradients that are there from the second call on")
                return Entry(traced, self.original, leaves, decided, given)
            except Moving as moving:
                held, name, text = moving.args
                entry = NumberEntry(held, (name,), text)
                if entry.identity() in self._constant or entry.identity() in self._read:
                    raise NotKept(f"{text} is read and changed") from None
                self._read[entry.identity()] = entry
            except (Stopped, ValueNeeded, Conflict, Anew) as error:
                if isinstance(error, Stopped):
                    error.args = (watch,)
                if watch.unknown or self.fullgraph or not self._take(watch, error):
                    if isinstance(error, Conflict):
                        raise NotKept(f"{error.args[1]} is read, which a statement changes that Python does") from None
                    if isinstance(error, Anew):
                        raise NotKept(
                            f"{error.args[1].name} is made anew at each call, a statement changes it"
                        ) from None
                    raise
            finally:
                compiling.reset(token)
        raise NotKept(f"Python does more than {STATEMENTS} things")

    def _take(self, watch: Watch, error: BaseException) -> bool:
        """Have Python do at each call what an error comes from; whether that can be."""
        if self._taken.take(watch, error):
            return True
        if self._keeps and isinstance(error, ValueNeeded):
            self._keeps = False  # graphs hold for the numbers then
            return True
        return False

    def _given(self, leaves: list[Any], structure: Any) -> dict[int, Given]:
        """The floats among the arguments that the graph is to ask for."""
        holder = dict[int, float]()
        read = [i for i, x in enumerate(leaves) if type(x) is float and (structure, i) in self._read_arguments]
        holder.update({i: leaves[i] for i in read})
        return {i: Given(holder, i) for i in read}

    def _traced(self, watch: Watch, args: Any, kwargs: Any, given: dict[int, Given]) -> tuple[Graph | Joint, Decided]:
        guards, read = Guards(self.original), tuple(self._read.values())
        guards.names.leave(read)
        for one in self._taken.statements.values():
            guards.names.leave_named([f"{name}, which {one.code.co_name} captures," for name in one.only_kept()])
        tracer, watch.numbers = JointTracer(self.reasons.name, guards), bool(read or given)
        tracer.watch = watch
        tracer.values.keeps_statements, watch.changed = self._keeps, tracer.hosts.kept

        def run(*args: Any, **kwargs: Any) -> Any:
            if given:
                args, kwargs = _with_numbers(tracer, args, kwargs, given)
            tracer.hosts.containers = [*containers_in(args), *[c for x in kwargs.values() for c in containers_in(x)]]
            watch.given = {id(x) for x in within((args, kwargs))}
            for thing in (getattr(self.original, "__self__", None), *tree_flatten((args, kwargs))[0]):
                if isinstance(thing, Dependable):
                    depends(thing)
            opened.enter_context(watch)
            with read_by(tracer, read), tracer.hosts.standing_in(), _same_modes():
                result = self.original(*args, **kwargs)
                watch.settle()
            return result

        kept = surroundings([(self.reasons.name, self.original), ("an argument", (args, kwargs))])
        with ExitStack() as opened:
            try:
                graph = tracer.run(run, args, kwargs)
            except BaseException:
                watch.forget_cached()
                changed(kept)
                raise
        if titles := changed(kept):
            raise GraphError(f"{titles[0]} changes, and nothing shows where: a compiled call would not do it again")
        if watch.effect is not None:
            raise GraphError(self._effect(watch.effect))
        refuse_unnamed(tracer.hosts.calls, watch)
        leave_changes(graph, tracer, watch)
        taken = (
            *graph.binding.guards,
            *granted(watch, graph),
            *[StillFloat(entry) for entry in read],
        )
        graph = Graph(graph.program, replace(graph.binding, guards=taken))
        if not tracer.outputs:
            _refuse_arguments(graph.program)
            return undivided(tracer, graph)
        joint = divided(tracer, graph)
        _refuse_arguments(joint.forward.program)
        return joint, joint.decided

    # ---- what is not compiled

    def _full(self, key: Any) -> str:
        known = [reason for e in self._entries.get(key, ()) for reason in e.why_not()]
        what = (
            known[0]
            if known
            else self.reasons.difference(list(self._entries)[-1], key)
            if self._entries
            else "that is the limit"
        )
        return f"it was traced {self.limit} times, for {self.limit} kinds of calls, and {what}"

    def _not_compiled(self, key: Any, reason: str, args: Any, kwargs: Any, error: Exception | None = None) -> Any:
        """Run a call as it is; the first time with a warning."""
        self._leave(key, reason, error)
        return self.original(*args, **kwargs)

    def _leave(self, key: Any, reason: str, error: Exception | None = None) -> None:
        name = self.reasons.name
        if self.fullgraph:
            raise GraphError(message("compile", f"{name} cannot be one graph: {reason}")) from error
        self._left[key] = ATTEMPTS
        if self.reasons.refused(reason):
            warn_user(f"compile: {name} is not compiled, it runs as it is: {reason}")


@contextmanager
def _same_modes() -> Iterator[None]:
    """Refuse a function that leaves other modes behind than there were, and set them back: a call would not set them."""
    modes = grad_mode.get(), dtypes.get_default_dtype(), get_default_device()
    try:
        yield
        if modes != (grad_mode.get(), dtypes.get_default_dtype(), get_default_device()):
            text = "it sets whether gradients are recorded, the default dtype or the default device"
            raise GraphError(message("compile", text, hint="set it in a with block, or outside"))
    finally:
        grad_mode.set(modes[0])
        dtypes.set_default_dtype(modes[1])
        set_default_device(modes[2])


def _holds_once(program: Program) -> bool:
    """Whether the graph of a first call holds for no other: it asked for a gradient that was not there, and is now."""
    begun = {w.index for w in program.writes if w.kind in ("grad", "new grad")}
    return any([leaf.present is False and i in begun for i, leaf in enumerate(program.leaves)])


def _refuse_arguments(program: Program) -> None:
    """Calls know no gradients of arguments."""
    if any(leaf.kind == "argument" for leaf in program.leaves):
        raise UnsupportedError(message("compile", "the .grad of an argument is looked at, or changes"))


def _with_numbers(tracer: JointTracer, args: Any, kwargs: Any, given: dict[int, Given]) -> Any:
    """The arguments, with numbers of the host for some floats."""
    leaves, structure = tree_flatten((args, kwargs))
    for i, where in given.items():
        leaves[i] = tracer.reads(NumberEntry(where.holder, (where.index,), f"argument {i}"))
    return tree_unflatten(leaves, structure)
