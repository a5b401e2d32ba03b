"""`genesis.compile`, and what PyTorch has in ``torch.compiler``: functions and modules that run as one call.

    step = genesis.compile(step)        # a training step: forward, backward, clipping, the optimizer
    model = genesis.compile(model)      # a module: gradients flow through it as before

The first call is traced (after one that runs as it is, where something is set up first), and from then on a call checks
that all is as it was, and computes.
``step.explain()`` says what was compiled, what was not, and why. See the guide, ``docs/guide/compile.md``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from genesis.base.errors import ArgumentValueError, GraphError, message
from genesis.core.graph.switches import ACTIVE
from genesis.core.graph.tracing import tracer
from genesis.jit.compiling.function import every, stance
from genesis.jit.compiling.options import BACKENDS, compiled
from genesis.jit.compiling.tracing import compiling
from genesis.nn.compiled import OptimizedModule
from genesis.nn.module import Module

F = TypeVar("F", bound=Callable[..., Any])


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str = "genesis",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
) -> Any:
    """A function or a module that is traced once, and then runs as one call: the same numbers, less time.

    What a trace cannot hold (printing, a value that Python needs) runs as it is, with one warning that says why.

    Args:
        model: a function of tensors, a training step, or a module; None gives a decorator
        fullgraph: an error instead of the warning
        dynamic: accepted for PyTorch's sake: each shape has a graph of its own
        backend: ``"eager"`` compiles nothing; PyTorch's other names are accepted
        mode, options: accepted for PyTorch's sake
        name: what warnings and ``explain()`` call it
        disable: compile nothing
        recompile_limit: how many graphs there may be, 8 if None; other kinds of calls run as they are
        isolate_recompiles: accepted for PyTorch's sake: graphs are counted for each compiled function anyway

    Returns:
        a function with the same arguments, and ``explain()``; of a module an `genesis.nn.compiled.OptimizedModule`

    Raises:
        TypeError: neither a function nor a module
        ValueError: an unknown backend or mode
        RuntimeError: with ``fullgraph``, in a call: it cannot be one graph

    >>> import genesis
    >>> @genesis.compile
    ... def norm(x):
    ...     return (x * x).sum().sqrt()
    >>> [norm(genesis.tensor([3., k])).item() for k in (4., 0., 4.)]
    [5.0, 3.0, 5.0]
    """
    given = {
        "fullgraph": fullgraph, "dynamic": dynamic, "backend": backend, "mode": mode, "options": options, "name": name,
        "disable": disable, "recompile_limit": recompile_limit, "isolate_recompiles": isolate_recompiles,
    }  # fmt: skip
    if model is None:
        return lambda function: compile(function, **given)
    if isinstance(model, OptimizedModule):
        model = model._orig_mod
    return OptimizedModule(model, **given) if isinstance(model, Module) else compiled(model, **given)  # type: ignore[arg-type]


def is_compiling() -> bool:
    """Whether a function is being traced for `genesis.compile`.

    >>> import genesis
    >>> genesis.compiler.is_compiling()
    False
    """
    return compiling.get()


def is_dynamo_compiling() -> bool:
    """The same as `is_compiling`."""
    return compiling.get()


def is_exporting() -> bool:
    """Whether a trace is being made for another purpose, as `genesis.onnx.export` makes."""
    return tracer.get() is not None and not compiling.get()


def reset() -> None:
    """Forget all that was compiled: functions are traced again when they are called."""
    for function in list(every):
        function.reset()


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A function that is never part of a compiled one: a call that comes to it runs as it is.

    Args:
        recursive: accepted for PyTorch's sake
        reason: what the warning says
    """
    if fn is None:
        return lambda function: disable(function, recursive, reason=reason)

    @functools.wraps(fn, updated=())
    def disabled(*args: Any, **kwargs: Any) -> Any:
        if compiling.get():
            why = "" if reason is None else f": {reason}"
            raise GraphError(message("compile", f"{getattr(fn, '__name__', fn)} is not to be compiled{why}"))
        return fn(*args, **kwargs)

    return disabled


class set_stance:  # noqa: N801
    """Say what compiled functions do from now on, or in a ``with`` block.

    Args:
        stance: ``"default"``, ``"force_eager"`` (they run as they are), ``"eager_on_recompile"`` (no new graphs) or
            ``"fail_on_recompile"``

    Raises:
        ValueError: an unknown stance

    >>> import genesis
    >>> with genesis.compiler.set_stance("force_eager"):
    ...     pass
    """

    def __init__(self, stance: str = "default", **options: Any) -> None:
        if stance not in ("default", "force_eager", "eager_on_recompile", "fail_on_recompile"):
            raise ArgumentValueError(message("set_stance", f"unknown stance {stance!r}"))
        self._before = _set(stance)
        self._stance = stance

    def __enter__(self) -> None:
        _set(self._stance)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _set(self._before)

    def __call__(self, function: F) -> F:
        _set(self._before)

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self._stance):
                return function(*args, **kwargs)

        return inside  # type: ignore[return-value]


def _set(new: str) -> str:
    before, stance[0] = stance[0], new
    if (before == "force_eager") != (new == "force_eager"):  # written functions look at it
        if new == "force_eager":
            ACTIVE.append(stance)
        else:
            ACTIVE.pop()
    return before


def allow_in_graph(fn: F) -> F:
    """The function itself: a trace looks into all functions."""
    return fn


def assume_constant_result(fn: F) -> F:
    """The function itself: what it gives without tensors is a constant of a trace anyway."""
    return fn


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """The names that `compile` takes as a backend."""
    return list(BACKENDS)


__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
]
