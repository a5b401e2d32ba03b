"""Genesis: a deep learning framework in pure Python, built around its function system.

`genesis.ops`        all operations            `genesis.nn`      modules, parameters, losses
`genesis.autograd`   differentiation           `genesis.optim`   optimizers
`genesis.core`       tensors and the engine    `genesis.data`    datasets and loaders
`genesis.io`         saving and loading        `genesis.datasets` small real data
`genesis.func`       functions of functions    `genesis.debug`   pictures of graphs
`genesis.jit`        graphs of whole steps     `genesis.amp`     mixed precision
`genesis.compile`    functions as one call     `genesis.compiler` what is asked of it
`genesis.linalg`     linear algebra            `genesis.fft`     Fourier transforms
`genesis.special`    special functions         `genesis.distributions` random variables
`genesis.masked`     reductions with masks     `genesis.signal`  windows of signals
`genesis.library`    ops of users              `genesis.devices` devices of users
`genesis.sparse`     sparse matrices           `genesis.testing` checks of ops and gradients
`genesis.nested`     tensors of many lengths   `genesis.overrides` classes with __torch_function__
`genesis.distributed` several processes       `genesis.pytorch`   programs for PyTorch
`genesis.cuda`       NVIDIA's GPUs           `genesis.fx`      programs as graphs
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from numpy import ndarray as NDArray  # what a tensor on the CPU holds

from genesis.base.collector import waiting as _waiting

with _waiting():
    from genesis import autograd, ops
from genesis.autograd import (
    Context,
    Function,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)  # fmt: skip
from genesis.base.device import device, get_default_device, set_default_device
from genesis.base.dtypes import (
    bfloat16,
    bool,
    can_cast,
    cdouble,
    cfloat,
    chalf,
    complex32,
    complex64,
    complex128,
    double,
    dtype,
    finfo,
    float,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    get_default_dtype,
    half,
    iinfo,
    int,
    int8,
    int16,
    int32,
    int64,
    long,
    promote_types,
    result_type,
    set_default_dtype,
    short,
    uint8,
    uint16,
    uint32,
    uint64,
)  # fmt: skip
from genesis.base.imports import of_pytorch as _of_pytorch
from genesis.base.imports import watch as _watch
from genesis.base.layouts import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    jagged,
    layout,
    memory_format,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)  # fmt: skip
from genesis.base.threads import get_num_interop_threads, get_num_threads, set_num_interop_threads, set_num_threads
from genesis.core.graph.autocast import default as _default_autocast
from genesis.core.graph.printing import set_printoptions
from genesis.core.graph.size import Size
from genesis.core.graph.tensor import Tensor
from genesis.kernels import cpu as _cpu_kernels  # attach themselves to the ops
from genesis.ops.creation import random

Device, DType = device, dtype  # the classes, under the names that annotations are written with

__version__ = "0.1.0"

globals().update(ops.PUBLIC)

_LAZY = {
    "amp": "genesis.amp",
    "array_api": "genesis.array_api",
    "cli": "genesis.cli",
    "compiler": "genesis.compiler",
    "cuda": "genesis.cuda",
    "data": "genesis.data",
    "datasets": "genesis.datasets",
    "debug": "genesis.debug",
    "distributed": "genesis.distributed",
    "distributions": "genesis.distributions",
    "fft": "genesis.fft",
    "func": "genesis.func",
    "fx": "genesis.fx",
    "interop": "genesis.interop",
    "io": "genesis.io",
    "jit": "genesis.jit",
    "library": "genesis.library",
    "linalg": "genesis.linalg",
    "masked": "genesis.masked",
    "nested": "genesis.nested",
    "nn": "genesis.nn",
    "onnx": "genesis.onnx",
    "optim": "genesis.optim",
    "overrides": "genesis.overrides",
    "profiler": "genesis.profiler",
    "pytorch": "genesis.pytorch",
    "signal": "genesis.signal",
    "sklearn": "genesis.sklearn",
    "sparse": "genesis.sparse",
    "special": "genesis.special",
    "testing": "genesis.testing",
    "tiny": "genesis.tiny",
    "utils": "genesis.utils",
}
_HIDDEN = {"Any", "TYPE_CHECKING", "ModuleType", "annotations", "arrays", "base", "core", "importlib", "kernels", "sys"}
_LAZY_NAMES = {
    "GradientTape": "genesis.autograd",
    "as_torch": "genesis.pytorch",
    "autocast": "genesis.amp",
    "compile": "genesis.compiler",
    "custom_gradient": "genesis.autograd",
    "custom_jvp": "genesis.autograd",
    "custom_vjp": "genesis.autograd",
    "draw": "genesis.debug",
    "get_autocast_dtype": "genesis.amp",
    "is_autocast_enabled": "genesis.amp",
    "load": "genesis.io",
    "save": "genesis.io",
    "stop_gradient": "genesis.autograd",
    "vmap": "genesis.func",
}


if TYPE_CHECKING:  # editors and type checkers know all there is, and that there is nothing else
    from genesis.autograd import GradientTape, custom_gradient, custom_jvp, custom_vjp, stop_gradient
    from genesis.names import *
else:

    def __getattr__(name: str) -> Any:
        """Sub-packages are imported when they are first used, and what stands for names of PyTorch."""
        if name in _LAZY:
            return _imported(_LAZY[name])
        if name in _LAZY_NAMES:
            value = getattr(_imported(_LAZY_NAMES[name]), name)
            if name in __all__:
                globals()[name] = value
            return value
        return _of_pytorch("genesis", name)

    def _imported(name: str) -> ModuleType:
        with _waiting():
            return importlib.import_module(name)


def __dir__() -> list[str]:
    """What is public, registered operations included: completion in an editor shows no imports of this file."""
    return sorted({*globals(), *_LAZY, *_LAZY_NAMES, "enable_autocast"} - _HIDDEN)


class _Genesis(ModuleType):
    """This module, with one attribute that acts when it is written: ``genesis.enable_autocast = True``."""

    @property
    def enable_autocast(self) -> Any:
        """Whether autocast is on wherever no context says otherwise."""
        return _default_autocast[:] != []

    @enable_autocast.setter
    def enable_autocast(self, value: Any) -> None:
        importlib.import_module("genesis.amp.autocast").set_default(value)


sys.modules[__name__].__class__ = _Genesis
_watch()  # `import genesis as torch` and then `from torch.nn import Linear` is told what to do


__all__ = [
    "Context",
    "DType",
    "Device",
    "Function",
    "GradientTape",
    "NDArray",
    "Size",
    "Tensor",
    "autograd",
    "bfloat16",
    "bool",
    "can_cast",
    "cdouble",
    "cfloat",
    "chalf",
    "complex32",
    "complex64",
    "complex128",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "device",
    "double",
    "dtype",
    "enable_grad",
    "finfo",
    "float",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "float64",
    "get_default_device",
    "get_default_dtype",
    "get_num_interop_threads",
    "get_num_threads",
    "half",
    "iinfo",
    "inference_mode",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "long",
    "no_grad",
    "ops",
    "promote_types",
    "random",
    "result_type",
    "set_default_device",
    "set_default_dtype",
    "set_grad_enabled",
    "set_num_interop_threads",
    "set_num_threads",
    "set_printoptions",
    "short",
    "stop_gradient",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    *sorted(ops.PUBLIC),
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "jagged",
    "layout",
    "memory_format",
    "preserve_format",
    "sparse_bsc",
    "sparse_bsr",
    "sparse_coo",
    "sparse_csc",
    "sparse_csr",
    "strided",
]
