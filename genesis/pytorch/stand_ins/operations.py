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
from genesis.utils.aten import OpOverload, OpOverloadPacket, packet


def declared(namespace: str) -> Any:
    """The operations of a namespace that a program declared, or None."""
    space = getattr(importlib.import_module("genesis.ops"), namespace, None)
    return space if isinstance(space, SimpleNamespace) else None


class _Aten:
    """Functions by the names that PyTorch's dispatcher has for them.

    >>> import genesis
    >>> from genesis.pytorch import installed
    >>> with installed() as torch:
    ...     torch.ops.aten.add.Tensor(genesis.ones(2), genesis.ones(2), alpha=3)
    tensor([4., 4.])
    """

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__"):
            raise AttributeError(name)
        made = self._packet(name)
        if made is not None:
            self.__dict__[name] = made
            return made
        why = f"torch.ops.aten.{name} is not in Genesis: no function or method has this name"
        if of_a_library(sys._getframe(1)):  # it may only ask for the name, as a key of a table
            return OpOverloadPacket(name, refusal(f"torch.ops.aten.{name}", why))
        raise MissingName(why)

    def _packet(self, name: str) -> OpOverloadPacket | None:
        try:
            return packet(name)
        except MissingName:
            function = getattr(importlib.import_module("torch"), name, None)  # what stands for a name there
            return OpOverloadPacket(name, function) if callable(function) else None


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


values("torch._ops")(lambda: {"OpOverload": OpOverload, "OpOverloadPacket": OpOverloadPacket})


@values("torch.utils._python_dispatch")
def _python_dispatch() -> Values:
    dispatch = importlib.import_module("genesis.utils.python_dispatch")
    return {
        "BaseTorchDispatchMode": dispatch.BaseTorchDispatchMode, "_disable_current_modes": dispatch.disabled_modes,
        "_get_current_dispatch_mode": lambda: (dispatch.modes() or [None])[-1],
        "_get_current_dispatch_mode_stack": dispatch.modes,
        "return_and_correct_aliasing": lambda func, args, kwargs, out: out,
    }  # fmt: skip
