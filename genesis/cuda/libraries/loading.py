"""Which libraries of NVIDIA there are. Each is looked for once, when it is first wanted; whatever goes wrong then is
written down, and what wanted it does without.

``GENESIS_CUDA_LIBRARIES`` names those that may be used, with commas between; ``none`` for none of them; all by default.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from genesis.cuda.runtime import connection
from genesis.cuda.runtime.devices import Device

Made = TypeVar("Made")

MODULES = {
    "cublas": "nvmath.bindings.cublas",
    "cublaslt": "nvmath.bindings.cublasLt",
    "cudnn": "cudnn",
    "cufft": "nvmath.bindings.cufft",
    "cusolver": "nvmath.bindings.cusolverDn",
    "nccl": "nccl.bindings.nccl",
}
_loaded: dict[str, Any] = {}
_reasons: dict[str, str] = {}
_stand_ins: dict[str, Any] = {}


def library(name: str) -> Any:
    """The module of a library; None where there is none to use (`why_none`)."""
    if name not in _loaded:
        _loaded[name], _reasons[name] = _look(name)
    return _loaded[name]


def why_none(name: str) -> str:
    """Why a library is not used; empty where it is."""
    library(name)
    return _reasons[name]


def of_device(on: Device, make: Callable[[Device], Made], *names: str) -> Made | None:
    """What is made of libraries for a device, once; None where one of them is not there, or does not work."""
    for name in names:
        if library(name) is None:
            return None
    try:
        return cast(Made, on.keep(names[0], make))
    except Exception as error:  # the package is there, and the library, or what it needs, is not
        _loaded[names[0]], _reasons[names[0]] = None, f"{type(error).__name__}: {error}".splitlines()[0]
        return None


def _look(name: str) -> tuple[Any, str]:
    asked = os.environ.get("GENESIS_CUDA_LIBRARIES", "")
    if asked and name not in asked.split(","):
        return None, f"GENESIS_CUDA_LIBRARIES is {asked}"
    if name in _stand_ins:
        return _stand_ins[name], ""
    if not connection.available() or connection.driver().emulated:
        return None, "there is no GPU"
    try:
        return importlib.import_module(MODULES[name]), ""
    except Exception as error:  # not only ImportError: packages look for shared libraries when they are imported
        return None, f"{type(error).__name__}: {error}".splitlines()[0]


@contextmanager
def standing_in(**modules: Any) -> Iterator[None]:
    """Inside, these take the place of libraries: for tests."""
    before = dict(_stand_ins)
    _stand_ins.update(modules)
    _forget()
    try:
        yield
    finally:
        _stand_ins.clear()
        _stand_ins.update(before)
        _forget()


def _forget() -> None:
    _loaded.clear()
    _reasons.clear()


connection.followers.append(_forget)
