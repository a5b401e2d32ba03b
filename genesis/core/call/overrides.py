"""Functions that users put instead of ops: ``genesis.ops.register_function("add", MyAdd.apply)``.

While any is registered, `ACTIVE` is not empty and ops take the slow path, which asks here; otherwise this costs
nothing. (Ops that are not elementwise work on their arguments before that path, or are composed of others: the code of
their public function is exchanged for a call of `route` while an override is registered, so the override gets what the
user wrote.)

An override never sees itself: ops that run inside it, and everything that runs in a backward reach the kernels, and so
do ops that the forward of any `Function` calls through ``genesis.ops``. (What a checkpoint runs again is forward code,
and sees what its first run saw.)
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType
from typing import Any

from genesis.base.locks import process_lock
from genesis.core.call.generated import compiled
from genesis.core.call.op import REGISTRY, Op, public_function
from genesis.core.graph.modes import kernels_are_forced, kernels_only
from genesis.core.graph.switches import ACTIVE
from genesis.core.graph.switches import OVERRIDES as OVERRIDES

in_forward: ContextVar[bool] = ContextVar("genesis_in_forward", default=False)
changing = process_lock()  # held while overrides are registered or removed


def override_of(op: Op) -> Callable[..., Any] | None:
    """What is called instead of an op here and now."""
    functions = () if kernels_are_forced() else OVERRIDES.get(op.name, ())
    return functools.partial(_consult, op, functions[-1]) if functions else None


@contextmanager
def inside_forward() -> Iterator[None]:
    """Inside, ops called through ``genesis.ops`` reach the kernels."""
    token = in_forward.set(True)
    try:
        yield
    finally:
        in_forward.reset(token)


def _consult(op: Op, function: Callable[..., Any], *args: Any) -> Any:
    """Call an override with what the user wrote: arguments that have their default values are left out."""
    parameters = list(op.signature.parameters.values())
    indices = range(len(args))
    last = max(
        (
            i + 1
            for i in indices
            if parameters[i].kind is not inspect.Parameter.KEYWORD_ONLY and args[i] is not parameters[i].default
        ),
        default=0,
    )
    keywords = {
        p.name: a for p, a in zip(parameters, args, strict=True) if p.kind is p.KEYWORD_ONLY and a is not p.default
    }
    with kernels_only():
        return function(*args[:last], **keywords)


def kernel_form(call: Callable[..., Any]) -> Callable[..., Any]:
    """The public function of an op, in a form that no override changes."""

    @functools.wraps(call)
    def kernel(*args: Any, **kwargs: Any) -> Any:
        with kernels_only():
            return call(*args, **kwargs)

    return kernel


def guarded_form(call: Callable[..., Any]) -> Callable[..., Any]:
    """The public function of an op, as ``genesis.ops`` has it while it is overridden: in the forward of a `Function`
    the kernel.
    """

    @functools.wraps(call)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        with kernels_only(kernels_are_forced() or in_forward.get()):
            return call(*args, **kwargs)

    return guarded


def add(op: Op, function: Callable[..., Any]) -> None:
    """Put a function instead of an op, in every thread."""
    with changing:
        if op.name not in OVERRIDES and _plain(op):
            _reroute(op)
        OVERRIDES[op.name] = (*OVERRIDES.get(op.name, ()), function)
        ACTIVE.append(function)


def take_away(op: Op, function: Callable[..., Any]) -> None:
    """Undo `add`; what was registered before counts again."""
    with changing:
        stack = OVERRIDES[op.name]
        at = max(i for i, registered in enumerate(stack) if registered == function)
        rest = stack[:at] + stack[at + 1 :]
        if rest:
            OVERRIDES[op.name] = rest
        else:
            del OVERRIDES[op.name]
            if _plain(op):
                plain = op.call
                plain.__code__ = _ORIGINAL[op.name].__code__
        ACTIVE.pop()


# the public functions of ops whose code is or was exchanged: another thread may be on its way through `route`
_ORIGINAL: dict[str, FunctionType] = {}


def _plain(op: Op) -> bool:
    """Whether the op's public function is an ordinary one, without a closure."""
    return not op.kind.aligned and op.call.__closure__ is None


def _reroute(op: Op) -> None:
    call = compiled(op.call)
    assert isinstance(call, FunctionType)
    if op.name not in _ORIGINAL:
        original = FunctionType(call.__code__, call.__globals__, call.__name__, call.__defaults__, call.__closure__)
        original.__kwdefaults__ = call.__kwdefaults__
        _ORIGINAL[op.name] = original
    body = f"    from genesis.core.call.overrides import route\n    return route({op.name!r}, ARGS)\n"
    call.__code__ = compiled(public_function(op, body, {})).__code__


def route(name: str, args: tuple[Any, ...]) -> Any:
    """A call of an op whose public function was exchanged."""
    op = REGISTRY[name]
    function = override_of(op)
    if function is not None:
        return function(*args)
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for p, a in zip(op.signature.parameters.values(), args, strict=True):
        if p.kind is p.VAR_POSITIONAL:
            positional.extend(a)
        elif p.kind is p.VAR_KEYWORD:
            keywords.update(a)
        elif p.kind is p.KEYWORD_ONLY:
            keywords[p.name] = a
        else:
            positional.append(a)
    return _ORIGINAL[name](*positional, **keywords)
