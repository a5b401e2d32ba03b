"""``import genesis as torch``: names and modules that only PyTorch has are found as in ``genesis run --torch``, and ``from
torch.nn import Linear`` is an error that says what works instead.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Any

from genesis.base.errors import MissingImport, message


class Asked:
    """Asked last for a module; finds those of Genesis that only PyTorch has, as ``genesis.autograd.function``. Says of
    ``torch`` why it is none where the program calls Genesis so. Else it says nothing.
    """

    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        if package == "genesis" and import_module("genesis.pytorch.names").is_module(f"torch.{rest}"):
            loader: Any = cls()  # by its methods: importlib.abc imports much more
            return ModuleSpec(fullname, loader, origin="genesis", is_package=True)
        if package == "torch" and _calls_genesis_torch(sys._getframe(1)):
            problem = "Python looks for a module of this name, not for what the program calls torch"
            hint = "torch.nn.Linear instead of an import; or genesis.as_torch() before it, or genesis run --torch script.py"
            raise MissingImport(message(f"import {fullname}", problem, hint=hint))
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        finder = import_module("genesis.pytorch.finder")
        return finder.TorchModule(spec.name.replace("genesis", "torch", 1))  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        """Names are found when they are asked for."""


def _calls_genesis_torch(frame: FrameType | None) -> bool:
    """Whether the program that imports has Genesis under the name ``torch``."""
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    named = None if frame is None else frame.f_locals.get("torch", frame.f_globals.get("torch"))
    return named is not None and named is sys.modules.get("genesis")


class _Looking(threading.local):
    now = False  # whether a name of PyTorch is being looked for: packages then have what is theirs


looking = _Looking()


def of_pytorch(package: str, name: str) -> Any:
    """What stands for a name of PyTorch that a package of ours does not have itself.

    Raises:
        AttributeError: PyTorch has no such name, or it is not there: then the message says why, and what to write instead
    """
    module = package.replace("genesis", "torch", 1)
    if not (looking.now or name.startswith("_")) and import_module("genesis.pytorch.names").exists(module, name):
        return import_module("genesis.pytorch.modules").find(module, name)
    raise AttributeError(f"module {package!r} has no attribute {name!r}")


def watch() -> None:
    """Be asked for modules that nobody else finds."""
    if Asked not in sys.meta_path:
        sys.meta_path.append(Asked)
