"""Valid calls of every public callable, for the signature fuzzer: those of ops from their records, the others from the
tables of `calls`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import genesis
from genesis import amp, autograd, data, func, nn, optim
from genesis.core.call.op import Op
from genesis.nn import functional as F
from genesis.nn import init, utils
from genesis.optim import lr_scheduler
from genesis.testing.calls import AFTER, CALLS
from genesis.testing.calls.shared import After, Calls
from genesis.testing.make import Maker
from genesis.testing.opcheck import samples_of


@dataclass(frozen=True, slots=True)
class Target:
    """One public callable: how to call it, with arguments that are right."""

    path: str
    call: Callable[..., Any]
    calls: Calls
    # what is done with the result: a module is called, an optimizer steps
    after: After | None = field(default=None)

    @property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.call)


SPACES: dict[str, Any] = {
    "": genesis,
    "nn": nn,
    "nn.functional": F,
    "nn.init": init,
    "nn.parallel": nn.parallel,
    "nn.utils": utils,
    "nn.utils.parametrize": utils.parametrize,
    "nn.utils.parametrizations": utils.parametrizations,
    "nn.utils.prune": utils.prune,
    "optim": optim,
    "optim.lr_scheduler": lr_scheduler,
    "optim.swa_utils": optim.swa_utils,
    "data": data,
    "amp": amp,
    "autograd": autograd,
    "func": func,
    "linalg": genesis.linalg,
    "fft": genesis.fft,
    "special": genesis.special,
    "masked": genesis.masked,
    "sparse": genesis.sparse,
    "signal.windows": genesis.signal.windows,
}
UNCALLED = {  # public, and not to be called by their users
    **dict.fromkeys(("layout", "memory_format"), "classes of values that exist, for isinstance"),
    **dict.fromkeys(
        ("TypedStorage", "UntypedStorage", "SparseTensor", "CompressedTensor", "BlockTensor"), "results of other calls"
    ),
    **dict.fromkeys(("Context", "autograd.Context", "autograd.FunctionCtx"), "what a Function is given"),
    **dict.fromkeys(
        ("nn.functional.upsample", "nn.functional.upsample_bilinear", "nn.functional.upsample_nearest"),
        "old: they warn",
    ),
    "linalg.LinAlgError": "an error",
    **dict.fromkeys(("DType", "dtype", "NDArray"), "classes of values that exist, for isinstance"),
    **dict.fromkeys(
        (
            "Function",
            "autograd.Function",
            "nn.Module",
            "nn.LazyModuleMixin",
            "nn.utils.prune.BasePruningMethod",
            "nn.RNNCellBase",
            "optim.Optimizer",
            "optim.lr_scheduler.LRScheduler",
            "data.Dataset",
            "data.IterableDataset",
            "data.Sampler",
        ),
        "base classes",
    ),
    **dict.fromkeys(
        ("autograd.AddFunction", "autograd.MulFunction", "autograd.MatMulFunction", "autograd.ReluFunction"),
        "Functions, called by apply",
    ),
    **dict.fromkeys(
        (
            "nn.Summary",
            "autograd.Report",
            "autograd.BackwardRecord",
            "autograd.Explanation",
            "data.WorkerInfo",
            "autograd.ForeignFunction",
        ),
        "results of other calls",
    ),
    **dict.fromkeys(("nn.BroadcastWarning", "autograd.GradcheckError", "autograd.VerifyError"), "warnings and errors"),
    "autograd.from_ctypes": "takes a function of a C library",
    "optim.SparseAdam": "steps along sparse gradients alone",
}


@contextmanager
def settings_kept() -> Iterator[None]:
    """Puts back what a call sets for the thread or the process."""
    kind, device, threads, interop, state = (
        genesis.get_default_dtype(),
        genesis.get_default_device(),
        genesis.get_num_threads(),
        genesis.get_num_interop_threads(),
        genesis.get_rng_state(),
    )
    try:
        yield
    finally:
        genesis.set_grad_enabled(True)
        genesis.autograd.set_detect_anomaly(False)
        nn.allow_loss_broadcast(False)
        genesis.set_default_dtype(kind)
        genesis.set_default_device(device)
        genesis.set_num_threads(threads)
        genesis.set_num_interop_threads(interop)
        genesis.set_printoptions(profile="default")
        genesis.set_rng_state(state)


def _of_op(op: Op) -> Calls:
    return lambda t: samples_of(op, t)


def _names(space: Any) -> list[str]:
    listed = getattr(space, "__all__", None)
    names = (
        list(listed)
        if listed is not None
        else [n for n, v in vars(space).items() if getattr(v, "__module__", None) == space.__name__]
    )
    return sorted(n for n in set(names) if not n.startswith("_") and callable(getattr(space, n, None)))


def public() -> Iterator[tuple[str, Any]]:
    """The paths and objects of all public callables, aliases included."""
    for prefix, space in SPACES.items():
        for name in _names(space):
            yield (f"{prefix}.{name}" if prefix else name), getattr(space, name)


def targets() -> list[Target]:
    """What the fuzzer calls: each public callable that has valid calls, once."""
    fuzzed: dict[int, Target] = {}
    for path, call in public():
        op = getattr(call, "op", None)
        calls = CALLS.get(path) or (_of_op(op) if isinstance(op, Op) and samples_of(op, Maker()) else None)
        if calls is not None:
            fuzzed.setdefault(id(call), Target(path, call, calls, AFTER.get(path)))
    return list(fuzzed.values())
