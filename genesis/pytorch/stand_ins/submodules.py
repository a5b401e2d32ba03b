"""Compilers, which leave functions as they are, and smaller modules."""

from __future__ import annotations

import builtins
import importlib
import multiprocessing
import os
from collections.abc import Callable
from typing import Any

import genesis
from genesis.base.errors import ArgumentValueError, message
from genesis.ops.products.sparse_functions import SPARSE
from genesis.pytorch.reasons import why_absent
from genesis.pytorch.stand_ins.common import (
    STORAGES,
    NoEffect,
    Values,
    absent,
    answer,
    as_it_is,
    fork,
    from_module,
    nothing,
    values,
)

# ---- compilers: torch.jit leaves functions as they are


class TracerWarning(Warning):
    """What a trace cannot see; here functions run as they are, so it is never warned."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """There are none."""


def _jit_save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """A traced function in a file; functions and modules that run as they are have none."""
    importlib.import_module("genesis.jit").save(m, f)


def _jit_load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """What `genesis.jit.save` wrote; files of TorchScript are refused."""
    return importlib.import_module("genesis.jit").load(f)


@values("torch.jit")
def _jit() -> Values:
    nn, futures = importlib.import_module("genesis.nn"), importlib.import_module("genesis.pytorch.futures")
    # to derive modules from: `script` gives a module as it is, so no other is one
    script_module = type(
        "ScriptModule", (nn.Module,), {"__doc__": "A module, which runs as it is.", "__module__": "torch.jit"}
    )
    return {
        **dict.fromkeys(("script", "optimize_for_inference", "ignore", "unused", "export", "interface", "script_method", "script_if_tracing", "_script_if_tracing", "_overload", "_overload_method"),
                        as_it_is),
        "trace": as_it_is, "trace_module": as_it_is, "freeze": as_it_is, "annotate": lambda kind, value: value,
        "Attribute": lambda value, kind: value, "isinstance": builtins.isinstance, "fork": fork,
        "wait": lambda future: future.wait(), "Future": futures.Future, "ScriptModule": script_module,
        "ScriptFunction": absent("torch.jit.ScriptFunction", why_absent("torch.jit.ScriptFunction")),
        "Error": RuntimeError, "TracerWarning": TracerWarning, "save": _jit_save, "load": _jit_load,
        "strict_fusion": NoEffect, "onednn_fusion_enabled": answer(False), "enable_onednn_fusion": nothing,
        "set_fusion_strategy": nothing, "export_opnames": answer([]), "is_scripting": answer(False), "is_tracing": answer(False),
    }  # fmt: skip


@values("torch.compiler")
def _compiler() -> Values:
    return {
        **dict.fromkeys(("nested_compile_region", "wrap_numpy"), as_it_is),
        **dict.fromkeys(("cudagraph_mark_step_begin", "set_default_backend"), nothing),
        "get_default_backend": answer("genesis"),
        "substitute_in_graph": lambda original, **options: as_it_is,
    }


# ---- the rest, by module


@values("torch.autograd")
def _autograd() -> Values:
    return {"set_multithreading_enabled": NoEffect, "enforce_grad_layout_policy": nothing}


@values("torch.nn.functional")
def _functional() -> Values:
    overrides = importlib.import_module("genesis.overrides")
    asked = ("handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
    return {name: getattr(overrides, name) for name in asked}


@values("torch.amp")
def _amp() -> Values:
    return {"is_autocast_available": lambda device_type: device_type == "cpu"}


@values("torch.cuda.amp")
def _cuda_amp() -> Values:
    return {"amp_definitely_not_available": answer(True)}


@values("torch.multiprocessing", "torch.multiprocessing.spawn")
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


@values("torch.random")
def _random() -> Values:
    return {"fork_rng": importlib.import_module("genesis.ops.creation.random").fork_rng}


@values("torch.serialization")
def _serialization() -> Values:
    safe = importlib.import_module("genesis.io.pytorch.safe")
    lists = {
        name: getattr(safe, name)
        for name in ("add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals")
    }
    return {
        **lists,
        "MAP_LOCATION": Any, "FILE_LIKE": str | os.PathLike | Any,
        "skip_data": NoEffect, "location_tag": answer("cpu"),
        "get_default_mmap_options": answer(None), "set_default_mmap_options": NoEffect, "get_crc32_options": answer(True),
        "set_crc32_options": nothing, "get_default_load_endianness": answer(None), "set_default_load_endianness": nothing,
    }  # fmt: skip


@values("torch.sparse")
def _sparse() -> Values:
    def of_dtype(dtype: Any) -> Callable[..., Any]:
        return lambda indices, values, size=None: genesis.sparse_coo_tensor(indices, values, size, dtype=dtype)

    return {
        **SPARSE, "check_sparse_tensor_invariants": NoEffect,
        **{f"{name}Tensor": of_dtype(getattr(genesis, dtype)) for name, dtype in STORAGES.items()},
    }  # fmt: skip


@values("torch.utils.dlpack")
def _dlpack() -> Values:
    return {"to_dlpack": lambda tensor: tensor.__dlpack__()}


@values("torch.types")
def _types() -> Values:
    return {"FileLike": str | os.PathLike, "Storage": genesis.UntypedStorage}  # type: ignore[dict-item]


@values("torch.utils")
def _utils() -> Values:
    return {"set_module": lambda obj, mod: setattr(obj, "__module__", mod)}


values("torch.version")(lambda: {"rocm": None})
_PROFILED = from_module(
    "genesis.profiler",
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "tensorboard_trace_handler",
)


@values("torch.__config__")
def _config() -> Values:
    def show() -> str:
        numpy = importlib.import_module("numpy")
        return (
            f"Genesis {genesis.__version__}\n  - NumPy {numpy.__version__}\n  - {genesis.get_num_threads()} threads\n"
        )

    return {"show": show, "parallel_info": lambda: f"Genesis: {genesis.get_num_threads()} threads\n"}


@values("torch.mtia", "torch.xpu")
def _other_accelerators() -> Values:
    silent = ("empty_cache", "manual_seed", "manual_seed_all")
    return {"is_available": answer(False), "device_count": answer(0), **dict.fromkeys(silent, nothing)}


@values("torch.profiler")
def _profiler() -> Values:
    activity = _PROFILED()["ProfilerActivity"]
    return {**_PROFILED(), "supported_activities": answer({activity.CPU}), "kineto_available": answer(False)}


@values("torch.autograd.profiler")
def _autograd_profiler() -> Values:
    stand_in = importlib.import_module("genesis.pytorch.profiler").profile
    return {"profile": stand_in, "record_function": _PROFILED()["record_function"], "emit_nvtx": NoEffect,
            "emit_itt": NoEffect}  # fmt: skip


values("torch.futures")(from_module("genesis.pytorch.futures", "Future", "collect_all", "wait_all"))
values("torch.testing._internal")(dict)
values("torch.testing._internal.common_utils")(
    from_module("genesis.pytorch.testing", "TestCase", "run_tests", "make_tensor", "SEED")
)
values("torch.testing")(
    lambda: {**from_module("genesis.pytorch.testing", "assert_close", "make_tensor")(), "assert_allclose": _allclose}
)
values("torch.utils.benchmark")(from_module("genesis.pytorch.benchmark", "Timer", "Measurement"))
values("torch.storage")(from_module("genesis", "TypedStorage", "UntypedStorage"))


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
