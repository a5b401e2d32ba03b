"""What ranks do together, under the names of ``torch.distributed.algorithms``.

`join`   ranks that have more steps than others     `models`   ... and a model that is trained by all
`ddp_comm_hooks`   how its gradients are combined    `checkpoint_wrapper`   modules that compute again what they do not keep
"""

from __future__ import annotations

from genesis.distributed.algorithms import ddp_comm_hooks, join
from genesis.distributed.algorithms.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable", "ddp_comm_hooks", "join"]
