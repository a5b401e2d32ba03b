"""Linear algebra: solutions, factors, eigenvalues, singular values, norms; `genesis.ops.linalg` declares them.

Matrices are the last two dimensions, (\\*, m, n), all others are batches. float32, float64, complex64 and complex128;
computed by NumPy's LAPACK on the host.
"""

from __future__ import annotations

from genesis.base.errors import LinAlgError
from genesis.ops.linalg import FUNCTIONS

globals().update(FUNCTIONS)

__all__ = ["LinAlgError", *sorted(FUNCTIONS)]
