"""Second derivatives through a user's function: right, or an error that says why not. Never silently wrong.

`forward` is not recorded, so a tensor that it made and saved has no history, and a second derivative would take it
for a constant. Every saved tensor therefore has an *origin*:

- ``None``          an input, a constant, or not a floating tensor: used as it is
- an integer        an output: its history is this very node (a negative one: an output that carries no gradient)
- an edge           another name for an input (``x.detach()``): its history is the input's
- `INTERMEDIATE`    made in forward. Forward is run again, recorded, and its saved tensor taken in place of the first,
                    if the inputs are still there, the values agree, and nothing escaped recording on the way.
                    Otherwise the tensor gets a `UnknownDerivative` for a history: an error as soon as a derivative asks
                    for it.

The same watch is kept over a backward that is itself recorded: results computed behind its back (NumPy, ``detach``,
``no_grad``) get a `UnknownDerivative`, too.
"""

from __future__ import annotations

import dis
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from genesis.base.errors import GraphError, message
from genesis.base.pytree import tree_flatten
from genesis.core.graph.escapes import Watch, open_watch, watched
from genesis.core.graph.modes import enable_grad, grad_mode
from genesis.core.graph.node import Output
from genesis.core.graph.site import LIBRARY, Site
from genesis.core.graph.switches import ESCAPES
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.unknown import without_derivative

if TYPE_CHECKING:
    from genesis.core.functions.context import FunctionCtx


class _Intermediate:
    def __repr__(self) -> str:
        return "intermediate"


INTERMEDIATE: Any = _Intermediate()


class Call(NamedTuple):
    """The arguments of a forward; tensors by weak reference, so that nothing is kept alive for this."""

    arguments: list[Any]
    keywords: dict[str, Any]
    epoch: int


# ---- what escapes recording


@contextmanager
def watching(ctx: FunctionCtx) -> Iterator[Watch | None]:
    """Watch over a backward, if it is recorded."""
    if not grad_mode.get():
        yield None
        return
    with watched(Watch()) as watch:
        yield watch


def checked(ctx: FunctionCtx, watch: Watch, g: Any, results: Sequence[Any]) -> Sequence[Any]:
    """Give the results of a recorded backward a `UnknownDerivative` where they were computed behind its back."""
    incoming = [
        part._node
        for part in (g if isinstance(g, list) else [g])
        if isinstance(part, Tensor) and part._node is not None
    ]
    known = [e for e in ctx._edges if e is not None]
    checked_results = []
    for result in results:
        if isinstance(result, Tensor) and (
            watch.escape is not None or (result._node is None and (incoming or watch.opened))
        ):
            result = without_derivative(result, [*known, *incoming], _lost(ctx, watch))
        checked_results.append(result)
    return checked_results


def _lost(ctx: FunctionCtx, watch: Watch) -> str:
    name = ctx._function.__name__
    if watch.escape is None:
        return message(
            f"{name}.backward",
            "was computed outside the recorded graph, its own derivative is not known",
            ctx._called_at(),
            "compute it with genesis operations, or mark it @once_differentiable",
        )
    what, site = watch.escape
    where: list[tuple[str, object]] = [] if site is None else [("lost at", site)]
    return message(
        f"{name}.backward",
        f"its own derivative is not known: {what} left the recorded graph",
        [*where, *ctx._called_at()],
        f"compute it with genesis operations only, without {what}, or mark it @once_differentiable",
    )


def once_differentiable(backward: Any) -> Any:
    """Decorator of `Function.backward`: it cannot be differentiated again, and says so when that is asked for.

    >>> import genesis
    >>> class Cube(genesis.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x ** 3
    ...     @staticmethod
    ...     @genesis.autograd.once_differentiable
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x ** 2 * g
    >>> x = genesis.tensor(2.0, requires_grad=True)
    >>> (first,) = genesis.autograd.grad(Cube.apply(x), x, create_graph=True)
    >>> first.item()
    12.0
    """
    import functools

    from genesis.core.graph.modes import no_grad

    @functools.wraps(backward)
    def once(ctx: FunctionCtx, *gs: Any) -> Any:
        if not grad_mode.get():
            return backward(ctx, *gs)
        watch = open_watch.get()
        try:
            open_watch.set(None)
            with no_grad():
                results = backward(ctx, *gs)
        finally:
            open_watch.set(watch)
        single = not isinstance(results, tuple | list)
        reason = message(
            f"{ctx._function.__name__}.backward",
            "is marked @once_differentiable and cannot be differentiated again",
            ctx._called_at(),
            "write it with genesis operations and remove the decorator",
        )
        edges = [e for e in ctx._edges if e is not None] + [
            g._node for g in gs if isinstance(g, Tensor) and g._node is not None
        ]
        refused = [
            without_derivative(r, edges, reason) if isinstance(r, Tensor) else r
            for r in ((results,) if single else results)
        ]
        return refused[0] if single else tuple(refused)

    return once


# ---- where a saved tensor comes from


def origin_of(t: Tensor, arguments: Sequence[Any], results: Sequence[Any], constants: Sequence[Any]) -> Any:
    """See the top of this file."""
    floating = t._array.dtype.kind in "fc" or t.dtype.category > 1
    for index, r in enumerate(results):
        if t is r:
            return index if floating else ~index
    if t._node is not None or not floating:
        return None
    for a in arguments:
        if t is a:
            return None
    for a in (*constants, *arguments):
        if isinstance(a, Tensor) and _same_memory(t._array, a._array):
            return a._node
    return INTERMEDIATE


