"""Options of optimizers: their checks, and numbers that are made of them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, GraphError, message
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import host, tracer


def chosen(given: dict[str, Any]) -> dict[str, Any]:
    """The options among the local variables of an ``__init__``."""
    return {name: value for name, value in given.items() if name not in ("self", "params", "__class__")}


def scalar(value: Any) -> Any:
    """An option as a number, also where it is a tensor of one element; a trace asks for it again at every replay."""
    if not isinstance(value, Tensor):
        return value
    token = tracer.set(None)
    try:
        return value.item()  # type: ignore[attr-defined]
    finally:
        tracer.reset(token)


class Inputs(dict[str, Any]):
    """A group as a trace sees it: its floats are inputs of the graph, which asks for them at every replay."""

    def __init__(self, group: dict[str, Any], title: str, names: Iterable[str]) -> None:
        super().__init__(group)
        self.group, active = group, tracer.get()
        for name in names:
            value, text = group[name], f"{title}[{name!r}]"
            self[name] = (
                active.option(group, (name,), text)
                if isinstance(value, float)
                else tuple([active.option(group, (name, i), f"{text}[{i}]") for i in range(len(value))])
            )


def floats_of(group: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """The options that are floats, or sequences of them."""
    there = [(name, group[name]) for name in names if name in group]
    return [name for name, v in there if type(v) is float or (type(v) in (tuple, list) and v and _are_floats(v))]


def _are_floats(values: Any) -> bool:
    return all([type(x) is float for x in values])


def number(group: dict[str, Any], state: dict[str, Any], formula: Callable[..., Any], *names: str) -> Any:
    """``formula(learning rate, step, *others)``, asked for again at every replay of a trace. Where the step is
    differentiable, a learning rate that is a tensor stays one.

    Args:
        names: of the other options that the formula takes
    """
    if group.get("differentiable"):
        lr = group["lr"]
        return formula(lr.reshape(()) if isinstance(lr, Tensor) else lr, state.get("step"), *[group[n] for n in names])
    if isinstance(group, Inputs):
        group = group.group
    if any([_holds_tensors(group[n]) for n in names]):
        return host(lambda: formula(scalar(group["lr"]), state.get("step"), *[_scalars(group[n]) for n in names]))
    if len(names) == 1:
        (name,) = names

        def one() -> Any:  # a quarter of the time
            lr = group["lr"]
            return formula(lr if lr.__class__ is float else scalar(lr), state.get("step"), group[name])

        def source(word: Callable[[Any], str]) -> str:  # the same, written into a compiled call
            rate = f"lr if (lr := {word(group)}['lr']).__class__ is float else {word(scalar)}(lr)"
            return f"{word(formula)}({rate}, {word(state)}.get('step'), {word(group)}[{name!r}])"

        one.source = source  # type: ignore[attr-defined]
        return host(one)
    return host(lambda: formula(scalar(group["lr"]), state.get("step"), *[group[n] for n in names]))


def _holds_tensors(value: Any) -> bool:
    return any([isinstance(x, Tensor) for x in (value if isinstance(value, tuple | list) else [value])])


def _scalars(value: Any) -> Any:
    return tuple(map(scalar, value)) if isinstance(value, tuple | list) else scalar(value)


def refuse_both(name: str, group: dict[str, Any]) -> None:
    """Refuse switches of PyTorch that exclude each other. Here they change nothing but ``differentiable``."""
    for a, b in (("fused", "differentiable"), ("fused", "foreach")):
        if group.get(a) and group.get(b):
            raise GraphError(message(name, f"{a}=True and {b}=True exclude each other"))


def whole_number(name: str, what: str, value: Any, least: int) -> int:
    """An integer that is not too small, or an error that says which argument is wrong."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise ArgumentError(message(name, f"{what} must be an integer, got {type(value).__name__}"))
    if number < least:
        raise ArgumentValueError(message(name, f"{what} must be at least {least}, got {number}"))
    return number


def check_options(name: str, **options: Any) -> None:
    """Refuse options that are not numbers, or negative, and betas outside [0, 1)."""
    for key, value in options.items():
        if key == "betas":
            if not isinstance(value, list | tuple) or len(value) != 2:
                raise ArgumentError(message(name, f"betas must be two numbers, got {value!r}"))
            for i, beta in enumerate(value):
                if not 0.0 <= _as_number(name, f"betas[{i}]", beta) < 1.0:
                    raise ArgumentValueError(message(name, f"betas[{i}] must be in [0, 1), got {beta}"))
        elif not _as_number(name, key, value) >= 0.0:
            raise ArgumentValueError(message(name, f"{key} must not be negative, got {value}"))


def _as_number(name: str, key: str, value: Any) -> Any:
    """The value, if it is a number or a tensor of one element."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number and not (isinstance(value, Tensor) and value.numel() == 1):
        raise ArgumentError(message(name, f"{key} must be a number, got {type(value).__name__}"))
    return value
