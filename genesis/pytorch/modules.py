"""What stands for each module of PyTorch: the modules of Genesis that its names are taken from, and values of its own."""

from __future__ import annotations

import functools
import importlib
import math
import multiprocessing
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from types import ModuleType
from typing import Any

import genesis
from genesis.base import deterministic
from genesis.base.deterministic import switches
from genesis.base.dtypes import whole
from genesis.base.errors import MissingName, UnsupportedError, message
from genesis.base.imports import looking
from genesis.core.graph.tensor import Tensor
from genesis.pytorch.names import house, is_module, names
from genesis.pytorch.reasons import why_absent
from genesis.pytorch.stand_ins import STAND_INS, operations
from genesis.pytorch.stand_ins.common import absent

DETERMINISTIC = (
    "use_deterministic_algorithms",
    "are_deterministic_algorithms_enabled",
    "is_deterministic_algorithms_warn_only_enabled",
    "set_deterministic_debug_mode",
    "get_deterministic_debug_mode",
)

# the longest beginning of the dotted name counts; names are looked for in these modules, in this order
_SOURCES: dict[str, tuple[str, ...]] = {
    "torch": ("genesis",),
    "torch.amp": ("genesis.amp",),
    "torch.compiler": ("genesis.compiler",),
    "torch.autograd": ("genesis.autograd",),
    "torch.autograd.forward_ad": ("genesis.autograd.forward_ad",),
    "torch.autograd.function": ("genesis.autograd",),
    "torch.autograd.functional": ("genesis.autograd.functional",),
    "torch.autograd.gradcheck": ("genesis.autograd",),
    "torch.autograd.graph": ("genesis.autograd.graph",),
    "torch.autograd.variable": ("genesis.autograd",),
    "torch.cuda.amp": ("genesis.amp",),
    "torch.distributed": ("genesis.distributed",),
    **dict.fromkeys(("torch.distributed.autograd", "torch.distributed.rpc"), ()),
    "torch.distributed.tensor": ("genesis.distributed.tensor",),
    "torch.distributed.tensor.parallel": ("genesis.distributed.tensor.parallel",),
    "torch.distributed.checkpoint": ("genesis.distributed.checkpoint",),
    "torch.distributed.checkpoint.format_utils": ("genesis.distributed.checkpoint.format_utils",),
    "torch.distributed.checkpoint.state_dict": ("genesis.distributed.checkpoint.state_dict",),
    "torch.distributed.checkpoint.stateful": ("genesis.distributed.checkpoint",),
    "torch.distributed.algorithms": ("genesis.distributed.algorithms",),
    "torch.distributed.algorithms._checkpoint": (),
    "torch.distributed.algorithms._checkpoint.checkpoint_wrapper": ("genesis.distributed.algorithms.checkpoint_wrapper",),
    "torch.distributed.algorithms.ddp_comm_hooks": ("genesis.distributed.algorithms.ddp_comm_hooks",),
    "torch.distributed.algorithms.ddp_comm_hooks.default_hooks": (
        "genesis.distributed.algorithms.ddp_comm_hooks.default_hooks",
    ),
    "torch.distributed.algorithms.join": ("genesis.distributed.algorithms.join",),
    "torch.distributed.nn": ("genesis.distributed.nn.functional",),
    "torch.distributed.device_mesh": ("genesis.distributed.device_mesh",),
    "torch.distributed.pipelining": ("genesis.distributed.pipelining",),
    "torch.distributed.pipelining.microbatch": ("genesis.distributed.pipelining.microbatch",),
    "torch.distributed.pipelining.schedules": ("genesis.distributed.pipelining.schedules",),
    "torch.distributed.pipelining.stage": ("genesis.distributed.pipelining.stage", "genesis.distributed.pipelining.pipe"),
    "torch.distributed.fsdp": ("genesis.distributed.fsdp",),
    "torch.distributed.fsdp.wrap": ("genesis.distributed.fsdp.wrap",),
    "torch.distributed.optim": ("genesis.distributed.optim",),
    "torch.distributions": ("genesis.distributions",),
    "torch.distributions.constraint_registry": ("genesis.distributions.constraint_registry",),
    "torch.distributions.constraints": ("genesis.distributions.constraints",),
    "torch.distributions.kl": ("genesis.distributions.kl", "genesis.distributions"),
    "torch.distributions.transforms": ("genesis.distributions.transforms",),
    "torch.fft": ("genesis.fft",),
    "torch.func": ("genesis.func",),
    "torch.fx": ("genesis.fx",),
    "torch.fx._symbolic_trace": ("genesis.fx.tracer", "genesis.fx.patching", "genesis.fx.concrete"),
    "torch.fx.experimental": (),
    "torch.fx.experimental.optimization": ("genesis.fx.experimental.optimization",),
    "torch.fx.graph": ("genesis.fx.graph", "genesis.fx.codegen"),
    **{
        f"torch.fx.{name}": (f"genesis.fx.{name}",)
        for name in ("graph_module", "immutable_collections", "interpreter", "node", "operator_schemas", "proxy", "subgraph_rewriter")
    },
    "torch.fx.passes": (),
    "torch.fx.passes.shape_prop": ("genesis.fx.passes.shape_prop",),
    "torch.fx.passes.split_module": ("genesis.fx.passes.split_module",),
    "torch.library": ("genesis.library",),
    "torch.linalg": ("genesis.linalg",),
    "torch.masked": ("genesis.masked",),
    "torch.nested": ("genesis.nested",),
    "torch.nn": ("genesis.nn",),
    "torch.nn.attention": ("genesis.nn.attention",),
    "torch.nn.attention.bias": (),
    "torch.nn.attention.flex_attention": ("genesis.nn.attention.flex_attention",),
    "torch.nn.attention.varlen": (),
    "torch.nn.functional": ("genesis.nn.functional",),
    "torch.nn.init": ("genesis.nn.init",),
    "torch.nn.intrinsic": (),
    "torch.nn.parallel": ("genesis.nn.parallel",),
    "torch.nn.qat": (),
    "torch.nn.quantized": (),
    "torch.nn.utils": ("genesis.nn.utils",),
    "torch.nn.utils.parametrizations": ("genesis.nn.utils.parametrizations",),
    "torch.nn.utils.parametrize": ("genesis.nn.utils.parametrize",),
    "torch.nn.utils.prune": ("genesis.nn.utils.prune",),
    "torch.nn.utils.rnn": ("genesis.nn.utils.rnn",),
    "torch.nn.utils.stateless": ("genesis.func",),
    "torch.onnx": ("genesis.onnx",),
    "torch.optim": ("genesis.optim",),
    "torch.optim.lr_scheduler": ("genesis.optim.lr_scheduler",),
    "torch.optim.optimizer": ("genesis.optim.optimizer",),
    "torch.optim.swa_utils": ("genesis.optim.swa_utils",),
    "torch.overrides": ("genesis.overrides",),
    "torch.random": ("genesis",),
    "torch.serialization": ("genesis",),
    "torch.signal.windows": ("genesis.signal.windows",),
    "torch.sparse": ("genesis.sparse",),
    "torch.special": ("genesis.special",),
    "torch.testing": ("genesis.testing",),
    "torch.types": (),
    "torch.utils": (),
    "torch.utils._python_dispatch": ("genesis.utils.python_dispatch",),
    "torch.utils.checkpoint": ("genesis.utils.checkpoint",),
    "torch.utils.data": ("genesis.data",),
    "torch.utils.dlpack": ("genesis",),
    "torch.utils.tensorboard": ("genesis.utils.tensorboard",),
    "torch.utils.tensorboard.summary": ("genesis.utils.tensorboard.summary",),
}  # fmt: skip

