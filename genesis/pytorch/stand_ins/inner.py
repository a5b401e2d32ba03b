"""What libraries use of PyTorch with an underscore in front: its checks, its compiled core (``torch._C``), its compiler's
switches (``torch._dynamo``).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import genesis
from genesis.core.call.subclasses import asked, handled, no_torch_function
from genesis.core.graph.tensor import Tensor
from genesis.pytorch.reasons import why_absent
from genesis.pytorch.stand_ins.common import NoEffect, Values, absent, answer, nothing, values

# ---- checks


def _checks(error: type[Exception]) -> Callable[..., None]:
    def check(cond: Any, message: Any = None) -> None:
        """Raise an error unless a condition holds; the message may be a function that makes it."""
        if not cond:
            text = message() if callable(message) else message
            raise error(text if text is not None else "Expected cond to be True, but got False.")

    return check


def _check_all(cond: Tensor, message: Any = None) -> None:
    _checks(RuntimeError)(bool(cond.all()), message)  # type: ignore[attr-defined]


def _check_is_size(i: int, message: Any = None, *, max: int | None = None) -> None:
    _checks(RuntimeError)(i >= 0 and (max is None or i <= max), message)


def _assert(condition: Any, message: str) -> Any:
    """``assert`` in code that is compiled, too."""
    if asked(condition):
        return handled(_assert, [condition], (condition, message), {})
    assert condition, message
    return None


@values("torch")
def _torch() -> Values:
    errors = {"": RuntimeError, "_value": ValueError, "_type": TypeError, "_index": IndexError,
              "_not_implemented": NotImplementedError}  # fmt: skip
    return {
        **{f"_check{name}": _checks(error) for name, error in errors.items()},
        "_check_with": lambda error, cond, message: _checks(error)(cond, message),
        "_check_tensor_all": _check_all, "_check_is_size": _check_is_size,
        "_assert": _assert, "_assert_async": lambda x, message="": _check_all(x, message or None),
        "_shape_as_tensor": lambda x: genesis.tensor(list(x.shape)), "_cast_Long": lambda x, non_blocking=False: x.long(),
        "_is_functional_tensor": answer(False), "_VF": importlib.import_module("genesis").nn.functional,
    }  # fmt: skip


# ---- the compiled core


class _Keys(type):
    """The keys of PyTorch's dispatcher, of which there is none here: each is its name."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("_"):
            raise AttributeError(name)
        return name


class DispatchKey(metaclass=_Keys):
    """Names of keys."""


class DispatchKeySet(frozenset[str]):
    """Keys, joined with ``|``."""

    def __new__(cls, *keys: Any) -> DispatchKeySet:
        return super().__new__(cls, keys)

    def has(self, key: str) -> bool:
        return key in self


class _Disabled(classmethod):  # type: ignore[type-arg]
    """``__torch_function__`` of a class whose results are plain tensors; PyTorch's can be called without a class, too."""

    def __call__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return no_torch_function(Tensor, func, types, args, kwargs)


_OF_SCRIPTS = ("Graph", "Node", "Value", "Block", "ScriptModule", "ScriptFunction", "ScriptObject", "CompilationUnit")


_SWITCHES = ("_jit_set_texpr_fuser_enabled", "_jit_set_profiling_mode", "_jit_set_profiling_executor", "_jit_set_nvfuser_enabled",
             "_jit_override_can_fuse_on_gpu", "_jit_override_can_fuse_on_cpu")  # fmt: skip


@values("torch._C")
def _core() -> Values:
    return {
        **{name: absent(f"torch._C.{name}", why_absent("torch.Graph")) for name in _OF_SCRIPTS},
        "DispatchKey": DispatchKey, "DispatchKeySet": DispatchKeySet, "_ExcludeDispatchKeyGuard": NoEffect,
        "_log_api_usage_once": nothing, "_get_tracing_state": answer(None),
        "_are_functorch_transforms_active": answer(False), "_get_accelerator": lambda: genesis.device("cpu"),
        **dict.fromkeys(_SWITCHES, nothing), "_disabled_torch_function_impl": _Disabled(no_torch_function),
        "_LinAlgError": importlib.import_module("genesis.base.errors").LinAlgError,
    }  # fmt: skip


# what PyTorch's functional calls by the same name, with the arguments that both have
_CALLED_BY_FUNCTIONAL = (
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool2d", "avg_pool3d", "elu", "elu_", "gelu", "glu", "hardsigmoid",
    "hardswish", "hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_", "linear", "mish", "one_hot", "pad", "relu6",
    "scaled_dot_product_attention", "silu", "softplus", "softshrink",
)  # fmt: skip
_MODES = {
    "nearest": ("1d", "2d", "3d"),
    "linear": ("1d",),
    "bilinear": ("2d",),
    "bicubic": ("2d",),
    "trilinear": ("3d",),
}


def _upsampled(mode: str) -> Any:
    def nearest(input: Any, output_size: Any, *scales: Any, scale_factors: Any = None) -> Any:
        return _resized(mode, input, output_size, scales or scale_factors)

    def between(input: Any, output_size: Any, align_corners: bool, *scales: Any, scale_factors: Any = None) -> Any:
        return _resized(mode, input, output_size, scales or scale_factors, align_corners=align_corners)

    return nearest if mode == "nearest" else between


def _resized(mode: str, input: Any, size: Any, scales: Any, **options: Any) -> Any:
    """By size; by the factors where that is all there is."""
    scales = None if size is not None or not scales else tuple(scales[0] if len(scales) == 1 else scales)
    return genesis.nn.functional.interpolate(input, size, scales, mode, **options)


@values("torch._C._nn")
def _inner_nn() -> Values:
    def parse_to(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """What modules that define ``to`` ask: device, dtype, non_blocking and the order of dimensions."""
        conversions = importlib.import_module("genesis.nn.conversions")
        device, dtype, _ = conversions.destination(args, kwargs)
        waits = kwargs.get("non_blocking", next((arg for arg in args if isinstance(arg, bool)), False))
        return None if device is None else genesis.device(device), dtype, waits, kwargs.get("memory_format")

    functional = importlib.import_module("genesis.nn.functional")
    return {
        "_parse_to": parse_to,
        **{name: getattr(functional, name) for name in _CALLED_BY_FUNCTIONAL},
        **{f"upsample_{mode}{n}": _upsampled(mode) for mode, dims in _MODES.items() for n in dims},
    }