def is_own(ctx: FunctionCtx, index: int) -> bool:
    """Whether a saved tensor was made in forward, on memory that no argument has."""
    if ctx._call is None or not ctx._origins or ctx._origins[index] is not INTERMEDIATE:
        return False
    arguments = [a() if isinstance(a, weakref.ref) else a for a in (*ctx._call.arguments, *ctx._call.keywords.values())]
    counter = ctx._saved[index]._counter
    return not any(isinstance(a, Tensor) and a._counter is counter for a in tree_flatten(arguments)[0])


def _same_memory(x: Any, y: Any) -> bool:
    if x is y:
        return True
    if (
        not isinstance(x, np.ndarray)
        or not isinstance(y, np.ndarray)
        or x.shape != y.shape
        or x.dtype != y.dtype
        or x.strides != y.strides
    ):
        return False
    return bool(x.__array_interface__["data"][0] == y.__array_interface__["data"][0]) and x.size > 0


def with_origin(ctx: FunctionCtx, t: Any, origin: Any, what: str) -> Any:
    """A saved tensor with its history, for a backward that is recorded."""
    if not isinstance(t, Tensor):
        return t
    if ESCAPES and (origin is not None or t._node is not None):
        watch = open_watch.get()
        if watch is not None:
            watch.opened = True
    if origin is None:
        return t
    if isinstance(origin, int):
        return t if origin < 0 else t._alias(ctx if ctx._outputs is None else Output(ctx, origin))
    if origin is INTERMEDIATE:
        return _rederived(ctx, t, what)
    return t._alias(origin)


# ---- running forward again


def _rederived(ctx: FunctionCtx, t: Tensor, what: str) -> Tensor:
    again = ctx.__dict__.get("_again")
    if again is None:
        again = ctx.__dict__["_again"] = _forward_again(ctx)
    edges = [e for e in ctx._edges if e is not None]
    if isinstance(again, str):
        return without_derivative(t, edges, _unknown(ctx, t, what, again))
    other = again.get(what)
    if not isinstance(other, Tensor) or other._node is None:
        return without_derivative(t, edges, _unknown(ctx, t, what, "run again, forward gave it no history"))
    if not np.array_equal(np.asarray(t._array), np.asarray(other._array), equal_nan=True):
        return without_derivative(t, edges, _unknown(ctx, t, what, "run again, forward saved another value"))
    return other


def _unknown(ctx: FunctionCtx, t: Tensor, what: str, why: str) -> str:
    lines: list[tuple[str, object]] = [("saved", t._spec())]
    lines += [("saved at", site) for site in _saving_lines(ctx, what)]
    return message(
        f"{ctx._function.__name__}.forward",
        f"{what} is an intermediate value, a second derivative through it is not known ({why})",
        [*lines, *ctx._called_at()],
        "save the inputs and compute it again in backward; ctx.mark_constant(...) if it does not depend on them; "
        "or mark backward @once_differentiable",
    )


def _saving_lines(ctx: FunctionCtx, what: str) -> list[Site]:
    """The lines of forward (or setup_context) that save, read from their code."""
    name = what.removeprefix("ctx.") if what.startswith("ctx.") else "save_for_backward"
    sites = []
    for method in ("forward", "setup_context"):
        code = getattr(getattr(ctx._function, method), "__code__", None)
        if code is None or LIBRARY[code.co_filename]:
            continue
        line = code.co_firstlineno
        for instruction in dis.get_instructions(code):
            if instruction.starts_line is not None and not isinstance(instruction.starts_line, bool):
                line = instruction.starts_line
            line = getattr(instruction, "line_number", None) or line
            site = Site(code.co_filename, line, code.co_name)
            if instruction.argval == name and site not in sites:
                sites.append(site)
    return sites


def _forward_again(ctx: FunctionCtx) -> Any:
    """What forward saves when it is recorded, by name; or why that cannot be had."""
    call = ctx._call
    if call is None:
        return "forward cannot be run again, it writes to its inputs"
    arguments = [a() if isinstance(a, weakref.ref) else a for a in call.arguments]
    keywords = {k: a() if isinstance(a, weakref.ref) else a for k, a in call.keywords.items()}
    for value, kept in zip([*arguments, *keywords.values()], [*call.arguments, *call.keywords.values()], strict=True):
        if value is None and isinstance(kept, weakref.ref):
            return "forward cannot be run again, an input is gone"
        if isinstance(value, Tensor) and value._counter is not None and value._counter.stamp > call.epoch:
            return "forward cannot be run again, an input was written to since"
    from genesis.core.graph.generator import default_generator as generator

    state = generator.get_state()
    try:
        with watched(Watch()) as watch, enable_grad():
            second = ctx._function._rerun(arguments, keywords)
    except GraphError as error:
        return str(error).partition("\n")[0]
    finally:
        generator.set_state(state)
    if watch.escape is not None:
        what, site = watch.escape
        return f"forward cannot be recorded, {what} leaves the graph" + ("" if site is None else f" at {site}")
    return second
