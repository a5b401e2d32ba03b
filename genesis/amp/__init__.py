"""Mixed precision: `autocast` picks the precision of each op, `GradScaler` keeps small float16 gradients alive."""

from genesis.amp.autocast import (
    autocast,
    autocast_mode,
    custom_bwd,
    custom_fwd,
    get_autocast_dtype,
    is_autocast_enabled,
)
from genesis.amp.grad_scaler import GradScaler

__all__ = [
    "GradScaler",
    "autocast",
    "autocast_mode",
    "custom_bwd",
    "custom_fwd",
    "get_autocast_dtype",
    "is_autocast_enabled",
]
