"""Gradient modes: who records, in which thread or task, and how to say so.

The grad mode lives in a context variable, so every thread and every asyncio task has its own. What all threads share is
in `core/graph/switches.py`. A mode is changed so that Ctrl-C leaves none on that is not undone: CPython looks for
signals when a call returns from C or a function begins, so a change and the note of it have no call between them.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, TypeVar

from genesis.base.errors import ArgumentError, message
from genesis.core.graph.escapes import escape
from genesis.core.graph.lost import Block, block_closed, block_opened, switched_on
from genesis.core.graph.switches import ACTIVE as ACTIVE
from genesis.core.graph.switches import ESCAPES as ESCAPES
from genesis.core.graph.switches import LEVELS as LEVELS
from genesis.core.graph.tracing import tracer

F = TypeVar("F", bound=Callable[..., Any])

grad_mode: ContextVar[bool] = ContextVar("genesis_grad_mode", default=True)
inference: ContextVar[bool] = ContextVar("genesis_inference", default=False)
# between(op, arguments, run), for each mode that wants to keep or replace the results of kernels; the last opened is
# the outermost
interception: ContextVar[tuple[Callable[..., Any], ...]] = ContextVar("genesis_interception", default=())

# repair(node, gradient, results): what a backward does with the gradients that a rule gave, if anything
repair: ContextVar[Callable[..., Any] | None] = ContextVar("genesis_repair", default=None)
# those told of every node that is recorded, of every result of a Function, and of a node whose backward fails:
# each has `new_node(node)`, `function_result(cls, args, result)` and `failed(node)`
watchers: ContextVar[tuple[Any, ...]] = ContextVar("genesis_watchers", default=())
_kernels_only: ContextVar[bool] = ContextVar("genesis_kernels_only", default=False)


def opened(variable: ContextVar[tuple[Any, ...]], entry: Any) -> None:
    """Add an entry to those of this thread; `closed` takes it away."""
    variable.set((*variable.get(), entry))


def closed(variable: ContextVar[tuple[Any, ...]], entry: Any) -> None:
    """Take the last such entry away, wherever it stands: a switch may be turned in the middle of others."""
    entries = variable.get()
    index = len(entries) - 1 - entries[::-1].index(entry)
    variable.set(entries[:index] + entries[index + 1 :])


@contextmanager
def entered(variable: ContextVar[tuple[Any, ...]], entry: Any) -> Iterator[None]:
    """An entry of this thread for a block, which leaves the lanes of ordinary calls."""
    ACTIVE.append(entry)
    opened(variable, entry)
    try:
        yield
    finally:
        closed(variable, entry)
        ACTIVE.pop()


def is_grad_enabled() -> bool:
    """Whether operations are being recorded for differentiation in this thread.

    >>> import genesis
    >>> with genesis.no_grad():
    ...     genesis.is_grad_enabled()
    False
    """
    _asked()
    return grad_mode.get()


def _asked() -> None:
    """A traced function decides by the mode."""
    active = tracer.get()
    if active is not None:
        active.asks_modes()


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is on in this thread."""
    _asked()
    return inference.get()


