"""The public face of differentiation.

`functional`  gradients of outputs with respect to inputs     `gradcheck`   is a gradient right?

Gradient modes, `Function` and the engine live in `genesis.core`.
"""

from __future__ import annotations

from genesis.autograd.functional import backward, grad
from genesis.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from genesis.core.context import Context, FunctionCtx
from genesis.core.function import Function
from genesis.core.honest import once_differentiable
from genesis.core.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)  # fmt: skip

__all__ = [
    "Context", "Function", "FunctionCtx", "GradcheckError", "backward", "enable_grad", "grad", "gradcheck", "gradgradcheck", "inference_mode", "once_differentiable",
    "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "set_grad_enabled",
]  # fmt: skip
