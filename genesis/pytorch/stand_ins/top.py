"""Names of ``torch`` itself."""

from __future__ import annotations

import functools
import importlib
import math
import os
from collections.abc import Callable
from typing import Any

import genesis
from genesis.base import layouts
from genesis.base.errors import OutOfMemoryError
from genesis.core.call.out import takes_out
from genesis.core.call.subclasses import disabled
from genesis.core.graph.tensor import Tensor
from genesis.pytorch.names import names
from genesis.pytorch.stand_ins.common import STORAGES, Values, absent, answer, error_of_a_gpu, fork, nothing, values
from genesis.pytorch.stand_ins.foreach import functions


@values("torch")
def _torch() -> Values:
    return {
        **{word.name: word for word in (*layouts.LAYOUTS, *layouts.FORMATS)},
        "layout": layouts.layout, "memory_format": layouts.memory_format,
        **{f"{name}Storage": _storage(dtype) for name, dtype in STORAGES.items()},
        **{name: _copied(name.removesuffix("_copy")) for name in names()["torch"] if name.endswith("_copy") and not hasattr(genesis, name)},
        **_autocast_switches(), **_answers(), **_rearranged(), **functions(),
        "is_anomaly_enabled": genesis.autograd.is_anomaly_enabled, "set_anomaly_enabled": genesis.autograd.set_detect_anomaly,
        "fill": lambda input, value: input.clone().fill_(value),
        "dsmm": genesis.spmm, "smm": Tensor.smm, "hspmm": lambda mat1, mat2: (mat1 @ mat2).to_sparse(1),
        "adaptive_max_pool1d": lambda input, output_size: genesis.nn.functional.adaptive_max_pool1d(input, output_size, True),
        "typename": typename, "get_device_module": _device_module, "unravel_index": genesis.unravel_index,
        **{name: absent(f"torch.{name}", "genesis.save and genesis.load do it") for name in ("PyTorchFileReader", "PyTorchFileWriter")},
        "OutOfMemoryError": OutOfMemoryError, "AcceleratorError": error_of_a_gpu(),
        "DisableTorchFunction": disabled, "DisableTorchFunctionSubclass": disabled,
        "Future": importlib.import_module("genesis.pytorch.futures").Future,
        "fork": fork, "wait": lambda future: future.wait(),
        "sym_float": float, "sym_int": int, "sym_not": lambda x: not x, "sym_sqrt": math.sqrt, "sym_max": max, "sym_min": min,
        "sym_sum": sum, "sym_ite": lambda condition, x, y: x if condition else y,
        "cond": lambda pred, true_fn, false_fn, operands=(): true_fn(*operands) if pred else false_fn(*operands),
        "while_loop": _while_loop,
    }  # fmt: skip


def _storage(name: str) -> Any:
    dtype = getattr(genesis, name)
    return functools.partial(genesis.TypedStorage.of_dtype, dtype=dtype)


