"""``torch.ops``: operations that programs declare, and PyTorch's own under the names of its dispatcher."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from genesis.base.errors import MissingName, message
from genesis.pytorch.libraries import of_a_library
from genesis.pytorch.stand_ins.common import Values, refusal, values

_ROOMS = ("torch", "torch.Tensor", "torch.nn.functional")  # where the operations of ``aten`` are functions or methods


def declared(namespace: str) -> Any:
    """The operations of a namespace that a program declared, or None."""
    space = getattr(importlib.import_module("genesis.ops"), namespace, None)
    return space if isinstance(space, SimpleNamespace) else None


class Packet:
    """An operation of ``torch.ops.aten``: the function of that name, whatever the overload.

    >>> import genesis
    >>> from genesis.pytorch import installed
    >>> with installed() as torch:
    ...     torch.ops.aten.add.Tensor(genesis.ones(2), genesis.ones(2), alpha=3)
    tensor([4., 4.])
    """

    def __init__(self, name: str, function: Any) -> None:
        self.__name__, self._function = name, function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __getattr__(self, overload: str) -> Packet:
        if overload.startswith("__"):
            raise AttributeError(overload)
        return self

    def __repr__(self) -> str:
        return f"<operation aten::{self.__name__}>"


class _Aten:
    def __getattr__(self, name: str) -> Packet:
        if name.startswith("__"):
            raise AttributeError(name)
        for room in _ROOMS:
            owner = (
                importlib.import_module("genesis").Tensor if room == "torch.Tensor" else importlib.import_module(room)
            )
            function = getattr(owner, name, None)
            if callable(function):
                packet = self.__dict__[name] = Packet(name, function)
                return packet
        why = f"torch.ops.aten.{name} is not in Genesis: no function or method has this name"
        if of_a_library(sys._getframe(1)):  # it may only ask for the name, as a key of a table
            return Packet(name, refusal(f"torch.ops.aten.{name}", why))
        raise MissingName(why)


def _load_library(path: Any) -> None:
    """Code that was compiled for PyTorch cannot be used: torchvision's operations are written again, and libraries that can
    go on without theirs are told by an OSError.
    """
    if Path(path).parent.name == "torchvision" and Path(path).name.startswith("_C"):
        importlib.import_module("genesis.pytorch.vision").declare()
        return
    raise OSError(message("torch.ops.load_library", f"{path} is compiled for PyTorch"))


@values("torch.ops")
def _ops() -> Values:
    return {"load_library": _load_library, "loaded_libraries": set(), "aten": _Aten()}
