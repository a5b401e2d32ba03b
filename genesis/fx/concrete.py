"""Arguments of a trace that are known: they are not asked for, and checked when the graph runs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from genesis.base.errors import ArgumentValueError
from genesis.base.pytree import TreeDef, tree_flatten, tree_map, tree_unflatten
from genesis.fx.node import SIDE_EFFECTS

if TYPE_CHECKING:
    from genesis.fx.tracer import Tracer


class PHBase:
    """Stands for an argument that is not known, in containers of ``concrete_args``."""

    def __repr__(self) -> str:
        return "PH"


class PHWithMeta(PHBase):
    """As `PH`, with attributes that the node gets."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


PH = PHBase()


def assert_equal(given: Any, known: Any, name: str) -> None:
    """What a graph checks of an argument that was known when it was traced.

    Raises:
        ValueError: the argument is another
    """
    same = given is None if known is None else given == known
    if not same:
        raise ArgumentValueError(f"{name} has been specialized to have value {known} but got another value")


SIDE_EFFECTS.add(assert_equal)


def annotations_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The types that a function of the program says; those that are written as text, if they can be found."""
    if str(function.__module__).startswith("genesis."):
        return {}
    given = inspect.get_annotations(function)
    try:
        return inspect.get_annotations(function, eval_str=True)
    except Exception:
        return {name: kind for name, kind in given.items() if not isinstance(kind, str)}


def placeholders_for(tracer: Tracer, name: str, concrete_args: dict[str, Any], function: Callable[..., Any]) -> Any:
    """What a function is traced with as one of its arguments, and the placeholders of the graph for it."""
    parameter = inspect.signature(function).parameters.get(name)
    default = () if parameter is None or parameter.default is parameter.empty else (parameter.default,)
    if name not in concrete_args:
        return tracer.create_proxy(
            "placeholder", name, default, {}, type_expr=annotations_of(function).get(name.lstrip("*"))
        )
    count = 0

    def settled(value: Any) -> Any:
        nonlocal count
        count += 1
        made = tracer.create_proxy("placeholder", f"{name}_{count}", default, {})
        if isinstance(value, PHBase):
            for attribute, held in vars(value).items():
                setattr(made.node, attribute, held)
            return made
        if isinstance(value, bool | int | float | str | complex) or value is None:
            tracer.create_proxy("call_function", assert_equal, (made, value, name), {})
        else:
            warnings.warn(
                f"no check is made that {name} is what it was in the trace: a {type(value).__name__} is not compared",
                stacklevel=2,
            )
        return value

    return tree_map(settled, concrete_args[name])


def leaves_of(tree: Any) -> tuple[list[Any], TreeDef, Callable[[list[Any]], Any]]:
    """The leaves of nested arguments, their structure, and what builds them again."""
    leaves, spec = tree_flatten(tree)
    return leaves, spec, lambda parts: tree_unflatten(parts, spec)
