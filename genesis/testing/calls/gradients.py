"""Functions of functions, gradients and modes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import genesis
from genesis import autograd, nn
from genesis.core.call.op import case
from genesis.testing.calls.shared import After, Calls, double, leaf, plain, square
from genesis.testing.make import Maker


def _entered(mode: Any, t: Maker) -> None:
    """A mode as a context; a decorated function is left alone."""
    if hasattr(mode, "__enter__"):
        with mode:
            double(t(3))


def _of_one(function: Any, t: Maker) -> None:
    """What a transform or a form makes is called, and differentiated."""
    y = function(leaf(t))
    y = y[0] if isinstance(y, tuple) else y
    if isinstance(y, genesis.Tensor) and y.requires_grad:
        y.sum().backward()


def _transposed(function: Any, t: Maker) -> None:
    function(t(3))


CALLS: dict[str, Calls] = {
    "autograd.grad": lambda t: [case(square(x := t(3).requires_grad_()), [x])],
    "autograd.backward": lambda t: [case([square(t(3).requires_grad_())])],
    **{
        f"{space}.{name}": (lambda t: [case(square, t(3))])
        for space, names in {
            "autograd": ("jacobian", "hessian"),
            "autograd.functional": ("jacobian", "hessian"),
        }.items()
        for name in names
    },
    **{
        f"func.{name}": (lambda t: [case(square)])
        for name in ("grad", "grad_and_value", "vmap", "jacrev", "jacfwd", "hessian")
    },
    "func.vjp": lambda t: [case(square, t(3))],
    "func.jvp": lambda t: [case(square, (t(3),), (t(3),))],
    "func.linearize": lambda t: [case(square, t(3))],
    "func.value_and_grad": lambda t: [case(square)],
    "func.hvp": lambda t: [case(square, (t(3),), (t(3),))],
    "func.linear_transpose": lambda t: [case(double, t(3))],
    "func.functional_call": lambda t: [
        case(nn.ReLU(), {}, (t(3),)),
        case(nn.Linear(3, 2).double(), {"bias": t(2)}, t(2, 3)),
    ],
    "func.stack_module_state": lambda t: [case([nn.Linear(2, 3), nn.Linear(2, 3)])],
    "autograd.set_detect_anomaly": lambda t: [case(False)],
    **{
        name: plain
        for name in (
            "enable_grad",
            "no_grad",
            "inference_mode",
            "GradientTape",
            "autograd.detect_anomaly",
            "autograd.profile",
            "autograd.strong_zero",
        )
    },
    # functions of functions
    "custom_gradient": lambda t: [case(lambda x: (x * 2, lambda g: g * 2))],
    "custom_jvp": lambda t: [case(double)],
    "custom_vjp": lambda t: [case(double)],
    "autograd.custom_function": lambda t: [case(double)],
    "autograd.defvjp": lambda t: [case(double, lambda ans, x: lambda g: g * 2)],
    "autograd.straight_through": lambda t: [case(genesis.round)],
    "autograd.grad_pass_through": lambda t: [case(genesis.round)],
    "autograd.once_differentiable": lambda t: [case(lambda ctx, g: g)],
    "autograd.from_numpy": lambda t: [case(np.sin, np.cos)],
    "autograd.from_scalar": lambda t: [case(math.sin, math.cos)],
    **{f"autograd.{name}": (lambda t: [case(leaf(t), 0.5)]) for name in ("scale_gradient", "reverse_gradient")},
    "autograd.clip_gradient": lambda t: [case(leaf(t), -1.0, 1.0)],
    **{
        f"autograd.{name}": (lambda t: [case(square, leaf(t))])
        for name in ("gradcheck", "gradgradcheck", "numerical_gradient_check", "verify")
    },
    "autograd.explain": lambda t: [case(x := leaf(t), square(x))],
    "autograd.record": lambda t: [case(square(leaf(t)))],
    "autograd.diff": lambda t: [case(autograd.record(square(leaf(t))), autograd.record(square(leaf(t))))],
}
AFTER: dict[str, After] = {
    **{f"func.{name}": _of_one for name in ("grad", "grad_and_value", "value_and_grad", "jacrev", "jacfwd", "hessian")},
    "func.vmap": lambda mapped, t: mapped(t(2, 3)),
    "func.linear_transpose": _transposed,
    "func.vjp": lambda pair, t: pair[1](t()),
    "func.linearize": lambda pair, t: pair[1](t(3)),
    "custom_jvp": lambda f, t: (f.defjvp(lambda primals, tangents: (f(*primals), double(tangents[0]))), _of_one(f, t)),
    "custom_vjp": lambda f, t: (f.defvjp(lambda x: (f(x), None), lambda kept, g: (double(g),)), _of_one(f, t)),
    **{
        name: _of_one
        for name in (
            "custom_gradient",
            "autograd.custom_function",
            "autograd.defvjp",
            "autograd.straight_through",
            "autograd.grad_pass_through",
            "autograd.from_numpy",
            "autograd.from_scalar",
        )
    },
    **{
        name: _entered
        for name in (
            "enable_grad",
            "no_grad",
            "inference_mode",
            "GradientTape",
            "autograd.detect_anomaly",
            "autograd.profile",
            "autograd.strong_zero",
        )
    },
}