# beginnings of modules whose names programs import at their top and use with several machines only: what is absent can be
# imported
_IMPORTED = ("torch.distributed", "torch.nn.parallel")

_NOTHING = object()


def has_module(dotted: str) -> bool:
    """Whether ``import`` of this module works: what PyTorch has can be imported, and says at each name if it is there."""
    return dotted == "torch" or is_module(dotted) or dotted in STAND_INS


def find(module: str, name: str) -> Any:
    """What stands for a name of a module of PyTorch.

    Raises:
        AttributeError: it is not there; the message says why, and what to write instead
    """
    before, looking.now = looking.now, True
    try:
        return _find(module, name)
    finally:
        looking.now = before


def _find(module: str, name: str) -> Any:
    value = _of_a_gpu(name) if module in _GPU_MODULES else _NOTHING
    value = _own(module).get(name, _NOTHING) if value is _NOTHING else value
    if value is not _NOTHING:
        return value
    if module == "torch.Tensor":
        return getattr(Tensor, name)
    if module == "torch" == name:
        return _module("torch")  # as libraries write by mistake, torch.torch.Tensor
    if module == "torch.ops" and (declared := operations.declared(name)) is not None:
        return declared
    if not name.startswith("_") and name in names().get(
        module, ()
    ):  # before modules: some functions are called as theirs
        for source in _sources(module):
            value = getattr(importlib.import_module(source), name, _NOTHING)
            if value is not _NOTHING and not isinstance(value, ModuleType):  # a file of ours may have a name of theirs
                return value
        if module == "torch" and callable(method := getattr(Tensor, name, None)):
            return method  # torch.abs_(x) is x.abs_()
    if has_module(f"{module}.{name}"):
        return _module(f"{module}.{name}")
    if name in names().get(module, ()) and name in names().get(house(module), ()):
        return find(house(module), name)  # as torch.autograd.variable.Variable
    if module.startswith(_IMPORTED) and name in names().get(module, ()):
        return absent(f"{module}.{name}", why_absent(f"{module}.{name}"))
    dotted = f"{module}.{name}"
    raise MissingName(f"{dotted} is not in Genesis: {why_absent(dotted)}")


