"""Arguments of calls in one form: by the signature of what is called, with its defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from genesis.nn.module import Module


class ArgsKwargsPair(NamedTuple):
    """Arguments of a call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def normalize_function(
    target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, arg_types: Any = None,
    kwarg_types: Any = None, normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:  # fmt: skip
    """The arguments of a call of a function; None where it has no signature that takes them.

    >>> import genesis
    >>> from genesis.fx.operator_schemas import normalize_function
    >>> normalize_function(genesis.nn.functional.dropout, (1,), {"training": False}, normalize_to_only_use_kwargs=True).kwargs
    {'input': 1, 'p': 0.5, 'training': False, 'inplace': False}
    """
    try:
        return _normalized(inspect.signature(target), args, kwargs or {}, normalize_to_only_use_kwargs)
    except (TypeError, ValueError):
        return None


def normalize_module(root: Module, target: str, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None,
                     normalize_to_only_use_kwargs: bool = False) -> ArgsKwargsPair | None:  # fmt: skip
    """The arguments of a call of a module inside of another; None where its forward does not take them."""
    try:
        signature = inspect.signature(root.get_submodule(target).forward)
        return _normalized(signature, args, kwargs or {}, normalize_to_only_use_kwargs)
    except TypeError:
        return None


def _normalized(signature: inspect.Signature, args: Any, kwargs: Any, only_kwargs: bool) -> ArgsKwargsPair | None:
    parameters = signature.parameters.values()
    if any([p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters]):
        return None
    if any([p.kind is p.POSITIONAL_ONLY for p in parameters]) and only_kwargs:
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    given = dict(bound.arguments)
    positional = [] if only_kwargs else list(given)[: len(args)]
    return ArgsKwargsPair(tuple([given.pop(name) for name in positional]), given)
