"""Compiled functions: they are traced at their first call, or run once as they are and traced at the next, and then run
as one call.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from copy import deepcopy
from types import MethodType
from typing import Any

import numpy as np

from genesis.base import collector
from genesis.base.errors import GenesisError, GraphError, message
from genesis.base.locks import object_lock
from genesis.base.pytree import tree_flatten
from genesis.core.graph.site import warn_user
from genesis.jit.compiling.effects import Watch
from genesis.jit.compiling.entries import Entry, aside, only_numbers
from genesis.jit.compiling.library import told_of
from genesis.jit.compiling.reasons import Reasons
from genesis.jit.compiling.stops import Leaked, Stopped
from genesis.jit.compiling.text import ELSEWHERE, MISS
from genesis.jit.compiling.told import Told
from genesis.jit.compiling.tracing import Tracing, not_again
from genesis.jit.compiling.values import HostValue
from genesis.kernels.llvm import loops

LIMIT = 8  # graphs of one function
WAYS = 4  # graphs for calls that differ in what Python decided
ATTEMPTS = 3  # at tracing a call that sets something up
_MODE = 2  # where the mode is in a key
ONCE = (  # maybe not at the next call
    "that it made while it was traced",
    "only begins in this call",
    "the .grad of a tensor from outside is set",
    "is set to something else at",
    "is not done again: the result is kept",
)
watched: ContextVar[bool] = ContextVar("genesis_compile_watched", default=False)
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
        self._failed: dict[Any, int] = {}  # by mode: of how many kinds of calls that could not be
        self._started = self._off = False
        name = self.name or getattr(self.original, "__name__", type(self.original).__name__)
        self.reasons = Reasons(name, self.original)
        self._tracing = Tracing(name, self.original, self.fullgraph)

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
            key = self._tracing.key(leaves, structure)
            entries = self._entries.get(key, ())
        except TypeError:  # not hashable
            return self._not_compiled(None, "an argument cannot be hashed", args, kwargs)
        for entry in entries:
            result = entry.careful(args, kwargs)
            if result is not MISS:
                return result
        if self._is_left(key) or (self._recent and stance[0] == "eager_on_recompile"):
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
            before = self._recent, dict(self._entries)
            try:
                return self._new(key, leaves, args, kwargs)
            finally:
                if self._tracing.forget_unused():  # the call did not get there: its graph is for one that does
                    self._recent, self._entries = before

    def _is_left(self, key: Any) -> bool:
        """Whether a call that no graph is for runs as it is, for that has been said: of its kind, or of so many that there
        would be no end of them.
        """
        several = self._failed.get(key[_MODE], 0) >= max(self.limit, 1) and not self.fullgraph
        return several or self._left.get(key, 0) >= ATTEMPTS

    def _changing(self, key: Any, leaves: list[Any], structure: Any) -> Any:
        """See which numbers are other ones than in the traces before: the next one asks for them. Returns the key."""
        for entry in [e for known in self._entries.get(key, ()) for e in known.moved()]:
            self._tracing.ask_for(entry)
        for known in self._entries:
            for i in only_numbers(known, key)[:1]:
                self._tracing.ask_for_argument(structure, i, type(leaves[i]))
        return self._tracing.key(leaves, structure)

    def _new(self, key: Any, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """A call that is to be compiled."""
        if any([isinstance(x, np.ndarray) for x in leaves]):
            return self._not_compiled(key, "an argument is a NumPy array: pass a tensor", args, kwargs)
        if any([isinstance(x, Iterator) for x in leaves]):
            return self._not_compiled(key, "an argument is an iterator: a trace would take from it", args, kwargs)
        if not self._started:
            return self._first(key, leaves, args, kwargs)
        if len([e for e in self._entries.get(key, ()) if e.decided.ways]) >= WAYS:
            return self._not_compiled(key, f"values that Python asks for led {WAYS} ways", args, kwargs)
        if len(self._recent) >= self.limit:
            self._failed[key[_MODE]] = max(self.limit, 1)
            return self._not_compiled(key, self._full(key), args, kwargs)
        self.reasons.retraced(key, [e.why_not() for e in self._entries.get(key, ())][:1], list(self._entries))
        try:
            with collector.waiting():
                key, entry = self._tracing.with_numbers(key, leaves, args, kwargs)
        except Stopped as stop:
            return self._stopped(stop, key, args, kwargs)
        except GenesisError as error:
            if any([text in str(error) for text in ONCE]) and self._left.get(key, 0) + 1 < ATTEMPTS:
                self._left[key] = self._left.get(key, 0) + 1
                return self.original(*args, **kwargs)
            return self._fails(key, str(error), args, kwargs, error)
        except SystemExit:  # the call does what comes before it, and ends the same way
            return self.original(*args, **kwargs)
        except Exception as error:
            return self._fails(key, f"{type(error).__name__}: {error}", args, kwargs, error)
        return self._added(key, entry, args, kwargs)

    def _added(self, key: Any, entry: Entry, args: Any, kwargs: Any) -> Any:
        """The first call of a new graph."""
        self._entries[key] = (entry, *self._entries.get(key, ()))
        self._recent = (entry, *self._recent)
        result = entry.careful(args, kwargs)
        return self.original(*args, **kwargs) if result is MISS else result

    def _first(self, key: Any, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """The first call of all. Where it sets up what is set up once, or does what only a call as it is can show, it
        runs as it is, and the next one is compiled.
        """
        if not loops.available():
            text = (
                f"{self.reasons.name} is not compiled, it runs as it is: there is no llvmlite, or one older than 0.45"
            )
            warn_user(message("compile", text, hint='pip install "genesis-dl[jit]"'))
            self._off = True
            return self.original(*args, **kwargs)
        try:
            with collector.waiting():
                entry = self._tracing.entry(leaves, args, kwargs, first=True)
        except (Exception, Stopped, Leaked, SystemExit):
            result = self._watched(key, args, kwargs)
            self._started = True
            return result
        self._started = True
        self.reasons.retraced(key, [], [])
        return self._added(key, entry, args, kwargs)

    def _watched(self, key: Any, args: Any, kwargs: Any) -> Any:
        """A call as it is, watched for effects."""
        watch, token = Watch(), watched.set(True)
        watch.seen = self._tracing.taken.seen
        try:
            with told_of(), watch:
                result = self.original(*args, **kwargs)
        finally:
            watched.reset(token)
        if watch.effect is not None and self.fullgraph:
            self._leave(key, not_again(watch.effect))
        self._tracing.taken.learn(watch)
        if watch.effect is not None and not all(
            [self._tracing.taken.take_one(lines) for lines in watch.effects.values()]
        ):
            self._leave(key, not_again(watch.effect))
            self._off = True
        return result

    def _stopped(self, stop: Stopped, key: Any, args: Any, kwargs: Any) -> Any:
        """The function does something that Python cannot do apart; or it runs code that was not looked at before."""
        (watch,) = stop.args
        if watch.unknown:
            self._tracing.taken.met(watch.not_looked_at)
            return self._watched(key, args, kwargs)
        self._leave(key, not_again(watch.effect))
        self._off = True
        return self.original(*args, **kwargs)

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

    def _fails(self, key: Any, reason: str, args: Any, kwargs: Any, error: Exception) -> Any:
        """A trace has failed: if others do as well, calls with other arguments are not traced any more."""
        self._failed[key[_MODE]] = self._failed.get(key[_MODE], 0) + 1
        return self._not_compiled(key, reason, args, kwargs, error)

    def _leave(self, key: Any, reason: str, error: Exception | None = None) -> None:
        name, reason = self.reasons.name, reason.replace(HostValue.__name__, "what Python gives anew at each call")
        if self.fullgraph:
            raise GraphError(message("compile", f"{name} cannot be one graph: {reason}")) from error
        self._left[key] = ATTEMPTS
        if self.reasons.refused(reason):
            warn_user(f"compile: {name} is not compiled, it runs as it is: {reason}")
