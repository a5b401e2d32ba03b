"""Sizes, strides and paddings: one number for all spatial dimensions, or one for each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import NoneType
from typing import Any, TypeVar

from genesis.base.dtypes import is_integer
from genesis.base.errors import ArgumentError, ShapeError, message
from genesis.core.graph.tensor import Tensor

Sizes = tuple[int, ...]
_INTEGERS = {int}
AXES = {1: "(N, C, L)", 2: "(N, C, H, W)", 3: "(N, C, D, H, W)"}


_Rules = TypeVar("_Rules")
_PLAIN = frozenset((int, float, bool, str, NoneType))
_SEQUENCES = frozenset((tuple, list))


def key_of(given: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """What a table knows arguments by: numbers, text and None, and sequences of these, with their classes (1, 1.0 and True
    are equal); None if one is something else.

    >>> key_of((2, None)) == key_of((2, None)), key_of((2,)) == key_of((2.0,)), key_of(([2, 1],)) == key_of(((2, 1),))
    (True, False, True)
    """
    every = tuple(map(type, given))
    if _PLAIN.issuperset(every):
        return every, given
    key: list[Any] = []
    for value in given:
        kind = value.__class__
        if kind in _PLAIN:
            key += (kind, value)
        elif kind in _SEQUENCES:
            kinds = tuple([item.__class__ for item in value])
            if not _PLAIN.issuperset(kinds):
                return None
            key += (kinds, *value)
        else:
            return None
    return tuple(key)


def known(rules: Callable[..., _Rules]) -> Callable[..., _Rules]:
    """Decorate what follows from a name, the sizes and the dtype of an input, and arguments: what was found out once is not
    found out again (10 to 30 us).
    """
    seen: dict[Any, _Rules] = {}

    @functools.wraps(rules)
    def once(name: str, input: Tensor, *given: Any) -> _Rules:
        key = key_of(given)
        if key is None:
            return rules(name, input, *given)
        array = input._array
        whole = name, array.shape, array.dtype, key
        result = seen.get(whole)
        if result is None:
            if len(seen) >= 1024:
                seen.clear()
            result = seen[whole] = rules(name, input, *given)
        return result

    return once


def per_dim(name: str, what: str, value: Any, dims: int, least: int | None = None) -> Sizes:
    """``value`` for each of ``dims`` dimensions.

    >>> per_dim("conv2d", "stride", 2, 2, 1)
    (2, 2)
    """
    if value.__class__ is int and (least is None or value >= least):
        return (value,) * dims
    plain = value.__class__ is tuple and len(value) == dims and {*map(type, value)} == _INTEGERS
    if plain and (least is None or min(value) >= least):
        return value  # type: ignore[no-any-return]
    one = is_integer(value)
    if not one and not isinstance(value, list | tuple):
        raise ArgumentError(
            message(name, f"{what} must be an integer or {dims} of them, got {type(value).__name__} {value!r}")
        )
    items = [value] if one else list(value)
    if len(items) == 1:
        items *= dims
    if len(items) != dims:
        raise ShapeError(message(name, f"{what} must be one number or {dims}, got {len(items)}: {list(value)}"))
    for n in items:
        if not is_integer(n):
            raise ArgumentError(message(name, f"{what} must be integers, got {value!r}"))
        if least is not None and n < least:
            raise ShapeError(message(name, f"{what} must be at least {least}, got {value!r}"))
    return tuple([int(n) for n in items])


def batched(name: str, input: Tensor, dims: int) -> tuple[Tensor, bool]:
    """The input with a dimension of examples, and whether it had none."""
    if not isinstance(input, Tensor):
        raise ArgumentError(message(name, f"expected a tensor, got {type(input).__name__}"))
    if input.ndim not in (dims + 1, dims + 2):
        one = AXES[dims].replace("N, ", "")
        raise ShapeError(
            message(
                name,
                f"expected input {one} or {AXES[dims]}, got {input.ndim}-D",
                [("input", input._spec())],
                "x.unsqueeze(0) adds a dimension",
            )
        )
    alone = input.ndim == dims + 1
    return (input.unsqueeze(0) if alone else input), alone  # type: ignore[attr-defined]
