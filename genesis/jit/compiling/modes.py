"""The modes around a statement that Python does at each call: it runs in those that it stood in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from genesis.base.device import get_default_device
from genesis.base.dtypes import get_default_dtype
from genesis.base.errors import message
from genesis.core.graph import autocast
from genesis.core.graph.modes import grad_mode, inference, inference_mode, set_grad_enabled
from genesis.jit.compiling.leaves import NotKept


class Modes:
    """Those of now."""

    __slots__ = ("cast", "defaults", "grad", "inferring")

    def __init__(self) -> None:
        self.grad, self.inferring, self.cast = grad_mode.get(), inference.get(), autocast.state()
        self.defaults = get_default_dtype(), get_default_device()

    def within(self, outer: Modes, title: str) -> Callable[[], AbstractContextManager[Any]] | None:
        """What opens them in those of a call; None where they are the same."""
        if self.defaults != outer.defaults:
            raise NotKept(message("compile", f"the default dtype or device is another one at {title}"))
        same = self.grad is outer.grad and self.inferring is outer.inferring
        return None if same and _kind(self.cast) == _kind(outer.cast) else self._opened

    def _opened(self) -> ExitStack:
        stack = ExitStack()
        if inference.get() is not self.inferring:
            stack.enter_context(inference_mode(self.inferring))
        stack.enter_context(set_grad_enabled(self.grad))
        mode = self.cast
        stack.enter_context(autocast.restored(mode if mode is None or mode.cache is None else mode._replace(cache={})))
        return stack


def _kind(mode: Any) -> Any:
    return None if mode is None else mode._replace(cache=None)
