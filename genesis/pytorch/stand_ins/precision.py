"""Mixed precision as programs for GPUs write it: without one nothing is cast or scaled, as in PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import genesis
from genesis.amp import GradScaler, autocast
from genesis.base.device import memory_named
from genesis.pytorch.stand_ins.common import Values, values


class CudaAutocast(autocast):
    """`autocast` on GPUs; without one nothing is cast, and a warning says so."""

    def __init__(self, enabled: bool = True, dtype: Any = genesis.float16, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class CpuAutocast(autocast):
    """`autocast` on the CPU, under the name that PyTorch gave it first."""

    def __init__(self, enabled: bool = True, dtype: Any = genesis.bfloat16, cache_enabled: bool = True) -> None:
        super().__init__("cpu", dtype, enabled, cache_enabled)


class Scaler(GradScaler):
    """`GradScaler`, of GPUs where no device is given; without one it does nothing, and a warning says so."""

    def __init__(self, device: str = "cuda", *args: Any, **options: Any) -> None:
        super().__init__(device, *args, **options)
        if self._enabled and memory_named(str(device).partition(":")[0]) is None:
            warnings.warn(f"GradScaler: there is no {device!r} here, nothing is scaled", stacklevel=2)
            self._enabled = False


class CudaScaler(Scaler):
    """The same, for GPUs alone."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__("cuda", *args, **options)


class CpuScaler(Scaler):
    """`GradScaler` on the CPU."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__("cpu", *args, **options)


def _of(autocast: type, scaler: type) -> Any:
    return lambda: {"autocast": autocast, "GradScaler": scaler}


values("torch.cuda.amp", "torch.cuda.amp.autocast_mode", "torch.cuda.amp.grad_scaler")(_of(CudaAutocast, CudaScaler))
values("torch.cpu.amp", "torch.cpu.amp.autocast_mode", "torch.cpu.amp.grad_scaler")(_of(CpuAutocast, CpuScaler))


@values("torch", "torch.amp", "torch.amp.grad_scaler")
def _amp() -> Values:
    return {"GradScaler": Scaler}
