"""Values that stand for names of PyTorch which have no counterpart: switches without an effect, answers of a machine without
a GPU, compilers that leave functions as they are.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import math
import multiprocessing
import os
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import genesis
from genesis.base import layouts
from genesis.base.errors import ArgumentValueError, UnsupportedError, message
from genesis.core.graph.tensor import Tensor
from genesis.pytorch.names import VERSION, names

Values = dict[str, Any]
STAND_INS: dict[str, Callable[[], Values]] = {}


def _values(*modules: str) -> Callable[[Callable[[], Values]], Callable[[], Values]]:
    def add(make: Callable[[], Values]) -> Callable[[], Values]:
        STAND_INS.update(dict.fromkeys(modules, functools.cache(make)))
        return make

    return add


def nothing(*args: Any, **kwargs: Any) -> None:
    """Accepted, without an effect."""


def answer(value: Any) -> Callable[..., Any]:
    """A function that always gives one answer."""

    def always(*args: Any, **kwargs: Any) -> Any:
        return value

    return always


def refusal(name: str, problem: str, hint: str = "") -> Callable[..., Any]:
    """A function that says why it does not work."""

    def refused(*args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(message(name, problem, hint=hint))

    return refused


def as_it_is(function: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The function or model as it is; without one, a decorator that leaves it so."""
    return function if function is not None else lambda target: target


def from_module(path: str, *listed: str) -> Callable[[], Values]:
    """The names of a module here, imported when the first of them is asked for."""
    return lambda: {name: getattr(importlib.import_module(path), name) for name in listed}


_NO_GPU = "there is no GPU here", "ask torch.cuda.is_available() first"

# ---- torch


@_values("torch")
def _torch() -> Values:
    return {
        **{word.name: word for word in (*layouts.LAYOUTS, *layouts.FORMATS)},
        "layout": layouts.layout, "memory_format": layouts.memory_format,
        **{f"{name}Storage": _storage(dtype) for name, dtype in _STORAGES.items()},
        **{name: _copied(name.removesuffix("_copy")) for name in names()["torch"] if name.endswith("_copy") and not hasattr(genesis, name)},
        **_autocast_switches(), **_answers(), **_rearranged(),
        "is_anomaly_enabled": genesis.autograd.is_anomaly_enabled, "set_anomaly_enabled": genesis.autograd.set_detect_anomaly,
        "GradScaler": genesis.amp.GradScaler, "fill": lambda input, value: input.clone().fill_(value),
        **dict.fromkeys(("smm", "dsmm", "hspmm"), genesis.spmm),
        "typename": typename, "get_device_module": _device_module, "unravel_index": genesis.unravel_index,
        "OutOfMemoryError": _out_of_memory(), "AcceleratorError": _out_of_memory(),
        "Future": importlib.import_module("genesis.pytorch.futures").Future,
        "fork": _fork, "wait": lambda future: future.wait(),
        "sym_float": float, "sym_int": int, "sym_not": lambda x: not x, "sym_sqrt": math.sqrt, "sym_max": max, "sym_min": min,
        "sym_sum": sum, "sym_ite": lambda condition, x, y: x if condition else y,
        "cond": lambda pred, true_fn, false_fn, operands=(): true_fn(*operands) if pred else false_fn(*operands),
        "while_loop": _while_loop,
    }  # fmt: skip


_STORAGES = {"Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Byte": "uint8", "Char": "int8",
             "Short": "int16", "Int": "int32", "Long": "int64", "Bool": "bool", "ComplexFloat": "complex64",
             "ComplexDouble": "complex128"}  # fmt: skip


def _storage(name: str) -> Any:
    dtype = getattr(genesis, name)
    return functools.partial(genesis.TypedStorage.of_dtype, dtype=dtype)


