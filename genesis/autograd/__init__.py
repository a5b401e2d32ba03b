"""The public face of differentiation.

`functional`  gradients of outputs with respect to inputs     `tape`        gradients as TensorFlow writes them
`custom`      gradients of your own, as decorators            `identities`  values as they are, gradients changed
`transposed`  the same from rules in forward mode             `gradcheck`   is a gradient right?
`foreign`     functions of NumPy, SciPy and Numba             `native`      functions of single numbers and of C
`functions`   four ops written out as `Function` classes     `explain`     why is there no gradient?
`anomaly`     where is the first bad value?                     `replay`      a backward recorded, step by step
`strong_zero` no NaN from branches not taken                  `profiler`    where does the time go?

Gradient modes, `Function` and the engine live in `genesis.core`.
"""

from __future__ import annotations

from genesis.autograd import graph
from genesis.autograd.anomaly import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from genesis.autograd.custom import custom_gradient, custom_vjp, defvjp
from genesis.autograd.explain import Explanation, explain
from genesis.autograd.foreign import ForeignFunction, from_numpy
from genesis.autograd.functional import backward, grad
from genesis.autograd.functions import AddFunction, MatMulFunction, MulFunction, ReluFunction
from genesis.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck, numerical_gradient_check
from genesis.autograd.identities import (
    clip_gradient,
    grad_pass_through,
    reverse_gradient,
    scale_gradient,
    stop_gradient,
    straight_through,
)  # fmt: skip
from genesis.autograd.native import from_ctypes, from_scalar
from genesis.autograd.profiler import profile
from genesis.autograd.replay import BackwardRecord, diff, record
from genesis.autograd.report import Report, VerifyError
from genesis.autograd.strong_zero import strong_zero
from genesis.autograd.tape import GradientTape
from genesis.autograd.transposed import custom_function, custom_jvp
from genesis.autograd.verify import verify
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
    "AddFunction", "MatMulFunction", "MulFunction", "ReluFunction",
    "profile", "BackwardRecord", "Explanation", "strong_zero", "diff", "record", "detect_anomaly", "explain", "is_anomaly_enabled", "set_detect_anomaly",
    "verify",
    "VerifyError",
    "Report",
    "Context", "ForeignFunction", "Function", "FunctionCtx", "GradcheckError", "GradientTape", "backward", "clip_gradient", "custom_function",
    "custom_gradient", "custom_jvp", "custom_vjp", "defvjp", "enable_grad", "from_ctypes", "from_numpy", "from_scalar", "grad",
    "grad_pass_through", "graph", "gradcheck", "gradgradcheck", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "no_grad",
    "numerical_gradient_check", "once_differentiable", "reverse_gradient", "scale_gradient", "set_grad_enabled", "stop_gradient", "straight_through",
]  # fmt: skip