def _module(dotted: str) -> ModuleType:
    return importlib.import_module("genesis.pytorch.finder").module(dotted)  # type: ignore[no-any-return]


_GPU_MODULES = ("torch.cuda", "torch.cuda.memory", "torch.cuda.random", "torch.cuda.streams", "torch.cuda.graphs")


def _of_a_gpu(name: str) -> Any:
    """What `genesis.cuda` has under a name, where there is a GPU; without one programs are told so as they expect it."""
    cuda = importlib.import_module("genesis.cuda")
    return getattr(cuda, name) if cuda.is_available() and name in cuda.__all__ else _NOTHING


def _sources(module: str) -> tuple[str, ...]:
    while module not in _SOURCES:
        module = module.rpartition(".")[0]
        if module == "torch":  # its names are not those of all its modules
            return ()
    return _SOURCES[module]


# ---- values of its own, by module


def _own(module: str) -> dict[str, Any]:
    return {
        name: value for values in (_VALUES, STAND_INS) if module in values for name, value in values[module]().items()
    }


def _values(module: str) -> Callable[[Callable[[], dict[str, Any]]], None]:
    def add(make: Callable[[], dict[str, Any]]) -> None:
        _VALUES[module] = functools.cache(make)

    return add


_VALUES: dict[str, Callable[[], dict[str, Any]]] = {}


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Accepted, without an effect."""


def _no(*args: Any, **kwargs: Any) -> bool:
    return False


@_values("torch")
def _torch() -> dict[str, Any]:
    def typed(name: str, dtype: Any) -> Any:
        """A class as ``torch.LongTensor``: makes tensors of a dtype, and their class for ``isinstance``."""

        class Typed(type):
            def __instancecheck__(cls, x: object) -> bool:
                return isinstance(x, Tensor) and x.dtype is dtype and not x.is_cuda

            def __call__(cls, *data: Any, device: Any = None) -> Tensor:
                sized = not data or all(isinstance(whole(n), int) for n in data)
                return (
                    genesis.empty(*data, dtype=dtype, device=device)
                    if data and sized
                    else genesis.tensor(*(data or ([],)), dtype=dtype, device=device)
                )

        return Typed(name, (), {"dtype": dtype, "device": "cpu"})

    def set_default_tensor_type(kind: Any) -> None:
        chosen = find(*kind.rsplit(".", 1)) if isinstance(kind, str) else kind
        genesis.set_default_dtype(getattr(chosen, "dtype", chosen))
        genesis.set_default_device(getattr(chosen, "device", "cpu"))

    kinds = {"Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Byte": "uint8", "Char": "int8",
             "Short": "int16", "Int": "int32", "Long": "int64", "Bool": "bool"}  # fmt: skip
    return {
        "inf": math.inf, "nan": math.nan, "pi": math.pi, "e": math.e,
        "set_default_tensor_type": set_default_tensor_type,
        **{name: getattr(deterministic, name) for name in DETERMINISTIC},
        "set_float32_matmul_precision": _nothing,
        "get_float32_matmul_precision": lambda: "highest",
        "set_warn_always": _nothing,
        **{f"{name}Tensor": typed(f"{name}Tensor", getattr(genesis, dtype)) for name, dtype in kinds.items()},
    }  # fmt: skip


@_values("torch.version")
def _version() -> dict[str, Any]:
    cuda = importlib.import_module("genesis.cuda.runtime.connection")
    version = cuda.driver().version() if cuda.available() else None  # 13000 is 13.0
    said = None if version is None else f"{version // 1000}.{version % 1000 // 10}"
    return {"cuda": said, "hip": None, "xpu": None, "debug": False, "git_version": "unknown"}


@_values("torch.autograd")
def _autograd() -> dict[str, Any]:
    def Variable(data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Tensor:  # noqa: N802
        """A tensor, as it is since PyTorch 0.4."""
        return data.requires_grad_() if requires_grad else data

    return {"Variable": Variable, "Function": genesis.Function}


@_values("torch.autograd.function")
def _function() -> dict[str, Any]:
    return {"Function": genesis.Function, "FunctionCtx": genesis.Context}


@_values("torch.cuda")
def _cuda() -> dict[str, Any]:
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(
            message("torch.cuda", "there is no GPU here", hint="ask torch.cuda.is_available() first")
        )

    silent = (
        "empty_cache",
        "init",
        "manual_seed",
        "manual_seed_all",
        "reset_peak_memory_stats",
        "seed",
        "seed_all",
        "set_device",
    )
    asked = (
        "current_device",
        "get_device_name",
        "get_device_properties",
        "get_device_capability",
        "synchronize",
        "current_stream",
    )
    return {
        "is_available": _no, "is_initialized": _no, "is_bf16_supported": _no, "device_count": lambda: 0,
        "memory_allocated": lambda *_: 0, "max_memory_allocated": lambda *_: 0, "memory_reserved": lambda *_: 0,
        **dict.fromkeys(silent, _nothing), **dict.fromkeys(asked, refused),
    }  # fmt: skip


@_values("torch.mps")
def _mps() -> dict[str, Any]:
    return {"is_available": _no, "device_count": lambda: 0, "manual_seed": _nothing, "empty_cache": _nothing}


@contextmanager
def _cudnn_flags(*_: Any, deterministic: bool = False, **__: Any) -> Any:
    before, switches.cudnn = switches.cudnn, bool(deterministic)
    try:
        yield
    finally:
        switches.cudnn = before


@_values("torch.backends.cudnn")
def _cudnn() -> dict[str, Any]:
    return {
        "benchmark": False,
        "deterministic": switches.cudnn,  # a module of that name asks, and sets, the switch itself
        "enabled": False,
        "allow_tf32": False,
        "is_available": _no,
        "version": _nothing,
        "flags": _cudnn_flags,
    }


def _unavailable() -> dict[str, Any]:
    return {"is_available": _no, "is_built": _no, "enabled": False}


for _name in ("torch.backends.mps", "torch.backends.mkldnn", "torch.backends.mkl", "torch.backends.openmp"):
    _values(_name)(_unavailable)


@_values("torch.backends.cuda")
def _backends_cuda() -> dict[str, Any]:
    class matmul:  # noqa: N801
        allow_tf32 = allow_fp16_reduced_precision_reduction = False

    return {"is_built": _no, "matmul": matmul, "sdp_kernel": lambda **_: nullcontext()}


@_values("torch.multiprocessing")
def _multiprocessing() -> dict[str, Any]:
    public = {name: getattr(multiprocessing, name) for name in multiprocessing.__all__}
    return {**public, "set_sharing_strategy": _nothing, "get_sharing_strategy": lambda: "file_descriptor"}


@_values("torch.nn.parameter")
def _parameter() -> dict[str, Any]:
    from genesis import nn

    return {name: getattr(nn, name) for name in ("Parameter", "Buffer") if hasattr(nn, name)}


@_values("torch.optim.optimizer")
def _optimizer() -> dict[str, Any]:
    from genesis.optim import optimizer

    return {"required": optimizer.required, "ParamsT": Any}


@_values("torch.optim.lr_scheduler")
def _lr_scheduler() -> dict[str, Any]:
    from genesis.optim import lr_scheduler

    return {"_LRScheduler": lr_scheduler.LRScheduler}


@_values("torch.types")
def _types() -> dict[str, Any]:
    return {"Number": int | float | bool, "Device": genesis.device | str | int | None}


@_values("torch.utils.checkpoint")
def _checkpoint() -> dict[str, Any]:
    module = importlib.import_module("genesis.utils.checkpoint")
    return {name: getattr(module, name) for name in ("checkpoint", "checkpoint_sequential") if hasattr(module, name)}
