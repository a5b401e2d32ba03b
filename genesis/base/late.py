"""Modules that are imported when something of them is used: most programs never do."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

from genesis.base.locks import lock_that_forks_wait_for


class Late:
    """Stands for a module that takes a millisecond or more to import.

    >>> json = Late("json")
    >>> json.loads("[1, 2]")
    [1, 2]
    """

    def __init__(self, module: str) -> None:
        self._module = module
        self._loaded: Any = None

    def __getattr__(self, name: str) -> Any:
        module = self._loaded
        if module is None:
            module = importlib.import_module(self._module)
            if not getattr(module.__spec__, "_initializing", False):  # else others have to wait for the rest of it
                self._loaded = module
        return getattr(module, name)


_running = lock_that_forks_wait_for()  # one thread at a time runs a module; others wait for what it defines


class LateModule(ModuleType):
    """A module of a package that is found and run when something of it is asked for; from then on it is as any other."""

    def __getattribute__(self, name: str) -> Any:
        get = super().__getattribute__
        if name not in ("__class__", "__name__", "__spec__"):  # of which imports want to know
            with _running:
                if get("__spec__") is None:
                    _run(self)
        return get(name)


def _run(module: ModuleType) -> None:
    name = module.__name__
    package = name.rpartition(".")[0]
    spec = PathFinder.find_spec(name, sys.modules[package].__path__)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    module.__spec__ = spec
    try:
        module.__loader__, module.__package__ = spec.loader, package
        module.__file__ = spec.origin
        spec.loader.exec_module(module)
        module.__class__ = ModuleType
    except BaseException:
        module.__spec__ = None
        raise


def late_modules(package: str, names: str) -> None:
    """Let these modules of a package run when something of them is used, and not before."""
    for name in names.split():
        full = f"{package}.{name}"
        if full not in sys.modules:
            sys.modules[full] = module = LateModule(full)
            setattr(sys.modules[package], name, module)
