"""Reductions and normalisations of the elements at which a mask is true; `genesis.ops.reductions.masked` declares them.

>>> import genesis
>>> here = genesis.tensor([True, True, False])
>>> genesis.masked.mean(genesis.tensor([1., 2., 9.]), mask=here)
tensor(1.5000)
"""

from __future__ import annotations

from genesis.ops.reductions.masked import FUNCTIONS

globals().update(FUNCTIONS)

__all__ = sorted(FUNCTIONS)
