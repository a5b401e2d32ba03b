"""The public face of differentiation.

`gradients`   gradients of outputs with respect to inputs     `graph`       nodes and what they save, from outside
`forms`       gradients of your own, in every form            `checking`    is a gradient right?
`inspection`  where is the gradient, the NaN, the time?       `func`        functions of functions, see `genesis.func`
`functional`  Jacobians and Hessians by PyTorch's names       `forward_ad`  forward mode by hand

Gradient modes, `Function` and the engine live in `genesis.core`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from genesis.autograd import forward_ad, graph
from genesis.autograd.gradients import backward, grad
from genesis.base.imports import of_pytorch
from genesis.core.functions.context import Context, FunctionCtx
from genesis.core.functions.function import Function
from genesis.core.functions.second_order import once_differentiable
from genesis.core.graph.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)  # fmt: skip

if TYPE_CHECKING:
    from genesis.autograd import functional
    from genesis.autograd.checking.gradcheck import GradcheckError, gradcheck, gradgradcheck, numerical_gradient_check
    from genesis.autograd.checking.report import Report, VerifyError
    from genesis.autograd.checking.verify import verify
    from genesis.autograd.forms.custom import custom_gradient, custom_vjp, defvjp
    from genesis.autograd.forms.foreign import ForeignFunction, from_numpy
    from genesis.autograd.forms.functions import AddFunction, MatMulFunction, MulFunction, ReluFunction
    from genesis.autograd.forms.identities import (
        clip_gradient,
        grad_pass_through,
        reverse_gradient,
        scale_gradient,
        stop_gradient,
        straight_through,
    )
    from genesis.autograd.forms.native import from_ctypes, from_scalar
    from genesis.autograd.forms.tape import GradientTape
    from genesis.autograd.forms.transposed import custom_function, custom_jvp
    from genesis.autograd.inspection.anomaly import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
    from genesis.autograd.inspection.explain import Explanation, explain
    from genesis.autograd.inspection.profiler import profile
    from genesis.autograd.inspection.replay import BackwardRecord, diff, record
    from genesis.autograd.inspection.strong_zero import strong_zero

_LAZY = {  # what a training does not need, by where it is
    "checking.gradcheck": ("GradcheckError", "gradcheck", "gradgradcheck", "numerical_gradient_check"),
    "checking.report": ("Report", "VerifyError"),
    "checking.verify": ("verify",),
    "forms.custom": ("custom_gradient", "custom_vjp", "defvjp"),
    "forms.foreign": ("ForeignFunction", "from_numpy"),
    "forms.functions": ("AddFunction", "MatMulFunction", "MulFunction", "ReluFunction"),
    "forms.identities": (
        "clip_gradient", "grad_pass_through", "reverse_gradient", "scale_gradient", "stop_gradient", "straight_through",
    ),
    "forms.native": ("from_ctypes", "from_scalar"),
    "forms.tape": ("GradientTape",),
    "forms.transposed": ("custom_function", "custom_jvp"),
    "inspection.anomaly": ("detect_anomaly", "is_anomaly_enabled", "set_detect_anomaly"),
    "inspection.explain": ("Explanation", "explain"),
    "inspection.profiler": ("profile",),
    "inspection.replay": ("BackwardRecord", "diff", "record"),
    "inspection.strong_zero": ("strong_zero",),
}  # fmt: skip
_HOMES = {name: f"{__name__}.{module}" for module, names in _LAZY.items() for name in names}


def __getattr__(name: str) -> Any:
    """What a training does not need is imported when it is first used."""
    if name in _HOMES:
        globals()[name] = value = getattr(importlib.import_module(_HOMES[name]), name)
        return value
    if name in ("checking", "forms", "functional", "inspection"):
        return importlib.import_module(f"{__name__}.{name}")
    return of_pytorch(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


__all__ = [
    "AddFunction",
    "MatMulFunction",
    "MulFunction",
    "ReluFunction",
    "profile",
    "BackwardRecord",
    "Explanation",
    "strong_zero",
    "diff",
    "record",
    "detect_anomaly",
    "explain",
    "is_anomaly_enabled",
    "set_detect_anomaly",
    "verify",
    "VerifyError",
    "Report",
    "Context",
    "ForeignFunction",
    "Function",
    "FunctionCtx",
    "GradcheckError",
    "GradientTape",
    "backward",
    "clip_gradient",
    "custom_function",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "defvjp",
    "enable_grad",
    "forward_ad",
    "from_ctypes",
    "from_numpy",
    "from_scalar",
    "functional",
    "grad",
    "grad_pass_through",
    "graph",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "numerical_gradient_check",
    "once_differentiable",
    "reverse_gradient",
    "scale_gradient",
    "set_grad_enabled",
    "stop_gradient",
    "straight_through",
]
