"""Windows of signals; `genesis.ops.fourier.windows` declares them.

>>> import genesis
>>> genesis.signal.windows.hann(3)
tensor([0., 1., 0.])
"""

from __future__ import annotations

from genesis.ops.fourier.windows import WINDOWS

globals().update(WINDOWS)
__path__: list[str] = []  # a module of its own, as in PyTorch, for imports

__all__ = sorted(WINDOWS)
