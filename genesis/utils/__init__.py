"""Tools around training: `checkpoint` (recompute instead of save), `pytree` (nested containers), `tensorboard`
(what a run is watched by), `data` (see `genesis.data`).
"""

from __future__ import annotations

import importlib
from typing import Any

from genesis.base.imports import of_pytorch
from genesis.utils import checkpoint, pytree


def __getattr__(name: str) -> Any:
    if name in ("data", "tensorboard"):
        return importlib.import_module(f"genesis.utils.{name}")
    return of_pytorch(__name__, name)


__all__ = ["checkpoint", "data", "pytree", "tensorboard"]
