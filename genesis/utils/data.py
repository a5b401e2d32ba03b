"""`genesis.data` where PyTorch's programs look for it."""

from __future__ import annotations

from functools import partial as _partial
from typing import TYPE_CHECKING

from genesis.base.imports import of_pytorch as _of_pytorch
from genesis.data import *  # noqa: F403
from genesis.data import __all__ as __all__

__path__: list[str] = []  # modules of its own, as in PyTorch, for imports

if not TYPE_CHECKING:  # who checks types knows all there is
    __getattr__ = _partial(_of_pytorch, __name__)  # names that only PyTorch has
