"""Errors of the driver: a class for those that programs treat differently, with the driver's name and text.

CudaError               RuntimeError          a call of the driver failed
├── StickyError                               ... and from now on every call on this device does
├── CaptureError                              ... because a graph is being recorded
├── InvalidCall                               ... because of what it was given
└── RaceError                                 the emulated device saw what a GPU would compute wrongly
CudaOutOfMemory         OutOfMemoryError      there is less memory than was asked for
"""

from __future__ import annotations

from genesis.base.errors import GenesisError, OutOfMemoryError, message


class CudaError(GenesisError, RuntimeError):
    """A call of the CUDA driver failed; ``name`` is what the driver calls the reason."""

    name = "CUDA_ERROR_UNKNOWN"


class StickyError(CudaError):
    """A kernel went wrong: nothing that this process computes on the device can be believed any more."""


class CaptureError(CudaError):
    """A call that cannot be part of a graph, while one is being recorded."""


class InvalidCall(CudaError):
    """The driver refuses what it was given."""


class RaceError(CudaError):
    """Two uses of the same memory of which nothing says which comes first."""


class CudaOutOfMemory(OutOfMemoryError):
    """There is less memory on the device than was asked for."""


OUT_OF_MEMORY = "CUDA_ERROR_OUT_OF_MEMORY"
STICKY = frozenset(
    {
        "CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_ILLEGAL_INSTRUCTION", "CUDA_ERROR_ASSERT",
        "CUDA_ERROR_MISALIGNED_ADDRESS", "CUDA_ERROR_INVALID_ADDRESS_SPACE", "CUDA_ERROR_INVALID_PC",
        "CUDA_ERROR_HARDWARE_STACK_ERROR", "CUDA_ERROR_LAUNCH_TIMEOUT", "CUDA_ERROR_ECC_UNCORRECTABLE",
    }
)  # fmt: skip
INVALID = frozenset({"CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_INVALID_HANDLE", "CUDA_ERROR_INVALID_DEVICE"})


def error(name: str, text: str, call: str) -> Exception:
    """The error for a result of the driver: its name, its text, and the call that gave it.

    >>> error("CUDA_ERROR_INVALID_VALUE", "invalid argument", "launch")
    InvalidCall('cuda: launch gives CUDA_ERROR_INVALID_VALUE, invalid argument')
    """
    said = message("cuda", f"{call} gives {name}, {text}")
    if name == OUT_OF_MEMORY:
        return CudaOutOfMemory(said)
    made = _class_of(name)(said)
    made.name = name
    return made


def _class_of(name: str) -> type[CudaError]:
    if name in STICKY:
        return StickyError
    if "CAPTURE" in name:
        return CaptureError
    return InvalidCall if name in INVALID else CudaError