def _copied(name: str) -> Callable[..., Any]:
    """``torch.expand_copy``: the view, copied."""

    def copy(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        if name == "alias":
            return input.clone()
        if name == "slice":
            return _sliced(input, *args, **kwargs).clone()
        view = getattr(genesis, name, None) or getattr(Tensor, name)
        result = view(input, *args, **kwargs)
        return result.clone() if isinstance(result, Tensor) else type(result)(x.clone() for x in result)

    copy.__name__ = f"{name}_copy"
    return takes_out(copy)


def _sliced(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    dim += input.ndim if dim < 0 else 0
    return input[(slice(None),) * dim + (slice(start, end, step),)]


def _autocast_switches() -> Values:
    """Autocast's switches by device: those of the CPU are ours, others are off."""
    dtype, switches = genesis.get_autocast_dtype, importlib.import_module("genesis.amp.autocast")
    devices = ("cpu", "gpu", "ipu", "xla")
    return {
        **{f"is_autocast_{d}_enabled": functools.partial(genesis.is_autocast_enabled, "cpu" if d == "cpu" else "cuda")
           for d in devices},
        **{f"get_autocast_{d}_dtype": functools.partial(dtype, "cpu") for d in devices},
        **{f"set_autocast_{d}_dtype": functools.partial(switches.set_autocast_dtype, "cpu" if d == "cpu" else "cuda") for d in devices},
        **{f"set_autocast_{d}_enabled": functools.partial(switches.set_autocast_enabled, "cpu" if d == "cpu" else "cuda")
           for d in devices},
        "set_autocast_enabled": switches.set_autocast_enabled, "set_autocast_dtype": switches.set_autocast_dtype,
        "is_autocast_cache_enabled": answer(False), "set_autocast_cache_enabled": nothing, "clear_autocast_cache": nothing,
    }  # fmt: skip


def _answers() -> Values:
    return {
        **dict.fromkeys(("has_cuda", "has_cudnn", "has_lapack", "has_mkl", "has_mkldnn", "has_mps", "has_openmp"), False),
        "has_spectral": True,
        "is_vulkan_available": answer(False), "compiled_with_cxx11_abi": answer(True),
        "is_warn_always_enabled": answer(False),
        "set_flush_denormal": answer(False), "init_num_threads": nothing, "get_file_path": _file_path,
        "prepare_multiprocessing_environment": nothing, "is_distributed": answer(False),
    }  # fmt: skip


def _rearranged() -> Values:
    """Functions of torch.nn.functional that torch has, too, with their arguments in another order."""
    functional = importlib.import_module("genesis.nn.functional")

    def batch_norm(input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
                   momentum: float, eps: float, cudnn_enabled: bool = False) -> Tensor:  # fmt: skip
        return functional.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)

    def layer_norm(input: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5,
                   cudnn_enable: bool = False) -> Tensor:  # fmt: skip
        return functional.layer_norm(input, normalized_shape, weight, bias, eps)

    def group_norm(input: Tensor, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5,
                   cudnn_enabled: bool = False) -> Tensor:  # fmt: skip
        return functional.group_norm(input, num_groups, weight, bias, eps)

    def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False,
                  sparse: bool = False) -> Tensor:  # fmt: skip
        padding = None if padding_idx < 0 else padding_idx
        return functional.embedding(indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq)

    def dropout(input: Tensor, p: float, train: bool) -> Tensor:
        return functional.dropout(input, p, train)

    def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
        return functional.dropout(input, p, train, inplace=True)

    same = ("rms_norm", "bilinear", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "pairwise_distance", "pdist",
            "hardshrink", "avg_pool1d", "adaptive_avg_pool1d", "max_pool1d", "max_pool2d", "max_pool3d",
            "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")  # fmt: skip
    own = (batch_norm, layer_norm, group_norm, embedding, dropout, dropout_)
    return {
        **{name: getattr(functional, name) for name in same if hasattr(functional, name)},
        **{f.__name__: f for f in own},
    }


def typename(obj: Any) -> str:
    """What ``torch.typename`` says of a value: of a tensor its dtype's class, of others their class.

    >>> import genesis
    >>> from genesis.pytorch.stand_ins.top import typename
    >>> typename(genesis.ones(2)), typename([])
    ('torch.FloatTensor', 'builtins.list')
    """
    if isinstance(obj, Tensor):
        return str(obj.type())  # type: ignore[attr-defined]
    kind = obj if isinstance(obj, type) or hasattr(obj, "__qualname__") else type(obj)
    return f"{kind.__module__}.{kind.__qualname__}"


def _file_path(*parts: str) -> str:
    return os.path.join(os.path.dirname(genesis.__file__), *parts)


def _device_module(device: Any = None) -> Any:
    return importlib.import_module("genesis.pytorch.finder").module(
        f"torch.{genesis.device('cpu' if device is None else device).type}"
    )


def _while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    state = tuple(carried_inputs)
    while cond_fn(*state):
        state = tuple(body_fn(*state))
    return state
