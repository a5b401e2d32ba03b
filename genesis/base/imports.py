"""``import genesis as torch`` and then ``from torch.nn import Linear``: an error that says what works instead."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from genesis.base.errors import MissingImport, message


class NoTorch:
    """Asked last for a module; says of ``torch`` why it is none where the program calls Genesis so. Else it says nothing."""

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> None:
        if fullname.partition(".")[0] == "torch" and _calls_genesis_torch(sys._getframe(1)):
            problem = "Python looks for a module of this name, not for what the program calls torch"
            hint = "torch.nn.Linear instead of an import; or genesis.as_torch() before it, or genesis run --torch script.py"
            raise MissingImport(message(f"import {fullname}", problem, hint=hint))


def _calls_genesis_torch(frame: FrameType | None) -> bool:
    """Whether the program that imports has Genesis under the name ``torch``."""
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    named = None if frame is None else frame.f_locals.get("torch", frame.f_globals.get("torch"))
    return named is not None and named is sys.modules.get("genesis")


def watch() -> None:
    """Be asked for modules that nobody else finds."""
    if NoTorch not in sys.meta_path:
        sys.meta_path.append(NoTorch)
