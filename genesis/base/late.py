"""Modules that are imported when something of them is used: most programs never do."""

from __future__ import annotations

import importlib
from typing import Any


class Late:
    """Stands for a module of the standard library that takes milliseconds to import.

    >>> json = Late("json")
    >>> json.loads("[1, 2]")
    [1, 2]
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._module), name)
