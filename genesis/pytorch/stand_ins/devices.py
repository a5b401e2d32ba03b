"""GPUs and other devices, of which there are none here, and switches of backends."""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from typing import Any

import genesis
from genesis.base.errors import OutOfMemoryError, UnsupportedError, message
from genesis.ops.creation.convert import LEGACY
from genesis.pytorch.names import names
from genesis.pytorch.stand_ins.common import NoEffect, Values, answer, error_of_a_gpu, nothing, refusal, values

_DTYPES = {legacy: mine for mine, legacy in LEGACY.items()}
_NO_GPU = "there is no GPU here", "ask torch.cuda.is_available() first"


def _gpu_class(name: str) -> type:
    """``torch.cuda.FloatTensor``: makes tensors of a dtype on the GPU, and is their class for ``isinstance``; without a GPU
    nothing is one, and making one says that there is none.
    """
    dtype = getattr(genesis, _DTYPES.get(name.removesuffix("Tensor"), ""), None)

    class OfGPU(type):
        def __instancecheck__(cls, x: object) -> bool:
            return isinstance(x, genesis.Tensor) and x.is_cuda and x.dtype is dtype

        def __call__(cls, *data: Any, **options: Any) -> Any:
            if dtype is None or not genesis.cuda.is_available():
                raise UnsupportedError(message(f"torch.cuda.{name}", _NO_GPU[0], hint=_NO_GPU[1]))
            on_any = importlib.import_module("genesis.pytorch.modules").find("torch", name)
            return on_any(*data, **{"device": "cuda", **options})

    return OfGPU(name, (), {} if dtype is None else {"dtype": dtype, "device": "cuda"})


_SILENT = ("empty_cache", "empty_host_cache", "ipc_collect", "manual_seed", "manual_seed_all", "seed", "seed_all", "set_device",
           "set_device_index", "set_device_idx", "set_stream", "synchronize", "reset_max_memory_allocated",
           "reset_max_memory_cached", "reset_accumulated_memory_stats", "reset_peak_memory_stats",
           "reset_accumulated_host_memory_stats", "reset_peak_host_memory_stats", "set_per_process_memory_fraction",
           "set_sync_debug_mode", "set_rng_state", "set_rng_state_all", "caching_allocator_enable", "init")  # fmt: skip
_ZERO = ("device_count", "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_cached",
         "max_memory_cached", "get_sync_debug_mode", "utilization", "memory_usage", "temperature", "power_draw",
         "clock_rate")  # fmt: skip


@values("torch.cuda")
def _cuda() -> Values:
    classes = [name for name in names()["torch.cuda"] if name.endswith(("Tensor", "Storage"))]
    gpu_only = ("Event", "ExternalStream", "Stream", "CUDAGraph", "current_blas_handle", "default_stream", "mem_get_info",
                "get_rng_state", "initial_seed", "graph_pool_handle", "make_graphed_callables", "cudart", "graph",
                "can_device_access_peer", "list_gpu_processes", "memory_snapshot")  # fmt: skip
    return {
        **{name: _gpu_class(name) for name in classes},
        **{name: refusal(f"torch.cuda.{name}", *_NO_GPU) for name in gpu_only if name[0].islower()},
        **{name: _gpu_class(name) for name in gpu_only if name[0].isupper()},
        **{name: nothing for name in _SILENT if name not in ("synchronize",)},
        **dict.fromkeys(_ZERO, answer(0)),
        "is_current_stream_capturing": answer(False), "is_tf32_supported": answer(False), "_initialized": False, "has_half": True, "has_magma": False,
        "get_arch_list": answer([]), "get_gencode_flags": answer(""), "get_rng_state_all": answer([]), "default_generators": (),
        "memory_stats": answer({}), "memory_stats_as_nested_dict": answer({}), "memory_summary": answer(""),
        "host_memory_stats": answer({}), "get_allocator_backend": answer("native"),
        "device": NoEffect, "device_of": NoEffect, "stream": NoEffect, "StreamContext": NoEffect,
        "CudaError": error_of_a_gpu(), "DeferredCudaCallError": error_of_a_gpu(), "OutOfMemoryError": OutOfMemoryError,
    }  # fmt: skip


