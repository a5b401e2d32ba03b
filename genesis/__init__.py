"""Genesis: a deep learning framework in pure Python, built around its function system.

`genesis.ops`        all operations            `genesis.nn`      modules, parameters, losses
`genesis.autograd`   differentiation           `genesis.optim`   optimizers
`genesis.core`       tensors and the engine    `genesis.data`    datasets and loaders
`genesis.io`         saving and loading        `genesis.datasets` small real data
"""

from __future__ import annotations

import importlib
from typing import Any

from genesis import autograd, ops
from genesis.autograd import (
    Function,
    GradientTape,
    custom_gradient,
    custom_jvp,
    custom_vjp,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
    stop_gradient,
)  # fmt: skip
from genesis.base.device import device
from genesis.base.dtypes import (
    bfloat16,
    bool,
    can_cast,
    cdouble,
    cfloat,
    complex64,
    complex128,
    double,
    dtype,
    finfo,
    float,
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
from genesis.core.printing import set_printoptions
from genesis.core.tensor import Size, Tensor
from genesis.ops import random

__version__ = "0.1.0"

globals().update(ops.PUBLIC)

_LAZY = {
    "cli": "genesis.cli", "data": "genesis.data", "datasets": "genesis.datasets", "io": "genesis.io", "nn": "genesis.nn",
    "optim": "genesis.optim", "testing": "genesis.testing", "tiny": "genesis.tiny", "utils": "genesis.utils",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Sub-packages are imported when they are first used."""
    if name in _LAZY:
        return importlib.import_module(_LAZY[name])
    if name in ("save", "load"):
        return getattr(importlib.import_module("genesis.io"), name)
    raise AttributeError(f"module 'genesis' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, "save", "load"})


__all__ = [
    "Function", "GradientTape", "Size", "Tensor", "autograd", "bfloat16", "bool", "can_cast", "cdouble", "cfloat", "complex64", "complex128",
    "custom_gradient", "custom_jvp", "custom_vjp", "device", "double", "dtype", "enable_grad", "finfo", "float", "float16", "float32", "float64", "get_default_dtype", "half", "iinfo",
    "inference_mode", "int", "int8", "int16", "int32", "int64", "is_grad_enabled", "is_inference_mode_enabled", "long", "no_grad",
    "ops", "promote_types", "random", "result_type", "set_default_dtype", "set_grad_enabled", "set_printoptions", "short",
    "stop_gradient", "uint8",
    "uint16", "uint32", "uint64", *sorted(ops.PUBLIC),
]  # fmt: skip
