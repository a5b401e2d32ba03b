"""Hooks on the steps of optimizers, and on how their state is saved and loaded."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from genesis.base.errors import GraphError, message
from genesis.core.call.refusal import expect_function
from genesis.core.graph.hooks import RemovableHandle

Hooks = dict[str, dict[int, Any]]

EVERY: Hooks = {}  # hooks of all optimizers


def added(hooks: Hooks, kind: str, hook: Any, prepend: bool = False) -> RemovableHandle:
    """Note a hook of a kind, behind those that are there or in front of them."""
    expect_function(f"register_{kind}_hook", "hook", hook)
    of_kind = hooks.setdefault(kind, {})
    before = dict(of_kind) if prepend else {}
    handle = RemovableHandle(of_kind, hook)
    for number in before:
        of_kind[number] = of_kind.pop(number)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before each step of every optimizer; it may return others.

    >>> import genesis
    >>> sgd = genesis.optim.SGD([genesis.ones(1, requires_grad=True)], lr=1.0)
    >>> with register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: print("step")):
    ...     sgd.step()
    step
    """
    return added(EVERY, "step_pre", hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after each step of every optimizer."""
    return added(EVERY, "step_post", hook)


def every(kind: str, *hooks: Hooks) -> list[Any]:
    """All hooks of a kind, in the order in which they run."""
    return [hook for each in hooks for hook in list(each.get(kind, {}).values())]


def hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step between its hooks, which leaves a note that it was called; inside of another one it is just that."""

    @functools.wraps(step)
    def noticed(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._opt_called = True
        if not (self._hooks or EVERY) or self._stepping:
            return step(self, *args, **kwargs)
        for hook in every("step_pre", EVERY, self._hooks):
            given = hook(self, args, kwargs)
            if given is not None:
                args, kwargs = _arguments(self, given)
        self._stepping = True
        try:
            result = step(self, *args, **kwargs)
        finally:
            self._stepping = False
        for hook in every("step_post", self._hooks, EVERY):
            hook(self, args, kwargs)
        return result

    return noticed


def _arguments(optimizer: Any, given: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(given, tuple) and len(given) == 2:
        return given
    raise GraphError(
        message(
            f"{type(optimizer).__name__}.step",
            f"a pre-hook returns None or new (args, kwargs), got {given!r}"[:200],
        )
    )
