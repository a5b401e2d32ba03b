"""Discrete Fourier transforms; `genesis.ops.fourier` declares them.

Real numbers of 32 bits give complex ones of 64, those of 64 complex ones of 128; integers count as the default dtype.
"""

from __future__ import annotations

from genesis.ops.fourier import FUNCTIONS

globals().update(FUNCTIONS)

__all__ = sorted(FUNCTIONS)
