"""Calls with their factors in front, as they were written before factors had names.

``x.add_(0.5, y)`` is ``x.add_(y, alpha=0.5)``, ``torch.addmm(beta, x, alpha, a, b)`` is ``torch.addmm(x, a, b, beta=beta,
alpha=alpha)``. PyTorch takes them with a warning, and so do the functions here; programs of some years are full of them.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

from genesis.base.errors import ArgumentError, message
from genesis.core.call.generated import compiled, defined, generated, passed
from genesis.core.graph.site import user_level
from genesis.core.graph.tensor import Tensor


def takes_older(call: Callable[..., Any], *factors: str) -> Callable[..., Any]:
    """A function that takes its factors in front, too: one, behind the first operand; or ``beta``, ``alpha`` around it.

    What is one argument too many goes through `older_call`; the others cost 30 ns.
    """
    name = call.__name__
    scope: dict[str, Any] = {"_function": call, "_older_call": older_call, "_factors": factors}

    def source() -> str:
        parameters = inspect.signature(compiled(call), follow_wrapped=False).parameters.values()
        parts = defined(parameters, scope)
        operands = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
        named = [f"{p.name!r}: {p.name}" for p in parameters if p.kind is p.KEYWORD_ONLY]
        parts[len(operands) : len(operands) + bool(named)] = ["*_more"]
        older = f"_older_call(_function, _factors, ({', '.join(operands)}, *_more), {{{', '.join(named)}}})"
        return (
            f"def call({', '.join(parts)}):\n    if _more: return {older}\n    return _function({passed(parameters)})\n"
        )

    return functools.update_wrapper(generated(source, name, f"<genesis older calls of {name}>", scope), call)


def older_forms(*factors: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`takes_older` for an op: its function, its method, its method in place."""

    def declare(call: Callable[..., Any]) -> Callable[..., Any]:
        op = call.op  # type: ignore[attr-defined]
        op.call = call = takes_older(call, *factors)
        setattr(Tensor, op.name, call)
        if hasattr(Tensor, op.name + "_"):
            setattr(Tensor, op.name + "_", takes_older(getattr(Tensor, op.name + "_"), *factors))
        return call

    return declare


def older_call(call: Callable[..., Any], factors: tuple[str, ...], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The call that these arguments mean.

    Raises:
        TypeError: there is no such form
    """
    operands, given = list(args), {k: v for k, v in named.items() if k not in factors}
    if len(factors) == 1:
        positions = [1]
    elif isinstance(args[0], Tensor):  # the method: x.addmm(beta, alpha, a, b)
        positions = [1, 2][: len(args) - 3]
    else:
        positions = [0, 2][: len(args) - 3]
    count = (2 if call.__name__.rstrip("_") in ("add", "sub") else 3) + len(positions)
    if len(args) != count or any([not _is_number(args[i]) for i in positions]):
        raise ArgumentError(
            message(
                call.__name__,
                f"there are {len(args)} arguments in front of the names: {', '.join(type(x).__name__ for x in args)}",
                hint=f"{', '.join(factors)} by name",
            )
        )
    given |= {name: args[i] for name, i in zip(factors, positions, strict=False)}
    for i in reversed(positions):
        del operands[i]
    form = f"{call.__name__}(..., {', '.join(f'{name}=...' for name in factors[: len(positions)])})"
    warnings.warn(
        message(call.__name__, "factors in front of the operands are deprecated", hint=form),
        UserWarning,
        stacklevel=user_level(),
    )
    return call(*operands, **given)


def _is_number(value: Any) -> bool:
    return not isinstance(value, Tensor) or not value.ndim
