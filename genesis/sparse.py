"""Functions of sparse matrices; `genesis.ops.products.sparse_functions` declares them.

>>> import genesis
>>> genesis.sparse.mm(genesis.eye(2).to_sparse(), genesis.ones(2, 1))
tensor([[1.],
        [1.]])
"""

from __future__ import annotations

from genesis.ops.products.sparse_functions import SPARSE

globals().update(SPARSE)

__all__ = sorted(SPARSE)
