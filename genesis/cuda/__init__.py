"""NVIDIA's GPUs, or one that NumPy stands for (``GENESIS_CUDA=emulate``), under PyTorch's names.

The guide (``docs/guide/cuda.md``) says what was run on which GPU, and what on the emulated device.

`genesis.cuda.runtime`   the driver, devices, streams and events
`genesis.cuda.memory`    memory of devices, used again
`genesis.cuda.arrays`    what a tensor on a GPU holds, and its memory as Genesis asks for it
`genesis.cuda.kernels`   what computes ops
`genesis.cuda.launch`    how kernels are compiled, kept, loaded and started
`genesis.cuda.libraries` NVIDIA's own, where they are installed
`genesis.cuda.steps`     programs of the compiler: a whole training step as one graph

and what programs call: `facts`, `queues`, `usage`, `seeds`, `graphs`, `pools`, `nvtx`.
"""

from genesis.arrays.memory import register as _register
from genesis.base.device import MEMORIES as _MEMORIES
from genesis.base.imports import of_pytorch as _of_pytorch
from genesis.cuda import dlpack as _dlpack
from genesis.cuda import facts, graphs, nvtx, pools, queues, seeds, usage
from genesis.cuda.arrays import MEMORY
from genesis.cuda.facts import *
from genesis.cuda.graphs import *
from genesis.cuda.kernels import activations as _activations
from genesis.cuda.kernels import attention as _attention
from genesis.cuda.kernels import channels as _channels
from genesis.cuda.kernels import choose as _choose
from genesis.cuda.kernels import draws as _draws
from genesis.cuda.kernels import fused as _fused  # these attach themselves to the ops
from genesis.cuda.kernels import heads as _heads
from genesis.cuda.kernels import losses as _losses
from genesis.cuda.kernels import norms as _norms
from genesis.cuda.kernels.host import HostWarning
from genesis.cuda.libraries import nccl as _nccl
from genesis.cuda.pools import *
from genesis.cuda.queues import *
from genesis.cuda.runtime import connection as _connection
from genesis.cuda.runtime.errors import CudaError, CudaOutOfMemory
from genesis.cuda.seeds import *
from genesis.cuda.usage import *

OutOfMemoryError = CudaOutOfMemory


def _step_of(program: object, device: object) -> object:
    from genesis.cuda.steps.step import DeviceStep  # which wants the compiler, and 30 ms

    return DeviceStep(program, device)  # type: ignore[arg-type]


MEMORY.choose, MEMORY.write, MEMORY.draw = _choose.kernel_of, _choose.written, _draws.drawn
MEMORY.updated, MEMORY.reports = _choose.updated, _choose.gathers.reports_indices
MEMORY.exchange, MEMORY.steps, MEMORY.between_ranks = _dlpack, _step_of, _nccl
_register(MEMORY)


def _follow() -> None:
    """Devices of this type are known while there is one."""
    if facts.is_available():
        _MEMORIES[MEMORY.type] = MEMORY
    else:
        _MEMORIES.pop(MEMORY.type, None)


_connection.followers.append(_follow)
_follow()


def __getattr__(name: str) -> object:
    if name == "amp":  # which is built on this
        from importlib import import_module

        return import_module("genesis.amp")
    return _of_pytorch(__name__, name)


__all__ = [
    "nvtx", "CudaError", "CudaOutOfMemory", "HostWarning", "OutOfMemoryError",
    *facts.__all__, *graphs.__all__, *pools.__all__, *queues.__all__, *seeds.__all__, *usage.__all__,
]  # fmt: skip
