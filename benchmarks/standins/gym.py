"""Stands for gym, whose work goes on under the name of gymnasium: the same functions, under the older name."""

from __future__ import annotations

import sys

import gymnasium
from gymnasium import *  # noqa: F403
from gymnasium import spaces, wrappers

__version__ = gymnasium.__version__
__path__: list[str] = []
sys.modules.update({"gym.spaces": spaces, "gym.wrappers": wrappers})
