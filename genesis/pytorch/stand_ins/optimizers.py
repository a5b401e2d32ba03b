"""Helpers of PyTorch's own optimizers and schedules, which those that are derived from their files import."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import genesis
from genesis.core.graph.tensor import Tensor
from genesis.pytorch.stand_ins.common import Values, answer, as_it_is, nothing, values

_TEXTS = ("_params_doc", "_foreach_doc", "_fused_doc", "_capturable_doc", "_differentiable_doc", "_maximize_doc")


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """A ``step`` that is recorded if the optimizer is made with ``differentiable=True``."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with genesis.set_grad_enabled(self.defaults.get("differentiable", False)):
            return func(self, *args, **kwargs)

    return step


def _get_value(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x  # type: ignore[attr-defined]


def _to_scalar(x: Any) -> Any:
    return x.squeeze() if isinstance(x, Tensor) and x.ndim else x  # type: ignore[attr-defined]


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Let complex values of parallel lists be pairs of real ones, in place."""
    for i, p in enumerate(params):
        if p.is_complex():  # type: ignore[attr-defined]
            for each in (params, *state_and_grads):
                each[i] = genesis.view_as_real(each[i])


@values("torch.optim.optimizer")
def _optimizer() -> Values:
    required = importlib.import_module("genesis.optim.optimizer").required
    return {
        "_RequiredParameter": type(required), "_use_grad_for_differentiable": _use_grad_for_differentiable,
        "_get_value": _get_value, "_stack_if_compiling": as_it_is, "_to_scalar": _to_scalar, "_view_as_real": _view_as_real,
        "_dispatch_sqrt": lambda x: x.sqrt() if isinstance(x, Tensor) else x**0.5,  # type: ignore[attr-defined]
        "_default_to_fused_or_foreach": answer((False, False)), "_device_dtype_check_for_fused": nothing,
        "_disable_dynamo_if_unsupported": lambda single_tensor_fn=None: as_it_is,
        "_get_scalar_dtype": lambda is_fused=None: (
            genesis.float64 if genesis.get_default_dtype() == genesis.float64 and not is_fused else genesis.float32
        ),
        "_get_capturable_supported_devices": lambda supports_xla=True: [], **dict.fromkeys(_TEXTS, ""),
    }  # fmt: skip


@contextmanager
def _enable_get_lr_call(o: Any) -> Iterator[Any]:
    """Inside, a schedule's ``get_lr`` is called by its ``step``."""
    o._get_lr_called_within_step = True
    try:
        yield o
    finally:
        o._get_lr_called_within_step = False


@values("torch.optim.lr_scheduler")
def _lr_scheduler() -> Values:
    return {"_enable_get_lr_call": _enable_get_lr_call, "_warn_get_lr_called_within_step": nothing}
