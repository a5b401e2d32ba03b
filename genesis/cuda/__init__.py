"""NVIDIA's GPUs, or one that NumPy stands for (``GENESIS_CUDA=emulate``), under PyTorch's names.

Nothing of it has run on a GPU yet: the guide (``docs/guide/cuda.md``) says what was run on what.

`genesis.cuda.runtime`   the driver, devices, streams and events
`genesis.cuda.memory`    memory of devices, used again
`genesis.cuda.arrays`    what a tensor on a GPU holds, and its memory as Genesis asks for it
`genesis.cuda.kernels`   what computes ops

and what programs call: `facts`, `queues`, `usage`, `seeds`, `graphs`.
"""

from genesis.arrays.memory import register as _register
from genesis.cuda import facts, graphs, queues, seeds, usage
from genesis.cuda.arrays import MEMORY as _MEMORY
from genesis.cuda.facts import *
from genesis.cuda.graphs import *
from genesis.cuda.kernels import choose as _choose
from genesis.cuda.kernels.host import HostWarning
from genesis.cuda.queues import *
from genesis.cuda.runtime.errors import CudaError, CudaOutOfMemory
from genesis.cuda.seeds import *
from genesis.cuda.usage import *

OutOfMemoryError = CudaOutOfMemory

_MEMORY.choose = _choose.kernel_of
_register(_MEMORY)


def __getattr__(name: str) -> object:
    if name == "amp":  # which is built on this
        from importlib import import_module

        return import_module("genesis.amp")
    raise AttributeError(f"module 'genesis.cuda' has no attribute {name!r}")


__all__ = [
    "CudaError", "CudaOutOfMemory", "HostWarning", "OutOfMemoryError",
    *facts.__all__, *graphs.__all__, *queues.__all__, *seeds.__all__, *usage.__all__,
]  # fmt: skip
