"""Whether kernels are wanted at all: not with ``GENESIS_CUDA_KERNELS=host``."""

from __future__ import annotations

import os

from genesis.cuda.runtime import connection

_known: list[bool] = []  # asked once for each driver
connection.followers.append(_known.clear)


def kernels_wanted() -> bool:
    if not _known:
        _known.append(os.environ.get("GENESIS_CUDA_KERNELS") != "host")
    return _known[0]