def _copied(name: str) -> Callable[..., Any]:
    """``torch.expand_copy``: the view, copied."""

    def copy(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        view = getattr(genesis, name, None) or getattr(Tensor, name)
        found = view(input, *args, **kwargs)
        return found.clone() if isinstance(found, Tensor) else type(found)(x.clone() for x in found)

    return copy


def _autocast_switches() -> Values:
    """Autocast's switches by device: those of the CPU are ours, others are off."""
    dtype = genesis.get_autocast_dtype
    devices = ("cpu", "gpu", "ipu", "xla")
    return {
        **{f"is_autocast_{d}_enabled": functools.partial(genesis.is_autocast_enabled, "cpu" if d == "cpu" else "cuda")
           for d in devices},
        **{f"get_autocast_{d}_dtype": functools.partial(dtype, "cpu") for d in devices},
        "is_autocast_cache_enabled": answer(False), "set_autocast_cache_enabled": nothing, "clear_autocast_cache": nothing,
    }  # fmt: skip


def _answers() -> Values:
    return {
        **dict.fromkeys(("has_lapack", "has_mkl", "has_openmp"), False), "has_spectral": True,
        "is_vulkan_available": answer(False), "compiled_with_cxx11_abi": answer(True),
        "is_deterministic_algorithms_warn_only_enabled": answer(False), "get_deterministic_debug_mode": answer(2),
        "set_deterministic_debug_mode": nothing, "is_warn_always_enabled": answer(False),
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
            "cosine_embedding_loss", "hardshrink", "avg_pool1d", "adaptive_avg_pool1d", "max_pool1d", "max_pool2d", "max_pool3d",
            "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")  # fmt: skip
    own = (batch_norm, layer_norm, group_norm, embedding, dropout, dropout_)
    return {
        **{name: getattr(functional, name) for name in same if hasattr(functional, name)},
        **{f.__name__: f for f in own},
    }


def typename(obj: Any) -> str:
    """What ``torch.typename`` says of a value: of a tensor its dtype's class, of others their class.

    >>> import genesis
    >>> from genesis.pytorch.stand_ins import typename
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
    return importlib.import_module(f"torch.{genesis.device('cpu' if device is None else device).type}")


@functools.cache
def _out_of_memory() -> type[RuntimeError]:
    return type("OutOfMemoryError", (RuntimeError,), {"__doc__": "A GPU has no memory left: never raised here."})


def _fork(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The call, made now; `wait` gives its result."""
    future = importlib.import_module("genesis.pytorch.futures").Future()
    future.set_result(function(*args, **kwargs))
    return future


def _while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    state = tuple(carried_inputs)
    while cond_fn(*state):
        state = tuple(body_fn(*state))
    return state


# ---- devices


class _NoDevice:
    """A ``with`` that chooses a GPU or a stream of one: it has no effect."""

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __enter__(self) -> _NoDevice:
        return self

    def __exit__(self, *_: object) -> None: ...


def _gpu_class(name: str) -> type:
    """``torch.cuda.FloatTensor``: nothing is one, and making one says that there is no GPU."""

    class OfGPU(type):
        def __instancecheck__(cls, x: object) -> bool:
            return False

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            raise UnsupportedError(message(f"torch.cuda.{name}", _NO_GPU[0], hint=_NO_GPU[1]))

    return OfGPU(name, (), {})


_SILENT = ("empty_cache", "empty_host_cache", "ipc_collect", "manual_seed", "manual_seed_all", "seed", "seed_all", "set_device",
           "set_device_index", "set_device_idx", "set_stream", "synchronize", "reset_max_memory_allocated",
           "reset_max_memory_cached", "reset_accumulated_memory_stats", "reset_peak_memory_stats",
           "reset_accumulated_host_memory_stats", "reset_peak_host_memory_stats", "set_per_process_memory_fraction",
           "set_sync_debug_mode", "set_rng_state", "set_rng_state_all", "caching_allocator_enable", "init")  # fmt: skip
_ZERO = ("device_count", "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_cached",
         "max_memory_cached", "get_sync_debug_mode", "utilization", "memory_usage", "temperature", "power_draw",
         "clock_rate")  # fmt: skip


@_values("torch.cuda")
def _cuda() -> Values:
    classes = [name for name in names()["torch.cuda"] if name.endswith(("Tensor", "Storage"))]
    gpu_only = ("Event", "ExternalStream", "Stream", "CUDAGraph", "current_blas_handle", "default_stream", "mem_get_info",
                "get_rng_state", "initial_seed", "graph_pool_handle", "make_graphed_callables", "cudart", "graph",
                "can_device_access_peer", "list_gpu_processes", "memory_snapshot")  # fmt: skip
    return {
        **{name: _gpu_class(name) for name in classes},
        **{name: refusal(f"torch.cuda.{name}", *_NO_GPU) for name in gpu_only},
        **{name: nothing for name in _SILENT if name not in ("synchronize",)},
        **dict.fromkeys(_ZERO, answer(0)),
        "is_current_stream_capturing": answer(False), "is_tf32_supported": answer(False), "has_half": True, "has_magma": False,
        "get_arch_list": answer([]), "get_gencode_flags": answer(""), "get_rng_state_all": answer([]), "default_generators": (),
        "memory_stats": answer({}), "memory_stats_as_nested_dict": answer({}), "memory_summary": answer(""),
        "host_memory_stats": answer({}), "get_allocator_backend": answer("native"),
        "device": _NoDevice, "device_of": _NoDevice, "stream": _NoDevice, "StreamContext": _NoDevice,
        "CudaError": _out_of_memory(), "DeferredCudaCallError": _out_of_memory(), "OutOfMemoryError": _out_of_memory(),
    }  # fmt: skip


@_values("torch.cpu")
def _cpu() -> Values:
    return {
        "current_device": answer("cpu"), "device_count": answer(1), "is_available": answer(True), "is_initialized": answer(True),
        "set_device": nothing, "synchronize": nothing, "current_stream": _NoDevice, "Stream": _NoDevice, "Event": _NoDevice,
        "StreamContext": _NoDevice, "stream": _NoDevice, "get_capabilities": answer({}),
    }  # fmt: skip


@_values("torch.accelerator")
def _accelerator() -> Values:
    return {
        **dict.fromkeys(_SILENT, nothing), **dict.fromkeys(_ZERO, answer(0)), "memory_stats": answer({}),
        "device_index": _NoDevice, "current_device_index": refusal("torch.accelerator.current_device_index", *_NO_GPU),
        "current_device_idx": refusal("torch.accelerator.current_device_idx", *_NO_GPU),
    }  # fmt: skip


@_values("torch.mps")
def _mps() -> Values:
    return {**dict.fromkeys(("synchronize", "seed", "set_rng_state", "set_per_process_memory_fraction"), nothing),
            **dict.fromkeys(("current_allocated_memory", "driver_allocated_memory", "recommended_max_memory"), answer(0))}  # fmt: skip


# ---- switches of backends


@contextmanager
def _flags(*args: Any, **kwargs: Any) -> Any:
    yield


@_values("torch.backends.cudnn")
def _cudnn() -> Values:
    return {
        "benchmark_limit": 10,
        "CUDNN_TENSOR_DTYPES": frozenset(),
        "is_acceptable": answer(False),
        "set_flags": nothing,
    }


@_values("torch.backends.mkldnn")
def _mkldnn() -> Values:
    return {"allow_tf32": False, "deterministic": True, "flags": _flags, "set_flags": nothing, "verbose": _NoDevice}


@_values("torch.backends.mkl")
def _mkl() -> Values:
    return {"verbose": _NoDevice}


@_values("torch.backends.mps")
def _backends_mps() -> Values:
    return {"is_macos13_or_newer": answer(False), "is_macos_or_newer": answer(False), "get_core_count": answer(0),
            "get_name": answer("")}  # fmt: skip


@_values("torch.backends.cuda")
def _backends_cuda() -> Values:
    attention = ("flash", "math", "mem_efficient", "cudnn")
    return {
        **{f"enable_{kind}_sdp": nothing for kind in attention},
        **{f"{kind}_sdp_enabled": answer(kind == "math") for kind in attention},
        **{f"can_use_{kind}_attention": answer(False) for kind in ("flash", "efficient", "cudnn")},
        "is_flash_attention_available": answer(False), "allow_fp16_bf16_reduction_math_sdp": nothing,
        "fp16_bf16_reduction_math_sdp_allowed": answer(False), "preferred_linalg_library": nothing,
        "preferred_blas_library": nothing, "cufft_plan_cache": (),
    }  # fmt: skip


# ---- compilers: functions run as they are

_NO_FILES = "programs of TorchScript are not stored here", "save the state_dict"


@_values("torch.jit")
def _jit() -> Values:
    nn, futures = importlib.import_module("genesis.nn"), importlib.import_module("genesis.pytorch.futures")
    return {
        **dict.fromkeys(("script", "optimize_for_inference", "ignore", "unused", "export", "interface", "script_if_tracing"),
                        as_it_is),
        "trace": as_it_is, "trace_module": as_it_is, "freeze": as_it_is, "annotate": lambda kind, value: value,
        "Attribute": lambda value, kind: value, "isinstance": builtins.isinstance, "fork": _fork,
        "wait": lambda future: future.wait(), "Future": futures.Future, "ScriptModule": nn.Module, "ScriptFunction": Callable,
        "Error": RuntimeError, "save": refusal("torch.jit.save", *_NO_FILES), "load": refusal("torch.jit.load", *_NO_FILES),
        "strict_fusion": _NoDevice, "onednn_fusion_enabled": answer(False), "enable_onednn_fusion": nothing,
        "set_fusion_strategy": nothing, "export_opnames": answer([]), "is_scripting": answer(False), "is_tracing": answer(False),
    }  # fmt: skip


@_values("torch.compiler")
def _compiler() -> Values:
    decorators = (
        "compile",
        "disable",
        "allow_in_graph",
        "assume_constant_result",
        "nested_compile_region",
        "wrap_numpy",
    )
    return {
        **dict.fromkeys(decorators, as_it_is),
        **dict.fromkeys(("is_compiling", "is_dynamo_compiling", "is_exporting"), answer(False)),
        **dict.fromkeys(("reset", "cudagraph_mark_step_begin", "set_default_backend"), nothing),
        "list_backends": answer(["eager"]), "get_default_backend": answer("eager"), "set_stance": _NoDevice,
        "substitute_in_graph": lambda original, **options: as_it_is,
    }  # fmt: skip


# ---- the rest, by module


@_values("torch.autograd")
def _autograd() -> Values:
    return {"set_multithreading_enabled": _NoDevice, "enforce_grad_layout_policy": nothing}


@_values("torch.amp")
def _amp() -> Values:
    return {"is_autocast_available": lambda device_type: device_type == "cpu"}


@_values("torch.cuda.amp")
def _cuda_amp() -> Values:
    return {"amp_definitely_not_available": answer(True)}


@_values("torch.hub")
def _hub() -> Values:
    refused = {name: refusal(f"torch.hub.{name}", "nothing is downloaded") for name in ("help", "list")}
    return {**refused, "set_dir": nothing, "get_dir": lambda: os.path.expanduser("~/.cache/torch/hub")}


@_values("torch.multiprocessing")
def _multiprocessing() -> Values:
    return {"get_all_sharing_strategies": answer({"file_descriptor"}), "spawn": _spawn,
            "start_processes": _spawn}  # fmt: skip


def _spawn(fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
           start_method: str = "spawn") -> Any:  # fmt: skip
    """``fn(i, *args)`` in ``nprocs`` processes; with ``join`` it waits for them, and fails where one does."""
    context = multiprocessing.get_context(start_method)
    processes = [context.Process(target=fn, args=(i, *args), daemon=daemon) for i in range(nprocs)]  # type: ignore[attr-defined]
    for process in processes:
        process.start()
    if not join:
        return processes
    for process in processes:
        process.join()
    failed = [i for i, process in enumerate(processes) if process.exitcode]
    if failed:
        raise ArgumentValueError(message("torch.multiprocessing.spawn", f"the processes {failed} failed"))
    return None


@_values("torch.random")
def _random() -> Values:
    return {"fork_rng": importlib.import_module("genesis.ops.creation.random").fork_rng}


@_values("torch.serialization")
def _serialization() -> Values:
    """Files name what is in them, and no code of theirs ever runs: lists of what is safe are kept and have no effect."""
    known: list[Any] = []

    @contextmanager
    def safe_globals(allowed: Any) -> Any:
        yield

    return {
        "safe_globals": safe_globals, "add_safe_globals": known.extend, "get_safe_globals": lambda: list(known),
        "clear_safe_globals": known.clear, "skip_data": _NoDevice, "location_tag": answer("cpu"),
        "get_default_mmap_options": answer(None), "set_default_mmap_options": _NoDevice, "get_crc32_options": answer(True),
        "set_crc32_options": nothing, "get_default_load_endianness": answer(None), "set_default_load_endianness": nothing,
    }  # fmt: skip


@_values("torch.sparse")
def _sparse() -> Values:
    def of_dtype(dtype: Any) -> Callable[..., Any]:
        return lambda indices, values, size=None: genesis.sparse_coo_tensor(indices, values, size, dtype=dtype)

    def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
        return mat * beta + (mat1 @ mat2) * alpha  # type: ignore[no-any-return]

    return {
        "mm": genesis.spmm, "addmm": addmm, "sum": lambda input, dim=None: input.sum(dim), "check_sparse_tensor_invariants": _NoDevice,
        **{f"{name}Tensor": of_dtype(getattr(genesis, dtype)) for name, dtype in _STORAGES.items()},
    }  # fmt: skip


@_values("torch.types")
def _types() -> Values:
    return {"FileLike": str | os.PathLike, "Storage": genesis.UntypedStorage}  # type: ignore[dict-item]


@_values("torch.utils")
def _utils() -> Values:
    return {"set_module": lambda obj, mod: setattr(obj, "__module__", mod)}


@_values("torch.version")
def _version() -> Values:
    return {"rocm": None, "__version__": VERSION}


_PROFILED = from_module(
    "genesis.pytorch.profiler",
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "tensorboard_trace_handler",
)


@_values("torch.profiler")
def _profiler() -> Values:
    activity = _PROFILED()["ProfilerActivity"]
    return {**_PROFILED(), "supported_activities": answer({activity.CPU}), "kineto_available": answer(False)}


@_values("torch.autograd.profiler")
def _autograd_profiler() -> Values:
    return {"record_function": _PROFILED()["record_function"], "emit_nvtx": _NoDevice, "emit_itt": _NoDevice}


_values("torch.futures")(from_module("genesis.pytorch.futures", "Future", "collect_all", "wait_all"))
_values("torch.testing")(
    lambda: {**from_module("genesis.pytorch.testing", "assert_close", "make_tensor")(), "assert_allclose": _allclose}
)
_values("torch.utils.benchmark")(from_module("genesis.pytorch.benchmark", "Timer", "Measurement"))
_values("torch.storage")(from_module("genesis", "TypedStorage", "UntypedStorage"))


def _allclose(actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True,
              msg: str = "") -> None:  # fmt: skip
    compare = importlib.import_module("genesis.pytorch.testing").assert_close
    compare(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_dtype=False,
        check_stride=False,
        msg=msg or None,
    )


__all__ = ["STAND_INS"]
