"""Compiled functions: they are run once as they are, traced at the next call, and then run as one call."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import replace
from threading import RLock
from types import MethodType
from typing import Any

import numpy as np

from genesis.base.errors import GenesisError, GraphError, UnsupportedError, message
from genesis.base.pytree import tree_flatten
from genesis.core.graph.site import warn_user
from genesis.core.graph.tracing import Dependable, depends
from genesis.jit.binding import Graph
from genesis.jit.compiling.effects import Effect, Stopped, Watch
from genesis.jit.compiling.entries import Entry, aside, key_of
from genesis.jit.compiling.joint import Decided, Joint, JointTracer, divided, undivided
from genesis.jit.compiling.reasons import Reasons, difference
from genesis.jit.compiling.text import ELSEWHERE, MISS
from genesis.jit.guards import Guards, Unchanged
from genesis.kernels.llvm import loops

LIMIT = 8  # graphs of one function
WAYS = 4  # graphs for calls that differ in what Python decided
ATTEMPTS = 3  # at tracing a call that sets something up
watched: ContextVar[bool] = ContextVar("genesis_compile_watched", default=False)
compiling: ContextVar[bool] = ContextVar("genesis_compiling", default=False)
every: weakref.WeakSet[CompiledFunction] = weakref.WeakSet()
stance = ["default"]  # what `genesis.compiler.set_stance` says


class CompiledFunction:
    """A function that `genesis.compile` made.

    Attributes:
        original: the function as it was
    """

    def __init__(self, original: Callable[..., Any], fullgraph: bool = False, enabled: bool = True) -> None:
        self.original, self.fullgraph, self.enabled = original, fullgraph, enabled
        functools.update_wrapper(self, original, updated=())
        self.reset()
        every.add(self)

    def reset(self) -> None:
        """Forget all graphs: the function is traced again when it is called."""
        self._lock = RLock()
        self._recent: tuple[Entry, ...] = ()
        self._entries: dict[Any, tuple[Entry, ...]] = {}
        self._left: dict[Any, int] = {}  # calls that are not compiled, by key: how often that was tried
        self._codes: set[Any] = set()  # code without effects
        self._started = self._off = False
        self.reasons = Reasons(getattr(self.original, "__name__", type(self.original).__name__))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for entry in self._recent:
            result = entry.call(False, args, kwargs)
            if result is not MISS and result is not ELSEWHERE:
                return result
        return self._otherwise(args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        return CompiledFunction, (self.original, self.fullgraph, self.enabled)

    def __deepcopy__(self, memo: Any) -> CompiledFunction:
        return CompiledFunction(deepcopy(self.original, memo), self.fullgraph, self.enabled)

    def __repr__(self) -> str:
        return f"<compiled {self.reasons.name}: {len(self._recent)} graphs>"

    def explain(self) -> str:
        """What was compiled and what was not, and why; and why it was traced again."""
        return self.reasons.text(self._recent)

    # ---- calls that no written function knows

    def _otherwise(self, args: Any, kwargs: Any) -> Any:
        if not self.enabled or self._off or aside() or watched.get() or stance[0] == "force_eager":
            return self.original(*args, **kwargs)
        leaves, structure = tree_flatten((args, kwargs))
        try:
            key = key_of(leaves, structure)
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
            return self._new(key, leaves, args, kwargs)

    def _new(self, key: Any, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """A call that is to be compiled."""
        wrong = next((x for x in leaves if isinstance(x, np.ndarray)), None)
        if wrong is not None:
            return self._not_compiled(key, "an argument is a NumPy array: pass a tensor", args, kwargs)
        if not self._started:
            return self._first(key, args, kwargs)
        if len([e for e in self._entries.get(key, ()) if e.decided.answers]) >= WAYS:
            return self._not_compiled(key, f"values that Python asks for led {WAYS} ways", args, kwargs)
        if len(self._recent) >= LIMIT:
            return self._not_compiled(key, self._full(key), args, kwargs)
        self.reasons.retraced(key, [e.why_not() for e in self._entries.get(key, ())], list(self._entries))
        try:
            entry = self._entry(leaves, args, kwargs)
        except Stopped:
            return self._watched(key, args, kwargs)
        except GenesisError as error:
            if "that it made while it was traced" in str(error) and self._left.get(key, 0) + 1 < ATTEMPTS:
                self._left[key] = self._left.get(key, 0) + 1
                return self.original(*args, **kwargs)
            return self._not_compiled(key, str(error), args, kwargs, error)
        except Exception as error:
            return self._not_compiled(key, f"{type(error).__name__}: {error}", args, kwargs, error)
        self._entries[key] = (entry, *self._entries.get(key, ()))
        self._recent = (entry, *self._recent)
        result = entry.careful(args, kwargs)
        return self.original(*args, **kwargs) if result is MISS else result

    def _first(self, key: Any, args: Any, kwargs: Any) -> Any:
        """The first call of all: as it is. It sets up what is set up once, and shows what the function does besides."""
        if not loops.available():
            text = f"{self.reasons.name} is not compiled, it runs as it is: there is no llvmlite"
            warn_user(message("compile", text, hint='pip install "genesis-dl[jit]"'))
            self._off = True
            return self.original(*args, **kwargs)
        result = self._watched(key, args, kwargs)
        self._started = True
        return result

    def _watched(self, key: Any, args: Any, kwargs: Any) -> Any:
        """A call as it is, watched for effects."""
        watch, token = Watch(), watched.set(True)
        try:
            with watch:
                result = self.original(*args, **kwargs)
        finally:
            watched.reset(token)
        if watch.effect is not None:
            self._leave(key, self._effect(watch.effect))
            self._off = True
        self._codes |= watch.codes
        return result

    def _effect(self, effect: Effect) -> str:
        return f"{effect}: a compiled call would not do it again"

    def _entry(self, leaves: list[Any], args: Any, kwargs: Any) -> Entry:
        """Trace and compile."""
        watch = Watch(self._codes)
        token = compiling.set(True)
        try:
            traced, decided = self._traced(watch, args, kwargs)
        finally:
            compiling.reset(token)
        return Entry(traced, self.original, leaves, decided)

    def _traced(self, watch: Watch, args: Any, kwargs: Any) -> tuple[Graph | Joint, Decided]:
        tracer = JointTracer(self.reasons.name, Guards(self.original))

        def run(*args: Any, **kwargs: Any) -> Any:
            for thing in (getattr(self.original, "__self__", None), *tree_flatten((args, kwargs))[0]):
                if isinstance(thing, Dependable):
                    depends(thing)
            with watch:
                result = self.original(*args, **kwargs)
                watch.settle()
            return result

        graph = tracer.run(run, args, kwargs)
        if watch.effect is not None:
            raise GraphError(self._effect(watch.effect))
        guards = (*graph.binding.guards, *_read_guards(watch))
        graph = Graph(graph.program, replace(graph.binding, guards=guards))
        if not tracer.outputs:
            return undivided(tracer, graph)
        joint = divided(tracer, graph)
        if any(leaf.kind == "argument" for leaf in joint.forward.program.leaves):
            text = "the .grad of an argument changes, and gradients flow through the function"
            raise UnsupportedError(message("compile", text))
        return joint, joint.decided

    # ---- what is not compiled

    def _full(self, key: Any) -> str:
        what = difference(list(self._entries)[-1], key)
        return f"it was traced {LIMIT} times, for {LIMIT} kinds of calls, and {what}"

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


def _read_guards(watch: Watch) -> list[Unchanged]:
    """What the function read of objects that are neither modules nor optimizers."""
    reads = watch.reads
    if not reads:
        return []

    def now() -> dict[str, Any]:
        return {text: _item(held, name) for held, name, _, text in reads}

    guard = Unchanged("", now)
    guard.state = {text: value for _, _, value, text in reads}
    guard.answers = lambda: [(held, (name,)) for held, name, _, _ in reads]
    guard.settle()
    return [guard] if guard.state else []


def _item(held: Any, name: Any) -> Any:
    if isinstance(held, list):
        return held[name] if -len(held) <= name < len(held) else None
    return held.get(name)