@values("torch.cpu")
def _cpu() -> Values:
    return {
        "current_device": answer("cpu"), "device_count": answer(1), "is_available": answer(True), "is_initialized": answer(True),
        "set_device": nothing, "synchronize": nothing, "current_stream": NoEffect, "Stream": NoEffect, "Event": NoEffect,
        "StreamContext": NoEffect, "stream": NoEffect, "get_capabilities": answer({}),
    }  # fmt: skip


def _on_gpus(name: str, without: Any) -> Any:
    """A function of `genesis.cuda`, and what is called in its place where there is no GPU."""

    def of_gpus(*args: Any, **kwargs: Any) -> Any:
        return getattr(genesis.cuda, name)(*args, **kwargs) if genesis.cuda.is_available() else without(*args, **kwargs)

    return of_gpus


@values("torch.accelerator")
def _accelerator() -> Values:
    """The devices of `genesis.cuda`, which is asked when a name is called."""
    asked = {"current_device_index": "current_device", "current_device_idx": "current_device",
             "current_stream": "current_stream", "get_memory_info": "mem_get_info"}  # fmt: skip
    done = {"set_device_index": "set_device", "set_device_idx": "set_device"}
    alike = ("set_stream", "synchronize", "empty_cache", "reset_accumulated_memory_stats", "reset_peak_memory_stats")
    counts = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "device_count")
    return {
        **dict.fromkeys(_SILENT, nothing), **dict.fromkeys(_ZERO, answer(0)),
        **{mine: _on_gpus(theirs, nothing) for mine, theirs in {**done, **dict(zip(alike, alike, strict=True))}.items()},
        **{name: _on_gpus(name, answer(0)) for name in counts}, "memory_stats": _on_gpus("memory_stats", answer({})),
        **{mine: _on_gpus(theirs, refusal(f"torch.accelerator.{mine}", *_NO_GPU)) for mine, theirs in asked.items()},
        "is_available": _on_gpus("is_available", answer(False)), "device_index": _on_gpus("device", NoEffect),
        "current_accelerator": lambda check_available=False: genesis.device("cuda") if genesis.cuda.is_available() else None,
    }  # fmt: skip


@values("torch.mps")
def _mps() -> Values:
    return {**dict.fromkeys(("synchronize", "seed", "set_rng_state", "set_per_process_memory_fraction"), nothing),
            **dict.fromkeys(("current_allocated_memory", "driver_allocated_memory", "recommended_max_memory"), answer(0))}  # fmt: skip


# ---- switches of backends


@contextmanager
def _flags(*args: Any, **kwargs: Any) -> Any:
    yield


@values("torch.backends.cudnn")
def _cudnn() -> Values:
    return {
        "benchmark_limit": 10,
        "CUDNN_TENSOR_DTYPES": frozenset(),
        "is_acceptable": answer(False),
        "set_flags": nothing,
    }


@values("torch.backends.mkldnn")
def _mkldnn() -> Values:
    return {"allow_tf32": False, "deterministic": True, "flags": _flags, "set_flags": nothing, "verbose": NoEffect}


@values("torch.backends.mkl")
def _mkl() -> Values:
    return {"verbose": NoEffect}


@values("torch.backends.opt_einsum")
def _opt_einsum() -> Values:
    """The package is not used: NumPy looks for the order of the products."""
    return {"is_available": answer(False), "get_opt_einsum": answer(None), "enabled": False, "strategy": None,
            "flags": _flags, "set_flags": answer((False, None))}  # fmt: skip


@values("torch.backends.mps")
def _backends_mps() -> Values:
    return {"is_macos13_or_newer": answer(False), "is_macos_or_newer": answer(False), "get_core_count": answer(0),
            "get_name": answer("")}  # fmt: skip


@values("torch.backends.cuda")
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
