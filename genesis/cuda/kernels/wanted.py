"""Whether kernels are wanted at all: not with ``GENESIS_CUDA_KERNELS=host``."""

from __future__ import annotations

import os


def kernels_wanted() -> bool:
    return os.environ.get("GENESIS_CUDA_KERNELS") != "host"
