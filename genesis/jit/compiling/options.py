"""What `genesis.compile` takes besides a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, GraphError, message
from genesis.jit.compiling.function import CompiledFunction

BACKENDS = ("genesis", "inductor", "aot_eager", "eager")
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def compiled(
    function: Callable[..., Any],
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
) -> CompiledFunction:
    """A compiled function; see `genesis.compile`, which says what the arguments are."""
    if not callable(function):
        raise ArgumentError(message("compile", f"expected a function or a module, got {type(function).__name__}"))
    if not isinstance(backend, str):
        raise ArgumentError(
            message("compile", f"backend must be a name, got {type(backend).__name__}: there are no graphs of PyTorch's "
                    "kind to call it with", hint="genesis.jit.trace gives graphs")
        )  # fmt: skip
    if backend not in BACKENDS:
        raise ArgumentValueError(message("compile", f"unknown backend {backend!r}", hint=", ".join(BACKENDS)))
    if mode is not None and options is not None:
        raise GraphError(message("compile", "mode and options exclude each other"))
    if mode is not None and mode not in MODES:
        raise ArgumentValueError(message("compile", f"unknown mode {mode!r}", hint=", ".join(MODES)))
    if isinstance(function, CompiledFunction):
        function = function.original
    return CompiledFunction(function, bool(fullgraph), not disable and backend != "eager", name, recompile_limit)
