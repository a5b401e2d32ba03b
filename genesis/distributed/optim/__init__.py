"""Optimizers that divide their work among ranks, under the names of ``torch.distributed.optim``.

`zero`   each rank keeps the state of its part of the parameters
"""

from __future__ import annotations

from genesis.distributed.optim.zero import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]
