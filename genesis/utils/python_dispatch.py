"""What every operation passes below the gradients: ``TorchDispatchMode`` of ``torch.utils._python_dispatch``.

    class Logged(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            print(func, [tuple(x.shape) for x in args if hasattr(x, "shape")])
            return func(*args, **(kwargs or {}))

    with Logged():
        (x @ w).relu().sum().backward()

Modes see the primitives of forward and backward, on the CPU, after autocast and promotion. A program that opens none
pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from genesis.base.errors import ArgumentError, message
from genesis.core.graph.modes import closed, grad_mode, interception, opened
from genesis.core.graph.switches import ACTIVE
from genesis.utils.aten import PENDING, call_of


class TorchDispatchMode:
    """While it is open, every operation comes to its ``__torch_dispatch__(func, types, args, kwargs)``.

    ``func`` is an operation under the name of PyTorch's dispatcher (`genesis.utils.aten`), ``args`` tensors without
    history; ``func(*args, **kwargs)`` computes what it would have been, and what the method returns is the result. Inside
    of the method the modes around this one are asked, and nothing is recorded.

    >>> import genesis
    >>> from genesis.utils.python_dispatch import TorchDispatchMode
    >>> class Named(TorchDispatchMode):
    ...     def __init__(self): super().__init__(); self.names = []
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         self.names.append(func.name())
    ...         return func(*args, **(kwargs or {}))
    >>> x = genesis.ones(2, 3, requires_grad=True)
    >>> with Named() as mode:
    ...     y = (x @ x.T).sum()
    >>> mode.names
    ['aten::permute', 'aten::mm', 'aten::sum']
    """

    def __init__(self, _dispatch_key: Any = None) -> None: ...

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __torch_dispatch__")

    def __enter__(self) -> Any:
        ACTIVE.append(self)
        opened(interception, self._between)
        return self

    def __exit__(self, *_: object) -> None:
        closed(interception, self._between)
        ACTIVE.pop()

    def _between(self, op: Any, arrays: Sequence[Any], run: Callable[[], Any]) -> Any:
        entries = interception.get()
        around = entries[: len(entries) - 1 - entries[::-1].index(self._between)]
        call = call_of(op, arrays)
        call.run = run
        tokens = interception.set(around), grad_mode.set(False), PENDING.set(call)
        try:
            result = self.__torch_dispatch__(call.func, (), call.args, call.kwargs)
        finally:
            interception.reset(tokens[0])
            grad_mode.reset(tokens[1])
            PENDING.reset(tokens[2])
        if result is NotImplemented or result is None:
            raise ArgumentError(message(str(call.func), f"the mode {type(self).__name__} returned {result}"))
        return call.returned(result)


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def modes() -> list[TorchDispatchMode]:
    """The modes that are open in this thread, the innermost last."""
    owners = [getattr(entry, "__self__", None) for entry in interception.get()]
    return [owner for owner in owners if isinstance(owner, TorchDispatchMode)]


@contextmanager
def disabled_modes() -> Iterator[None]:
    """Inside, no mode is asked.

    >>> import genesis
    >>> from genesis.utils.python_dispatch import disabled_modes, modes
    >>> with disabled_modes():
    ...     modes()
    []
    """
    kept = [
        entry for entry in interception.get() if not isinstance(getattr(entry, "__self__", None), TorchDispatchMode)
    ]
    token = interception.set(tuple(kept))
    try:
        yield
    finally:
        interception.reset(token)


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a tensor is made of others by a class with ``__tensor_flatten__``; there is none."""
    return False


__all__ = ["BaseTorchDispatchMode", "TorchDispatchMode", "is_traceable_wrapper_subclass"]
