"""What ranks do together, under the names of ``torch.distributed.algorithms``.

`join`   ranks that have more steps than others     `models`   ... and a model that is trained by all
"""

from __future__ import annotations

from genesis.distributed.algorithms import join
from genesis.distributed.algorithms.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable", "join"]