class Mode:
    """A context manager that is also a decorator of functions, generators and classes."""

    def __init__(self) -> None:
        self._before: list[Any] = []

    def _enter(self) -> Any:
        raise NotImplementedError

    def _leave(self, before: Any) -> None:
        raise NotImplementedError

    def __enter__(self) -> Mode:
        self._before += [self._enter()]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave(self._before.pop())

    def _fresh(self) -> Mode:
        return type(self)()

    def __call__(self, target: F) -> F:
        if not callable(target):
            raise ArgumentError(
                message(type(self).__name__, f"decorates functions and classes, got {type(target).__name__}")
            )
        if inspect.isclass(target):
            try:
                target.__init__ = self(target.__init__)  # type: ignore[method-assign]
            except TypeError:
                raise ArgumentError(message(type(self).__name__, f"{target.__name__} cannot be changed")) from None
            return target
        if inspect.isgeneratorfunction(target):
            return self._wrap_generator(target)  # type: ignore[return-value]

        @functools.wraps(target)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self._fresh():
                return target(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    def _wrap_generator(self, target: Callable[..., Any]) -> Callable[..., Any]:
        """Each step of the generator runs in the mode; the caller's code between the steps does not."""

        @functools.wraps(target)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            generator = target(*args, **kwargs)
            step, value = generator.send, None
            while True:
                try:
                    with self._fresh():
                        item = step(value)
                except StopIteration as stop:
                    return stop.value
                try:
                    step, value = generator.send, (yield item)
                except GeneratorExit:
                    with self._fresh():
                        generator.close()
                    raise
                except BaseException as error:
                    step, value = generator.throw, error

        return wrapped


class _GradMode(Mode):
    _value = True

    def _enter(self) -> tuple[bool, Block | None]:
        before, block = grad_mode.get(), None
        try:
            if before and not self._value:
                if ESCAPES:
                    escape(type(self).__name__)
                block = block_opened(type(self).__name__, sys._getframe(2))
            grad_mode.set(self._value and not inference.get())
        except BaseException:
            self._leave((before, block))
            raise
        return before, block

    def _leave(self, before: tuple[bool, Block | None]) -> None:
        grad_mode.set(before[0])
        if before[1] is not None:
            block_closed(before[1])


class no_grad(_GradMode):
    """Context manager and decorator: results are not recorded and do not require grad.

    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> with genesis.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    _value = False

    def __new__(cls, target: Callable[..., Any] | None = None) -> Any:
        mode = super().__new__(cls)
        if target is None:
            return mode
        mode.__init__()  # type: ignore[misc]  # `@no_grad` without parentheses
        return mode(target)

    def __init__(self, target: Callable[..., Any] | None = None) -> None:
        super().__init__()


class enable_grad(no_grad):
    """Context manager and decorator: record again inside `no_grad`, though not inside `inference_mode`.

    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> with genesis.no_grad(), genesis.enable_grad():
    ...     (x * 2).requires_grad
    True
    """

    _value = True


_OFF = "set_grad_enabled(False)"


class set_grad_enabled(_GradMode):
    """Turn recording on or off: takes effect at the call, and is undone at the end of a ``with``.

    >>> import genesis
    >>> with genesis.set_grad_enabled(False):
    ...     genesis.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        try:
            self._value = bool(mode)
        except ValueError:  # an array
            raise ArgumentError(
                message("set_grad_enabled", f"mode must be True or False, got {type(mode).__name__}")
            ) from None
        self._at_call = grad_mode.get()
        if self._value:
            switched_on(_OFF)
        self._block = block_opened(_OFF, sys._getframe(1)) if self._at_call and not self._value else None
        grad_mode.set(self._value and not inference.get())

    def _enter(self) -> tuple[bool, Block | None]:
        grad_mode.set(self._value and not inference.get())
        return self._at_call, self._block

    def _fresh(self) -> Mode:
        return set_grad_enabled(self._value)

    def __call__(self, target: F) -> F:
        self._leave((self._at_call, self._block))  # as a decorator the mode holds inside the function only
        return super().__call__(target)


class inference_mode(Mode):
    """Context manager and decorator: `no_grad`, and the results can never take part in a recorded graph.

    >>> import genesis
    >>> with genesis.inference_mode():
    ...     y = genesis.ones(2) * 2
    >>> y.is_inference()
    True
    """

    def __new__(cls, mode: bool | Callable[..., Any] = True) -> Any:
        made = super().__new__(cls)
        if not callable(mode):
            return made
        made.__init__()  # type: ignore[misc]  # `@inference_mode` without parentheses
        return made(mode)

    def __init__(self, mode: bool | Callable[..., Any] = True) -> None:
        super().__init__()
        self._mode = mode if isinstance(mode, bool) else True

    def _enter(self) -> tuple[bool, bool, Block | None]:
        ACTIVE.append(self)
        before, block = (grad_mode.get(), inference.get()), None
        try:
            if before[0] and self._mode:
                block = block_opened("inference_mode", sys._getframe(2))
            grad_mode.set(not self._mode)
            inference.set(self._mode)
        except BaseException:
            self._leave((*before, block))
            raise
        return (*before, block)

    def _leave(self, before: tuple[bool, bool, Block | None]) -> None:
        grad_mode.set(before[0])
        inference.set(before[1])
        block_closed(before[2])
        ACTIVE.pop()

    def _fresh(self) -> Mode:
        return inference_mode(self._mode)


# ---- functions instead of ops


def kernels_are_forced() -> bool:
    """Whether this thread is inside an override, a backward or `kernels_only`."""
    return _kernels_only.get()


@contextmanager
def kernels_only(value: bool = True) -> Iterator[None]:
    """Inside, no override is consulted (or, in a re-run of forward, as it was then)."""
    token = _kernels_only.set(value)
    try:
        yield
    finally:
        _kernels_only.reset(token)
