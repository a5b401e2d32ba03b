"""Operations of your own, declared once: kernels by device, shapes without data, gradients, autocast.

    @genesis.library.custom_op("mylib::scale", mutates_args=())
    def scale(x: genesis.Tensor, k: float) -> genesis.Tensor: ...

is called as ``scale(x, 2.0)`` or ``genesis.ops.mylib.scale(x, 2.0)``; `CustomOp` says what may be registered for it,
and `opcheck` tests that what was registered fits together.
"""

from __future__ import annotations

from genesis.library.checks import opcheck
from genesis.library.operations import CustomOp, custom_op, remove
from genesis.library.registering import (
    Library,
    define,
    impl,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_vmap,
)

__all__ = [
    "CustomOp",
    "Library",
    "custom_op",
    "define",
    "impl",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_vmap",
    "remove",
]
