"""NVIDIA's GPUs, or one that NumPy stands for (``GENESIS_CUDA=emulate``).

`genesis.cuda.runtime`   the driver, devices, streams and events
`genesis.cuda.memory`    memory of devices, used again
"""

from genesis.cuda.runtime.connection import available as is_available
from genesis.cuda.runtime.streams import Event, Stream

__all__ = ["Event", "Stream", "is_available"]
