"""`genesis.data` where PyTorch's programs look for it."""

from __future__ import annotations

from genesis.data import *  # noqa: F403
from genesis.data import __all__ as __all__
