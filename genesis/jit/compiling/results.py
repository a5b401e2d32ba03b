"""What a traced function returns: tensors, and objects of Python, of which some are other ones at each call."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Collection, Iterator
from enum import Enum
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from genesis.base.errors import GraphError, message
from genesis.base.pytree import TreeDef, tree_flatten
from genesis.core.graph.parameter import Parameter
from genesis.core.graph.tensor import Tensor
from genesis.jit.compiling.surroundings import is_of_program
from genesis.jit.compiling.values import HostValue, Number
from genesis.jit.compiling.young import is_held, is_young
from genesis.jit.traced import Traced

_WRITTEN_TO = (set, deque, bytearray, array, np.ndarray, Iterator, list, dict)
_NAMED = (type, FunctionType, ModuleType, Enum)  # which have attributes, and are the same at each call


class Outside:
    """A list or dictionary of the outside among the results: it is returned itself, not what is in it."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing = thing


def leaves_of(result: Any, arguments: Collection[Any]) -> tuple[list[Any], TreeDef]:
    """The leaves of what a function returned.

    Args:
        arguments: the tensors that it was given

    Raises:
        GraphError: one is an object that the function makes at each call, which a graph would return each time
    """
    leaves, structure = tree_flatten(result, _is_outside)
    for y in leaves:
        if isinstance(y, Tensor):
            made = isinstance(y._array, Traced) and not any([y is x for x in arguments])
            if made and type(y) is not Tensor and not isinstance(y, Parameter):
                raise GraphError(message("compile", f"a result is a {type(y).__name__}, a class of tensors of its own"))
            if made and (what := more_than_numbers(y)):
                raise GraphError(message("compile", f"a result has {what}: a compiled call would return it without"))
        elif not isinstance(y, HostValue | Number) and _may_change(y) and not _is_outside(y) and _is_made(y):
            raise GraphError(message("compile", f"a result is a {type(y).__name__} that is made anew at each call"))
    return [Outside(y) if _is_outside(y) else y for y in leaves], structure


def more_than_numbers(y: Tensor) -> str:
    """What a tensor that the function makes has besides its values and its history."""
    if y._retained is not None or y._own_grad is not None or (y._node is not None and y.retains_grad):
        return "a .grad that is kept"
    names = [name for name in y.__dict__ if name not in Tensor.__dict__]
    return f"an attribute {names[0]} of its own" if names else ""


def inside(x: Any) -> Any:
    return x.thing if isinstance(x, Outside) else x


def _is_outside(x: Any) -> bool:
    return isinstance(x, list | dict) and not is_young(x)


def _is_made(y: Any) -> bool:
    return not is_held(y) if isinstance(y, np.ndarray) else is_young(y)


def _may_change(y: Any) -> bool:
    if isinstance(y, _WRITTEN_TO):
        return True
    return not isinstance(y, _NAMED) and (isinstance(getattr(y, "__dict__", None), dict) or is_of_program(type(y)))
